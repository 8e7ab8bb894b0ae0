"""Random choices that remember what they were, and the JSON files that they change."""
import json
import random


class Draw(random.Random):
    def __init__(self, seed):
        super().__init__(seed)
        self.drawn = []

    def note(self, text):
        self.drawn.append(text)

    def maybe(self, share, text=None):
        yes = self.random() < share
        if yes and text:
            self.note(text)
        return yes

    def pick(self, **weights):
        """One of the names, as often as its weight; noted."""
        name = self.choices(list(weights), list(weights.values()))[0]
        self.note(name)
        return name

    def words(self, tokens, least, most):
        return " ".join(self.choice(tokens) for _ in range(self.randint(least, most)))


def edit(path, change):
    data = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    change(data)
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


def odd_value(draw, value):
    """Something else in the place of a value."""
    return draw.choice([None, value, [value], [], {}, str(value), "", True, False, 0, 1, 2, -1, 0.5, 1e-6, float("inf"),
                        *([float(value), -value, value + 0.5, value + 1] if isinstance(value, (int, float)) else [])])


def leaves(data, path=()):
    """(path, value) of everything in a tree of JSON; of long lists and tables the first entries."""
    if path:
        yield path, data
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(entries)[:8]:
        yield from leaves(value, (*path, key))


def odd_leaf(draw, path):
    """One value somewhere in a file is another one, or is gone."""
    def change(data):
        at, value = draw.choice(list(leaves(data)) or [((), None)])
        if not at:
            return
        place = data
        for key in at[:-1]:
            place = place[key]
        if draw.maybe(0.3):
            del place[at[-1]]
            draw.note(f"no {path.name}:{'.'.join(map(str, at))}")
        else:
            place[at[-1]] = odd_value(draw, value)
            draw.note(f"{path.name}:{'.'.join(map(str, at))} {str(place[at[-1]])[:60]}")
    edit(path, change)

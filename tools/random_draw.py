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

"""Texts for the live page: sentences of the vocabulary of the embedded model, with a mask or two, and what people type besides."""
import pathlib
import random

VOCABULARY = pathlib.Path(__file__).resolve().parents[2] / "models/default/vocab.txt"
ODD = ["I was watching the door when [MASK] opened.", "[MASK]", "[MASK] [MASK] [MASK]", "My umbrella broke, as umbrellas do.", "Zoë’s naïve café",
       "日本語 and русский", "👩‍🔬 sees 🐈", "a <b>bold</b> \"quote\" & 'more'", "tab\tand   spaces", "[CLS] the [SEP] man [PAD]", "[mask] is no mask", "</script>"]


def sentences(n, seed):
    """n texts, the first of which are odd; the same of a seed."""
    chance = random.Random(seed)
    words = [word for word in VOCABULARY.read_text(encoding="utf-8").split() if word.isalpha()]
    made = ODD[:n]
    while len(made) < n:
        drawn = chance.choices(words, k=chance.randint(3, 24))
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            drawn[chance.randrange(len(drawn))] = "[MASK]"
        made.append(" ".join(drawn).capitalize().replace("[mask]", "[MASK]") + chance.choice(".?!"))
    return made

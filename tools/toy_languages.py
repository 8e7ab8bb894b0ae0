#!/usr/bin/env python3
"""Sentences of two toy languages, with their translation and the true alignment of their words: docs/toy-languages.md.

    python3 tools/toy_languages.py DIR [--pairs 24000] [--seed 1]     writes train.tsv, train.align, test.tsv, test.align
    python3 tools/toy_languages.py --aer GUESS TRUTH                  the alignment error rate of GUESS
    python3 tools/toy_languages.py --check                            holds the default text against the rules

A line of .tsv is "source TAB target", and the line of .align with its number has the links of that pair: i-j (sure) or
i?j (possible), word i of the source and word j of the target, counted from 0. A pair is of the test if the hash of its
target is 0 modulo 20, so neither a source nor a target of the test occurs in training. Needs nothing but Python, and
its output depends on pairs and seed only.
"""
import argparse
import hashlib
import pathlib
import sys

MOST_WORDS, LEAST_WORDS, TEST_ONE_IN = 10, 3, 20

# ---- Words: the source's forms = the target's stem ------------------------------------------------------------------

NAMES = "Anna=nolu Tom=tekebu Emma=podenu Paul=perulu Maria=dikudu Max=tobopu Laura=tesetu Hugo=datadu"
PEOPLE = """woman/women=lera man/men=tuti girl/girls=davu boy/boys=paro king/kings=tetu queen/queens=rada
    baker/bakers=mupu teacher/teachers=dopi child/children=pumi farmer/farmers=reva singer/singers=tude"""
ANIMALS = "cat/cats=suri dog/dogs=neke horse/horses=tunu fox/foxes=siho bird/birds=nuta mouse/mice=voki owl/owls=kora"
THINGS = """house/houses=bavu boat/boats=lihi tree/trees=tano stone/stones=hapi lamp/lamps=belu door/doors=nobi
    bridge/bridges=polu river/rivers=dasa tower/towers=miku garden/gardens=rosi table/tables=neru basket/baskets=tamu
    apple/apples=valupa onion/onions=sevamu"""
TEXTS = "book/books=lulota letter/letters=murebi song/songs=nahivi story/stories=kimuvu"
SIZES = "big=verem small=pimiv old=muliv tall=buvov"
COLOURS = "red=pokup green=kekod white=haval black=buvus"
MOODS = "happy=natus tired=vatol clever=hisuv lonely=tosit young=repis"
LOOKS = "beautiful=sumun strange=veser quiet=tupem"
NUMERALS = "two=nim three=sol many=gar"
# base/-s/past=stem: who does it (p a person, a an animal, too), and to what (t a text, x anything)
TRANSITIVE = """see/sees/saw=hov:ax hear/hears/heard=rir:ax find/finds/found=mil:ax follow/follows/followed=tip:ax
    like/likes/liked=lus:ax draw/draws/drew=sar:px paint/paints/painted=fip:px carry/carries/carried=kob:px
    buy/buys/bought=nok:px sell/sells/sold=vud:px hide/hides/hid=sev:px study/studies/studied=nab:pt
    write/writes/wrote=det:pt know/knows/knew=piv:px watch/watches/watched=kav:ax lose/loses/lost=lan:px
    remember/remembers/remembered=sud:px forget/forgets/forgot=mot:px"""
INTRANSITIVE = """sleep/sleeps/slept=lakat run/runs/ran=birep wait/waits/waited=tovid sing/sings/sang=mipok
    work/works/worked=kisan walk/walks/walked=livim rest/rests/rested=piras dance/dances/danced=nubem"""
PLACES = "near=teb behind=gul under=fos beside=wen"
TIMES = "today=yami yesterday=yalu now=yefo often=yike tomorrow=yosa sometimes=yuru"
PLURAL, OBJECT, NOT = "li", "ko", "ma"
PRESENT, PAST, FUTURE = "a", "e", "o"


def entries(text):
    return [tuple(entry.split("=")) for entry in text.split()]


def nouns(text):
    return [(source.split("/"), target) for source, target in entries(text)]


def verbs(text):
    rows = []
    for source, target in entries(text):
        stem, _, kinds = target.partition(":")
        rows.append((source.split("/"), stem, kinds))
    return rows


NAMES, SIZES, COLOURS, MOODS, LOOKS, NUMERALS, PLACES, TIMES = (
    entries(text) for text in (NAMES, SIZES, COLOURS, MOODS, LOOKS, NUMERALS, PLACES, TIMES))
NOUNS = {"person": nouns(PEOPLE), "animal": nouns(ANIMALS), "thing": nouns(THINGS), "text": nouns(TEXTS)}
TRANSITIVE, INTRANSITIVE = verbs(TRANSITIVE), verbs(INTRANSITIVE)
ADJECTIVES = SIZES + COLOURS + MOODS + LOOKS
QUALITIES = {"person": MOODS + LOOKS, "animal": MOODS + COLOURS + LOOKS, "thing": COLOURS + LOOKS, "text": LOOKS}
TENSES = {"present": ("today", "now", "often", "sometimes"), "past": ("today", "yesterday", "often", "sometimes"),
          "future": ("today", "tomorrow")}


# ---- Random numbers: splitmix64 (Steele, Lea and Flood 2014), the same in every version of Python ---------------------


class Random:
    def __init__(self, seed):
        self.state = seed & (2**64 - 1)

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        return (z ^ (z >> 31)) % n

    def one_of(self, items):
        return items[self.below(len(items))]


# ---- A sentence: the target's words as (text, index of its source word, sure?) links ----------------------------------


class Sentence:
    """Source words in order, and target words each with its links: a sure one at most, and possible ones."""

    def __init__(self):
        self.source = []

    def say(self, word):
        self.source.append(word)
        return len(self.source) - 1


def noun_phrase(rng, sentence, subject_kinds, other_than=None):
    """Says a phrase; returns its target words, the index of its source noun, whether it is plural, and the noun."""
    kind = rng.one_of(subject_kinds)
    if kind == "name":
        names = [name for name in NAMES if name[0] != other_than]
        source, target = rng.one_of(names)
        i = sentence.say(source)
        return [(target, [i], [])], i, False, source
    (one, more), stem = rng.one_of([noun for noun in NOUNS[kind] if noun[0][0] != other_than])
    plural = rng.below(3) == 0
    numeral = rng.one_of(NUMERALS) if plural and rng.below(2) == 0 else None
    n_adjectives = (0, 0, 0, 0, 1, 1, 1, 2)[rng.below(8)]
    adjectives = [rng.one_of(SIZES)] if n_adjectives == 2 else []
    if n_adjectives > 0:
        adjectives.append(rng.one_of(QUALITIES[kind] + (SIZES if n_adjectives == 1 else [])))
    first = (adjectives[0][0] if adjectives else one)[0]
    indefinite = not plural and rng.below(2) == 0
    article = None
    if not numeral:
        article = sentence.say(("an" if first in "aeiou" else "a") if indefinite else "the")
    count = sentence.say(numeral[0]) if numeral else None
    qualities = [(target, sentence.say(source)) for source, target in adjectives]
    i = sentence.say(more if plural else one)
    words = [(stem + (PLURAL if plural else ""), [i], [] if article is None else [article])]
    words += [(target, [j], []) for target, j in reversed(qualities)]
    if numeral:
        words.append((numeral[1], [count], []))
    return words, i, plural, one


def verb_phrase(rng, sentence, row, plural):
    """Says the verb with its auxiliary; returns the target's words and the tense."""
    (base, with_s, past), stem, _ = row
    tense = rng.one_of(["present", "past", "past", "future", "not past", "not future"])
    if tense == "present":
        return [(stem + PRESENT, [sentence.say(base if plural else with_s)], [])], tense
    if tense == "past":
        return [(stem + PAST, [sentence.say(past)], [])], tense
    helper = sentence.say("will" if tense.endswith("future") else "did")
    negation = sentence.say("not") if tense.startswith("not") else None
    verb = (stem + (FUTURE if tense.endswith("future") else PAST), [sentence.say(base)], [helper])
    return [verb] + ([] if negation is None else [(NOT, [negation], [])]), tense.split()[-1]


def make_sentence(rng):
    """Source words and target words with links, in the order of each language."""
    sentence = Sentence()
    transitive = rng.below(4) != 0
    row = rng.one_of(TRANSITIVE if transitive else INTRANSITIVE)
    who = ["name", "person"] if row[2].startswith("p") else ["name", "person", "animal"]
    subject, _, plural, noun = noun_phrase(rng, sentence, who)
    verb, tense = verb_phrase(rng, sentence, row, plural)
    target = list(subject)
    thing = []
    if transitive:
        what = ["text"] if row[2].endswith("t") else ["name", "person", "animal", "thing", "thing", "thing"]
        thing, i, _, _ = noun_phrase(rng, sentence, what, noun)
        thing = thing + [(OBJECT, [], [i] + verb[0][1])]
    if rng.below(4 if transitive else 2) == 0:
        source, postposition = rng.one_of(PLACES)
        j = sentence.say(source)
        place, _, _, _ = noun_phrase(rng, sentence, ["thing"])
        target += place + [(postposition, [j], [])]
    target += thing + verb
    if rng.below(3) == 0:
        source, time = rng.one_of([time for time in TIMES if time[0] in TENSES[tense]])
        target = [(time, [sentence.say(source)], [])] + target
    return sentence.source, target


def links_of(target):
    sure = [(i, j) for j, (_, links, _) in enumerate(target) for i in links]
    possible = [(i, j) for j, (_, _, links) in enumerate(target) for i in links]
    return sure, possible


def text_of(sure, possible):
    links = [(i, j, "-") for i, j in sure] + [(i, j, "?") for i, j in possible]
    return " ".join(f"{i}{sign}{j}" for i, j, sign in sorted(links))


def is_test(target):
    return int.from_bytes(hashlib.sha256(target.encode()).digest()[:8], "big") % TEST_ONE_IN == 0


def make_pairs(n, seed):
    """n distinct pairs: source, target, links, as texts."""
    rng, seen, pairs = Random(seed), set(), []
    while len(pairs) < n:
        source, target = make_sentence(rng)
        if not LEAST_WORDS <= len(source) <= MOST_WORDS or len(target) > MOST_WORDS:
            continue
        line = " ".join(source)
        if line in seen:
            continue
        seen.add(line)
        pairs.append((line, " ".join(word for word, _, _ in target), text_of(*links_of(target))))
    return pairs


# ---- Alignment error rate (Och and Ney 2003) ---------------------------------------------------------------------------


def read_links(line):
    sure, possible = set(), set()
    for link in line.split():
        sign = "-" if "-" in link else "?"
        i, _, j = link.partition(sign)
        (sure if sign == "-" else possible).add((int(i), int(j)))
    return sure, possible


def error_rate(guesses, truths):
    """1 - (|A & S| + |A & P|) / (|A| + |S|) over all lines; P holds S, a guess's own marks do not matter."""
    right = total = 0
    for guess, truth in zip(guesses, truths, strict=True):
        sure, possible = read_links(truth)
        links = set.union(*read_links(guess))
        right += len(links & sure) + len(links & (sure | possible))
        total += len(links) + len(sure)
    return 1 - right / total if total else 0.0


# ---- The rules, read off the text ------------------------------------------------------------------------------------


def lexicon():
    """The target's word for every source word that has a sure link."""
    table = dict(NAMES + ADJECTIVES + NUMERALS + PLACES + TIMES)
    for (one, more), stem in sum(NOUNS.values(), []):
        table[one], table[more] = stem, stem + PLURAL
    table["not"] = NOT
    return table


def verb_forms():
    forms = {}
    for (base, with_s, past), stem, _ in TRANSITIVE + INTRANSITIVE:
        for form, endings in ((base, (PRESENT, PAST, FUTURE)), (with_s, (PRESENT,)), (past, (PAST,))):
            forms.setdefault(form, set()).update(stem + ending for ending in endings)
    return forms


UNLINKED = {"a", "an", "the", "will", "did"}


def check_pair(source, target, links, table, forms):
    source, target = source.split(), target.split()
    sure, possible = read_links(links)
    places = dict(sure)
    assert LEAST_WORDS <= len(source) <= MOST_WORDS and len(target) <= MOST_WORDS
    assert len(places) == len(sure) == len(set(places.values())), "a word has two sure links"
    assert {i for i in range(len(source)) if i not in places} == {i for i, w in enumerate(source) if w in UNLINKED}
    assert {j for _, j in sure | possible} == set(range(len(target))), "a target word has no link"
    for i, j in sure:
        word = source[i]
        assert target[j] == table.get(word) or target[j] in forms.get(word, ()), (word, target[j])
    verb = next(i for i, w in enumerate(source) if w in forms and places[i] >= len(target) - 2)
    at = places[verb]
    assert target[at + 1:] in ([], [NOT]), "the verb is not last"
    adjectives = dict(ADJECTIVES)
    known = {word for word in table if table[word] not in adjectives.values()}
    for i, word in enumerate(source):
        if word in adjectives:
            noun = next(k for k in range(i + 1, len(source)) if source[k] in known)
            assert places[noun] < places[i], "an adjective stands before its noun"
        if word in dict(TIMES):
            assert i == len(source) - 1 and places[i] == 0, "time: last in the source, first in the target"
            tense = {PRESENT: "present", PAST: "past", FUTURE: "future"}[target[at][-1]]
            assert word in TENSES[tense], "the tense is not of that time"
    assert target.count(OBJECT) == (OBJECT in target[:at]), "one object, before the verb"


def check():
    pairs = make_pairs(24000, 1)
    table, forms = lexicon(), verb_forms()
    stems = list(table.values()) + sorted(set().union(*forms.values())) + [OBJECT]
    assert len(set(stems)) == len(stems), "two words of the target are spelled alike"
    for pair in pairs:
        check_pair(*pair, table, forms)
    for column in 0, 1:
        test = {pair[column] for pair in pairs if is_test(pair[1])}
        assert not test & {pair[column] for pair in pairs if not is_test(pair[1])}
    assert make_pairs(100, 1) == pairs[:100] and make_pairs(100, 2) != pairs[:100]
    truths = [links for _, _, links in pairs]
    assert error_rate(truths, truths) == 0
    assert error_rate(["0-0 1-1", "0-1"], ["0-0 1?1 1-2", "0-0"]) == 1 - (1 + 2) / (3 + 3)
    lengths = [(len(source.split()), len(target.split())) for source, target, _ in pairs]
    diagonal = [" ".join(f"{round(j * (n - 1) / max(1, m - 1))}-{j}" for j in range(m)) for n, m in lengths]
    digest = hashlib.sha256("\n".join("\t".join(pair) for pair in pairs).encode()).hexdigest()[:16]
    n_test = sum(is_test(target) for _, target, _ in pairs)
    words = [len({w for pair in pairs for w in pair[column].split()}) for column in (0, 1)]
    print(f"{len(pairs) - n_test} pairs for training, {n_test} for the test; {words[0]} and {words[1]} words; "
          f"{sum(n for n, _ in lengths) / len(pairs):.1f} and {sum(m for _, m in lengths) / len(pairs):.1f} in a sentence")
    print(f"alignment error rate of the diagonal: {error_rate(diagonal, truths):.3f}; digest {digest}")
    assert digest == DIGEST, "the text is another one than the documented"


DIGEST = "418a69792f65b977"


def write(folder, n, seed):
    folder.mkdir(parents=True, exist_ok=True)
    pairs = make_pairs(n, seed)
    for name, wanted in ("train", False), ("test", True):
        part = [pair for pair in pairs if is_test(pair[1]) == wanted]
        (folder / f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target, _ in part), newline="\n")
        (folder / f"{name}.align").write_text("".join(f"{links}\n" for _, _, links in part), newline="\n")
        print(f"{folder / name}.tsv: {len(part)} pairs")


def main():
    parser = argparse.ArgumentParser(description="Sentences of two toy languages, translated and aligned.")
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=24000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--aer", nargs=2, type=pathlib.Path, metavar=("GUESS", "TRUTH"))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.aer:
        guess, truth = (path.read_text().splitlines() for path in options.aer)
        print(f"{error_rate(guess, truth):.4f}")
    elif options.check:
        check()
    elif options.folder:
        write(options.folder, options.pairs, options.seed)
    else:
        parser.error("a folder, --aer or --check")


if __name__ == "__main__":
    sys.exit(main())

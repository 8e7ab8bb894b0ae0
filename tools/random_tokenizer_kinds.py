"""Folders of tokenizers for random_tokenizers.py, and the comparison of their ids."""
import json
import pathlib
import shutil
import subprocess
import tempfile

import transformers as t
from tokenizers import AddedToken

from random_draw import Draw, edit

KINDS = {}
ROOT = pathlib.Path(__file__).parent.parent
NO_LIMIT = 1000000000000000019884624838656  # what transformers writes for no limit


def kind(function):
    KINDS[function.__name__] = function
    return function


# ---- Texts -------------------------------------------------------------------------------------------

WORDS = "the a door box key man dog watching opened fell left it he she when was una unaffable hello naive cafe".split()
PIECES = "s ed ing affable able ly er est x y".split()
ODD = ("éÉñÅßẞİıςΣёЙ中文日本語한국어カ\u3099\u0301\u0316\u0327नमस्तेไทยéﬁⅣ😁👩\u200d💻＠ǅǆ"
       "\u00ad\u200b\u200e\ue000\ufffd\u0085\u000b\u000c\u2028\u3000\u00a0\u2003")
ASCII = "abcdeXYZ 019 .,!'-_<>[]#@$\n\t"
CONTENTS = ["<ent>", "<Ent>", "<ENT>", "<e>", "<e2>", "Foo", "newword", "NewWord", "##x", "中文", "文", "é", "É", "naïve",
            "Ünï", "a b", "A  b", " sp", "sp ", "[X]", "[mask]", "[MASKED]", "@user", "x.y", "...", "한", "ﬁ", "İ", "door",
            "the", "un", "Σς", "e\u0301", "ent", "1", "<|im|>", "Ġa", "▁b", "\ta", "a\u00a0b", "<mask", "mask>", "😁"]


def text_of(draw, words, added):
    text = ""
    for _ in range(draw.randint(0, 12)):
        what = draw.random()
        if what < 0.25:
            text += draw.choice(ASCII)
        elif what < 0.5 and added:
            token = draw.choice(added)
            text += draw.choice([token, token, token, token.upper(), token.lower(), token.title(), token[:-1]])
        elif what < 0.75:
            word = draw.choice(words)
            text += draw.choice([word, word.upper(), word.title()]) + draw.choice(["", " ", " ", "  "])
        else:
            text += draw.choice(ODD)
    return text


def texts_of(draw, n, words, added):
    """Strings, and now and then pairs of them; an empty second one is none to transformers."""
    texts = [text_of(draw, words, added) for _ in range(n)]
    return [[text, text_of(draw, words, added) or "x"] if draw.maybe(0.15) else text for text in texts]


# ---- The comparison ----------------------------------------------------------------------------------


def reference(folder, texts):
    """Ids of each text, None where the library fails on it; or what it says to the folder."""
    try:
        maker = t.AutoTokenizer.from_pretrained(folder)
    except BaseException as error:  # a panic of Rust is no Exception
        return None, f"{type(error).__name__} {error}".split("\n")[0]
    ids = []
    for text in texts:
        try:
            ids.append(maker(*([text] if isinstance(text, str) else text))["input_ids"])
        except BaseException:
            ids.append(None)
    return ids, ""


def read_by_transformers(name, seed, n_texts):
    """(draw, tokenizer, {file: content}, texts, ids) of a drawn folder; None where transformers fails on it or on a text."""
    draw = Draw(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        texts = KINDS[name](draw, folder).texts(n_texts, draw)
        try:
            maker = t.AutoTokenizer.from_pretrained(folder)
            ids = [maker(*([text] if isinstance(text, str) else text))["input_ids"] for text in texts]
        except BaseException:
            return None
        files = {path.name: path.read_bytes().decode() for path in sorted(folder.iterdir()) if path.suffix != ".spm"}
    return draw, maker, files, texts, ids


def run(options, words, lines):
    result = subprocess.run([options.qkv] + words, input="".join(json.dumps(line) + "\n" for line in lines), text=True,
                            capture_output=True, timeout=300)
    return result.stdout, result.stderr.strip()


def ours(options, folder, texts):
    out, err = run(options, ["tokenize", "--model", str(folder), "--jsonl"], texts)
    answers = [json.loads(line) for line in out.splitlines()]
    if len(answers) != len(texts):
        return None, err
    return [answer.get("ids", answer.get("error")) for answer in answers], ""


def comparison(folder, words, added, make=None):
    make = make or (lambda n, draw: texts_of(draw, n, words, sorted(added)))

    def compare(options, draw):
        texts = make(options.texts, draw)
        wanted, complaint = reference(folder, texts)
        got, refusal = ours(options, folder, texts)
        if got is None:
            if not refusal.startswith("qkv: ") or len(refusal.splitlines()) != 1:
                return "DIFFERS", f"no refusal in a line: {refusal!r}"
            return "refused" if wanted is not None else "unread", refusal.replace(str(folder), "…")
        if wanted is None:
            return "lenient", complaint[:120]
        for text, a, b in zip(texts, wanted, got):
            if a is not None and a != b:
                return "DIFFERS", f"{ascii(text)}: {a}, not {b}"
        return "same", ""

    compare.texts = make
    return compare


# ---- Added tokens ------------------------------------------------------------------------------------


def content_of(draw):
    if draw.maybe(0.3):
        return "".join(draw.choice("abXYé<>#1中 .") for _ in range(draw.randint(1, 5))) or "x"
    return draw.choice(CONTENTS)


def flags(draw):
    return dict(single_word=draw.maybe(0.25), lstrip=draw.maybe(0.25), rstrip=draw.maybe(0.25),
                normalized=draw.maybe(0.6), special=draw.maybe(0.3))


def add_tokens(draw, maker):
    """Tokens of every kind; their contents."""
    contents = []
    for _ in range(draw.choice([0, 0, 1, 2, 3, 6])):
        content = content_of(draw)
        contents.append(content)
        way = draw.random()
        try:
            if way < 0.3:
                maker.add_tokens([content])
            elif way < 0.8:
                maker.add_tokens([AddedToken(content, **flags(draw))])
            elif way < 0.9:
                maker.add_special_tokens({"extra_special_tokens": [content]})
            else:
                maker.add_special_tokens({draw.choice(["mask_token", "pad_token", "sep_token"]): content})
        except BaseException:
            draw.note("not added")
    if contents:
        draw.note(f"{len(contents)} added")
    return contents


def token_object(token, with_type):
    state = {key: getattr(token, key) for key in ("content", "single_word", "lstrip", "rstrip", "normalized", "special")}
    return state | ({"__type": "AddedToken"} if with_type else {})


def shuffled(draw, items):
    """The same dict; now and then its entries stand in another order."""
    items = list(items.items())
    if draw.maybe(0.3, "shuffled"):
        draw.shuffle(items)
    return dict(items)


def listed(draw, maker):
    """added_tokens_decoder as version 4 wrote it."""
    return shuffled(draw, {str(i): token_object(token, False) for i, token in maker.added_tokens_decoder.items()})


NAMES = ["unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]


def write_older_lists(draw, folder, maker, size):
    """What versions before 5 kept beside a vocabulary: lists of added tokens of three sorts."""
    config = folder / "tokenizer_config.json"
    way = draw.pick(decoder=4, files=4, nothing=1)
    if way == "decoder":
        edit(config, lambda c: c.__setitem__("added_tokens_decoder", listed(draw, maker)))
    if way == "files":
        new = {token.content: i for i, token in maker.added_tokens_decoder.items() if i >= size}
        if new:
            (folder / "added_tokens.json").write_text(json.dumps(shuffled(draw, new)))
        names = {name: getattr(maker, name) for name in NAMES if getattr(maker, name, None)}
        if draw.maybe(0.5, "objects"):
            names = {name: token_object(AddedToken(value, lstrip=draw.maybe(0.3), normalized=draw.maybe(0.3)), False)
                     if draw.maybe(0.5) else value for name, value in names.items()}
            for value in names.values():
                if isinstance(value, dict):
                    del value["special"]
        if draw.maybe(0.3) and maker.extra_special_tokens:
            names["additional_special_tokens"] = maker.extra_special_tokens
        (folder / "special_tokens_map.json").write_text(json.dumps(names))


# ---- Fields that are changed --------------------------------------------------------------------------


def set_fields(path, **fields):
    edit(path, lambda data: data.update(fields))


def change_config(draw, folder, classes):
    path = folder / "tokenizer_config.json"
    if draw.maybe(0.06, "no tokenizer_config"):
        path.unlink(missing_ok=True)
        return
    fields = {}
    for name, share, values in [
        ("tokenizer_class", 0.3, classes),
        ("do_lower_case", 0.2, [True, False]),
        ("strip_accents", 0.1, [True, False, None]),
        ("tokenize_chinese_chars", 0.1, [True, False]),
        ("add_prefix_space", 0.15, [True, False]),
        ("trim_offsets", 0.05, [True, False]),
        ("add_bos_token", 0.1, [True, False]),
        ("add_eos_token", 0.1, [True, False]),
        ("split_special_tokens", 0.1, [True, False]),
        ("model_max_length", 0.3, [NO_LIMIT, 512, 20, None]),
        ("truncation_side", 0.1, ["left", "right"]),
        ("padding_side", 0.1, ["left", "right"]),
        ("clean_up_tokenization_spaces", 0.1, [True, False, None]),
        ("do_basic_tokenize", 0.1, [True, False]),
        ("never_split", 0.1, [None, ["door"]]),
        ("model_input_names", 0.1, [["input_ids", "attention_mask"]]),
        ("extra_special_tokens", 0.1, [["<x1>", "door"], [], {"image_token": "<img>"}]),
        ("additional_special_tokens", 0.1, [["<x2>"], []]),
        ("boi_token", 0.05, ["<boi>"]),
        ("bos_token", 0.1, ["<bos>", None]),
        ("eos_token", 0.1, ["</s>", None]),
        ("pad_token", 0.1, ["<p>", None, {"__type": "AddedToken", "content": "<p>", "lstrip": True}]),
        ("mask_token", 0.1, ["<m>", {"__type": "AddedToken", "content": "<M>", "lstrip": True, "normalized": True}]),
        ("cls_token", 0.05, ["<c>", "the"]),
        ("unk_token", 0.05, ["a", "<nothing>"]),
        ("added_tokens_decoder", 0.04, [{}, {"0": token_object(AddedToken("the", lstrip=True), False)}]),
    ]:
        if draw.maybe(share):
            fields[name] = draw.choice(values)
    if fields.get("tokenizer_class", "") is None:
        draw.note("no class")
        edit(path, lambda c: c.pop("tokenizer_class", None))
        del fields["tokenizer_class"]
    if fields:
        draw.note(" ".join(f"{name}={value}" for name, value in fields.items()).replace(str(NO_LIMIT), "none"))
        set_fields(path, **fields)


def change_json(draw, folder):
    path = folder / "tokenizer.json"
    if not path.exists():
        return

    def change(data):
        normalizer, model = data.get("normalizer"), data["model"]
        if normalizer and draw.maybe(0.2, "normalizer"):
            normalizer["lowercase"] = not normalizer["lowercase"]
        if normalizer and draw.maybe(0.1, "clean_text"):
            normalizer["clean_text"] = False
        if "max_input_chars_per_word" in model and draw.maybe(0.15, "max chars"):
            model["max_input_chars_per_word"] = draw.choice([3, 200])
        if draw.maybe(0.15, "truncation"):
            data["truncation"] = dict(direction=draw.choice(["Left", "Right"]), max_length=4, strategy="LongestFirst", stride=0)
        if draw.maybe(0.15, "padding"):
            data["padding"] = dict(strategy={"Fixed": 20}, direction="Right", pad_to_multiple_of=None, pad_id=0,
                                   pad_type_id=0, pad_token="[PAD]")
        if draw.maybe(0.1, "no post_processor"):
            data["post_processor"] = None
        if data["added_tokens"] and draw.maybe(0.2, "flags"):
            token = draw.choice(data["added_tokens"])
            token.update(flags(draw))
        if data["added_tokens"] and draw.maybe(0.05, "id"):
            draw.choice(data["added_tokens"])["id"] += draw.choice([1, -1, 7])
        if data["added_tokens"] and draw.maybe(0.08, "token dropped"):
            data["added_tokens"].remove(draw.choice(data["added_tokens"]))

    edit(path, change)


# ---- WordPiece -----------------------------------------------------------------------------------------

SPECIALS = {"unk_token": ["[UNK]", "<unk>"], "sep_token": ["[SEP]", "</s>"], "pad_token": ["[PAD]", "<pad>"],
            "cls_token": ["[CLS]", "<s>"], "mask_token": ["[MASK]", "<mask>", "<MASK>"]}


def wordpiece_vocabulary(draw):
    names = {name: values[0] if draw.maybe(0.7) else draw.choice(values[1:]) for name, values in SPECIALS.items()}
    if any(value != SPECIALS[name][0] for name, value in names.items()):
        draw.note("other names")
    letters = list("abcdefghilmnoprstuvwxyzABXYZ019.,!<>[]#@") + list("éñßе中文日語한ςσ")
    tokens = letters + ["##" + c for c in letters] + WORDS + ["##" + p for p in PIECES] + ["Door", "NAIVE"]
    tokens = [token for token in tokens if draw.random() < 0.97]
    for name, value in names.items():
        missing = {"mask_token": 0.08, "pad_token": 0.08, "cls_token": 0.02}.get(name, 0.01)
        if not draw.maybe(missing, "without " + name):
            tokens.insert(draw.randrange(len(tokens)) if draw.maybe(0.2) else 0, value)
    return names, {token: i for i, token in enumerate(dict.fromkeys(tokens))}


def write_lines(draw, path, vocabulary):
    ending = "\r\n" if draw.maybe(0.1, "crlf") else "\n"
    lines = sorted(vocabulary, key=vocabulary.get)
    if draw.maybe(0.1, "blanks"):
        lines.insert(draw.randrange(len(lines)), draw.choice(["door", "", "door ", "key\u3000", " "]))
    path.write_bytes(ending.join(lines + [""] * draw.maybe(0.8)).encode())


@kind
def wordpiece(draw, folder):
    names, vocabulary = wordpiece_vocabulary(draw)
    settings = dict(do_lower_case=draw.maybe(0.7), strip_accents=draw.choice([None, None, True, False]),
                    tokenize_chinese_chars=draw.maybe(0.85))
    maker = t.BertTokenizer(vocab=dict(vocabulary), **settings, **names)
    added = add_tokens(draw, maker)
    maker.save_pretrained(folder)
    style = draw.pick(json=3, vocab=3, both=2, disagree=2, bare=1)
    if style in ("both", "disagree"):
        other = dict(zip(vocabulary, reversed(vocabulary.values()))) if style == "disagree" else vocabulary
        write_lines(draw, folder / "vocab.txt", other)
    if style == "vocab":
        (folder / "tokenizer.json").unlink()
        write_lines(draw, folder / "vocab.txt", vocabulary)
        write_older_lists(draw, folder, maker, len(vocabulary))
    if style == "bare":
        for path in folder.iterdir():
            path.unlink()
        write_lines(draw, folder / "vocab.txt", vocabulary)
    if style in ("json", "both", "disagree") and draw.maybe(0.15, "decoder"):
        edit(folder / "tokenizer_config.json", lambda c: c.__setitem__("added_tokens_decoder", listed(draw, maker)))
    if draw.maybe(0.6):
        change_config(draw, folder, ["BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend",
                                     "DistilBertTokenizer", "ElectraTokenizerFast", None])
    change_json(draw, folder)
    model_type = draw.choice(["bert", "bert", "bert", "distilbert", "electra"])
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    return comparison(folder, WORDS, added + list(names.values()) + ["<x1>", "<x2>", "<img>", "<boi>", "<p>", "<m>", "<M>"])


# ---- Byte-level BPE ------------------------------------------------------------------------------------


def byte_characters():
    kept = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    others = [byte for byte in range(256) if byte not in kept]
    return [chr(byte) for byte in kept] + [chr(256 + i) for i in range(len(others))]


def merges_of(draw, n):
    """Merges that make words, from the left or at random."""
    merges, known = [], set()
    for word in draw.sample(WORDS, len(WORDS)):
        parts = list(draw.choice(["", "Ġ", "Ġ"]) + draw.choice([word, word.title()]))
        while len(parts) > 1 and len(merges) < n:
            at = draw.randrange(len(parts) - 1)
            pair = (parts[at], parts[at + 1])
            if pair not in known:
                known.add(pair)
                merges.append(pair)
            parts[at:at + 2] = [pair[0] + pair[1]]
    return merges


@kind
def bpe(draw, folder):
    name = draw.pick(gpt2=2, roberta=2, bart=1)
    merges = merges_of(draw, draw.choice([5, 40, 150]))
    specials = ["<|endoftext|>"] if name == "gpt2" else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokens = byte_characters() + ["".join(pair) for pair in merges]
    if draw.maybe(0.1, "bytes missing"):
        del tokens[draw.randrange(200):255]
        merges = [p for p in merges if all(part in tokens for part in p)]
    tokens = specials + tokens if draw.maybe(0.6) else tokens + specials
    if draw.maybe(0.08, "without a special"):
        tokens.remove(draw.choice(specials))
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    maker_class = t.GPT2Tokenizer if name == "gpt2" else t.RobertaTokenizer
    maker = maker_class(vocab=dict(vocabulary), merges=list(merges), add_prefix_space=draw.maybe(0.3, "prefix"))
    if name != "gpt2" and draw.maybe(0.5, "mask strips"):
        maker.add_special_tokens({"mask_token": AddedToken("<mask>", lstrip=True)})
    added = add_tokens(draw, maker)
    maker.save_pretrained(folder)
    style = draw.pick(json=3, files=3, both=1)
    if style != "json":
        (folder / "vocab.json").write_text(json.dumps(vocabulary))
        first = ["#version: 0.2"] if draw.maybe(0.8) else []
        (folder / "merges.txt").write_text("\n".join(first + [" ".join(pair) for pair in merges]) + "\n")
    if style == "files":
        (folder / "tokenizer.json").unlink()
        write_older_lists(draw, folder, maker, len(vocabulary))
    if draw.maybe(0.6):
        change_config(draw, folder, ["GPT2Tokenizer", "GPT2TokenizerFast", "RobertaTokenizer", "BartTokenizerFast",
                                     "PreTrainedTokenizerFast", "TokenizersBackend", None])
    change_json(draw, folder)
    (folder / "config.json").write_text(json.dumps({"model_type": name}))
    return comparison(folder, WORDS, added + specials + ["<x1>", "<x2>", "<p>", "<m>", "<bos>"])


# ---- Marian --------------------------------------------------------------------------------------------


@kind
def marian(draw, folder):
    source = ROOT / "tests/golden" / draw.pick(marian=3, marian_separate=1)
    for name in ("source.spm", "target.spm", "vocab.json", "target_vocab.json", "tokenizer_config.json", "config.json"):
        if (source / name).exists():
            shutil.copy(source / name, folder / name)
    maker = t.MarianTokenizer.from_pretrained(folder)
    size = len(maker.encoder)
    added = add_tokens(draw, maker)
    style = draw.pick(now=3, older=2)
    if style == "now":
        for path in folder.iterdir():
            if path.name != "config.json":
                path.unlink()
        maker.save_pretrained(folder)
    else:
        write_older_lists(draw, folder, maker, size)
    if draw.maybe(0.5):
        change_config(draw, folder, ["MarianTokenizer", "MarianTokenizer", None, "PreTrainedTokenizerFast"])
    return comparison(folder, ["the", "man", "der", "Mann", "▁the", ">>de<<"], added + ["</s>", "<unk>", "<pad>", "<x1>"])

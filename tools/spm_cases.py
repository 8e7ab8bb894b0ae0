"""Small SentencePiece models and what PyPI sentencepiece makes of texts with them: tests/golden/spm.

    python3 tools/spm_cases.py tests/golden/spm     writes NAME.z, the deflated model of each setting, and cases.z

cases.z is deflated JSON: {"version", "texts": [...], "models": {NAME: [[ids, begins, ends, decoded] for each text]}}. Places count bytes of
the text; decoded is what the ids become. The models are trained on the documentation of this repository and on the lines of OTHER, by the
trainer of sentencepiece, which draws no random numbers; some are changed afterwards, field by field, to reach what no trainer writes.
Needs sentencepiece and protobuf.
"""
import glob
import io
import json
import os
import random
import sys
import tempfile
import zlib

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as pb

OTHER = [
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.", "Voix ambiguë d'un cœur qui au zéphyr préfère les jattes de kiwis.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.", "いろはにほへと ちりぬるを わかよたれそ つねならむ", "色は匂へど 散りぬるを",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.", "ὦ ξεῖν’, ἀγγέλλειν Λακεδαιμονίοις", "नमस्ते दुनिया", "שלום עולם", "صِف خَلقَ خَودٍ",
    "天地玄黃 宇宙洪荒", "Pchnąć w tę łódź jeża lub ośm skrzyń fig.", "Příliš žluťoučký kůň úpěl ďábelské ódy.",
]

RULES = "66 66 69\t66 74 72\n61 308\te4\n31\t32 20 33\n78 79 7a\t\n3000\t20\n41\t61\n"  # ffi, a + U+0308, 1, xyz, wide space, A


def corpus():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs")
    lines = []
    for name in ("attention.md", "numerics.md", "statistics.md", "training.md", "grammar.md"):
        path = os.path.join(root, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                lines += [line.strip() for line in file if line.strip()]
    return lines + OTHER * 5


def train(**options):
    settings = dict(vocab_size=500, model_type="unigram", hard_vocab_limit=False, num_threads=1, minloglevel=2, character_coverage=0.995)
    settings.update(options)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_writer=model, **settings)
    return model.getvalue()


def changed(model, change):
    proto = pb.ModelProto.FromString(model)
    change(proto)
    return proto.SerializeToString()


def tie(proto):
    """Scores of which many sums are equal, some only when they are rounded."""
    for i, piece in enumerate(proto.pieces):
        if piece.type == piece.NORMAL:
            piece.score = (-1.0, -2.0, -3.0, -0.1, -0.3)[i % 5] if len(piece.piece) < 3 else -0.2 * len(piece.piece)


def odd(proto):
    """A few pieces unused, scores above 0 so that the bonus of symbols is large, another sign of the unknown, no escape of white space."""
    for i, piece in enumerate(proto.pieces):
        if piece.type == piece.NORMAL and i % 7 == 0:
            piece.type = piece.UNUSED
        piece.piece = piece.piece.replace("\u2581", " ")
    for i in range(3, 40, 5):
        proto.pieces[i].score = 0.25 * i
    proto.trainer_spec.unk_surface = "?!"
    proto.normalizer_spec.escape_whitespaces = False


def tables(folder):
    rules, back = os.path.join(folder, "rules.tsv"), os.path.join(folder, "back.tsv")
    with open(rules, "w", encoding="utf-8") as file:
        file.write(RULES)
    with open(back, "w", encoding="utf-8") as file:
        file.write("74 68\tfe\n20 2c\t2c\n")
    return dict(normalization_rule_tsv=rules), dict(denormalization_rule_tsv=back)


def models():
    symbols = ["<sep>", "ing", "a b", "\u2581the", "\u00e9", "ab", "abcd", "\u3000x", "  "]
    with tempfile.TemporaryDirectory() as folder:
        rules, back = tables(folder)
        plain = train(normalization_rule_name="identity")
        return {
            "nmt_nfkc": train(normalization_rule_name="nmt_nfkc", vocab_size=800),
            "nfkc_cf": train(normalization_rule_name="nfkc_cf", pad_id=3),
            "identity": plain,
            "bytes": train(normalization_rule_name="identity", byte_fallback=True, vocab_size=700, character_coverage=0.98),
            "symbols": train(user_defined_symbols=symbols, control_symbols=["<2de>"], **rules),
            "suffix": train(treat_whitespace_as_suffix=True, **rules),
            "spaces": train(remove_extra_whitespaces=False, add_dummy_prefix=False, allow_whitespace_only_pieces=True,
                            user_defined_symbols=["  ", "\n"], **rules, **back),
            "prefix": train(remove_extra_whitespaces=False, byte_fallback=True, vocab_size=700, split_digits=True, **rules),
            "ties": changed(plain, tie),
            "odd": changed(train(user_defined_symbols=symbols, unk_id=2, bos_id=-1, eos_id=0, pad_id=1, **rules), odd),
        }


HAND = [
    "", " ", "   ", "a", " a", "a ", "  a  b  ", "\n", "a\nb", "\ta\r\n b", "\u3000", "\u3000x y", "\u2581", "\u2581\u2581a", "a\u2581b",
    "The attention of a key", "the <sep> of <2de> </s> <s> <unk>", "\u00e9", "e\u0301", "a\u0308", "\u1100\u1161\u11a8", "\ufb01ne", "\ufdfa", "\u2163", "\uff21\uff22",
    "xyz", "xyzxyz", " xyz ", "1", "11", "ffi", "ff", "ffiffi", "abcd", "abc", "abab", "a b", "a  b", "sing ing", "singing", "thethe the", "\u200b", "\u200ba", "\u00ad", "a\u200db",
    "\0", "a\0b", "\x01\x02", "\ufffd", "\U0001f600", "\U0001f600\U0001f600 \U0001f600", "\U00020000", "\u4e00\u4e01\u4e02", "\ue000", "\uffff", "\U0010ffff", "\u0300", "\u0130", "\u00df", "\u03a3\u03c2",
    "<0x41>", "<0xE2>", "caf\u00e9", "d\u0323\u0307", "1\u00bd", "A\u00a0B", "\u2028a\u2029", "\u1680 \u2003", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a" * 300, "ab" * 200, "\u4e00" * 100, ". . . .", "....", "  \n  \n",
]
ALPHABET = list("abcdefghijklmnopqrstuvwxyzABCXYZ 0123456789 .,!'-     ") + list(
    "\n\t\u3000\u2581\u00a0\u00e9\u00e4\u00df\u0301\u0308\u0327\u0430\u0451\u3042\u30ab\u3099\uff76\uff9e\u4e2d\uac00\u1100\u1161\u0939\u094d\u05d0\u200b\u200d\ufb03\u2460\u2126\ufdfa\u0000\ufffd\U0001f600\U0001d400")


def strings(n, seed):
    """n random strings: letters and signs, words of the corpus, code points from anywhere."""
    draw = random.Random(seed)
    words = " ".join(corpus()).split()
    for i in range(n):
        length = draw.choice((1, 2, 3, 5, 8, 13, 21, 34))
        if i % 3 == 0:
            yield "".join(draw.choice(ALPHABET) for _ in range(length))
        elif i % 3 == 1:
            yield "".join(draw.choice(words) + draw.choice((" ", " ", " ", "  ", "", "\n", "<sep>")) for _ in range(length))
        else:
            yield "".join(chr(code) for code in (draw.choice((draw.randrange(0x250), draw.randrange(0x3100), draw.randrange(0xd800),
                                                              draw.randrange(0xe000, 0x110000))) for _ in range(length)))


def expected(processor, text):
    """ids, begins, ends and the text of the ids; places in bytes."""
    pieces = processor.encode(text, return_type="proto").pieces
    ids = [piece.id for piece in pieces]
    return [ids, [piece.begin for piece in pieces], [piece.end for piece in pieces], processor.decode(ids)]


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, "*.z")):
        os.remove(old)
    texts = HAND + list(strings(240, 7))
    cases = {"version": sentencepiece.__version__, "texts": texts, "models": {}}
    for name, model in models().items():
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        cases["models"][name] = [expected(processor, text) for text in texts]
        with open(os.path.join(folder, name + ".z"), "wb") as file:
            file.write(zlib.compress(model, 9))
    with open(os.path.join(folder, "cases.z"), "wb") as file:
        file.write(zlib.compress(json.dumps(cases, ensure_ascii=False, separators=(",", ":")).encode("utf-8"), 9))


if __name__ == "__main__":
    main()

"""Two small Marian folders and what transformers' MarianTokenizer makes of texts with them: tests/golden/marian, marian_separate.

    python3 tools/marian_cases.py tests/golden

Each has config.json, source.spm, target.spm, vocab.json (target_vocab.json), tokenizer_config.json and cases.json:
{"version", "cases": [[text, source ids, target ids, decoded] …]}; decoded is the text of the source ids, of the target ids
where the vocabularies are separate; the vocabulary lacks some pieces of the models and has some that they lack. Needs transformers, sentencepiece, protobuf; see spm_cases.py.
"""
import json
import os
import shutil
import sys
import warnings

import transformers

import spm_cases

TEXTS = [
    "", " ", "The attention of a key.", ">>de<< The attention of a key.", ">>xx<< a", ">>de<<", ">>de<<x", " >>de<< a", ">>de a", "<<>>", ">><< a", ">>a b<< c", ">>de<<>>fr<< a",
    "a >>de<< b", "a</s>b", "</s>>>de<< a", "<unk> a", "a<pad> b </s>", "</s>", "<pad>", "\u2603\u2603 a", "\u2603", "\u2603\u2604", "\u4e00\u4e01", "Zw\u00f6lf Boxk\u00e4mpfer", "<s>", "<sep>", "a<sep>b",
    "  two  spaces ", "xyz", "\u3000\u3000", "caf\u00e9 1", "ffi", "\n", "\0a",
]


def folder(path, separate):
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    tables = os.path.join(path, "tmp")
    os.makedirs(tables)
    rules, _ = spm_cases.tables(tables)
    source = spm_cases.train(vocab_size=300, user_defined_symbols=["<sep>"], **rules)
    target = spm_cases.train(vocab_size=520 if separate else 260, normalization_rule_name="identity", byte_fallback=separate)
    shutil.rmtree(tables)
    vocabularies = []
    for models in ((source,), (target,)) if separate else ((source, target),):
        pieces = sorted({p.piece for m in models for p in spm_cases.pb.ModelProto.FromString(m).pieces} - {"<unk>", "<s>", "</s>"})
        pieces = [p for i, p in enumerate(pieces) if i % 11] + [">>de<<", ">>fr<<", "\u2603\u2603"]
        vocabularies.append({p: i for i, p in enumerate(["</s>", "<unk>"] + pieces + ["<pad>"])})
    files = {"vocab.json": vocabularies[0], "config.json": {"model_type": "marian", "vocab_size": len(vocabularies[0]), "architectures": ["MarianMTModel"]},
             "tokenizer_config.json": {"source_lang": "en", "target_lang": "de", "separate_vocabs": separate, "unk_token": "<unk>",
                                       "eos_token": {"content": "</s>", "__type": "AddedToken"} if separate else "</s>", "pad_token": "<pad>", "sp_model_kwargs": {},
                                       "tokenizer_class": "MarianTokenizer"}}
    if separate:
        files["target_vocab.json"] = vocabularies[1]
    for name, value in files.items():
        with open(os.path.join(path, name), "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False, indent=None, separators=(",", ":"))
    for name, model in (("source.spm", source), ("target.spm", target)):
        with open(os.path.join(path, name), "wb") as file:
            file.write(model)


def open_folder(path):
    names = {"source_spm": "source.spm", "target_spm": "target.spm", "vocab": "vocab.json", "target_vocab_file": "target_vocab.json"}
    paths = {key: os.path.join(path, name) for key, name in names.items() if os.path.exists(os.path.join(path, name))}
    with open(os.path.join(path, "tokenizer_config.json"), encoding="utf-8") as file:
        config = json.load(file)
    return transformers.MarianTokenizer(separate_vocabs=config["separate_vocabs"], **paths)


def expected(tokenizer, text):
    """Of separate vocabularies transformers gives <pad>, written in a target text, its id among the source's, which is another token of the
    target's, and reads that id as <pad> when it decodes: null, not a case."""
    slips = tokenizer.separate_vocabs and "<pad>" in text
    source, target = tokenizer(text).input_ids, tokenizer(text_target=text).input_ids
    decoded = tokenizer.decode(target if tokenizer.separate_vocabs else source, clean_up_tokenization_spaces=False)
    slips_back = tokenizer.separate_vocabs and tokenizer.pad_token_id in target
    return [text, source, None if slips else target, None if slips_back else decoded]


def main():
    warnings.simplefilter("ignore")
    for name, separate in (("marian", False), ("marian_separate", True)):
        path = os.path.join(sys.argv[1], name)
        folder(path, separate)
        tokenizer = open_folder(path)
        texts = TEXTS + list(spm_cases.strings(60, 3)) + [">>de<< " + text for text in spm_cases.strings(10, 4)]
        cases = {"version": transformers.__version__, "cases": [expected(tokenizer, text) for text in texts]}
        with open(os.path.join(path, "cases.json"), "w", encoding="utf-8") as file:
            json.dump(cases, file, separators=(",", ":"))


if __name__ == "__main__":
    main()

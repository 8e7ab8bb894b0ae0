#!/usr/bin/env python3
"""Makes tests/golden/sentence: folders of sentence-transformers 6, and what it makes of texts with them.

    python3 tools/sentence_cases.py tests/golden/sentence      needs torch, transformers 5, sentence-transformers 6

Each folder is a tiny model of random weights with prompts, limits and modules behind the pooling, and expected.json:
    {"cases": [{"prompt": a name or null, "text": …, "ids": […], "n_prompt": …, "vector": […]}, …]}
n_prompt is how many tokens of the prompt are not pooled. Vectors are those of float64 arithmetic.
"""
import json
import pathlib
import shutil
import sys

import sentence_transformers
import torch
import transformers as t
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as m

from fixtures import randomize
from random_draw import Draw, edit
from random_tokenizer_kinds import byte_characters, merges_of

TEXTS = ["", "I was watching the door.", "The MAN opened it", "Ünï <ent>naïve ÉTÉ", "the man " * 20, "中文 <ENT> x.y", "query: the door"]
SIZES = dict(hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=17, max_position_embeddings=40)


def bert_parts():
    """Lower case by the tokenizer; two poolings without the prompt, layers of every sort, a cut."""
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] the man door opened it was watching query : x . y".split()
    letters = [c for c in "abcdefghilmnoprstuvwy<>"]
    vocabulary = {w: i for i, w in enumerate(dict.fromkeys(words + letters + ["##" + c for c in letters]))}
    maker = t.BertTokenizer(vocab=vocabulary)
    maker.add_tokens(["<ent>"])
    model = t.BertModel(t.BertConfig(vocab_size=len(maker), **SIZES), add_pooling_layer=False)
    parts = [m.Pooling(12, ["mean", "max"], include_prompt=False), m.Normalize(), m.Dense(24, 10, activation_function=torch.nn.GELU()),
             m.LayerNorm(10), m.Dense(10, 10, bias=False, activation_function=torch.nn.Sigmoid(), use_residual=True), m.Dropout(0.1),
             m.Dense(10, 7, activation_function=torch.nn.Tanh(), use_residual=True), m.Normalize()]
    return maker, model, parts, dict(prompts={"query": "query: ", "long": "watching the door " * 9}, default_prompt_name="query",
                                     truncate_dim=5)


def roberta_parts():
    """A cased tokenizer that the sentence model puts in lower case, by an older file, with a shorter limit; switches."""
    merges = merges_of(Draw(7), 60)
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] + byte_characters() + ["".join(pair) for pair in merges]
    maker = t.RobertaTokenizer(vocab={w: i for i, w in enumerate(dict.fromkeys(tokens))}, merges=merges, model_max_length=30)
    maker.add_tokens(["<Ent>"])
    model = t.RobertaModel(t.RobertaConfig(vocab_size=len(maker), pad_token_id=1, type_vocab_size=1, **SIZES), add_pooling_layer=False)
    return maker, model, [m.Pooling(12, ["cls", "weightedmean", "lasttoken"])], dict(prompts={"p": "Passage É: "})


def change_roberta(folder):
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 14, "do_lower_case": True}))
    switches = {name: True for name in ("pooling_mode_cls_token", "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken")}
    (folder / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 12, **switches}))


def cases(folder):
    model = SentenceTransformer(str(folder), device="cpu").double().eval()
    for name in [None, *model.prompts]:
        prompt = model._resolve_prompt(None, name)
        for text in TEXTS:
            features = model[0].preprocess([text], prompt=prompt)
            left_out = not model[1].include_prompt
            yield dict(prompt=name, text=text, ids=features["input_ids"][0].tolist(),
                       n_prompt=features.get("prompt_length", 0) if left_out else 0,
                       vector=[round(x, 9) for x in model.encode([text], prompt_name=name)[0].tolist()])


def main(root):
    for place, (name, make, change) in enumerate([("bert", bert_parts, None), ("roberta", roberta_parts, change_roberta)]):
        folder, generator = root / name, torch.Generator().manual_seed(900 + place)
        shutil.rmtree(folder, ignore_errors=True)
        maker, model, parts, settings = make()
        model.double()
        with torch.no_grad():
            randomize(model, generator)
            for part in parts:
                for parameter in part.parameters():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * (0.5 if parameter.dim() > 1 else 1))
        model.float().save_pretrained(folder / "plain")
        maker.save_pretrained(folder / "plain")
        first = m.Transformer(str(folder / "plain"))
        SentenceTransformer(modules=[first] + parts, device="cpu", **settings).save_pretrained(str(folder), create_model_card=False)
        shutil.rmtree(folder / "plain")
        if change:
            change(folder)
        edit(folder / "tokenizer.json", lambda data: None)  # in one line
        (folder / "expected.json").write_text(json.dumps(
            {"made_with": f"sentence-transformers {sentence_transformers.__version__}", "cases": list(cases(folder))}) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))

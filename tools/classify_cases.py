#!/usr/bin/env python3
"""Makes the goldens of classifiers: tiny random models of sequences, tokens and answers, run by transformers in float64.

    python3 tools/classify_cases.py tests/golden/classify [NAME...]   needs torch, transformers, safetensors

Each folder is a model, and expected.safetensors: lengths and ids of a batch, one sequence after another, and logits
[sequences][labels], or [tokens][labels]; of answers [tokens][2].
Sequences run alone, without padding. The tests need no Python; versions are in the files' metadata.
"""
import json
import pathlib
import sys

import torch
import transformers as t
from safetensors.torch import save_file

from fixtures import randomize, vocabulary
from llama_cases import F32, LENGTHS, SIZES, double

SHAPE = {k: v for k, v in SIZES.items() if k != "num_key_value_heads"}
SMALL = SHAPE | dict(num_hidden_layers=1, intermediate_size=13)
DISTILBERT = dict(vocab_size=53, dim=24, n_layers=1, n_heads=4, hidden_dim=13, max_position_embeddings=64, pad_token_id=0)
MODERN = dict(cls_token_id=1, sep_token_id=2, local_attention=4, num_hidden_layers=4)
DECODERS = ("gpt2", "llama", "bloom")
NAMES = {0: "NEGATIVE", 1: "neutral, or none", 2: "POSITIVE"}
MODELS = {
    "bert": (t.BertForSequenceClassification, t.BertConfig(**SHAPE, id2label=NAMES, layer_norm_eps=1e-5)),
    "modernbert_cls": (t.ModernBertForSequenceClassification, t.ModernBertConfig(**(SHAPE | MODERN), num_labels=1)),
    "modernbert_mean": (t.ModernBertForSequenceClassification, t.ModernBertConfig(
        **(SHAPE | MODERN), id2label=NAMES, classifier_pooling="mean", attention_bias=True, mlp_bias=True)),
    "roberta": (t.RobertaForSequenceClassification, t.RobertaConfig(**SMALL, id2label=NAMES, layer_norm_eps=1e-5)),
    "distilbert": (t.DistilBertForSequenceClassification, t.DistilBertConfig(**DISTILBERT, num_labels=4, activation="relu")),
    "electra": (t.ElectraForSequenceClassification, t.ElectraConfig(**SMALL, embedding_size=10, num_labels=1, hidden_act="silu")),
    "bert_tokens": (t.BertForTokenClassification, t.BertConfig(**SMALL, id2label=NAMES)),
    "modernbert_tokens": (t.ModernBertForTokenClassification, t.ModernBertConfig(**(SMALL | MODERN | dict(num_hidden_layers=1)), id2label=NAMES)),
    # Read at their last token that is no padding, which two sequences end with.
    "gpt2": (t.GPT2ForSequenceClassification, t.GPT2Config(
        vocab_size=53, n_embd=24, n_layer=1, n_head=4, n_inner=13, n_positions=64, pad_token_id=0, id2label=NAMES)),
    "llama": (t.LlamaForSequenceClassification, t.LlamaConfig(**(SIZES | dict(num_hidden_layers=1, intermediate_size=13)), num_labels=1)),
    "bloom": (t.BloomForSequenceClassification, t.BloomConfig(
        vocab_size=53, hidden_size=24, n_layer=1, n_head=4, pad_token_id=None, id2label=NAMES)),
    "roberta_answers": (t.RobertaForQuestionAnswering, t.RobertaConfig(**SMALL)),
}


def make_model(kind, config, generator):
    config._attn_implementation = "eager"
    torch.set_default_dtype(torch.float64)
    model = kind(config).double().eval()
    torch.set_default_dtype(F32)
    randomize(model, generator, norms=("norm.weight", "LayerNorm.weight", "layernorm.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight"),
              tables=("embed", "wte", "wpe"), gain=1.0)
    return model


def logits_of(out):
    """Of one sequence: [labels] as a row, or a row for each token."""
    logits = torch.stack((out.start_logits, out.end_logits), dim=-1) if "start_logits" in out else out.logits
    return logits.flatten(0, -2)


def save(folder, name, model, config, made):
    save_file({k: v.to(F32).contiguous() for k, v in model.state_dict().items() if "position_ids" not in k},
              folder / "model.safetensors", metadata={"format": "pt"})
    config.architectures = [type(model).__name__]
    saved = json.loads(config.to_json_string(use_diff=False))
    wanted = config.to_diff_dict().keys() | SHAPE.keys() | {"id2label", "architectures", "classifier_pooling"}
    saved = {k: v for k, v in saved.items() if k in wanted} | {"dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(saved, indent=2, sort_keys=True) + "\n")
    (folder / "vocab.txt").write_text("\n".join(vocabulary(config.vocab_size)) + "\n")
    save_file(made, folder / "expected.safetensors", metadata={"made_with": f"torch {torch.__version__}, transformers {t.__version__}"})


def main(root, *names):
    t.logging.set_verbosity_error()
    torch.set_num_threads(1)
    for name in names or MODELS:
        kind, config = MODELS[name]
        generator = torch.Generator().manual_seed(sum(map(ord, name)))
        folder = pathlib.Path(root) / name
        folder.mkdir(parents=True, exist_ok=True)
        with double(), torch.no_grad():
            model = make_model(kind, config, generator)
            batch = [torch.randint(1, config.vocab_size - 1, (n,), generator=generator) for n in LENGTHS]
            for ids in batch[1:3] if config.model_type in DECODERS else ():
                ids[-2:] = 0
            logits = torch.cat([logits_of(model(input_ids=ids[None])) for ids in batch])
            assert logits.dtype == torch.float64
        save(folder, name, model, config, {"lengths": torch.tensor(LENGTHS).int(), "ids": torch.cat(batch).int(), "logits": logits.to(F32)})


if __name__ == "__main__":
    main(*sys.argv[1:])

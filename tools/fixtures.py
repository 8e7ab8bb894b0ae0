#!/usr/bin/env python3
"""Makes the goldens of the model: three tiny random BERTs, run by transformers in float64.

    python3 tools/fixtures.py tests/golden          needs torch, transformers, safetensors

Each folder is a model (config.json, vocab.txt, model.safetensors in f32) and expected.safetensors:
a batch of sequences one after another, and what float64 arithmetic makes of the f32 weights: hidden
states of every layer, weights of every head, logits, losses, every gradient. bert_old has the names
of 2018 (gamma, beta, prefix `bert.`), bert_new those of today without prefix; bert_long has long
sums (many rows, many channels) and only its losses and gradients are kept. Sizes are odd on
purpose. The tests need no Python; versions are in the files' metadata.
"""
import json
import pathlib
import sys

import numpy
import safetensors
import torch
import transformers
from safetensors.numpy import save_file
from transformers import BertConfig, BertForPreTraining

WORDS = "the a door box key man woman dog watching opened fell left it he she was when . , ?".split()
PIECES = "##s ##ed ##ing".split()
SPECIAL = "[PAD] [UNK] [CLS] [SEP] [MASK]".split()
MODELS = {
    "bert_old": dict(seed=1, hidden_size=20, num_attention_heads=2, num_hidden_layers=2,
                     intermediate_size=37, vocab_size=53, max_position_embeddings=23,
                     layer_norm_eps=1e-12),
    "bert_new": dict(seed=2, hidden_size=36, num_attention_heads=3, num_hidden_layers=1,
                     intermediate_size=19, vocab_size=41, max_position_embeddings=17,
                     layer_norm_eps=1e-5),
    "bert_long": dict(seed=3, hidden_size=8, num_attention_heads=2, num_hidden_layers=1,
                      intermediate_size=261, vocab_size=37, max_position_embeddings=31,
                      layer_norm_eps=1e-12),
}
LENGTHS = {"bert_old": [7, 12, 1, 7, 3, 17, 12, 2], "bert_new": [7, 12, 1, 7, 3, 17, 12, 2],
           "bert_long": [1 + 7 * b % 31 for b in range(45)]}


def vocabulary(size):
    words = SPECIAL + WORDS + PIECES
    return words + [f"w{i}" for i in range(size - len(words))]


def randomize(model, generator, norms=("LayerNorm.weight",), tables=("embeddings",), gain=1.5):
    """Large enough that heads are sharp and every path matters; stored as f32, used as float64."""
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue  # sinusoids
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if name.endswith(norms):
            value = 1 + 0.2 * noise
        elif parameter.dim() == 1:
            value = 0.2 * noise
        else:
            is_table = any(table in name for table in tables)
            value = noise * (0.8 if is_table else gain / parameter.shape[-1] ** 0.5)
        with torch.no_grad():
            parameter.copy_(value.float().double())


def make_batch(config, lengths, generator):
    """Padded arrays for transformers: sequences of several lengths, some equal, one of one token."""
    n, longest = len(lengths), max(lengths)
    ids = torch.randint(5, config.vocab_size, (n, longest), generator=generator)
    types = torch.zeros(n, longest, dtype=torch.long)
    mask = torch.zeros(n, longest, dtype=torch.long)
    labels = torch.full((n, longest), -100)
    for b, length in enumerate(lengths):
        mask[b, :length] = 1
        ids[b, 0] = 2
        types[b, (length + 1) // 2:length] = b % 2
        for t in range(b % 3, length, 4):
            labels[b, t] = torch.randint(0, config.vocab_size, (1,), generator=generator)
            ids[b, t] = 4 if t else ids[b, t]
    ids *= mask
    return ids, types, mask, labels, torch.randint(0, 2, (n,), generator=generator)


def stored_names(state, style):
    names = {}
    for name, tensor in state.items():
        if name.startswith("cls.predictions.decoder."):
            continue  # tied
        if style != "bert_new":
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            name = name.replace("LayerNorm.bias", "LayerNorm.beta")
        else:
            name = name.removeprefix("bert.")
        names[name] = tensor.float().numpy().copy()
    return names


def check_padding(model, lengths, ids, types, out):
    """Each sequence alone gives what the padded batch gave: the oracle is right about padding."""
    for b, length in enumerate(lengths):
        alone = model(input_ids=ids[b:b + 1, :length], token_type_ids=types[b:b + 1, :length])
        assert (alone.prediction_logits[0] - out.prediction_logits[b, :length]).abs().max() < 1e-12


def expected(model, lengths, batch, everything):
    ids, types, mask, labels, is_random = batch
    out = model(input_ids=ids, attention_mask=mask, token_type_ids=types,
                output_hidden_states=True, output_attentions=True)
    check_padding(model, lengths, ids, types, out)
    real = mask.bool()
    wanted = labels[real] >= 0
    mlm = out.prediction_logits[real][wanted]
    mlm_loss = torch.nn.functional.cross_entropy(mlm, labels[real][wanted])
    nsp_loss = torch.nn.functional.cross_entropy(out.seq_relationship_logits, is_random)
    (mlm_loss + nsp_loss).backward()

    ints = {"lengths": torch.tensor(lengths), "ids": ids[real], "types": types[real],
            "target_tokens": wanted.nonzero()[:, 0], "target_ids": labels[real][wanted],
            "labels": is_random}
    floats = {"loss.mlm": mlm_loss, "loss.nsp": nsp_loss}
    if everything:
        floats |= {"mlm": mlm, "nsp": out.seq_relationship_logits}
        for layer, hidden in enumerate(out.hidden_states):
            floats[f"hidden.{layer}"] = hidden[real]
        for layer, weights in enumerate(out.attentions):
            parts = [weights[b, :, :n, :n].flatten() for b, n in enumerate(lengths)]
            floats[f"weights.{layer}"] = torch.cat(parts)
    for name, parameter in model.named_parameters():
        floats[f"grad.{name}"] = parameter.grad
    tensors = {name: tensor.to(torch.int32).numpy() for name, tensor in ints.items()}
    for name, tensor in floats.items():
        tensors[name] = tensor.detach().float().numpy().copy()
    return tensors


def main(root):
    modules = (torch, transformers, numpy, safetensors)
    versions = {"made_with": ", ".join(f"{m.__name__} {m.__version__}" for m in modules)}
    for style, sizes in MODELS.items():
        sizes = dict(sizes)
        generator = torch.Generator().manual_seed(sizes.pop("seed"))
        config = BertConfig(hidden_act="gelu", hidden_dropout_prob=0.0, type_vocab_size=2,
                            attention_probs_dropout_prob=0.0, attn_implementation="eager", **sizes)
        model = BertForPreTraining(config).double().eval()
        randomize(model, generator)
        folder = pathlib.Path(root) / style
        folder.mkdir(parents=True, exist_ok=True)
        fields = dict(architectures=["BertForPreTraining"], model_type="bert", type_vocab_size=2,
                      hidden_act="gelu", position_embedding_type="absolute", pad_token_id=0,
                      **sizes)
        (folder / "config.json").write_text(json.dumps(fields, indent=2) + "\n")
        (folder / "vocab.txt").write_text("\n".join(vocabulary(config.vocab_size)) + "\n")
        save_file(stored_names(model.state_dict(), style), folder / "model.safetensors",
                  metadata={"format": "pt"})
        lengths = LENGTHS[style]
        tensors = expected(model, lengths, make_batch(config, lengths, generator),
                           everything=style != "bert_long")
        save_file(tensors, folder / "expected.safetensors", metadata=versions)


if __name__ == "__main__":
    main(sys.argv[1])

#!/usr/bin/env python3
"""Makes the goldens of BERT's family: tiny random models, run by transformers in float64.

    python3 tools/family_cases.py tests/golden/family [NAME...]   needs torch, transformers, tokenizers, safetensors

Each folder is a model as transformers saves it (config.json, model.safetensors, with a vocab.txt, which
is enough to open it) and expected.safetensors: a batch of sequences one after another and what float64
arithmetic makes of the f32 weights: hidden states, weights of heads, logits; with an MLM head also its
loss and every gradient. The texts of roberta_2 and xlm_roberta_2 hold padding tokens, whose positions are special; they
have no gradients, because torch gives such tokens none. roberta_text and xlm_roberta_text have tokenizers of their own
(byte-level BPE, Unigram) and, in fill.txt, the five likeliest tokens for the <mask> of a text, from text to
probabilities. The tests need no Python; versions are in the files' metadata.
"""
import pathlib
import sys

import tokenizers
import torch
from safetensors.numpy import save_file
import transformers as t

from fixtures import randomize, vocabulary

ODD = dict(hidden_size=20, num_attention_heads=2, num_hidden_layers=2, intermediate_size=37, vocab_size=53)
ONE = dict(hidden_size=36, num_attention_heads=3, num_hidden_layers=1, intermediate_size=19, vocab_size=41)
LONG = dict(hidden_size=24, num_attention_heads=4, num_hidden_layers=3, intermediate_size=29, vocab_size=41)
DISTIL = dict(hidden_size="dim", num_attention_heads="n_heads", num_hidden_layers="n_layers",
              intermediate_size="hidden_dim", vocab_size="vocab_size")
MODELS = {}
for place, sizes in enumerate((ODD, ONE, LONG), 1):
    MODELS[f"distilbert_{place}"] = (
        t.DistilBertForMaskedLM if place != 2 else t.DistilBertModel,
        t.DistilBertConfig(**{DISTIL[k]: v for k, v in sizes.items()}, max_position_embeddings=23, dropout=0.0,
                           attention_dropout=0.0))
    MODELS[f"roberta_{place}"] = (
        t.RobertaForMaskedLM if place != 2 else t.RobertaModel,
        t.RobertaConfig(**sizes, max_position_embeddings=25, type_vocab_size=1, pad_token_id=place,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, layer_norm_eps=1e-5))
    MODELS[f"electra_{place}"] = (
        t.ElectraForPreTraining if place != 3 else t.ElectraForMaskedLM,
        t.ElectraConfig(**sizes, embedding_size=(12, 36, 21)[place - 1], max_position_embeddings=23,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
for place, sizes in enumerate((ODD, ONE), 1):  # behind the others, whose seeds are their places
    MODELS[f"xlm_roberta_{place}"] = (
        t.XLMRobertaForMaskedLM if place == 1 else t.XLMRobertaModel,
        t.XLMRobertaConfig(**sizes, max_position_embeddings=25, type_vocab_size=2 - place % 2, pad_token_id=place,
                           hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, layer_norm_eps=1e-5))
LENGTHS = [7, 12, 1, 7, 3, 17, 12, 2]


def make_batch(config, generator):
    """Texts one by one: ids, segments, and which tokens are to be told."""
    batch = []
    for b, n in enumerate(LENGTHS):
        ids = torch.randint(5, config.vocab_size, (n,), generator=generator)
        if config.model_type.endswith("roberta") and config.pad_token_id == 2 and b % 2:
            ids[n // 2] = config.pad_token_id
        types = torch.zeros(n, dtype=torch.long)
        if getattr(config, "type_vocab_size", 1) > 1:
            types[(n + 1) // 2:] = b % 2
        wanted = torch.arange(min(b % 3, n), n, 4)
        batch.append((ids, types, wanted, torch.randint(0, config.vocab_size, wanted.shape, generator=generator)))
    return batch


def run(model, ids, types):
    segments = {"token_type_ids": types[None]} if model.config.model_type != "distilbert" else {}
    return model(input_ids=ids[None], attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                 output_hidden_states=True, output_attentions=True, **segments)


def head_of(model):
    return {"MaskedLM": "mlm", "ForPreTraining": "judge"}.get(
        next((e for e in ("MaskedLM", "ForPreTraining") if type(model).__name__.endswith(e)), ""))


def expected(model, batch):
    outs = [run(model, ids, types) for ids, types, _, _ in batch]
    head, floats = head_of(model), {}
    for layer in range(len(outs[0].hidden_states)):
        floats[f"hidden.{layer}"] = torch.cat([o.hidden_states[layer][0] for o in outs])
    for layer in range(len(outs[0].attentions)):
        floats[f"weights.{layer}"] = torch.cat([o.attentions[layer].flatten() for o in outs])
    ends = torch.tensor([0] + LENGTHS).cumsum(0)
    ints = {"lengths": torch.tensor(LENGTHS), "ids": torch.cat([b[0] for b in batch]),
            "types": torch.cat([b[1] for b in batch]),
            "target_tokens": torch.cat([b[2] + ends[i] for i, b in enumerate(batch)]),
            "target_ids": torch.cat([b[3] for b in batch])}
    if head == "judge":
        floats["judge"] = torch.cat([o.logits[0] for o in outs])
    if head == "mlm":
        floats["mlm"] = torch.cat([o.logits[0][b[2]] for o, b in zip(outs, batch)])
        floats["loss.mlm"] = torch.nn.functional.cross_entropy(floats["mlm"], ints["target_ids"])
        floats["loss.mlm"].backward()
        for name, parameter in model.named_parameters():
            name = {"lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight"}.get(name, name)  # tied
            floats[f"grad.{name}"] = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    tensors = {name: tensor.to(torch.int32).numpy() for name, tensor in ints.items()}
    for name, tensor in floats.items():
        tensors[name] = tensor.detach().float().numpy().copy()
    return tensors


SENTENCES = ["I was watching the door when it opened.", "The man fell down and left the box.", "She had a key for it.",
             "He was watching a dog, and the woman left.", "The key opened the box."]
TEXT = "She was watching the <mask> when he fell."


def make_text_model(folder):
    """RoBERTa from text to words: a tokenizer trained on a few sentences, random weights."""
    folder.mkdir(parents=True, exist_ok=True)
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(SENTENCES * 3, vocab_size=320, min_frequency=2,
                                special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    trained.save_model(str(folder))
    files = [folder / "vocab.json", folder / "merges.txt"]
    tokenizer = t.RobertaTokenizer(vocab=str(files[0]), merges=str(files[1]),
                                   mask_token=t.AddedToken("<mask>", lstrip=True, special=True))
    tokenizer.save_pretrained(folder)
    for file in files:  # all is in tokenizer.json
        file.unlink()
    config = t.RobertaConfig(vocab_size=len(tokenizer), hidden_size=12, num_attention_heads=2, num_hidden_layers=2,
                             intermediate_size=22, max_position_embeddings=42, type_vocab_size=1,
                             layer_norm_eps=1e-5)
    model = t.RobertaForMaskedLM(config).double().eval()
    with torch.no_grad():
        randomize(model, torch.Generator().manual_seed(300))
    model.float().save_pretrained(folder)
    write_fill(folder, model, tokenizer, TEXT)


def write_fill(folder, model, tokenizer, text):
    """The likeliest tokens for the mask of a text; the model is left in float64."""
    ids = tokenizer(text, return_tensors="pt").input_ids
    place = (ids[0] == tokenizer.mask_token_id).nonzero()[0, 0]
    top = model.double()(ids).logits[0, place].softmax(-1).topk(5)
    (folder / "fill.txt").write_text("".join(f"{i} {p:.9f}\n" for p, i in zip(top.values.tolist(), top.indices.tolist())))


def make_unigram_model(folder):
    """XLM-RoBERTa from text to words: pieces, few rules of a map, random weights."""
    import random_unigram_kinds

    words = " ".join(SENTENCES).split()
    pieces = sorted({"▁" + word for word in words} | {word[:3] for word in words} | set("".join(words)) | {"▁"})
    specials = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    scores = [(piece, -1.0 - len(piece) % 5 - i / 100) for i, piece in enumerate(pieces)]
    tokenizer = t.XLMRobertaTokenizer(vocab=specials + scores + [("<mask>", 0.0)],
                                      mask_token=t.AddedToken("<mask>", lstrip=True, special=True),
                                      _spm_precompiled_charsmap=random_unigram_kinds.charsmap("own"))
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    config = t.XLMRobertaConfig(vocab_size=len(tokenizer), hidden_size=12, num_attention_heads=2, num_hidden_layers=2,
                                intermediate_size=22, max_position_embeddings=42, type_vocab_size=1, layer_norm_eps=1e-5)
    model = t.XLMRobertaForMaskedLM(config).double().eval()
    with torch.no_grad():
        randomize(model, torch.Generator().manual_seed(301))
    model.float().save_pretrained(folder)
    write_fill(folder, model, tokenizer, TEXT)


def main(root, wanted):
    for name, make in (("roberta_text", make_text_model), ("xlm_roberta_text", make_unigram_model)):
        if not wanted or name in wanted:
            make(pathlib.Path(root) / name)
    versions = {"made_with": f"torch {torch.__version__}, transformers {t.__version__}"}
    for place, (name, (kind, config)) in enumerate(MODELS.items()):
        if wanted and name not in wanted:
            continue
        generator = torch.Generator().manual_seed(100 + place)
        config._attn_implementation = "eager"
        model = kind(config).double().eval()
        with torch.no_grad():
            randomize(model, generator)
        folder = pathlib.Path(root) / name
        folder.mkdir(parents=True, exist_ok=True)
        model.float().save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        (folder / "vocab.txt").write_text("\n".join(vocabulary(config.vocab_size)) + "\n")
        save_file(expected(model.double(), make_batch(config, generator)), folder / "expected.safetensors",
                  metadata=versions)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

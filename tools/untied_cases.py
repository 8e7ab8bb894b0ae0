#!/usr/bin/env python3
"""Makes the goldens of folders whose heads and words are tied or not: transformers 5 reads each, in float64.

    python3 tools/untied_cases.py tests/golden/untied       needs torch, transformers, safetensors, numpy

NAME.json has config (config.json), tensors ([name, shape, scale, offset, name of the formula]), a batch (ids, decoder_ids) and what
transformers makes of it: logits of every token, the mean loss with target (7 t + 3) mod vocabulary for token t, and of every parameter's
gradient its norm and its product with formula("p:" + name). Weights are a formula of their name, so that they need no room:

    value i of NAME = offset + scale u,   u = 2 (s >> 40) / 2^24 - 1,   s = splitmix64(FNV-1a of NAME + i), in f32

untied and unused are what qkv says about the folder. The test (tests/model/test_untied_golden.c) needs no Python.
"""
import json
import pathlib
import sys
import tempfile

import numpy
import torch
import transformers as t
from safetensors.numpy import save_file

from fixtures import vocabulary

HEAD, ENCODER, DECODER = 1, 2, 4  # QKV_UNTIED_...
LENGTHS = [6, 3]


def formula(name, n):
    """n numbers in [-1, 1), of 24 bits each."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    with numpy.errstate(over="ignore"):
        x = numpy.uint64(h) + numpy.arange(n, dtype=numpy.uint64) + numpy.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        x = x ^ (x >> numpy.uint64(31))
    return ((x >> numpy.uint64(40)).astype(numpy.float64) / 2**23 - 1).astype(numpy.float32)


def values(shape, scale, offset, name):
    u = formula(name, int(numpy.prod(shape)))
    return (numpy.float32(offset) + numpy.float32(scale) * u).reshape(shape)


def scale_of(name, shape):
    """Large enough that heads are sharp and every path matters."""
    if name.endswith(("orm.weight", "norm_embedding.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight")):
        return 0.3, 1.0
    if len(shape) == 1:
        return 0.3, 0.0
    tables = ("embeddings.weight", "wte.weight", "wpe.weight", "shared.weight", "embed_tokens.weight", "embed_positions.weight")
    return (1.2 if name.endswith(tables) else 2.0 / shape[-1] ** 0.5), 0.0


SMALL = dict(hidden_size=12, num_attention_heads=2, num_hidden_layers=2, intermediate_size=17, vocab_size=37, max_position_embeddings=16)
BERT = dict(SMALL, type_vocab_size=2)
DISTIL = dict(dim=12, n_heads=2, n_layers=2, hidden_dim=17, vocab_size=37, max_position_embeddings=16)
GPT2 = dict(n_embd=12, n_head=2, n_layer=2, n_inner=17, n_positions=16, vocab_size=37, bos_token_id=2, eos_token_id=3)
PAIR = dict(d_model=12, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=17, decoder_layers=2, decoder_attention_heads=3,
            decoder_ffn_dim=13, vocab_size=37, max_position_embeddings=16, pad_token_id=1, bos_token_id=2, eos_token_id=3,
            decoder_start_token_id=3)
WORDS, BIAS = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"
E, D, S, L = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "model.shared.weight", "lm_head.weight"
POSITIONS = "model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"

# name: class, fields, tensors to add, tensors to store as another one, tensors to drop, untied, unused
CASES = {
    "bert_untied": (t.BertForMaskedLM, dict(BERT, hidden_act="gelu_new", tie_word_embeddings=False),
                    ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"], {}, [], HEAD, [BIAS]),
    "bert_differs": (t.BertForMaskedLM, dict(BERT, hidden_act="relu"), ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"],
                     {}, [], HEAD, [BIAS]),
    "bert_bias": (t.BertForMaskedLM, BERT, ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"],
                  {"cls.predictions.decoder.weight": WORDS}, [], 0, [BIAS]),
    "bert_same": (t.BertForMaskedLM, BERT, ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"],
                  {"cls.predictions.decoder.weight": WORDS, "cls.predictions.decoder.bias": BIAS}, [], 0, []),
    "roberta_differs": (t.RobertaForMaskedLM, dict(SMALL, type_vocab_size=1, hidden_act="silu", pad_token_id=1), ["lm_head.decoder.weight"],
                        {}, [], HEAD, []),
    "distilbert_untied": (t.DistilBertForMaskedLM, dict(DISTIL, activation="tanh", tie_word_embeddings=False), ["vocab_projector.weight"], {},
                          [], HEAD, []),
    "electra_differs": (t.ElectraForMaskedLM, dict(BERT, embedding_size=7, hidden_act="quick_gelu"), ["generator_lm_head.weight"], {}, [],
                        HEAD, []),
    "electra_judge": (t.ElectraForPreTraining, dict(BERT, embedding_size=7, hidden_act="relu"), [], {}, [], 0, []),
    "gpt2_untied": (t.GPT2LMHeadModel, dict(GPT2, activation_function="tanh", tie_word_embeddings=False), [L], {}, [], HEAD, []),
    "gpt2_differs": (t.GPT2LMHeadModel, dict(GPT2, activation_function="quick_gelu"), [L], {}, [], HEAD, []),
    "bart_untied": (t.BartForConditionalGeneration, dict(PAIR, tie_word_embeddings=False), [L, D, E], {}, [], HEAD | ENCODER | DECODER, [S]),
    "bart_differs": (t.BartForConditionalGeneration, PAIR, [L, D, E], {E: S}, [], HEAD | DECODER, []),
    "bart_decoder": (t.BartForConditionalGeneration, dict(PAIR, scale_embedding=True), [D], {}, [], DECODER, []),
    "bart_without_shared": (t.BartForConditionalGeneration, PAIR, [D, E], {}, [S], ENCODER, []),
    "marian_differs": (t.MarianMTModel, dict(PAIR, scale_embedding=True), [E, *POSITIONS], {}, [], ENCODER, []),
    "marian_separate": (t.MarianMTModel, dict(PAIR, share_encoder_decoder_embeddings=False, decoder_vocab_size=41), [L, POSITIONS[1]], {}, [],
                        HEAD, []),
}


def list_tensors(model, case):
    """[name, shape, scale, offset, name of the formula] of what the folder stores."""
    _, _, add, same, drop, _, _ = case
    state = {n: p.shape for n, p in model.named_parameters(remove_duplicate=False)}
    tied = {n for n in model.all_tied_weights_keys} - set(add)
    frozen = {n for n in state if n.endswith("embed_positions.weight") and model.config.model_type == "marian"} - set(add)
    tensors = []
    for name, shape in sorted(state.items()):
        if name in tied | frozen | set(drop):
            continue
        tensors.append([name, list(shape), *scale_of(same.get(name, name), shape), same.get(name, name)])
    return tensors


def batch_of(config):
    words = getattr(config, "decoder_vocab_size", None) or config.vocab_size
    ids = [[5 + (11 * i + 7 * b + i * i) % (config.vocab_size - 5) for i in range(n)] for b, n in enumerate(LENGTHS)]
    into = [[3] + [5 + (13 * i + 3 * b + i * i) % (words - 5) for i in range(n - 1)] for b, n in enumerate(LENGTHS[::-1])]
    return ids, into if config.is_encoder_decoder else None, words


def run(model):
    ids, into, words = batch_of(model.config)
    logits = []
    for b, text in enumerate(ids):
        more = {"decoder_input_ids": torch.tensor([into[b]])} if into else {}
        logits.append(model(input_ids=torch.tensor([text]), **more).logits[0])
    logits = torch.cat(logits)
    found = {"ids": ids, "decoder_ids": into, "logits": [float(f"{x:.7g}") for x in logits.flatten().tolist()]}
    if logits.dim() == 1:
        return found
    targets = torch.tensor([(7 * i + 3) % words for i in range(len(logits))])
    loss = torch.nn.functional.cross_entropy(logits, targets)
    loss.backward()
    gradients = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            continue
        own = name.replace("decoder.bias", "bias") if name.endswith("decoder.bias") else name  # the one bias of a head
        g = parameter.grad.double().flatten().numpy()
        gradients[own] = [float(f"{x:.7g}") for x in (numpy.sqrt((g * g).sum()), (g * formula("p:" + own, len(g))).sum())]
    return found | {"loss": float(f"{loss.item():.9g}"), "gradients": gradients}


def make(name, case, root):
    kind, fields, _, _, _, untied, unused = case
    config = kind.config_class(**fields, **{k: 0.0 for k in ("dropout", "attention_dropout", "activation_dropout", "hidden_dropout_prob",
                                                            "attention_probs_dropout_prob", "resid_pdrop", "embd_pdrop", "attn_pdrop")
                                            if hasattr(kind.config_class(), k)})
    tensors = list_tensors(kind(config), case)
    config_json = dict(fields, model_type=config.model_type)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        config.save_pretrained(folder)
        save_file({n: values(shape, scale, offset, of) for n, shape, scale, offset, of in tensors}, folder / "model.safetensors",
                  metadata={"format": "pt"})
        (folder / "vocab.txt").write_text("\n".join(vocabulary(config.vocab_size)) + "\n")
        model, told = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        assert not told["missing_keys"] and not told["unexpected_keys"], (name, told)
    found = run(model.double().eval())
    out = dict(made_with=f"torch {torch.__version__}, transformers {t.__version__}", config=config_json, untied=untied, unused=unused,
               tensors=[[n, shape, float(numpy.float32(scale)), offset, of] for n, shape, scale, offset, of in tensors], **found)
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in out.items())
    (root / f"{name}.json").write_text("{\n" + text + "\n}\n")


def main(root):
    t.logging.set_verbosity_error()
    t.utils.logging.disable_progress_bar()
    root = pathlib.Path(root)
    root.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        make(name, case, root)


if __name__ == "__main__":
    main(sys.argv[1])

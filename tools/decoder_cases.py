#!/usr/bin/env python3
"""Makes the goldens of GPT-2, BART, Marian, T5 and mT5: tiny random models, run by transformers in float64.

    python3 tools/decoder_cases.py tests/golden/decoder [NAME...]   needs torch, transformers, safetensors

Each folder is a model (config.json, generation_config.json, model.safetensors, and a vocab.txt, which is enough to open it), whose
weights are such that it writes texts of some variety. They amplify rounding, so numbers are those of other weights in mild/, with

expected.safetensors   a batch of sequences one after another and what float64 arithmetic makes of the f32 weights. L counts from 0,
    the embeddings; weights are [heads][rows][keys] of one sequence after another.
        GPT-2         lengths, ids, hidden.L (the last one after ln_f), weights.L
        pairs         lengths, ids (sources), decoder_lengths, decoder_ids, encoder_hidden.L, decoder_hidden.L, encoder_weights.L,
                      decoder_weights.L, cross_weights.L
        all           logits (of every token, of the decoder's inputs), target_tokens, target_ids, loss.plain, label_smoothing, loss.lm
                      (smoothed by that much) and of loss.lm every gradient: grad.NAME. Padding's row of an embedding gets
                      its gradient from the head alone, as torch's padding_idx has it.
generate.json   prompts (sources), the tokens that follow (after the decoder's start) for several options, scores of beams, and gaps: the
    smallest distance, at some step, between a candidate that was taken and one that was not, to tell near ties. transformers rounds logits to
    f32 first. Ids of special tokens are in generation_config.json.
generate_long.json   of two models: 200 tokens for each of 50 prompts, greedily, none of which ends a sequence.

gpt2_1 has the names of openai's files (no prefix, masks stored), bart_2 those of bart-large-cnn (aliases in the metadata), bart_3 those of
a BartModel. marian_3 has separate vocabularies. t5_2 is of the kind of Flan-T5, with a head of its own. The tests need no Python; versions
are in the files' metadata.
"""
import copy
import json
import pathlib
import sys

import torch
import transformers as t
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from fixtures import randomize, vocabulary

NO_DROPOUT = dict(dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)


def gpt2(**fields):
    return t.GPT2LMHeadModel, t.GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=2, eos_token_id=3,
                                           pad_token_id=0, **fields)


def stacks(encoder, decoder):
    """Layers, heads and width of the feed-forward of each."""
    names = ("layers", "attention_heads", "ffn_dim")
    return {f"{side}_{n}": v for side, vs in (("encoder", encoder), ("decoder", decoder)) for n, v in zip(names, vs)}


def bart(encoder, decoder, **fields):
    return t.BartForConditionalGeneration, t.BartConfig(**stacks(encoder, decoder), **NO_DROPOUT, **fields)


def marian(encoder, decoder, vocab_size, **fields):
    pad = vocab_size - 1
    return t.MarianMTModel, t.MarianConfig(**stacks(encoder, decoder), **NO_DROPOUT, vocab_size=vocab_size, pad_token_id=pad,
                                           decoder_start_token_id=pad, **fields)


def t5(name, **fields):
    config = getattr(t, name + "Config")(dropout_rate=0.0, decoder_start_token_id=0, **fields)
    return getattr(t, name + "ForConditionalGeneration"), config


MODELS = {
    "gpt2_1": gpt2(n_embd=20, n_head=2, n_layer=2, n_inner=37, n_positions=45, vocab_size=53, scale_attn_by_inverse_layer_idx=True),
    "gpt2_2": gpt2(n_embd=12, n_head=3, n_layer=3, n_positions=231, vocab_size=41, activation_function="relu"),
    "gpt2_3": gpt2(n_embd=21, n_head=3, n_layer=1, n_inner=19, n_positions=45, vocab_size=37, layer_norm_epsilon=1e-3,
                   scale_attn_weights=False, reorder_and_upcast_attn=True),
    "bart_1": bart((2, 2, 37), (1, 4, 22), d_model=20, vocab_size=53, max_position_embeddings=43),
    "bart_2": bart((1, 3, 19), (3, 2, 29), d_model=12, vocab_size=41, max_position_embeddings=39, scale_embedding=True,
                   activation_function="relu"),
    "bart_3": bart((2, 3, 23), (2, 5, 27), d_model=15, vocab_size=37, max_position_embeddings=41),
    "marian_1": marian((2, 2, 37), (1, 4, 22), 53, d_model=20, max_position_embeddings=256, scale_embedding=True,
                       activation_function="swish"),
    "marian_2": marian((1, 3, 19), (2, 5, 29), 41, d_model=15, max_position_embeddings=64, scale_embedding=True,
                       activation_function="relu"),
    "marian_3": marian((2, 4, 23), (2, 2, 31), 37, d_model=12, max_position_embeddings=64, activation_function="swish",
                       decoder_vocab_size=45, share_encoder_decoder_embeddings=False),
    "t5_1": t5("T5", d_model=20, d_kv=8, d_ff=37, num_layers=2, num_decoder_layers=1, num_heads=2, vocab_size=53),
    "t5_2": t5("T5", d_model=15, d_kv=4, d_ff=19, num_layers=2, num_heads=3, vocab_size=41, feed_forward_proj="gated-gelu",
               tie_word_embeddings=False, relative_attention_num_buckets=8, relative_attention_max_distance=9),
    "mt5_1": t5("MT5", d_model=12, d_kv=5, d_ff=29, num_layers=2, num_heads=2, vocab_size=37,
                feed_forward_proj="gated-silu", relative_attention_num_buckets=12, relative_attention_max_distance=7),
}
# Of models that write texts of some variety; of pairs, weights of a size by which f32 arithmetic tells logits to 1e-5.
SEEDS = {"gpt2_1": 34, "gpt2_2": 36, "gpt2_3": 1, "bart_1": 2, "bart_2": 0, "bart_3": 6, "marian_1": 7, "marian_2": 3,
         "marian_3": 7, "t5_1": 1, "t5_2": 2, "mt5_1": 3}
OWN_HEAD = ("t5_2",)
SMOOTHING = {"bart_2": 0.1, "t5_2": 0.1, "marian_2": 0.1, "marian_3": 0.1}
FORCED_BOS = {"bart_2": 0}
LONG = ("gpt2_2", "marian_1")
LENGTHS = [7, 12, 1, 7, 3, 17, 2]
DECODER_LENGTHS = [5, 1, 9, 12, 3, 8, 15]

GREEDY = dict(num_beams=1, length_penalty=1.0, early_stopping=False, repetition_penalty=1.0, no_repeat_ngram_size=0)
RUNS = [dict(GREEDY, **options) for options in (
    {}, dict(repetition_penalty=1.4), dict(no_repeat_ngram_size=2), dict(num_beams=4),
    dict(num_beams=4, length_penalty=0.6, early_stopping=True), dict(num_beams=4, length_penalty=2.0, early_stopping="never"),
    dict(num_beams=4, length_penalty=-0.5), dict(num_beams=4, length_penalty=0.0, early_stopping="never"),
    dict(num_beams=3, repetition_penalty=1.2, no_repeat_ngram_size=3))]
NEW_TOKENS, LONG_TOKENS = 24, 200


# ---- Models ----------------------------------------------------------------------------------------


def is_pair(config):
    return config.is_encoder_decoder


def target_vocabulary(config):
    return getattr(config, "decoder_vocab_size", config.vocab_size)


def make_model(name, kind, config, generator, mild):
    """mild: without what makes texts vary, which amplifies rounding, too."""
    config = copy.deepcopy(config)
    if config.model_type == "gpt2":
        config.reorder_and_upcast_attn = False  # the same numbers, but in f32 with it
    config._attn_implementation = "eager"
    model = kind(config).double().eval()
    if name in OWN_HEAD:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    randomize(model, generator, norms=("norm.weight", "norm_embedding.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight"),
              tables=("wte", "wpe", "shared", "embed_tokens", "embed_positions", "lm_head.weight"), gain=1.0 if mild else 1.5 if is_pair(config) else 3.0)
    if not mild:
        spread(model, config)
    with torch.no_grad():
        if name == "marian_2":
            bias = torch.randn(model.final_logits_bias.shape, generator=generator, dtype=torch.float64)
            model.final_logits_bias.copy_((0.8 * bias).float().double())
    return model


def spread(model, config):
    """Words weigh less than what layers make of them and feed-forwards have no favourite direction, so that texts do not only
    repeat themselves; logits lie far apart; and sequences like to end."""
    is_t5 = config.model_type in ("t5", "mt5")
    last = (model.transformer.ln_f if not is_pair(config) else model.decoder.final_layer_norm if is_t5 else
            model.get_decoder().layers[-1].final_layer_norm)
    words = ("wte.weight", "shared.weight", "embed_tokens.weight")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(words):
                parameter.mul_(0.3)
                if config.model_type == "marian":
                    parameter[config.pad_token_id] = 0
            if name.endswith(("fc2.weight", "DenseReluDense.wo.weight")):
                parameter.sub_(parameter.mean(1, keepdim=True))
        end = model.get_output_embeddings().weight[config.eos_token_id]
        last.weight.mul_(3)
        if not is_t5:
            last.bias.add_(2 * end / end.square().sum())
        for parameter in model.parameters():
            parameter.copy_(parameter.float().double())


def generation_config(name, config):
    if not is_pair(config):
        return t.GenerationConfig(bos_token_id=2, eos_token_id=3, pad_token_id=0)
    fields = dict(eos_token_id=config.eos_token_id, pad_token_id=config.pad_token_id, forced_eos_token_id=config.eos_token_id,
                  decoder_start_token_id=config.decoder_start_token_id, bos_token_id=getattr(config, "bos_token_id", None),
                  forced_bos_token_id=FORCED_BOS.get(name), max_length=40, num_beams=4)
    if config.model_type == "marian":
        fields["bad_words_ids"] = [[config.pad_token_id]]
    return t.GenerationConfig(**fields)


def openai_names(state, config):
    n = config.n_positions
    names = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}
    for layer in range(config.n_layer):
        kind = torch.uint8 if layer else torch.float32
        names[f"h.{layer}.attn.bias"] = torch.ones(n, n, dtype=kind).tril()[None, None].contiguous()
        names[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    return names, {}


def cnn_names(state, config):
    names = {name: tensor for name, tensor in state.items() if name != "model.shared.weight"}
    names["model.decoder.embed_tokens.weight"] = state["model.shared.weight"]
    return names, {alias: "model.decoder.embed_tokens.weight" for alias in ("model.shared.weight", "model.encoder.embed_tokens.weight")}


def bare_names(state, config):
    return {name.removeprefix("model."): tensor for name, tensor in state.items() if name != "final_logits_bias"}, {}


OTHER_NAMES = {"gpt2_1": openai_names, "bart_2": cnn_names, "bart_3": bare_names}


def save_model(folder, name, model, config):
    model.generation_config = generation_config(name, config)
    copy.deepcopy(model).float().save_pretrained(folder)
    saved = json.loads((folder / "config.json").read_text())
    if config.model_type == "gpt2":
        saved["reorder_and_upcast_attn"] = config.reorder_and_upcast_attn
    (folder / "config.json").write_text(json.dumps(saved, indent=2) + "\n")
    (folder / "vocab.txt").write_text("\n".join(vocabulary(config.vocab_size)) + "\n")
    if name in OTHER_NAMES:
        file = folder / "model.safetensors"
        names, aliases = OTHER_NAMES[name](load_file(file), config)
        save_file(names, file, metadata={"format": "pt", **aliases})


# ---- Numbers ---------------------------------------------------------------------------------------


def make_batch(name, config, generator):
    """Sequences one by one: source ids (the only ones of GPT-2), decoder ids, labels."""
    def random(n, size):
        return torch.randint(1, size - 1, (n,), generator=generator)

    if not is_pair(config):
        return [(ids, ids, ids[1:]) for ids in (random(n, config.vocab_size) for n in LENGTHS)]
    batch = []
    for n, m in zip(LENGTHS, DECODER_LENGTHS):
        labels = random(m, target_vocabulary(config))
        decoder_ids = torch.cat([torch.tensor([config.decoder_start_token_id]), labels[:-1]])
        batch.append((random(n, config.vocab_size), decoder_ids, labels))
    return batch


def run(model, ids, decoder_ids):
    told = dict(output_hidden_states=True, output_attentions=True, use_cache=False)
    if not is_pair(model.config):
        return model(input_ids=ids[None], **told)
    return model(input_ids=ids[None], decoder_input_ids=decoder_ids[None], attention_mask=torch.ones(1, len(ids)), **told)


def layers_of(outs, config):
    """What every layer gave: one sequence after another."""
    kinds = {"encoder_hidden": "encoder_hidden_states", "decoder_hidden": "decoder_hidden_states",
             "encoder_weights": "encoder_attentions", "decoder_weights": "decoder_attentions",
             "cross_weights": "cross_attentions"} if is_pair(config) else {"hidden": "hidden_states", "weights": "attentions"}
    floats = {}
    for kind, field in kinds.items():
        for layer in range(len(outs[0][field])):
            parts = [out[field][layer][0] for out in outs]
            floats[f"{kind}.{layer}"] = torch.cat([p.flatten() for p in parts] if "weights" in kind else parts)
    return floats


def expected(name, model, batch):
    outs = [run(model, ids, decoder_ids) for ids, decoder_ids, _ in batch]
    starts = torch.tensor([0] + [len(decoder_ids) for _, decoder_ids, _ in batch]).cumsum(0)
    ints = {"lengths": torch.tensor([len(b[0]) for b in batch]), "ids": torch.cat([b[0] for b in batch]),
            "target_tokens": torch.cat([starts[i] + torch.arange(len(b[2])) for i, b in enumerate(batch)]),
            "target_ids": torch.cat([b[2] for b in batch])}
    if is_pair(model.config):
        ints |= {"decoder_lengths": starts.diff(), "decoder_ids": torch.cat([b[1] for b in batch])}
    floats = layers_of(outs, model.config)
    smoothing = SMOOTHING.get(name, 0.0)
    floats["logits"] = torch.cat([out.logits[0] for out in outs])
    wanted = floats["logits"][ints["target_tokens"]]
    floats["loss.plain"] = torch.nn.functional.cross_entropy(wanted, ints["target_ids"])
    floats["loss.lm"] = torch.nn.functional.cross_entropy(wanted, ints["target_ids"], label_smoothing=smoothing)
    floats["label_smoothing"] = torch.tensor(smoothing)
    floats["loss.lm"].backward()
    for parameter_name, parameter in model.named_parameters():
        if parameter.requires_grad:
            floats[f"grad.{parameter_name}"] = parameter.grad
    tensors = {n: tensor.to(torch.int32) for n, tensor in ints.items()}
    return tensors | {n: tensor.detach().float().clone() for n, tensor in floats.items()}


# ---- Generation ------------------------------------------------------------------------------------


def gap_at(scores, n):
    """Between the last of the n best, which are taken, and the first that is not."""
    best = scores.flatten().double().sort(descending=True).values[n - 1:n + 1]
    return (best[0] - best[1]).item() if len(best) == 2 and best[1] > -1e8 else float("inf")


def watch_beams(model, eos):
    """Keeps the gaps of every step of a beam search in the list that is returned."""
    gaps, top_k, finished = [], type(model)._get_top_k_continuations, type(model)._update_finished_beams

    def watched_top_k(*args, **kwargs):
        scores, n = kwargs["accumulated_log_probs"].reshape(kwargs["num_beams"], -1), kwargs["num_beams"]
        going_on = scores.clone()
        if eos is not None:
            going_on[:, eos] = -float("inf")
        gaps.extend((gap_at(scores, n), gap_at(going_on, n)))
        return top_k(model, *args, **kwargs)

    def watched_finished(*args, **kwargs):
        result = finished(model, *args, **kwargs)
        gaps.append(gap_at(result[1], 1))
        return result

    model._get_top_k_continuations, model._update_finished_beams = watched_top_k, watched_finished
    return gaps


def generate(model, prompt, options, new_tokens, eos):
    """The tokens that follow, their score (of beams), the smallest gap."""
    config = copy.deepcopy(model.generation_config)
    config.update(**options, max_length=None, max_new_tokens=new_tokens, do_sample=False, return_dict_in_generate=True,
                  output_scores=True)
    if eos is None:
        config.eos_token_id = config.forced_eos_token_id = model.generation_config.eos_token_id = None
        model.generation_config.forced_eos_token_id = None
    gaps = watch_beams(model, eos) if options["num_beams"] > 1 else []
    out = model.generate(prompt[None], attention_mask=torch.ones(1, len(prompt), dtype=torch.long), generation_config=config)
    ids = out.sequences[0, 1 if is_pair(model.config) else len(prompt):].tolist()
    if eos in ids:
        ids = ids[:ids.index(eos) + 1]
    if options["num_beams"] == 1:
        return ids, None, min(gap_at(scores, 1) for scores in out.scores)
    return ids, out.sequences_scores[0].item(), min(gaps)


def make_prompts(model, n, generator):
    config, prompts = model.config, []
    for i in range(n):
        ids = torch.randint(4, config.vocab_size - 1, (2 + i % 9,), generator=generator)
        if is_pair(config):
            ids[-1] = config.eos_token_id
        prompts.append(ids)
    return prompts


def rounded(x):
    return x if x is None or x == float("inf") else float(f"{x:.7g}")


def generated(model, prompts, runs, new_tokens, eos):
    told = []
    for options in runs:
        results = [generate(model, prompt, options, new_tokens, eos) for prompt in prompts]
        told.append({"options": options, "outputs": [r[0] for r in results], "gaps": [rounded(r[2]) for r in results]})
        if options["num_beams"] > 1:
            told[-1]["scores"] = [rounded(r[1]) for r in results]
    return {"max_new_tokens": new_tokens, "prompts": [p.tolist() for p in prompts], "runs": told}


def write_json(file, value):
    file.write_text(json.dumps(value, separators=(",", ":")) + "\n")


def save_numbers(folder, name, kind, config, versions):
    generator = torch.Generator().manual_seed(1000 + SEEDS[name])
    folder.mkdir(exist_ok=True)
    model = make_model(name, kind, config, generator, True)
    save_model(folder, name, model, config)
    save_file(expected(name, model, make_batch(name, config, generator)), folder / "expected.safetensors",
              metadata={"made_with": versions})


def main(root, *names):
    t.logging.set_verbosity_error()
    t.logging.disable_progress_bar()
    versions = f"torch {torch.__version__}, transformers {t.__version__}"
    torch.set_num_threads(1)
    for name in names or MODELS:
        kind, config = MODELS[name]
        generator = torch.Generator().manual_seed(SEEDS[name])
        folder = pathlib.Path(root) / name
        folder.mkdir(parents=True, exist_ok=True)
        model = make_model(name, kind, config, generator, False)
        save_model(folder, name, model, config)
        prompts = make_prompts(model, 10, generator)
        make_batch(name, config, generator)
        save_numbers(folder / "mild", name, kind, config, versions)
        with torch.no_grad():
            eos = model.generation_config.eos_token_id
            short = generated(model, prompts, RUNS, NEW_TOKENS, eos)
            write_json(folder / "generate.json", {"made_with": versions, **short})
            if name in LONG:
                long = generated(model, make_prompts(model, 50, generator), [GREEDY], LONG_TOKENS, None)
                write_json(folder / "generate_long.json", {"made_with": versions, **long})


if __name__ == "__main__":
    main(*sys.argv[1:])

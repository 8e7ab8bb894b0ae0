#!/usr/bin/env python3
"""Makes the goldens of generation: transformers' own search over a model that is a hash function.

    python3 tools/generate_cases.py tests/golden/generate_cases.json      needs torch, transformers

The model's logits are a hash of all tokens so far (logits_of, repeated in tests/model/test_generate_golden.c), exact in f32.
transformers computes in float32; here its two searches are compiled again with float64 in that place, and torch.topk,
whose order of equal values is not specified, is a stable sort. A line is a case:

    seed, vocab, prompt, o: what differs from transformers' defaults, out: [[score, [new ids]], ...]
    seed, vocab, prompt, o, allowed: ids that processors leave of the row behind the prompt (of draws)
"""
import inspect
import itertools
import json
import sys

import numpy as np
import torch
import transformers
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.generation import utils
from transformers.modeling_outputs import CausalLMOutput

MASK = 0xFFFFFFFF
MAX_LEN = 64


def mix(h):
    h ^= h >> 16
    h = h * 0x85EBCA6B & MASK
    h ^= h >> 13
    h = h * 0xC2B2AE35 & MASK
    return h ^ h >> 16


def logits_of(seed, vocab, ids, sharp):
    state = seed
    for i in ids:
        state = mix((state * 31 + i + 1) & MASK)
    row = [(mix(state ^ (j * 0x9E3779B1 & MASK)) >> 12) * 2.0**-17 - 4 for j in range(vocab)]
    if sharp:  # the token after the last one is likely: words repeat, and beams agree
        row[(ids[-1] + 1 + state % 2) % vocab] += 3
    return row


class Config(PretrainedConfig):
    model_type = "table"


class Table(PreTrainedModel, GenerationMixin):
    config_class = Config
    main_input_name = "input_ids"

    def __init__(self, config):
        super().__init__(config)
        self.nothing = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, input_ids, **ignored):
        rows = [logits_of(self.seed, self.vocab, ids, self.sharp) for ids in input_ids.tolist()]
        return CausalLMOutput(logits=torch.tensor(rows, dtype=torch.float64)[:, None])

    def prepare_inputs_for_generation(self, input_ids, **ignored):
        return {"input_ids": input_ids}


def in_float64(function):
    source = inspect.getsource(function).replace("torch.float32", "torch.float64").replace("torch.float,", "torch.float64,")
    scope = dict(vars(utils))
    exec("from __future__ import annotations\nclass C:\n" + source, scope)
    return vars(scope["C"])[function.__name__]


def stable_topk(x, k, dim=-1, **ignored):
    values, indices = torch.sort(x, dim=dim, descending=True, stable=True)
    return torch.return_types.topk((values[..., :k], indices[..., :k]))


def make(seed, vocab, prompt, options, sharp=False):
    table.seed, table.vocab, table.sharp = seed, vocab, sharp
    beams = options.get("num_beams", 1) > 1
    given = {"do_sample": False, "max_new_tokens": 12, "eos_token_id": 0, "pad_token_id": 1, "use_cache": False, **options}
    config = GenerationConfig(**given, return_dict_in_generate=True, output_scores=True, output_logits=True)
    made = table.generate(torch.tensor([prompt]), generation_config=config)
    ends = given["eos_token_id"]
    ends = {ends} if isinstance(ends, int) else set(ends or [])
    out = []
    for b, row in enumerate(made.sequences.tolist()):
        ids = row[len(prompt):]
        for i, token in enumerate(ids):  # padding is no part of a sequence
            if token in ends:
                ids = ids[:i + 1]
                break
        if beams:
            length = int((made.beam_indices[b] >= 0).sum())
            ids = row[len(prompt):len(prompt) + length]
            score = made.sequences_scores[b].item()
        else:
            score = sum(torch.log_softmax(logits[b], -1)[t].item() for logits, t in zip(made.logits, ids))
        out.append([round(score, 9), ids])
    # Where candidates are missing, transformers fills up with beams of the score -1e9, which here do not exist.
    return [o for o in out if o[0] > -1e5]


def line(file, seed, vocab, prompt, options, sharp=False):
    case = {"seed": seed, "vocab": vocab, "prompt": prompt, "o": options, "out": make(seed, vocab, prompt, options, sharp)}
    if sharp:
        case["sharp"] = 1
    file.write(json.dumps(case, separators=(",", ":")) + "\n")


def supports(file, random, n_rows, **more):
    for n in range(n_rows):
        seed, vocab = int(random.integers(2**32)), int(random.integers(5, 300))
        prompt = random.integers(0, vocab, 3).tolist()
        options = {"do_sample": True, "temperature": [1.0, 0.7, 1.5, 0.3][n % 4], "top_k": [0, 3, 20, 100][n // 4 % 4],
                   "top_p": [1.0, 0.9, 0.5, 0.05, 0.999][n // 16 % 5], "num_beams": 1 + n % 3,
                   "repetition_penalty": [1.0, 1.3][n % 2], "eos_token_id": [0] if n % 5 else [0, 2],
                   **{field: values[n // 3 % len(values)] for field, values in more.items()}}
        config = GenerationConfig(max_length=MAX_LEN, pad_token_id=1, **options)
        table._prepare_special_tokens(config, False, device="cpu")
        processors = table._get_logits_processor(config, input_ids_seq_length=3, device="cpu", model_kwargs={})
        row = processors(torch.tensor([prompt]), torch.tensor([logits_of(seed, vocab, prompt, False)], dtype=torch.float64))
        allowed = torch.isfinite(row[0]).nonzero()[:, 0].tolist()
        file.write(json.dumps({"seed": seed, "vocab": vocab, "prompt": prompt, "o": options, "allowed": allowed},
                              separators=(",", ":")) + "\n")


def main(path):
    random = np.random.default_rng(20)
    processors = [{}, {"repetition_penalty": 1.4}, {"repetition_penalty": 0.6}, {"no_repeat_ngram_size": 1},
                  {"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 3}, {"min_new_tokens": 5}, {"min_length": 9},
                  {"bad_words_ids": [[2], [3, 4], [5, 6, 1], [0]]}, {"forced_bos_token_id": 3}, {"forced_eos_token_id": 0},
                  {"forced_eos_token_id": 4}, {"renormalize_logits": True, "repetition_penalty": 1.2},
                  {"eos_token_id": [0, 2, 3]}, {"eos_token_id": None}, {"bad_words_ids": [[1]], "forced_eos_token_id": 0,
                                                                        "renormalize_logits": True, "min_new_tokens": 2}]
    with open(path, "w", encoding="ascii") as file:
        for n, (options, vocab, length) in enumerate(itertools.product(processors, (7, 23, 120), (1, 2, 7))):
            prompt = random.integers(0, vocab, length).tolist()
            line(file, int(random.integers(2**32)), vocab, prompt, options, n % 2 == 1)
        searches = itertools.product((2, 3, 5), (1.0, 0.0, 2.0, -1.0, 0.6), (False, True, "never"))
        for n, (num_beams, length_penalty, early_stopping) in enumerate(searches):
            for m in range(4):
                vocab = (13, 40, 200, 31)[m]
                prompt = random.integers(0, vocab, 1 + (n + m) % 4).tolist()
                options = {"num_beams": num_beams, "length_penalty": length_penalty, "early_stopping": early_stopping,
                           "num_return_sequences": 1 + (n + m) % num_beams, "max_new_tokens": (3, 9, 17, 30)[(n // 2 + m) % 4],
                           **processors[(n + 3 * m) % len(processors)]}
                line(file, int(random.integers(2**32)), vocab, prompt, options, m % 2 == 1)
        for n in range(60):  # few words: candidates run out, everything ends at once
            vocab = 3 + n % 5
            prompt = random.integers(0, vocab, 1 + n % 2).tolist()
            options = {"num_beams": 2, "num_return_sequences": 1 + n % 2, "early_stopping": (False, True, "never")[n % 3],
                       "max_new_tokens": 1 + n % 7, "eos_token_id": None if n % 4 == 0 else 0}
            line(file, int(random.integers(2**32)), vocab, prompt, options, n % 3 == 1)
        supports(file, random, 150)
        for n in range(72):  # the list is full early, and there is much room: when is it over?
            vocab = 5 + n % 7
            options = {"num_beams": 2 + n % 2, "length_penalty": (1.0, 2.0, 0.5)[n % 3], "max_new_tokens": 40,
                       "early_stopping": ("never", False)[n // 3 % 2], "num_return_sequences": 2}
            line(file, int(random.integers(2**32)), vocab, random.integers(0, vocab, 2).tolist(), options, n % 4 == 1)
        supports(file, random, 80, min_p=(0.1, 0.5, 0.02, 1.0, 0.9, 0.0))
        for n in range(16):  # one of several tokens at the end
            vocab, prompt = 9 + n, random.integers(0, 9, 1 + n % 3).tolist()
            options = {"forced_eos_token_id": [[0, 4], [7, 3, 5], [2, 0], [6]][n % 4], "num_beams": 1 + n // 4 % 3, "max_new_tokens": 2 + n % 5}
            line(file, int(random.integers(2**32)), vocab, prompt, options, n % 3 == 1)


if __name__ == "__main__":
    print("transformers", transformers.__version__, "torch", torch.__version__)
    table = Table(Config())
    Table._sample = in_float64(GenerationMixin._sample)
    Table._beam_search = in_float64(GenerationMixin._beam_search)
    torch.topk = stable_topk
    main(sys.argv[1])

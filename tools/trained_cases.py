#!/usr/bin/env python3
"""Makes tests/golden/trained.safetensors: logits of transformers, in float64, of models that qkv trained.

    python3 tools/trained_cases.py build/release/golden_trained tests/golden/trained.safetensors

Trains by that program, loads every folder by AutoTokenizer and the class that its config.json names, without a missing or an unexpected
tensor, and runs the text of tests/train/test_trained_golden.c. Needs torch, transformers, safetensors.

    NAME.ids, NAME.decoder_ids    what goes in          NAME.logits  [tokens][words]
    NAME.hash                     FNV-1a of the model.safetensors that this is of, 16 hexadecimal digits
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import save_file

SOURCE, TARGET = "the red door", "door red the"


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def load(folder):
    name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model, report = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    wrong = {key: value for key, value in report.items() if value}
    assert not wrong, f"{folder.name}: {wrong}"
    return model.double().eval(), transformers.AutoTokenizer.from_pretrained(folder)


def run(folder):
    model, tokenizer = load(folder)
    inputs = {"input_ids": tokenizer(SOURCE, return_tensors="pt")["input_ids"]}
    if model.config.is_encoder_decoder:
        labels = tokenizer(text_target=TARGET, return_tensors="pt")["input_ids"]
        inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
    with torch.no_grad():
        out = model(**inputs)
    logits = out.prediction_logits if "prediction_logits" in out else out.logits
    tensors = {"ids": inputs["input_ids"][0].int(), "logits": logits[0].float().contiguous(),
               "hash": torch.tensor(list(fnv((folder / "model.safetensors").read_bytes()).encode()), dtype=torch.uint8)}
    if "decoder_input_ids" in inputs:
        tensors["decoder_ids"] = inputs["decoder_input_ids"][0].int()
    return tensors


def main():
    program, out = sys.argv[1:]
    tensors = {}
    with tempfile.TemporaryDirectory() as parent:
        subprocess.run([program, "--write", parent], check=True)
        for folder in sorted(p for p in pathlib.Path(parent).iterdir() if p.is_dir()):
            for key, value in run(folder).items():
                tensors[f"{folder.name}.{key}"] = value
    save_file(tensors, out, metadata={"transformers": transformers.__version__})


main()

#!/usr/bin/env python3
"""Scores of a translator of the toy languages (docs/toy-languages.md): how many test sentences it translates exactly, and how well each
head of its cross-attention, and the mean of each layer's, aligns words with the true translation.

    python3 tools/toy_languages.py build/toy
    python3 tools/translator_scores.py build/release/qkv models/translator build/toy [PAIRS]

An alignment is that of `qkv look --cross --align`: for each word of the translation the word of the source with the largest weight. Its
error rate (AER) is that of tools/toy_languages.py --aer, over the first PAIRS of the test (200).
"""
import json
import pathlib
import subprocess
import sys
import tempfile


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def alignment(qkv, model, source, target, heads):
    # word 0 of the source is what stands before it, <s>
    told = json.loads(run(qkv, "look", source, "--model", model, "--cross", "--target", target, "--align", "--heads", heads, "--json"))
    return " ".join(f"{word['source_word'] - 1}-{j}" for j, word in enumerate(told["alignment"]["words"]))


def error_rate(guess, truth):
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / name for name in ("guess", "truth")]
        for file, lines in zip(files, (guess, truth)):
            file.write_text("\n".join(lines) + "\n")
        return float(run(sys.executable, str(pathlib.Path(__file__).with_name("toy_languages.py")), "--aer", *map(str, files)))


def main(qkv, model, folder, n_pairs=200):
    folder = pathlib.Path(folder)
    sources, targets = zip(*(line.split("\t") for line in (folder / "test.tsv").read_text().splitlines()))
    truth = (folder / "test.align").read_text().splitlines()[:n_pairs]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as text:
        text.write("\n".join(sources) + "\n")
        text.flush()
        written = run(qkv, "translate", "--file", text.name, "--model", model).splitlines()
    right = sum(a == b for a, b in zip(written, targets))
    print(f"exact {right} of {len(targets)}")
    info = json.loads(run(qkv, "info", model, "--json"))
    for layer in range(info["n_decoder_layers"]):
        names = [f"{layer}.{head}" for head in range(info["n_decoder_heads"])]
        for heads in names + [",".join(names)]:
            guess = [alignment(qkv, model, *pair, heads) for pair in zip(sources[:n_pairs], targets)]
            print(f"AER {heads:18} {error_rate(guess, truth):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))

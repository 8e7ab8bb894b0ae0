#!/usr/bin/env python3
"""Random model folders, each read by transformers and by qkv.

    python3 tools/random_folders.py [--folders 200] [--seed S] [--first I] [--kinds bert,gpt2,...] [--odd 0.5]
                                    [--keep DIR] [--qkv build/release/qkv]     needs torch, transformers 5, safetensors, numpy

Each folder is a tiny model of random weights as save_pretrained writes it, then changed in ways that people's folders
are: heads untied by config.json, stored copies that differ, other names, other types, several files, other
activations, rows without tokens, tokens without rows, integers beyond 64 bits, generation_config.json of all sorts.
What qkv makes of it must be what transformers makes of it (folder_checks.py), or be refused in words. It prints
its seed, a line for each folder, and a total; folder I of a seed is made again by --seed S --first I --folders 1.
Kinds are in random_folder_kinds.py, random_rotary_kinds.py, random_other_kinds.py and random_classifier_kinds.py; exit 1 if anything differed silently.
"""
import argparse
import collections
import pathlib
import random
import shutil
import sys
import tempfile

import torch
import transformers as t

import folder_checks as checks
import random_classifier_kinds  # noqa: F401: adds its kinds
import random_other_kinds  # noqa: F401: adds its kinds
import random_rotary_kinds  # noqa: F401: adds its kinds
from random_draw import Draw, odd_leaf
from random_folder_kinds import KINDS, odd_fields


def train(qkv, case, folder):
    """Two steps of training; the new folder, in which transformers misses nothing that it did not miss before."""
    out, text = folder.parent / "trained", folder.parent / "text"
    text.write_text(case.text + "\n")
    checks.Tool(qkv, folder).run_plain("train", "--from", str(folder), "--text", str(text), "--out", str(out), "--steps", "2",
                                       "--batch", "4", "--len", "12", "--lr", "0.01", "--quiet")
    missing = checks.Reference(case.kind, out).missing - checks.Reference(case.kind, folder).missing
    if missing:
        raise checks.Broken(f"after training transformers misses {sorted(missing)}")
    return out


def outcome(qkv, case, folder):
    """(word, worst, notes): what came of a folder."""
    worst, notes, tool = {}, [], checks.Tool(qkv, folder)
    refused = set()
    for check in case.checks:
        try:
            for name, error in check(tool, notes):
                worst[name] = max(worst.get(name, 0.0), error)
        except checks.Refused as said:
            refused.add(str(said).replace(str(folder), "F"))
        except checks.Broken as why:
            return "BROKEN", worst, [*notes, str(why)]
        except Exception as why:  # noqa: BLE001: transformers cannot read it
            refused.add(f"(transformers: {type(why).__name__}: {str(why).splitlines()[0][:120]})")
    if any(error > 1 for error in worst.values()):
        return "DIFFERS", worst, notes
    if refused:
        return "refused", worst, [*notes, *sorted(refused)]
    return "same", worst, notes


def after_training(qkv, case, folder):
    try:
        return outcome(qkv, case, train(qkv, case, folder))
    except checks.Refused as said:
        return "refused", {}, [str(said).replace(str(folder), "F")]
    except checks.Broken as why:
        return "BROKEN", {}, [str(why)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folders", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--odd", type=float, default=0, help="share of the folders with odd fields in their files")
    parser.add_argument("--keep", type=pathlib.Path, help="leave folders that differ here")
    parser.add_argument("--qkv", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "build/release/qkv")
    options = parser.parse_args()
    t.logging.set_verbosity(60)
    t.utils.logging.disable_progress_bar()
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    names = options.kinds.split(",")
    print(f"seed {seed}")
    total, refusals = collections.Counter(), collections.Counter()
    for i in range(options.first, options.first + options.folders):
        name = names[i % len(names)]
        draw = Draw(f"{seed}-{i}-{name}")
        torch.manual_seed(draw.getrandbits(40))
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place, "folder")
            case = KINDS[name](draw, folder)
            if draw.random() < options.odd:
                odd_fields(draw, folder)
                if (folder / "generation_config.json").exists() and draw.maybe(0.5):
                    odd_leaf(draw, folder / "generation_config.json")
            word, worst, notes = outcome(options.qkv, case, folder)
            if word == "same" and case.text and draw.maybe(0.3, "trained"):
                word, worst, notes = after_training(options.qkv, case, folder)
            if options.keep and word in ("DIFFERS", "BROKEN"):
                shutil.copytree(folder, options.keep / f"{seed}-{i}-{name}", dirs_exist_ok=True)
        total[word] += 1
        if word == "refused":
            refusals.update(notes)
        figures = ", ".join(f"{n} {e:.3f}" for n, e in worst.items())
        print(f"{i} {name}: {word} [{'; '.join(draw.drawn)}] {figures}{''.join(chr(10) + '    ' + n for n in notes)}", flush=True)
    print("total: " + ", ".join(f"{n} {word}" for word, n in sorted(total.items())))
    for note, n in refusals.most_common():
        print(f"    {n} x {note}")
    return 1 if total["DIFFERS"] or total["BROKEN"] else 0


if __name__ == "__main__":
    sys.exit(main())

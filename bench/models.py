#!/usr/bin/env python3
"""Our models beside those of PyTorch and OpenVINO: the same random weights, the same ids, in one process.

    ./dev bench --peers models              makes a virtual environment with the peers, builds, and runs this
    python bench/models.py --library build/release/libmodels.so --threads 1,2 --json models.json

transformers makes a model of BERT-base's shape with random weights and saves it; we open its folder. Hidden states
are compared before anything is timed. Each round of a case calls each library in turn, beginning with another one each
time, and has the machine's peak measured beside ours (bench/suite/peak.h: multiply-adds in f32, tiles or pairs of bf16; for decoding
reading memory); a figure is the median of the rounds, a ratio that
of the rounds' ratios. All are called from Python.
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import models_images
import models_llama
import models_load
import models_text
import peers

SHAPES = [(8, 128), (1, 512), (1, 11)]
LAYERS, HIDDEN, WIDE, VOCABULARY = 12, 768, 3072, 30522
N_PARAMETERS = 109_514_298  # of BertForMaskedLM
WEIGHTS = {"f32": 0, "bf16": 1}  # qkv_model_weights
BOUND = {"f32": 1e-4, "bf16": 0.1}  # of hidden states, which a norm has made about 1
LOSS_BOUND = {"f32": 1e-3, "bf16": 0.02}  # of the first loss, about 10


def operations(batch, length):
    """Multiplications and additions of BERT-base's blocks."""
    rows = batch * length
    return LAYERS * (2 * rows * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * WIDE) + 4 * rows * length * HIDDEN)


def train_operations(batch, length):
    """Of a step: three times the forward pass, with the head over all tokens."""
    return 3 * (operations(batch, length) + 2 * batch * length * HIDDEN * (VOCABULARY + HIDDEN))


# ---- Models ------------------------------------------------------------------------------------


def make_bert(folder):
    """Saves a random model of BERT-base's shape, once."""
    import torch
    import transformers

    if (folder / "model.safetensors").exists():
        return
    torch.manual_seed(0)
    transformers.BertForMaskedLM(transformers.BertConfig()).save_pretrained(folder)
    special = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}
    words = [special.get(i, f"w{i}") for i in range(VOCABULARY)]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")


def make_gpt2(folder):
    """The same of GPT-2-small's shape; its tokenizer has the bytes and words without meaning."""
    import torch
    import transformers

    if (folder / "model.safetensors").exists():
        return
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(folder)
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(b) for b in plain] + [chr(256 + i) for i in range(256 - len(plain))]
    words = letters + [f"w{i}" for i in range(50256 - 256)] + ["<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")


class Ours:
    """A model of ours through bench/models_shim.c."""

    def __init__(self, library, folder, kind, n_threads):
        why = ctypes.create_string_buffer(512)
        self.library = library
        self.shim = library.model_open(str(folder).encode(), n_threads, WEIGHTS[kind], why, len(why))
        if not self.shim:
            raise RuntimeError(why.value.decode())

    def run(self, ids):
        said = self.library.model_run(self.shim, *ids.shape, ids.ctypes.data)
        if said:
            raise RuntimeError(said.decode())

    def hidden(self, ids):
        """Last hidden states of the first sequence."""
        import numpy

        address = self.library.model_hidden(self.shim, 0)
        floats = (ctypes.c_float * (ids.shape[1] * HIDDEN)).from_address(address)
        return numpy.frombuffer(floats, dtype=numpy.float32).reshape(ids.shape[1], HIDDEN).copy()

    def decode(self, prompt, n_new):
        import numpy

        ids = numpy.concatenate([prompt, numpy.zeros(n_new, numpy.int32)])
        if not self.library.model_decode(self.shim, len(prompt), n_new, ids.ctypes.data):
            raise RuntimeError("decoding failed")
        return ids

    def peak(self, read=0):
        return self.library.model_peak(self.shim, read, (1 + 4 * read) * peers.PEAK_SECONDS)


def open_library(path):
    library = ctypes.CDLL(path)
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    for name, result, arguments in [
        ("model_open", pointer, [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, pointer, ctypes.c_size_t]),
        ("model_close", None, [pointer]),
        ("model_run", ctypes.c_char_p, [pointer, word, word, pointer]),
        ("model_hidden", pointer, [pointer, word]),
        ("model_decode", ctypes.c_int, [pointer, word, word, pointer]),
        ("model_begin", ctypes.c_int, [pointer, word]),
        ("model_prompt", ctypes.c_int, [pointer, word, pointer]),
        ("model_steps", ctypes.c_int, [pointer, word, pointer]),
        ("model_logits", pointer, [pointer]),
        ("weights_open", pointer, [ctypes.c_char_p, ctypes.c_int]),
        ("weights_close", None, [pointer]),
        ("train_open", pointer, [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]),
        ("train_close", None, [pointer]),
        ("train_step", ctypes.c_double, [pointer, word, word, pointer]),
        ("model_peak", ctypes.c_double, [pointer, ctypes.c_int, ctypes.c_double]),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Torch:
    def __init__(self, folder, kind, n_threads):
        import torch
        import transformers

        torch.set_num_threads(n_threads)
        model = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
        self.model = model.to(torch.bfloat16) if kind == "bf16" else model

    def bind(self, ids):
        import torch

        tokens, result = torch.from_numpy(ids).long(), []

        def call():
            with torch.no_grad():
                result[:] = [self.model(tokens).last_hidden_state]

        return call, lambda: result[0][0].float().numpy()


class OpenVino:
    def __init__(self, folder, kind, n_threads):
        import openvino
        import torch
        import transformers

        model = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
        example = torch.ones(SHAPES[0], dtype=torch.long)
        graph = openvino.convert_model(model, example_input={"input_ids": example, "attention_mask": example})
        options = {"INFERENCE_NUM_THREADS": n_threads, "INFERENCE_PRECISION_HINT": kind}
        self.request = openvino.Core().compile_model(graph, "CPU", options).create_infer_request()

    def bind(self, ids):
        import numpy

        inputs = {"input_ids": ids.astype(numpy.int64), "attention_mask": numpy.ones(ids.shape, numpy.int64)}
        return lambda: self.request.infer(inputs), lambda: self.request.get_output_tensor(0).data[0]


# ---- Measuring ---------------------------------------------------------------------------------


def in_turn(contenders, peak, rounds):
    """Rounds of all contenders; the peaks beside those of the first, which is ours."""
    peaks = []
    for n in range(rounds):
        for i in range(len(contenders)):
            contender = contenders[(n + i) % len(contenders)]
            if contender is contenders[0]:
                peaks.append(peak())
            contender.round()
    return peaks


def summary(case, unit, amount, contenders, peaks, notes):
    """amount: of a call, in 1e9 operations or bytes, as the peaks."""
    mine = contenders[0].seconds
    return {
        "case": case,
        "unit": unit,
        "amount": amount,
        "seconds": {c.name: peers.median(c.seconds) for c in contenders},
        "peak": peers.median(peaks),
        "share": peers.median([amount / s / p if p else 0 for s, p in zip(mine, peaks)]),
        "ratio": {c.name: peers.median([t / m for t, m in zip(c.seconds, mine)]) for c in contenders[1:]},
        "notes": notes,
    }


def measure(ours, others, kind, shape, rounds):
    import numpy

    ids = numpy.random.default_rng(1).integers(1000, VOCABULARY, shape, dtype=numpy.int32)
    contenders, notes = [peers.Contender("qkv", lambda: ours.run(ids))], []
    expected = ours.hidden(ids)
    for name, peer in others:
        call, output = peer.bind(ids)
        contender = peers.Contender(name, call)
        difference = float(numpy.abs(output() - expected).max())
        if difference <= BOUND[kind]:
            contenders.append(contender)
        else:
            notes.append(f"{name}: computes something else: {difference:.2g} away")
    peaks = in_turn(contenders, ours.peak, rounds)
    return summary(f"BERT-base {kind} {shape[0]}x{shape[1]}", "GFLOP/s", operations(*shape) / 1e9, contenders, peaks, notes)


def measure_training(library, folder, kind, n_threads, peak, rounds, alone):
    """Forward, backward and AdamW, every token a target, without dropout. PyTorch computes in bf16 by autocast, and
    keeps weights in f32, as we do."""
    import numpy

    shape, notes, losses = SHAPES[0], [], {}
    ids = numpy.random.default_rng(1).integers(1000, VOCABULARY, shape, dtype=numpy.int32)
    train = library.train_open(str(folder).encode(), n_threads, WEIGHTS[kind])
    if not train:
        raise RuntimeError("the model cannot be trained")
    contenders = [peers.Contender("qkv", lambda: losses.setdefault("qkv", library.train_step(train, *shape, ids.ctypes.data)))]
    if not alone:
        import torch
        import transformers

        torch.set_num_threads(n_threads)
        model = transformers.BertForMaskedLM.from_pretrained(folder).eval()
        optimizer, tokens = torch.optim.AdamW(model.parameters(), lr=1e-5), torch.from_numpy(ids).long()

        def step():
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=kind == "bf16"):
                loss = model(tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            losses.setdefault("PyTorch", loss.item())

        contenders.append(peers.Contender("PyTorch", step))
        if abs(losses["qkv"] - losses["PyTorch"]) > LOSS_BOUND[kind]:
            notes.append(f"first losses are {losses}")
    peaks = in_turn(contenders, peak, rounds)
    library.train_close(train)
    return summary(f"BERT-base {kind} training step 8x128", "GFLOP/s", train_operations(*shape) / 1e9, contenders, peaks, notes)


def measure_decoding(ours, folder, kind, n_threads, rounds, alone):
    def load():
        import transformers

        return transformers.GPT2LMHeadModel.from_pretrained(folder)

    n_weights = 12 * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * WIDE) + 50257 * HIDDEN
    return models_text.measure_greedy("GPT-2-small", ours, load, (0, 50000), n_weights, kind, n_threads, rounds, alone, summary, in_turn)


def figure(result, name):
    seconds = result["seconds"].get(name)
    if not seconds:
        return "–"
    if "tokens" in result:
        return f"{result['tokens'] / seconds:.1f} tokens/s"
    return f"{seconds * 1e3:.1f} ms, {result['amount'] / seconds:.0f}"


def markdown(results):
    lines = ["| case | qkv | of the peak | PyTorch | OpenVINO | times PyTorch | times OpenVINO |", "|---|---:|---:|---:|---:|---:|---:|"]
    for r in results:
        cells = [figure(r, name) for name in ("qkv", "PyTorch", "OpenVINO")]
        ratios = [f"{r['ratio'][name]:.2f}" if name in r["ratio"] else "–" for name in ("PyTorch", "OpenVINO")]
        lines.append(f"| {r['case']} | {cells[0]} | {100 * r['share']:.0f} % | {cells[1]} | {cells[2]} | {ratios[0]} | {ratios[1]} |")
    return "\n".join(lines)


# ---- Command line ------------------------------------------------------------------------------


def table_of(result):
    """What prints results of its kind."""
    kinds = {"memory": models_load.markdown, "graph": models_llama.markdown, "megabytes": models_llama.markdown_memory}
    return next((table for key, table in kinds.items() if key in result), markdown)


def tell(results, result, n_threads):
    result["threads"] = n_threads
    results.append(result)
    for note in result["notes"]:
        print(f"{result['case']}: {note}", file=sys.stderr)
    print(table_of(result)([result]).split("\n")[-1], file=sys.stderr, flush=True)


def run_llama(options, n_threads):
    """Of each shape and kind; memory with the first number of threads alone."""
    results = []
    for name in options.shapes.split(","):
        folder = pathlib.Path(options.models) / name.lower()
        models_llama.make(folder, name)
        for kind in options.kinds.split(","):
            options.opened = open_library(options.library)
            for result in models_llama.measure(options, folder, name, kind, n_threads, summary, in_turn):
                tell(results, result, n_threads)
            if n_threads == 1 and models_llama.wanted(options, "memory"):
                who = [r for r in results if "prompt" in r["case"]][-1]["seconds"]
                tell(results, models_llama.memories(options, folder, name, kind, n_threads, who), n_threads)
    return results


def run_images(options, library, folder, kind, n_threads, results):
    ours = Ours(library, folder, kind, n_threads)
    makers = [] if options.alone else [("PyTorch", models_images.Torch), ("OpenVINO", models_images.OpenVino)]
    others = [(name, make(folder, kind, n_threads)) for name, make in makers]
    for batch in models_images.BATCHES:
        tell(results, models_images.measure(ours, others, kind, batch, options.rounds, summary, in_turn), n_threads)
    tell(results, models_images.measure_heads(ours, kind, options.rounds, summary, in_turn), n_threads)
    library.model_close(ours.shim)


def run_text(options, n_threads):
    """Of each kind: T5-small's shape, forward, and decoding of Pythia-160M's."""
    library, results = open_library(options.library), []
    t5, pythia = (pathlib.Path(options.models) / name for name in ("t5-small", "pythia-160m"))
    for folder in (t5, pythia):
        models_text.make(folder, folder.name)
    for kind in options.kinds.split(","):
        ours = Ours(library, t5, kind, n_threads)
        makers = [] if options.alone else [("PyTorch", models_text.Torch), ("OpenVINO", models_text.OpenVino)]
        others = [(name, make(t5, kind, n_threads)) for name, make in makers]
        for shape in models_text.SHAPES:
            tell(results, models_text.measure_pairs(ours, others, kind, shape, options.rounds, summary, in_turn), n_threads)
        library.model_close(ours.shim)
        ours = Ours(library, pythia, kind, n_threads)
        tell(results, models_text.measure_decoding(ours, pythia, kind, n_threads, options.rounds, options.alone, summary, in_turn),
             n_threads)
        library.model_close(ours.shim)
    return results


def run_one(options, n_threads):
    """All cases with one number of threads, in this process."""
    os.environ["OMP_NUM_THREADS"] = str(n_threads)
    if options.what == "llama":
        return run_llama(options, n_threads)
    if options.what == "text":
        return run_text(options, n_threads)
    library, results = open_library(options.library), []
    bert, gpt2, vit = (pathlib.Path(options.models) / name for name in ("bert-base", "gpt2-small", "vit-base"))
    what = options.what.split(",")
    if "images" in what:
        models_images.make(vit)
    if what != ["images"]:
        make_bert(bert)
        make_gpt2(gpt2)
    for kind in options.kinds.split(","):
        if "images" in what:
            run_images(options, library, vit, kind, n_threads, results)
        if what == ["images"]:
            continue
        if "loading" in what and n_threads == 1:
            tell(results, models_load.measure(options, bert, kind, N_PARAMETERS), n_threads)
        ours = Ours(library, bert, kind, n_threads)
        makers = [("PyTorch", Torch), ("OpenVINO", OpenVino)]
        wanted = "encoder" in what
        others = [(name, make(bert, kind, n_threads)) for name, make in makers if wanted and not options.alone]
        for shape in SHAPES if wanted else []:
            tell(results, measure(ours, others, kind, shape, options.rounds), n_threads)
        if "training" in what:
            tell(results, measure_training(library, bert, kind, n_threads, ours.peak, options.rounds, options.alone), n_threads)
        library.model_close(ours.shim)
        if "decoding" in what:
            ours = Ours(library, gpt2, kind, n_threads)
            tell(results, measure_decoding(ours, gpt2, kind, n_threads, options.rounds, options.alone), n_threads)
            library.model_close(ours.shim)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", required=True, help="build/release/libmodels.so")
    parser.add_argument("--models", default="build/peers-models", help="where the random models are made")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, one process for each (1,2)")
    parser.add_argument("--kinds", default="f32,bf16")
    parser.add_argument("--what", default="loading,encoder,training,decoding,images",
                        help="of these, or llama alone (bench/models_llama.py), or text alone (bench/models_text.py)")
    parser.add_argument("--shapes", default=",".join(models_llama.SHAPES), help="of --what llama")
    parser.add_argument("--cases", help="of --what llama, how they end: 'of 128', 'of 2048', decoding, "
                        "memory, which needs a prompt (all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--json", help="where the results go")
    options = parser.parse_args()
    threads = [int(n) for n in options.threads.split(",")]
    results = run_one(options, threads[0]) if len(threads) == 1 else []
    for n in threads if len(threads) > 1 else []:  # a library's threads are made once a process
        with tempfile.NamedTemporaryFile(suffix=".json") as part:
            arguments = [sys.executable, *sys.argv, "--threads", str(n), "--json", part.name]
            subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
            results += json.load(open(part.name))["results"]
    told = peers.versions(["torch", "transformers", "openvino"])
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"versions": told, "results": results}, file, indent=1)
    print(", ".join(f"{key} {value}" for key, value in told.items()))
    for table in (models_load.markdown, models_llama.markdown_memory):
        of_it = [r for r in results if table_of(r) is table]
        if of_it:
            print("\n" + table(of_it))
    for table, units in ((markdown, "time and GFLOP/s, or tokens/s"), (models_llama.markdown, "tokens/s")):
        for n in threads:
            timed = [r for r in results if r["threads"] == n and table_of(r) is table]
            if timed:
                print(f"\n{n} thread{'s' if n > 1 else ''}: {units}\n\n" + table(timed))


if __name__ == "__main__":
    main()

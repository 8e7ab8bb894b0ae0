"""How long models take to open, and how much memory: each in a process of its own, ours beside PyTorch's.

The first opening of a process is not counted: the file is in memory then, and so is the code. Memory is the most that the
process had at any time, less what it had before the first opening, over the bytes of the weights in the precision that
they are kept in.
"""
import multiprocessing
import time

import peers


def memory(what):
    """Bytes: VmRSS is what the process has, VmHWM the most that it ever had."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(what))


def repeat(open_one, rounds, results):
    before, seconds = memory("VmRSS"), []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        close = open_one()
        seconds.append(time.perf_counter() - start)
        close()
    results.put((seconds[1:], memory("VmHWM") - before))


def ours(library, folder, kind, rounds, results):
    import models

    functions = models.open_library(library)

    def open_one():
        model = functions.weights_open(str(folder).encode(), models.WEIGHTS[kind])
        if not model:
            raise RuntimeError("the model cannot be opened")
        return lambda: functions.weights_close(model)

    repeat(open_one, rounds, results)


def torch(_, folder, kind, rounds, results):
    import torch
    import transformers

    def open_one():
        dtype = torch.bfloat16 if kind == "bf16" else torch.float32
        transformers.BertForMaskedLM.from_pretrained(folder, dtype=dtype).eval()
        return lambda: None

    repeat(open_one, rounds, results)


def alone(target, *arguments):
    """What the target puts, in a process that begins empty."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=target, args=(*arguments, results))
    process.start()
    while process.is_alive() and results.empty():
        process.join(0.1)
    if results.empty():
        raise RuntimeError("a model could not be opened")
    found = results.get()
    process.join()
    return found


def measure(options, folder, kind, n_parameters):
    """Seconds, and memory over that of the weights, by contender."""
    bytes_each = 2 if kind == "bf16" else 4
    contenders = {"qkv": ours} if options.alone else {"qkv": ours, "PyTorch": torch}
    result = {"case": f"BERT-base {kind} opens", "seconds": {}, "memory": {}, "notes": []}
    for name, target in contenders.items():
        seconds, most = alone(target, options.library, folder, kind, options.rounds)
        result["seconds"][name] = peers.median(seconds)
        result["memory"][name] = most / (n_parameters * bytes_each)
    return result


def markdown(results):
    lines = ["| case | qkv | memory / weights | PyTorch | memory / weights |", "|---|---:|---:|---:|---:|"]
    for r in results:
        cells = []
        for name in ("qkv", "PyTorch"):
            known = name in r["seconds"]
            cells += [f"{r['seconds'][name]:.2f} s", f"{r['memory'][name]:.2f}"] if known else ["–", "–"]
        lines.append(f"| {r['case']} | {' | '.join(cells)} |")
    return "\n".join(lines)

#!/usr/bin/env python3
"""Work for a long time: memory stays flat, no descriptor is lost, and the bits at the end are those at the beginning.

    tools/soak.py TOOL [--minutes 20] [--work decode,serve,train,ranks,python] [--seed N]

decode and python need the package (./dev python tools/soak.py …); ranks needs mpirun and TOOL-mpi beside the tool. Each work is a
process, or several, whose resident memory and descriptors are read every five seconds. Over the last three quarters of its time
memory must not grow by more than 1 MB a minute, as its slope by least squares says, and descriptors not at all. Two works run
beside each other. Prints a line for each.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = "the a dog man woman box door old small it was saw opened when in house [MASK] [MASK] .".split()


def children(pid):
    """The process and all below it."""
    found = [pid]
    for each in found:
        try:
            for task in os.listdir(f"/proc/{each}/task"):
                found += map(int, pathlib.Path(f"/proc/{each}/task/{task}/children").read_text().split())
        except OSError:
            pass
    return found


def look(pids):
    """Resident megabytes and open descriptors of processes."""
    megabytes = descriptors = 0
    for each in pids:
        try:
            megabytes += int(re.search(r"VmRSS:\s*(\d+)", pathlib.Path(f"/proc/{each}/status").read_text())[1]) / 1024
            descriptors += len(os.listdir(f"/proc/{each}/fd"))
        except (OSError, TypeError):
            pass
    return megabytes, descriptors


def slope(times, values):
    """A minute's growth, by least squares."""
    n, mean_t, mean_v = len(times), sum(times) / len(times), sum(values) / len(values)
    below = sum((t - mean_t) ** 2 for t in times)
    return 60 * sum((t - mean_t) * (v - mean_v) for t, v in zip(times, values)) / below if n > 1 and below else 0.0


class Watch:
    """Reads memory and descriptors of a process, and of those below it, until it is told to stop."""

    def __init__(self, pid, seconds, below):
        self.pid, self.seconds, self.below, self.read, self.over = pid, seconds, below, [], threading.Event()
        self.began = time.monotonic()
        self.thread = threading.Thread(target=self.run, daemon=True)  # ends with a work that fails
        self.thread.start()

    def run(self):
        while not self.over.wait(5):
            self.read.append((time.monotonic() - self.began, *look(children(self.pid) if self.below else [self.pid])))

    def stop(self):
        """Megabytes at the end and their growth a minute, descriptors at the end and their growth."""
        self.over.set()
        self.thread.join()
        late = [r for r in self.read if r[0] > self.seconds / 4] or [(0, *look([self.pid]))]
        times, megabytes, descriptors = zip(*late)
        third = max(1, len(late) // 3)
        more = max(descriptors[-third:]) - max(descriptors[:third])
        return {"MB": round(megabytes[-1], 1), "MB a minute": round(slope(times, megabytes), 3), "descriptors": descriptors[-1],
                "more descriptors": more}


# ---- Work: each says how much it did, raises if bits differ, and has a pid that is watched ---------


def decode(soak, until):
    """A cache whose sequences grow, are cut and forked, until its pages have been used many times."""
    import numpy

    import qkv

    cache = qkv.KVCache(sequences=4, kv_heads=2, dim=64, pages=40, page_len=16)
    arrays = numpy.random.default_rng(soak.seed)
    k, v = (arrays.standard_normal((2, 16, 64), dtype=numpy.float32) for _ in range(2))
    q = arrays.standard_normal((4, 8, 1, 64), dtype=numpy.float32)
    known, n = None, 0
    while time.monotonic() < until:
        for sequence in range(4):
            cache.truncate(sequence, 0)
        for _ in range(6):
            cache.append(0, k, v)
        for sequence in range(1, 4):
            cache.fork(0, sequence)
            cache.append(sequence, k[:, :sequence], v[:, :sequence])
        digest = hashlib.sha256(cache.attend(q).tobytes()).hexdigest()
        known = known or digest
        assert digest == known, "other bits"
        n += 1
    return f"{n} rounds of 4 sequences"


def python(soak, until):
    """Four threads that call attention and look at a model, each always the same."""
    import numpy

    import qkv

    model = qkv.load()

    def one(number):
        arrays = numpy.random.default_rng(soak.seed + number)
        q, k, v = (arrays.standard_normal((2, 4, 40 + number, 32), dtype=numpy.float32) for _ in range(3))
        known, n = None, 0
        while time.monotonic() < until:
            seen = model.look(f"I was watching the [MASK] when it opened {number}.")
            bits = qkv.attention(q, k, v, causal=True).tobytes() + numpy.asarray(seen.weights(0, 0)).tobytes()
            digest = hashlib.sha256(bits).hexdigest()
            known = known or digest
            assert digest == known, "other bits"
            n += 1
        return n

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return f"{sum(pool.map(one, range(4)))} looks and calls of 4 threads"


def serve(soak, until):
    """`look --serve` under requests of four clients, some of whom leave before the answer."""
    process = subprocess.Popen([soak.tool, "look", "I saw the [MASK].", "--serve"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True)
    address = next(match[0] for line in process.stdout if (match := re.search(r"http://127\.0\.0\.1:\S+", line)))
    threading.Thread(target=process.stdout.read, daemon=True).start()
    soak.watch(process.pid)
    known, lock, n = {}, threading.Lock(), [0, 0]

    def client(number):
        chosen = random.Random(soak.seed + number)
        while time.monotonic() < until:
            text = " ".join(chosen.choice(WORDS) for _ in range(chosen.randrange(1, 12)))
            form = urllib.parse.urlencode({"text": text}).encode()
            request = urllib.request.Request(address + "page", form, {"Origin": re.sub(r"(\d)/.*", r"\1", address)})
            try:
                with urllib.request.urlopen(request, timeout=3600) as answer:
                    if chosen.random() < 0.1:
                        n[1] += 1
                        continue
                    digest = hashlib.sha256(answer.read()).hexdigest()
            except urllib.error.HTTPError as error:
                assert error.code == 503, f"status {error.code}"  # too many wait
                continue
            with lock:
                n[0] += 1
                if len(known) < 10000:
                    assert known.setdefault(text, digest) == digest, "other bits"

    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(client, range(4)))
    finally:
        process.terminate()
        process.wait()
    return f"{n[0]} pages, {n[1]} of which nobody waited for"


def train(soak, until):
    """Runs of some steps, killed at any time and resumed, whose model has the bytes of a run that was left alone. Kills come ever later, since
    other work may have slowed the machine down.
    """
    options = ["train", "--text", ROOT / "examples/text/sentences.txt", "--steps", "60", "--layers", "1", "--hidden", "32", "--heads", "2",
               "--checkpoint-every", "5", "--quiet", "--out"]
    chosen, kills, n = random.Random(soak.seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:

        def result(name):
            return hashlib.sha256(pathlib.Path(folder, name, "model.safetensors").read_bytes()).hexdigest()

        began = time.monotonic()
        subprocess.run([soak.tool, *options, f"{folder}/alone"], check=True, stdout=subprocess.DEVNULL)
        alone = time.monotonic() - began
        while time.monotonic() < until:
            name, resume, patience = f"run{n}", [], alone
            while True:
                process = subprocess.Popen([soak.tool, *options, f"{folder}/{name}", *resume], stdout=subprocess.DEVNULL)
                try:
                    code = process.wait(chosen.uniform(0.1, 0.9) * patience if time.monotonic() < until else None)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    kills, patience = kills + 1, 1.1 * patience
                    there = [pathlib.Path(folder, name, file).exists() for file in ("checkpoint.safetensors", "model.safetensors")]
                    resume = ["--resume"] if there[0] else []
                    if any(there) and not there[0]:
                        break  # it had finished
                    if not any(there):
                        shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
                    continue
                assert code == 0, f"exit code {code}"
                break
            assert result(name) == result("alone"), "other bits"
            n += 1
    return f"{n} trainings, {kills} kills"


def ranks(soak, until):
    """`generate` over two ranks: so many prompts that one run lasts as long as is wanted."""

    def run(n, watched):
        prompts.write_text("".join(lines) * n)
        process = subprocess.Popen(
            ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2", f"{soak.tool}-mpi", "generate", "--file", prompts, "--model",
             ROOT / "models/writer", "--max-new", "30", "--quiet"], stdout=subprocess.PIPE)
        if watched:
            soak.watch(process.pid, below=True)
        made = process.communicate()[0]
        assert process.returncode == 0, f"exit code {process.returncode}"
        return made

    with tempfile.TemporaryDirectory() as folder:
        prompts = pathlib.Path(folder, "prompts")
        lines = [f"{' '.join(line.split()[:3])}\n" for line in (ROOT / "examples/text/said.txt").read_text().splitlines()]
        # what mpirun needs to begin is in both, and so in neither
        began = time.monotonic()
        once = run(1, False)
        middle = time.monotonic()
        run(101, False)
        end = time.monotonic()
        n = max(1, int(100 * (until - end) / max(end - middle - (middle - began), 0.01)))
        assert run(n, True) == once * n, "other bits"
        return f"{n * len(lines)} prompts on 2 ranks"


WORK = {work.__name__: work for work in (decode, serve, train, ranks, python)}


class Soak:
    def __init__(self, tool, seed, seconds):
        self.tool, self.seed, self.seconds, self.watches = tool, seed, seconds, []

    def watch(self, pid, below=False):
        self.watches.append(Watch(pid, self.seconds, below))


def run_one(name, options):
    """In a process of its own: what it did, and its memory."""
    soak = Soak(options.tool, options.seed, 60 * options.minutes)
    if name in ("decode", "python", "train"):
        soak.watch(os.getpid(), below=name == "train")
    did = WORK[name](soak, time.monotonic() + soak.seconds)
    print(json.dumps({"work": name, "did": did, **soak.watches[0].stop()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=os.path.abspath)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--work", default=",".join(WORK))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        run_one(options.one, options)
        return 0
    print("seed", options.seed, flush=True)

    def work(name):
        words = [sys.executable, __file__, options.tool, "--minutes", str(options.minutes), "--seed", str(options.seed), "--one", name]
        process = subprocess.run(words, capture_output=True, text=True)
        if process.returncode:
            print(f"{name} FAILED:\n{process.stderr}", flush=True)
            return False
        found = json.loads(process.stdout)
        flat = found["MB a minute"] < 1 and found["more descriptors"] <= 0
        print(process.stdout.strip() if flat else f"FAILED: {process.stdout.strip()}", flush=True)
        return flat

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return 0 if all(list(pool.map(work, options.work.split(",")))) else 1


if __name__ == "__main__":
    sys.exit(main())

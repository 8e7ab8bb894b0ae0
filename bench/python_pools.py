"""Two pools of threads on the same processors: a linear layer of torch and attention, in turn and each alone.

    ./dev python bench/python_pools.py        needs torch in python/environment

A pair of calls in turn should take what the two take alone. Threads that spin after their work, while those of another
pool have some, make it longer. "shared": qkv.torch as it is, on torch's own threads. "own": with threads of the library,
as after qkv.set_num_threads. The three ways take turns, and a ratio is that of medians: alone / in turn, 1 at best.
"""
from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import qkv
import qkv.torch
import torch


def seconds(call: Callable[[], object], n: int) -> float:
    began = time.perf_counter()
    for _ in range(n):
        call()
    return (time.perf_counter() - began) / n


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments.add_argument("--rounds", type=int, default=30)
    given = arguments.parse_args()
    torch.set_num_threads(given.threads)
    print(f"{given.threads} threads, torch {torch.__version__}, {given.rounds} rounds")
    print(f"{'len':>6} {'pool':7} {'linear us':>10} {'attention us':>13} {'in turn us':>11} {'alone / in turn':>16}")
    for length in (128, 512):
        q, k, v = (torch.randn(1, 8, length, 64) for _ in range(3))
        x, weight = torch.randn(length, 512), torch.randn(512, 512)

        def linear(x: torch.Tensor = x, weight: torch.Tensor = weight) -> torch.Tensor:
            return torch.nn.functional.linear(x, weight)

        def attend(q: torch.Tensor = q, k: torch.Tensor = k, v: torch.Tensor = v) -> torch.Tensor:
            return qkv.torch.scaled_dot_product_attention(q, k, v)

        def both() -> None:
            linear()
            attend()

        n = max(3, 2_000 // length)
        times: dict[tuple[str, str], list[float]] = {}
        with torch.no_grad():
            for turn in range(given.rounds + 1):
                for pool, threads in (("shared", 0), ("own", given.threads)):
                    qkv.set_num_threads(threads)
                    for name, call in (("linear", linear), ("attention", attend), ("both", both)):
                        call()
                        took = seconds(call, n)
                        if turn:  # the first one starts threads
                            times.setdefault((pool, name), []).append(took)
        for pool in ("shared", "own"):
            a, b, c = (1e6 * statistics.median(times[pool, name]) for name in ("linear", "attention", "both"))
            print(f"{length:6} {pool:7} {a:10.0f} {b:13.0f} {c:11.0f} {(a + b) / c:16.3f}")
    qkv.set_num_threads(0)


if __name__ == "__main__":
    main()

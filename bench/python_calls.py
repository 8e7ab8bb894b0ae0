"""Small calls from Python beside torch's own, on [1, 1, 8, 8]: what a call costs before it computes anything.

    ./dev python bench/python_calls.py        needs torch in python/environment

All ways take turns in one process, some calls each, and a ratio is that of medians to torch's: below 1 is faster. With
--json F the numbers are written, too.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import time
from collections.abc import Callable

import qkv
import qkv.torch
import torch
from torch.nn import functional

CALLS = 50


def ways(length: int) -> dict[str, Callable[[], object]]:
    q, k, v = (torch.randn(1, 1, length, length) for _ in range(3))
    arrays = [x.numpy() for x in (q, k, v)]
    needy = [x.clone().requires_grad_() for x in (q, k, v)]
    attend, operator = qkv.torch.scaled_dot_product_attention, torch.ops.qkv.scaled_dot_product_attention.default

    def step(call: Callable[..., torch.Tensor]) -> None:
        o = call(*needy)
        o.backward(o.detach())

    return {
        "torch": lambda: functional.scaled_dot_product_attention(q, k, v),
        "qkv.attention of NumPy arrays": lambda: qkv.attention(*arrays),
        "qkv.torch": lambda: attend(q, k, v),
        "qkv.torch through the operator": lambda: operator(q, k, v),
        "torch, causal": lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        "qkv.attention, causal": lambda: qkv.attention(*arrays, causal=True),
        "qkv.torch, causal": lambda: attend(q, k, v, is_causal=True),
        "torch, forward and backward": lambda: step(functional.scaled_dot_product_attention),
        "qkv.torch, forward and backward": lambda: step(attend),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--length", type=int, default=8, help="queries, keys and channels (8)")
    arguments.add_argument("--rounds", type=int, default=400)
    arguments.add_argument("--json", type=pathlib.Path)
    given = arguments.parse_args()
    calls = ways(given.length)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(given.rounds + 1):
        for name, call in calls.items():
            began = time.perf_counter()
            for _ in range(CALLS):
                call()
            if turn:
                times[name].append((time.perf_counter() - began) / CALLS * 1e6)
    medians = {name: statistics.median(each) for name, each in times.items()}
    print(f"[1, 1, {given.length}, {given.length}], torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{'':34} {'median us':>10} {'least us':>10} {'ratio':>7}")
    for name, median in medians.items():
        peer = medians[f"torch, {name.partition(', ')[2]}" if ", " in name else "torch"]
        print(f"{name:34} {median:10.2f} {min(times[name]):10.2f} {median / peer:7.2f}")
    if given.json:
        given.json.write_text(json.dumps({"torch": torch.__version__, "median_us": medians}, indent=1) + "\n")


if __name__ == "__main__":
    main()

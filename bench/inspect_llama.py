#!/usr/bin/env python3
"""A Llama of 135 M parameters with random weights: what it costs to watch its heads, and qkv beside sdpa.

usage: inspect_llama.py [--len 32768] [--layers 30] [--lens 512,2048,8192] [--limit-gb 8] [--threads N] [--rounds N]
                        [--parts inspect,eager,steps] [--json FILE]

It needs torch, transformers and the package (./dev python). The shape is that of SmolLM2-135M. Every measurement runs
in a process of its own, after a short warm-up; its memory is the peak of that process from there on. Passes are
repeated for three seconds. Rounds alternate what is compared, and the fastest pass counts.

    inspect  one pass over --len tokens: plain, with keep="stats", and with what keys receive
    eager    the longest text, doubling from 256, whose eager pass with output_attentions=True survives --limit-gb
    steps    forward and training step beside sdpa, of --lens tokens
"""
import argparse
import json
import pathlib
import resource
import subprocess
import sys
import time

WARM = 64


def build(options, length, implementation):
    import qkv.transformers
    import torch
    import transformers

    torch.set_num_threads(options.threads or torch.get_num_threads())
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=options.layers,
        num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=length, rope_theta=100000.0,
        rms_norm_eps=1e-5, tie_word_embeddings=True, attn_implementation=implementation)
    return transformers.LlamaForCausalLM(config), torch.randint(0, config.vocab_size, (1, length))


def forward(model, ids, **options):
    import torch

    with torch.no_grad():
        return model(ids, use_cache=False, logits_to_keep=1, **options)


def step(model, ids):
    model.zero_grad(set_to_none=True)
    model(ids, labels=ids, use_cache=False).loss.backward()


def begin_peak():
    """From now on peak() is that of what follows."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def peak():
    """The largest resident memory of this process, in bytes."""
    line = next(line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) * 1024


def one(options):
    """A measurement in this process: seconds, and the peak of memory."""
    import qkv

    implementation = "eager" if options.what == "eager" else options.implementation
    model, ids = build(options, options.length, implementation)
    model.train(options.what == "step")
    call = step if options.what == "step" else forward
    if options.what == "eager":
        resource.setrlimit(resource.RLIMIT_DATA, (int(options.limit_gb * 2**30),) * 2)
        call(model, ids, output_attentions=True)
        return {"seconds": 0.0}
    call(model, ids[:, :WARM])
    begin_peak()
    start = time.perf_counter()
    if options.what in ("stats", "received"):
        with qkv.inspect(model, keep="stats", received=options.what == "received") as seen:
            call(model, ids)
        measured = time.perf_counter() - start
        largest = peak()
        rows = seen.rows()  # numbers of all heads, from what was kept
        return {"seconds": measured, "numbers": time.perf_counter() - start - measured, "kept": seen.bytes,
                "heads": len(rows), "peak": largest}
    call(model, ids)
    times = [time.perf_counter() - start]
    while sum(times) < 3:
        start = time.perf_counter()
        call(model, ids)
        times.append(time.perf_counter() - start)
    return {"seconds": min(times), "peak": peak()}


def child(options, what, length, implementation="qkv"):
    """one() in a child; None if it did not survive."""
    command = [sys.executable, __file__, "--what", what, "--length", str(length), "--implementation", implementation,
               "--layers", str(options.layers), "--threads", str(options.threads), "--limit-gb", str(options.limit_gb)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and what != "eager":
        sys.exit(f"{what}, {length} tokens, {implementation}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return None if done.returncode else json.loads(done.stdout.splitlines()[-1])


def best(options, cases):
    """The fastest of some rounds of each case, which take turns, and the largest memory."""
    found = {}
    for _ in range(options.rounds):
        for case in cases:
            got = child(options, *case)
            kept = found.setdefault(case, got)
            faster = got if got["seconds"] < kept["seconds"] else kept
            found[case] = {**faster, "peak": max(got["peak"], kept["peak"])}
    return [found[case] for case in cases]


def inspect_part(options):
    cases = [(what, options.len) for what in ("plain", "stats", "received")]
    made = best(options, cases)
    plain = made[0]
    print(f"\n{options.len} tokens, {options.layers} layers of 9 heads\n"
          "| pass | s | times plain | peak, MB | more than plain, MB | stored, MB | numbers of all heads, s |\n"
          "|---|---:|---:|---:|---:|---:|---:|")
    for name, got in zip(("plain", 'keep="stats", received=False', 'keep="stats"'), made):
        print(f"| {name} | {got['seconds']:.2f} | {got['seconds'] / plain['seconds']:.2f} | {got['peak'] / 1e6:.0f} | "
              f"{(got['peak'] - plain['peak']) / 1e6:.0f} | {got.get('kept', 0) / 1e6:.0f} | "
              f"{got.get('numbers', 0):.2f} |")
    return {"len": options.len, "layers": options.layers, "plain": made[0], "stats": made[1], "received": made[2]}


def eager_part(options):
    longest, length = 0, 256
    while length <= options.len and child(options, "eager", length) is not None:
        longest, length = length, 2 * length
    print(f"\neager with output_attentions=True in {options.limit_gb:g} GB: the longest text that survives has "
          f"{longest} tokens")
    return {"limit_gb": options.limit_gb, "longest": longest}


def steps_part(options):
    rows = []
    print("\n| tokens | pass | qkv, s | sdpa, s | sdpa / qkv | qkv, MB | sdpa, MB |\n"
          "|---:|---|---:|---:|---:|---:|---:|")
    for length in options.lens:
        for what in ("forward", "step"):
            ours, theirs = best(options, [(what, length, name) for name in ("qkv", "sdpa")])
            rows.append({"len": length, "pass": what, "qkv": ours, "sdpa": theirs})
            times = f"{ours['seconds']:.3f} | {theirs['seconds']:.3f} | {theirs['seconds'] / ours['seconds']:.2f}"
            print(f"| {length} | {what} | {times} | {ours['peak'] / 1e6:.0f} | {theirs['peak'] / 1e6:.0f} |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--len", type=int, default=32768)
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--lens", type=lambda text: [int(n) for n in text.split(",")], default=[512, 2048, 8192])
    parser.add_argument("--limit-gb", type=float, default=8)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--parts", default="inspect,eager,steps")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--length", type=int, default=0, help=argparse.SUPPRESS)
    for name in ("--what", "--implementation"):
        parser.add_argument(name, default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.what:
        print(json.dumps(one(options)))
        return
    parts = {"inspect": inspect_part, "eager": eager_part, "steps": steps_part}
    made = {name: parts[name](options) for name in options.parts.split(",")}
    print()
    print(json.dumps(made))
    if options.json:
        options.json.write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()

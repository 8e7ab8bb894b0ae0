#!/usr/bin/env python3
"""Our attention beside that of PyTorch, ONNX Runtime and OpenVINO, on the same arrays, in one process.

    ./dev bench --peers                     makes a virtual environment with the peers, builds, and runs this
    python bench/peers.py --library build/release/libpeers.so --threads 1,2 --json peers.json

Each round of a case calls each library in turn, beginning with another one each time, so that clocks that drift
drift for all; ours has the machine's peak measured beside it (bench/peers_shim.c). A figure is the median of the
rounds. What a peer computes is compared with ours first: a peer that computes something else, or cannot, is left out,
and a line says why.
"""
import argparse
import ctypes
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time

# The rows of the table; names are those of `qkv bench --list`. A case that this build lacks is left out.
CASES = [
    "forward f32 H1 L4096 D64",
    "forward f32 H1 L4096 D128",
    "causal f32 H12 L1024 D64",
    "causal f32 H4 L4096 D128",
    "small f32 B8 H12 L128 D64",
    "small f32 H12 L11 D64",
    "masks f32 H12 L1024 D64 bool",
    "gqa f32 H32:8 L2048 D128 causal",
    "causal f32 H4 L1024 D192 Dv128",
    "decode f32 H32:8 L8192 D128",
    "decode bf16 H32:8 L8192 D128",
    "decode int8 H32:8 L8192 D128",
    "forward bf16 H1 L4096 D64",
    "forward bf16 H1 L4096 D128",
    "causal bf16 H12 L1024 D64",
    "causal bf16 H4 L4096 D128",
    "backward f32 H4 L2048 D64 both",
    "backward bf16 H4 L2048 D64 both",
    "backward f32 H4 L2048 D128 causal both",
    "backward bf16 H4 L2048 D128 causal both",
]
F32, BF16, F16 = 0, 1, 2
FORWARD, BACKWARD, BOTH, DECODE = range(4)
ROUND_SECONDS = 0.03
PEAK_SECONDS = 0.01
PAUSE_SECONDS = 0.06  # between contenders: threads that spin for more work give up


# ---- Ours --------------------------------------------------------------------------------------


class Ours:
    """A case of `qkv bench`, and its arrays as torch tensors."""

    name = "qkv"

    def __init__(self, library, case, n_threads):
        self.library = library
        self.handle = library.shim_open(case.encode(), n_threads)
        if not self.handle:
            raise KeyError(case)
        sizes = (ctypes.c_int64 * 9)()
        library.shim_sizes(self.handle, sizes)
        (self.batch, self.heads, self.kv_heads, self.len_q, self.len_k, self.dim, self.dim_v, self.dtype, self.call_of) = sizes
        words = case.split()
        self.int8 = "int8" in words
        self.causal = "causal" in words
        self.masked = "bool" in words

    def call(self):
        said = self.library.shim_call(self.handle)
        if said:
            raise RuntimeError(said.decode())

    def peak(self):
        return self.library.shim_peak(self.handle, PEAK_SECONDS)

    def array(self, index, shape, dtype):
        """q, k, v, o, d_o, d_q, d_k, d_v, mask: a torch tensor on our memory."""
        import torch

        kind = {F32: torch.float32, BF16: torch.bfloat16, F16: torch.float16, "bool": torch.bool}[dtype]
        n = kind.itemsize
        for size in shape:
            n *= size
        address = self.library.shim_array(self.handle, index)
        return torch.frombuffer((ctypes.c_char * n).from_address(address), dtype=kind).view(*shape)

    def tensors(self):
        q = self.array(0, (self.batch, self.heads, self.len_q, self.dim), self.dtype)
        k = self.array(1, (self.batch, self.kv_heads, self.len_k, self.dim), self.dtype)
        v = self.array(2, (self.batch, self.kv_heads, self.len_k, self.dim_v), self.dtype)
        return q, k, v

    def output(self):
        return self.array(3, (self.batch, self.heads, self.len_q, self.dim_v), self.dtype)

    def mask(self):
        return self.array(8, (1, 1, self.len_q, self.len_k), "bool") if self.masked else None


def open_library(path):
    library = ctypes.CDLL(path)
    for name, result, arguments in [
        ("shim_open", ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int]),
        ("shim_call", ctypes.c_char_p, [ctypes.c_void_p]),
        ("shim_peak", ctypes.c_double, [ctypes.c_void_p, ctypes.c_double]),
        ("shim_peak_name", ctypes.c_char_p, [ctypes.c_void_p]),
        ("shim_operations", ctypes.c_double, [ctypes.c_void_p]),
        ("shim_kv_bytes", ctypes.c_double, [ctypes.c_void_p]),
        ("shim_sizes", None, [ctypes.c_void_p, ctypes.c_void_p]),
        ("shim_array", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]),
        ("shim_isa", ctypes.c_char_p, [ctypes.c_void_p]),
        ("shim_arithmetic", ctypes.c_char_p, [ctypes.c_void_p]),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


# ---- Peers: each makes (call, output or None), or raises Unfit -----------------------------------


class Unfit(Exception):
    """What a peer has no operator for."""


def make_torch(ours, n_threads):
    import torch
    from torch.nn.functional import scaled_dot_product_attention as attention

    torch.set_num_threads(n_threads)
    if ours.int8:
        raise Unfit("no int8 keys and values")
    q, k, v = ours.tensors()
    options = {"attn_mask": ours.mask(), "is_causal": ours.causal, "enable_gqa": ours.heads != ours.kv_heads}
    result = []

    def forward():
        with torch.no_grad():
            result[:] = [attention(q, k, v, **options)]

    if ours.call_of in (FORWARD, DECODE):
        return forward, lambda: result[0].float().numpy()
    q, k, v = [x.clone().requires_grad_() for x in (q, k, v)]
    gradient = ours.array(4, (ours.batch, ours.heads, ours.len_q, ours.dim_v), ours.dtype).clone()

    def both():
        q.grad = k.grad = v.grad = None
        result[:] = [attention(q, k, v, **options)]
        result[0].backward(gradient)

    return both, lambda: result[0].detach().float().numpy()


def forward_f32_only(ours):
    if ours.call_of in (BACKWARD, BOTH):
        raise Unfit("no gradients")
    if ours.int8:
        raise Unfit("no int8 keys and values")


def ort_session(node, inputs, outputs, domain, n_threads):
    import onnxruntime
    from onnx import TensorProto, helper

    kinds = {"f": TensorProto.FLOAT, "b": TensorProto.BOOL}
    info = [helper.make_tensor_value_info(name, kinds[kind], shape) for name, kind, shape in inputs]
    out = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs]
    opsets = [helper.make_opsetid("", 23 if not domain else 17)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(helper.make_graph([node], "g", info, out), opset_imports=opsets, ir_version=11 if not domain else 10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def make_ort_mha(ours, n_threads):
    """com.microsoft.MultiHeadAttention: [batch, tokens, heads x channels]."""
    from onnx import helper

    forward_f32_only(ours)
    if ours.dtype != F32:
        raise Unfit("f32 only")
    if ours.heads != ours.kv_heads or ours.masked:
        raise Unfit("no grouped heads, no boolean mask")
    node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["o"], domain="com.microsoft", num_heads=ours.heads, unidirectional=int(ours.causal))
    rows = [x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1).contiguous().numpy() for x in ours.tensors()]
    inputs = [(name, "f", list(x.shape)) for name, x in zip("qkv", rows)]
    session = ort_session(node, inputs, [("o", [ours.batch, ours.len_q, ours.heads * ours.dim_v])], "com.microsoft", n_threads)
    feed = dict(zip("qkv", rows))
    result = []

    def call():
        result[:] = session.run(None, feed)

    return call, lambda: result[0].reshape(ours.batch, ours.len_q, ours.heads, ours.dim_v).transpose(0, 2, 1, 3)


def make_ort_attention(ours, n_threads):
    """ai.onnx Attention-23."""
    from onnx import helper

    forward_f32_only(ours)
    if ours.dtype != F32:
        raise Unfit("f32 only")
    arrays = dict(zip("qkv", [x.numpy() for x in ours.tensors()]))
    if ours.masked:
        arrays["m"] = ours.mask().expand(1, 1, ours.len_q, ours.len_k).numpy()
    node = helper.make_node("Attention", list(arrays), ["o"], is_causal=int(ours.causal))
    inputs = [(name, "b" if name == "m" else "f", list(x.shape)) for name, x in arrays.items()]
    session = ort_session(node, inputs, [("o", [ours.batch, ours.heads, ours.len_q, ours.dim_v])], "", n_threads)
    result = []

    def call():
        result[:] = session.run(None, arrays)

    return call, lambda: result[0]


def make_openvino(ours, n_threads):
    import numpy
    import openvino
    import openvino.opset13 as ops

    forward_f32_only(ours)
    arrays = [x.float().numpy() for x in ours.tensors()]
    inputs = [ops.parameter(list(x.shape), numpy.float32) for x in arrays]
    if ours.masked:
        arrays.append(ours.mask().expand(ours.batch, 1, ours.len_q, ours.len_k).contiguous().numpy())
        inputs.append(ops.parameter(list(arrays[3].shape), numpy.bool_))
    node = ops.scaled_dot_product_attention(*inputs, causal=ours.causal)
    model = openvino.Model([node.output(0)], inputs, "m")
    hint = "bf16" if ours.dtype == BF16 else "f32"
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": n_threads, "INFERENCE_PRECISION_HINT": hint})
    request = compiled.create_infer_request()
    for n, x in enumerate(arrays):
        request.set_input_tensor(n, openvino.Tensor(x))
    return request.infer, lambda: request.get_output_tensor(0).data


PEERS = [
    ("PyTorch", [make_torch]),
    ("ONNX Runtime", [make_ort_mha, make_ort_attention]),
    ("OpenVINO", [make_openvino]),
]


# ---- Measuring ---------------------------------------------------------------------------------


class Contender:
    def __init__(self, name, call):
        self.name, self.call, self.seconds = name, call, []
        start = time.perf_counter()
        call()
        call()
        once = (time.perf_counter() - start) / 2
        self.calls = max(1, min(10000, int(ROUND_SECONDS / max(once, 1e-6))))

    def round(self):
        time.sleep(PAUSE_SECONDS)
        self.call()
        start = time.perf_counter()
        for _ in range(self.calls):
            self.call()
        self.seconds.append((time.perf_counter() - start) / self.calls)
        return self.seconds[-1]


def median(values):
    ordered = sorted(values)
    n = len(ordered)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def first_line(error):
    return str(error).strip().split("\n")[0][:160]


def make_contenders(ours, case, n_threads):
    """Ours first; then who computes the same. Notes say who is left out, and why."""
    import numpy

    contenders, notes = [Contender("qkv", ours.call)], []
    expected = None if ours.int8 else ours.output().float().numpy().copy()
    bound = 2e-4 if ours.dtype == F32 else 3e-2
    for name, makers in PEERS:
        reasons = []
        for make in makers:
            try:
                call, output = make(ours, n_threads)
                contender = Contender(name, call)
            except Unfit as reason:
                reasons.append(str(reason))
                continue
            except Exception as error:  # whatever a peer says to what it cannot do
                reasons.append(first_line(error))
                continue
            difference = float(numpy.abs(output() - expected).max())
            if not difference <= bound * max(1.0, float(numpy.abs(expected).max())):
                reasons.append(f"computes something else: {difference:.2g} away")
                continue
            contender.variant = make.__name__[5:]
            contenders.append(contender)
        if reasons and not any(c.name == name for c in contenders):
            notes.append(f"{name}: {'; '.join(reasons)}")
    return contenders, notes


def measure(library, case, n_threads, rounds):
    ours = Ours(library, case, n_threads)
    ours.call()
    contenders, notes = make_contenders(ours, case, n_threads)
    peaks = []
    for n in range(rounds):
        for i in range(len(contenders)):
            contender = contenders[(n + i) % len(contenders)]
            if contender.name == "qkv":
                peaks.append(ours.peak())
            contender.round()
    amount = library.shim_kv_bytes(ours.handle) if ours.call_of == DECODE else library.shim_operations(ours.handle)
    mine = contenders[0].seconds
    result = {
        "case": case,
        "threads": n_threads,
        "isa": library.shim_isa(ours.handle).decode(),
        "arithmetic": library.shim_arithmetic(ours.handle).decode(),
        "unit": "GB/s" if ours.call_of == DECODE else "GFLOP/s",
        "amount": amount,
        "seconds": {"qkv": median(mine)},
        "peak_of": (library.shim_peak_name(ours.handle) or b"").decode(),
        "peak": median(peaks),
        "share": median([amount / s / 1e9 / p if p else 0 for s, p in zip(mine, peaks)]),
        "ratio": {},
        "notes": notes,
    }
    for contender in contenders[1:]:
        seconds = median(contender.seconds)
        if seconds < result["seconds"].get(contender.name, 1e9):
            result["seconds"][contender.name] = seconds
            result["ratio"][contender.name] = median([t / m for t, m in zip(contender.seconds, mine)])
    return result


# ---- Tables ------------------------------------------------------------------------------------


def figure(result, name):
    seconds = result["seconds"].get(name)
    if seconds is None:
        return "–"
    if result["seconds"]["qkv"] < 1e-4:
        return f"{seconds * 1e6:.1f} µs"
    rate = result["amount"] / seconds / 1e9
    if result["unit"] == "GB/s":
        return f"{seconds * 1e3:.2f} ms, {rate:.1f} GB/s"
    return f"{rate:.0f}"


def markdown(results):
    lines = [
        "| case | qkv | of peak | PyTorch | ONNX Runtime | OpenVINO | times the best peer |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for r in results:
        best = f"{min(r['ratio'].values()):.2f}" if r["ratio"] else "–"
        cells = [figure(r, name) for name in ("qkv", "PyTorch", "ONNX Runtime", "OpenVINO")]
        # where gradients are of class f32, two classes, and so two peaks
        both = "bf16" in r["case"] and r["case"].endswith("both") and r["peak_of"].startswith("FMA")
        share = f"{100 * r['share']:.0f} %" if r["share"] and not both else "–"
        lines.append(f"| {r['case']} | {cells[0]} | {share} | {cells[1]} | {cells[2]} | {cells[3]} | {best} |")
    return "\n".join(lines)


def versions(packages):
    family = model = "?"
    with open("/proc/cpuinfo") as info:
        for line in info:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            if key.strip() == "cpu family":
                family = value.strip()
    return {
        "cpu": f"{model}, family {family}",
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
    }


# ---- Command line ------------------------------------------------------------------------------


def run_one(options, n_threads):
    """All cases with one number of threads, in this process."""
    os.environ["OMP_NUM_THREADS"] = str(n_threads)
    library = open_library(options.library)
    wanted = [c for c in CASES if not options.cases or any(word in c.split() for word in options.cases)]
    results = []
    for case in wanted:
        try:
            results.append(measure(library, case, n_threads, options.rounds))
        except KeyError:
            print(f"{case}: this build has no such case", file=sys.stderr)
            continue
        except RuntimeError as error:
            print(f"{case}: {error}", file=sys.stderr)
            continue
        for note in results[-1]["notes"]:
            print(f"{case}: {note}", file=sys.stderr)
        print(markdown(results[-1:]).split("\n")[-1], file=sys.stderr, flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", help="words of cases' names; all cases without")
    parser.add_argument("--library", required=True, help="build/release/libpeers.so")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, one process for each (1,2)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="where the results go")
    parser.add_argument("--cpu", type=int, help="with one thread: the processor to run on")
    options = parser.parse_args()
    threads = [int(n) for n in options.threads.split(",")]
    results = []
    if len(threads) == 1:
        if options.cpu is not None and threads[0] == 1:
            os.sched_setaffinity(0, {options.cpu})
        results = run_one(options, threads[0])
    for n in threads if len(threads) > 1 else []:  # a library's threads are made once a process
        part = f"{options.json or '/tmp/qkv-peers.json'}.{n}"
        arguments = [sys.executable, __file__, *options.cases, "--library", options.library, "--threads", str(n)]
        arguments += ["--rounds", str(options.rounds), "--json", part]
        if options.cpu is not None:
            arguments += ["--cpu", str(options.cpu)]
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
        with open(part) as file:
            results += json.load(file)["results"]
        os.unlink(part)
    told = versions(["torch", "onnxruntime", "openvino"])
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"versions": told, "results": results}, file, indent=1)
    print(", ".join(f"{key} {value}" for key, value in told.items()))
    for n in threads:
        print(f"\n{n} thread{'s' if n > 1 else ''}\n\n" + markdown([r for r in results if r["threads"] == n]))


if __name__ == "__main__":
    main()

"""Cases of bench/models.py that are images: a Vision Transformer of the shape ViT-B/16 with random weights, on pixels that
all libraries get, of 224 x 224; and what the statistics of all its heads cost beside a plain pass.
"""
import ctypes

import peers

SIDE, PATCH, LAYERS, HIDDEN, WIDE = 224, 16, 12, 768, 3072
TOKENS = 1 + (SIDE // PATCH) ** 2
BATCHES = [1, 8]
BOUND = {"f32": 1e-4, "bf16": 0.1}  # of hidden states, which a norm has made about 1


def operations(batch):
    """Multiplications and additions of the patches and of the blocks."""
    rows = batch * TOKENS
    patches = 2 * (rows - batch) * HIDDEN * 3 * PATCH * PATCH
    return patches + LAYERS * (2 * rows * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * WIDE) + 4 * rows * TOKENS * HIDDEN)


def make(folder):
    """Saves a random model, once."""
    import torch
    import transformers

    if (folder / "model.safetensors").exists():
        return
    torch.manual_seed(0)
    transformers.ViTModel(transformers.ViTConfig(), add_pooling_layer=False).save_pretrained(folder)


def open_calls(library):
    library.model_see.restype = ctypes.c_char_p
    library.model_see.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int]


class Images:
    """The calls of ours on one array of pixels."""

    def __init__(self, ours, pixels):
        open_calls(ours.library)
        self.ours, self.pixels = ours, pixels

    def see(self, measured=0):
        said = self.ours.library.model_see(self.ours.shim, len(self.pixels), SIDE, self.pixels.ctypes.data, measured)
        if said:
            raise RuntimeError(said.decode())

    def hidden(self):
        """Last hidden states of the first image."""
        import numpy

        self.see()
        floats = (ctypes.c_float * (TOKENS * HIDDEN)).from_address(self.ours.library.model_hidden(self.ours.shim, 0))
        return numpy.frombuffer(floats, dtype=numpy.float32).reshape(TOKENS, HIDDEN).copy()


class Torch:
    def __init__(self, folder, kind, n_threads):
        import torch
        import transformers

        torch.set_num_threads(n_threads)
        model = transformers.ViTModel.from_pretrained(folder, add_pooling_layer=False).eval()
        self.kind, self.model = kind, model.to(torch.bfloat16) if kind == "bf16" else model

    def bind(self, pixels):
        import torch

        given, result = torch.from_numpy(pixels), []
        given = given.to(torch.bfloat16) if self.kind == "bf16" else given

        def call():
            with torch.no_grad():
                result[:] = [self.model(given).last_hidden_state]

        return call, lambda: result[0][0].float().numpy()


class OpenVino:
    def __init__(self, folder, kind, n_threads):
        import openvino
        import torch
        import transformers

        model = transformers.ViTModel.from_pretrained(folder, add_pooling_layer=False).eval()
        graph = openvino.convert_model(model, example_input={"pixel_values": torch.ones(1, 3, SIDE, SIDE)})
        options = {"INFERENCE_NUM_THREADS": n_threads, "INFERENCE_PRECISION_HINT": kind}
        self.request = openvino.Core().compile_model(graph, "CPU", options).create_infer_request()

    def bind(self, pixels):
        return lambda: self.request.infer({"pixel_values": pixels}), lambda: self.request.get_output_tensor(0).data[0]


def measure(ours, others, kind, batch, rounds, summary, in_turn):
    """A pass of all libraries."""
    import numpy

    pixels = numpy.random.default_rng(1).standard_normal((batch, 3, SIDE, SIDE), dtype=numpy.float32)
    images = Images(ours, pixels)
    contenders, notes = [peers.Contender("qkv", images.see)], []
    expected = images.hidden()
    for name, peer in others:
        call, output = peer.bind(pixels)
        contender = peers.Contender(name, call)
        difference = float(numpy.abs(output() - expected).max())
        if difference <= BOUND[kind]:
            contenders.append(contender)
        else:
            notes.append(f"{name}: computes something else: {difference:.2g} away")
    peaks = in_turn(contenders, ours.peak, rounds)
    return summary(f"ViT-B/16 {kind} {batch}x224", "GFLOP/s", operations(batch) / 1e9, contenders, peaks, notes)


def measure_heads(ours, kind, rounds, summary, in_turn):
    """A pass and the statistics of all heads, in turn with a pass alone."""
    import numpy

    images = Images(ours, numpy.random.default_rng(1).standard_normal((1, 3, SIDE, SIDE), dtype=numpy.float32))
    contenders = [peers.Contender("qkv", lambda: images.see(1)), peers.Contender("plain", images.see)]
    peaks = in_turn(contenders, ours.peak, rounds)
    result = summary(f"ViT-B/16 {kind} 1x224, all heads", "GFLOP/s", operations(1) / 1e9, contenders, peaks, [])
    result["notes"] = [f"with the statistics of 144 heads {1 / result['ratio']['plain']:.3f} times a plain pass"]
    return result

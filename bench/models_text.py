"""Cases of bench/models.py, --what text: an encoder-decoder of T5-small's shape, forward, beside PyTorch and OpenVINO; and
greedy decoding of Pythia-160M's shape beside PyTorch. Random weights and ids, the same for all.
"""
import ctypes

import peers

SHAPES = [(8, 128), (1, 512), (1, 11)]  # of sources; targets are as long
T5 = dict(layers=6, width=512, wide=2048, words=32128)
PYTHIA = dict(layers=12, width=768, wide=3072, words=50304)
BOUND = {"f32": 1e-4, "bf16": 0.1}  # of hidden states, over the largest


def make(folder, name):
    """Saves a random model of that shape, once."""
    import torch
    import transformers as t

    if (folder / "model.safetensors").exists():
        return
    torch.manual_seed(0)
    if name == "t5-small":
        model, words = t.T5ForConditionalGeneration(t.T5Config()), T5["words"]
    else:
        config = t.GPTNeoXConfig(vocab_size=PYTHIA["words"], hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
                                 intermediate_size=3072, max_position_embeddings=2048)
        model, words = t.GPTNeoXForCausalLM(config), PYTHIA["words"]
    model.save_pretrained(folder)
    special = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}
    (folder / "vocab.txt").write_text("\n".join(special.get(i, f"w{i}") for i in range(words)) + "\n")


# ---- T5 ----------------------------------------------------------------------------------------


def operations(batch, length):
    """Multiplications and additions of the blocks of both stacks."""
    rows, h, wide = batch * length, T5["width"], T5["wide"]
    attention = 2 * rows * 4 * h * h + 4 * rows * length * h
    return T5["layers"] * (3 * attention + 2 * 2 * rows * 2 * h * wide)


class OurPairs:
    """The calls of ours on sources and targets."""

    def __init__(self, ours):
        call = ours.library.model_run_pairs
        call.restype = ctypes.c_char_p
        call.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
        ours.library.model_target_hidden.restype = ctypes.c_void_p
        ours.library.model_target_hidden.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        self.ours = ours

    def run(self, ids, targets):
        said = self.ours.library.model_run_pairs(self.ours.shim, *ids.shape, ids.ctypes.data, targets.shape[1], targets.ctypes.data)
        if said:
            raise RuntimeError(said.decode())

    def hidden(self, length):
        """Last hidden states of the decoder, of the first target."""
        import numpy

        address = self.ours.library.model_target_hidden(self.ours.shim, 0)
        floats = (ctypes.c_float * (length * T5["width"])).from_address(address)
        return numpy.frombuffer(floats, dtype=numpy.float32).reshape(length, T5["width"]).copy()


class Torch:
    def __init__(self, folder, kind, n_threads):
        import torch
        import transformers

        torch.set_num_threads(n_threads)
        model = transformers.T5Model.from_pretrained(folder).eval()
        self.model = model.to(torch.bfloat16) if kind == "bf16" else model

    def bind(self, ids, targets):
        import torch

        tokens, decoded, result = torch.from_numpy(ids).long(), torch.from_numpy(targets).long(), []

        def call():
            with torch.no_grad():
                result[:] = [self.model(input_ids=tokens, decoder_input_ids=decoded, use_cache=False).last_hidden_state]

        return call, lambda: result[0][0].float().numpy()


class OpenVino:
    def __init__(self, folder, kind, n_threads):
        import openvino
        import torch
        import transformers

        model = transformers.T5Model.from_pretrained(folder).eval()
        model.config.use_cache = False

        class Pairs(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, ids, targets):
                return self.model(input_ids=ids, decoder_input_ids=targets, use_cache=False).last_hidden_state

        example = torch.ones(SHAPES[0], dtype=torch.long)
        graph = openvino.convert_model(Pairs().eval(), example_input=(example, example))
        options = {"INFERENCE_NUM_THREADS": n_threads, "INFERENCE_PRECISION_HINT": kind}
        self.request = openvino.Core().compile_model(graph, "CPU", options).create_infer_request()

    def bind(self, ids, targets):
        import numpy

        inputs = [ids.astype(numpy.int64), targets.astype(numpy.int64)]
        return lambda: self.request.infer(inputs), lambda: self.request.get_output_tensor(0).data[0]


def measure_pairs(ours, others, kind, shape, rounds, summary, in_turn):
    import numpy

    draw = numpy.random.default_rng(1)
    ids, targets = (draw.integers(1000, T5["words"], shape, dtype=numpy.int32) for _ in range(2))
    pairs, notes = OurPairs(ours), []
    contenders = [peers.Contender("qkv", lambda: pairs.run(ids, targets))]
    expected = pairs.hidden(shape[1])
    for name, peer in others:
        call, output = peer.bind(ids, targets)
        contender = peers.Contender(name, call)
        difference = float(numpy.abs(output() - expected).max() / numpy.abs(expected).max())
        if difference <= BOUND[kind]:
            contenders.append(contender)
        else:
            notes.append(f"{name}: computes something else: {difference:.2g} of the largest away")
    peaks = in_turn(contenders, ours.peak, rounds)
    case = f"T5-small {kind} {shape[0]}x{shape[1]} to {shape[0]}x{shape[1]}"
    return summary(case, "GFLOP/s", operations(*shape) / 1e9, contenders, peaks, notes)


# ---- Pythia ------------------------------------------------------------------------------------


def measure_greedy(name, ours, load, words, n_weights, kind, n_threads, rounds, alone, summary, in_turn):
    """Greedy, after 16 tokens of the range `words`; the amount is the bytes of weights that each token reads.

    load: makes the module of transformers.
    """
    import numpy

    n_new, notes = 40, []
    prompt = numpy.random.default_rng(2).integers(*words, 16, dtype=numpy.int32)
    contenders = [peers.Contender("qkv", lambda: ours.decode(prompt, n_new))]
    if not alone:
        import torch

        torch.set_num_threads(n_threads)
        model = load().eval()
        model = model.to(torch.bfloat16) if kind == "bf16" else model
        tokens, result = torch.from_numpy(prompt).long()[None], []

        def call():
            with torch.no_grad():
                result[:] = [model.generate(tokens, max_new_tokens=n_new, min_new_tokens=n_new, do_sample=False, pad_token_id=0)]

        contenders.append(peers.Contender("PyTorch", call))
        same = int((result[0][0].numpy() == ours.decode(prompt, n_new)).sum()) - len(prompt)
        if same < n_new:
            notes.append(f"PyTorch: {same} of {n_new} tokens are the same")
    peaks = in_turn(contenders, lambda: ours.peak(1), rounds)
    amount = n_new * n_weights * (2 if kind == "bf16" else 4) / 1e9
    result = summary(f"{name} {kind} greedy", "tokens/s", amount, contenders, peaks, notes)
    result["tokens"] = n_new
    return result


def measure_decoding(ours, folder, *rest):
    def load():
        import transformers

        return transformers.GPTNeoXForCausalLM.from_pretrained(folder)

    h = PYTHIA["width"]
    n_weights = PYTHIA["layers"] * (4 * h * h + 2 * h * PYTHIA["wide"]) + PYTHIA["words"] * h
    return measure_greedy("Pythia-160M", ours, load, (1000, PYTHIA["words"]), n_weights, *rest)

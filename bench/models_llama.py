"""Prompts and decoding of Llama graphs beside PyTorch, OpenVINO and llama.cpp: `bench/models.py --what llama`.

Random weights of the shapes of SmolLM2-135M, Qwen2.5-0.5B and Qwen3-0.6B, the same in all libraries, and random ids. Of a
type of GGUF blocks, both qkv and llama.cpp open the same file. A prompt gives the logits of its last token. Decoding feeds given ids one by one after a prompt, each with its logits, so no library chooses
tokens. Logits are compared before anything is timed.

Every contender is made anew in each round's call, in an order that turns. The amount of decoding is the bytes of weights
that a token reads, and its peak is reading memory; that of a prompt is operations, and its peak multiply-adds.
"""
import ctypes
import time

import models_load
import peers

PROMPTS = (128, 2048)
BEFORE, N_NEW = 128, 128  # of decoding
# qkv_model_weights; of types of blocks, as the file has them
KINDS = {"f32": 0, "bf16": 1, "int8": 4}
# bytes of a block over its weights
BLOCKS = {"q4_0": 18 / 32, "q4_1": 20 / 32, "q5_0": 22 / 32, "q8_0": 34 / 32,
          "q4_k": 144 / 256, "q5_k": 176 / 256, "q6_k": 210 / 256}
AS_IN_FILE = 5
BOUND = {"f32": 2e-4, "bf16": 0.05}  # of logits, over the greatest of them
BOUND_8_BITS = 0.1
BOUND_F16 = 5e-3  # of llama.cpp beside weights in f32, too: up to 2.3e-3 was seen, whose cause is not known
BYTES = {"f32": 4, "bf16": 2, "int8": 1 + 4 / 64, **BLOCKS}
GGUF = {"f32": "F32", "bf16": "F16", "int8": "Q8_0"}  # the type of llama.cpp that is beside it
SHAPES = {
    "SmolLM2-135M": {
        "model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
        "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "rope_theta": 100000.0,
    },
    "Qwen2.5-0.5B": {
        "model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864,
        "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "rope_theta": 1000000.0,
    },
    "Qwen3-0.6B": {
        "model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072, "head_dim": 128,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "rope_theta": 1000000.0,
    },
}


def head_dim(shape):
    return shape.get("head_dim", shape["hidden_size"] // shape["num_attention_heads"])


def matrices(shape):
    """Elements of the matrices that a token is multiplied with: of the blocks, and of the head."""
    width, heads, keys = shape["hidden_size"], shape["num_attention_heads"], shape["num_key_value_heads"]
    attention = 2 * width * head_dim(shape) * (heads + keys)
    blocks = shape["num_hidden_layers"] * (attention + 3 * width * shape["intermediate_size"])
    return blocks, shape["vocab_size"] * width


def prompt_operations(shape, n):
    blocks, head = matrices(shape)
    width = head_dim(shape) * shape["num_attention_heads"]
    attention = 2 * n * n * width * shape["num_hidden_layers"]  # half of it, being causal
    return 2 * n * blocks + 2 * head + attention


# ---- Models ------------------------------------------------------------------------------------


def make(folder, name):
    """Saves a random model, once, with a tokenizer of bytes and words without meaning."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    if (folder / "model.safetensors").exists():
        return
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(
        **SHAPES[name], max_position_embeddings=8192, tie_word_embeddings=True, rms_norm_eps=1e-5,
        bos_token_id=0, eos_token_id=0, pad_token_id=None)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {word: i for i, word in enumerate(letters + [f"w{i}" for i in range(config.vocab_size - 256)])}
    tokenizer = Tokenizer(models.BPE(words, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))


def put_keys(writer, shape):
    arch, heads, keys = shape["model_type"], shape["num_attention_heads"], shape["num_key_value_heads"]
    writer.add_context_length(8192)
    writer.add_embedding_length(shape["hidden_size"])
    writer.add_block_count(shape["num_hidden_layers"])
    writer.add_feed_forward_length(shape["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(keys)
    writer.add_key_length(head_dim(shape))
    writer.add_value_length(head_dim(shape))
    writer.add_rope_freq_base(shape["rope_theta"])
    writer.add_layer_norm_rms_eps(1e-5)
    if arch == "llama":
        writer.add_rope_dimension_count(head_dim(shape))
    # bytes, one merge, and words without meaning
    from tokenizers import pre_tokenizers

    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "he"]
    tokens += [f"w{i}" for i in range(shape["vocab_size"] - len(tokens))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm" if arch == "llama" else "qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges(["h e"])
    writer.add_eos_token_id(0)


def quantize(source, path, kind):
    """By llama.cpp, every matrix in the one type: gguf writes no blocks of 256."""
    import llama_cpp

    names = {"q4_k": "LLAMA_FTYPE_MOSTLY_Q4_K_S", "q5_k": "LLAMA_FTYPE_MOSTLY_Q5_K_S", "q6_k": "LLAMA_FTYPE_MOSTLY_Q6_K"}
    how = llama_cpp.llama_model_quantize_default_params()
    how.ftype, how.pure = getattr(llama_cpp, names[kind]), True
    if llama_cpp.llama_model_quantize(str(source).encode(), str(path).encode(), ctypes.byref(how)):
        raise RuntimeError(f"{path} was not made")


def make_gguf(folder, name, kind):
    """The same model in one file."""
    import gguf
    import numpy
    from safetensors.numpy import load_file

    stored = GGUF.get(kind, kind.upper())
    shape, path, kinds = SHAPES[name], folder / f"{stored}.gguf", gguf.GGMLQuantizationType
    if path.exists():
        return path
    if kind.endswith("_k"):
        quantize(make_gguf(folder, name, "f32"), path, kind)
        return path
    arch, heads, keys = shape["model_type"], shape["num_attention_heads"], shape["num_key_value_heads"]
    writer = gguf.GGUFWriter(path, arch)
    put_keys(writer, shape)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], shape["num_hidden_layers"])
    for key, tensor in load_file(folder / "model.safetensors").items():
        for part, n_heads in (("q_proj", heads), ("k_proj", keys)):
            if part in key and arch == "llama":  # llama.cpp turns neighbours there, not halves
                tensor = tensor.reshape(n_heads, 2, -1, tensor.shape[1]).swapaxes(1, 2).reshape(tensor.shape)
        as_type = kinds.F32 if tensor.ndim == 1 else kinds[stored]
        data = gguf.quants.quantize(numpy.ascontiguousarray(tensor), as_type)
        writer.add_tensor(names.get_name(key, (".weight", ".bias")), data, raw_dtype=as_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


# ---- Contenders: prompt(ids) and steps(ids) after it, logits() of the last token ------------------


class Ours:
    def __init__(self, options, folder, name, kind, n_threads):
        why = ctypes.create_string_buffer(512)
        self.library, self.n_vocab = options.opened, SHAPES[name]["vocab_size"]
        path = make_gguf(folder, name, kind) if kind in BLOCKS else folder
        self.shim = self.library.model_open(str(path).encode(), n_threads, KINDS.get(kind, AS_IN_FILE), why, len(why))
        if not self.shim:
            raise RuntimeError(why.value.decode())

    def begin(self, n):
        self.library.model_begin(self.shim, n)

    def prompt(self, ids):
        self.library.model_prompt(self.shim, len(ids), ids.ctypes.data)

    def steps(self, ids):
        self.library.model_steps(self.shim, len(ids), ids.ctypes.data)

    def logits(self):
        import numpy

        address = self.library.model_logits(self.shim)
        return numpy.array((ctypes.c_float * self.n_vocab).from_address(address))

    def peak(self, read):
        return self.library.model_peak(self.shim, read, (1 + 9 * read) * peers.PEAK_SECONDS)


class Torch:
    def __init__(self, options, folder, name, kind, n_threads):
        import torch
        import transformers

        if kind not in ("f32", "bf16"):
            raise RuntimeError(f"no {kind} weights")
        torch.set_num_threads(n_threads)
        dtype = torch.bfloat16 if kind == "bf16" else torch.float32
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()

    def begin(self, n):
        self.cache = None

    def prompt(self, ids):
        import torch

        with torch.no_grad():
            out = self.model(torch.from_numpy(ids).long()[None], past_key_values=self.cache, use_cache=True,
                             logits_to_keep=1)
        self.cache, self.last = out.past_key_values, out.logits[0, -1]

    def steps(self, ids):
        for i in range(len(ids)):
            self.prompt(ids[i : i + 1])

    def logits(self):
        return self.last.float().numpy()


class OpenVino:
    """The module of transformers as a graph without a cache: prompts only."""

    def __init__(self, options, folder, name, kind, n_threads):
        import openvino
        import torch
        import transformers

        if kind not in ("f32", "bf16"):
            raise RuntimeError(f"no {kind} weights")

        class Prompt(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()

            def forward(self, ids):
                # a mask, or transformers looks for texts in one row, by an operator that is not converted
                mask = torch.ones_like(ids)
                return self.model(ids, attention_mask=mask, use_cache=False, logits_to_keep=1).logits

        example = torch.ones((1, PROMPTS[0]), dtype=torch.long)
        graph = openvino.convert_model(Prompt().eval(), example_input=example)
        how = {"INFERENCE_NUM_THREADS": n_threads, "INFERENCE_PRECISION_HINT": kind}
        self.request = openvino.Core().compile_model(graph, "CPU", how).create_infer_request()

    def begin(self, n):
        pass

    def prompt(self, ids):
        self.request.infer([ids[None].astype("int64")])

    def logits(self):
        return self.request.get_output_tensor(0).data[0, -1]


class LlamaCpp:
    def __init__(self, options, folder, name, kind, n_threads):
        import llama_cpp

        self.cpp, self.n_vocab = llama_cpp, SHAPES[name]["vocab_size"]
        how = llama_cpp.llama_context_default_params()
        how.n_ctx = how.n_batch = PROMPTS[-1] + N_NEW
        how.n_threads = how.n_threads_batch = n_threads
        path = str(make_gguf(folder, name, kind)).encode()
        llama_cpp.llama_log_set(SILENT, None)
        self.model = llama_cpp.llama_model_load_from_file(path, llama_cpp.llama_model_default_params())
        self.context = llama_cpp.llama_init_from_model(self.model, how)

    def begin(self, n):
        self.cpp.llama_memory_clear(self.cpp.llama_get_memory(self.context), True)

    def prompt(self, ids):
        tokens = (self.cpp.llama_token * len(ids)).from_buffer_copy(ids)
        if self.cpp.llama_decode(self.context, self.cpp.llama_batch_get_one(tokens, len(ids))):
            raise RuntimeError("decoding failed")

    def steps(self, ids):
        for i in range(len(ids)):
            self.prompt(ids[i : i + 1])

    def logits(self):
        import numpy

        return numpy.array(self.cpp.llama_get_logits_ith(self.context, -1)[: self.n_vocab])


try:
    import llama_cpp

    SILENT = llama_cpp.llama_log_callback(lambda *_: None)
except ImportError:
    SILENT = None
CONTENDERS = {"qkv": Ours, "PyTorch": Torch, "OpenVINO": OpenVino, "llama.cpp": LlamaCpp}


# ---- Measuring ---------------------------------------------------------------------------------


class Timed:
    """A contender of a case; call() returns the seconds of what counts."""

    def __init__(self, name, made, prompt, steps):
        self.name, self.made, self.ids, self.new, self.seconds = name, made, prompt, steps, []

    def call(self):
        n_new = len(self.new)
        self.made.begin(len(self.ids) + n_new)
        start = time.perf_counter()
        self.made.prompt(self.ids)
        if n_new:
            start = time.perf_counter()
            self.made.steps(self.new)
        return time.perf_counter() - start

    def round(self):
        time.sleep(peers.PAUSE_SECONDS)
        self.seconds.append(self.call())


def entrants(made, kind, prompt, steps, notes):
    """Those that compute what we do, each after a call."""
    found = []
    for name, contender in made.items():
        timed = Timed(name, contender, prompt, steps)
        if len(steps) and not hasattr(contender, "steps"):
            continue
        timed.call()
        logits = contender.logits()
        expected = logits if not found else expected
        difference = float(abs(logits - expected).max() / abs(expected).max())
        if difference <= max(BOUND.get(kind, BOUND_8_BITS), BOUND_F16 if name == "llama.cpp" else 0):
            found.append(timed)
        else:
            notes.append(f"{name}: computes something else: {difference:.2g} away")
    return found


def cases(name, kind):
    """(what, tokens of the prompt, tokens after it, amount, whether memory bounds it)"""
    shape = SHAPES[name]
    for n in PROMPTS:
        yield f"{name} {kind} prompt of {n}", n, 0, prompt_operations(shape, n) / 1e9, 0
    yield f"{name} {kind} decoding", BEFORE, N_NEW, N_NEW * sum(matrices(shape)) * BYTES[kind] / 1e9, 1


def wanted(options, case):
    """Whether a case of --cases."""
    return not options.cases or any(case.endswith(end) for end in options.cases.split(","))


def measure(options, folder, name, kind, n_threads, summary, in_turn):
    """A result for each case."""
    import numpy

    made, missing = {}, []
    for contender, make_one in CONTENDERS.items():
        if contender != "qkv" and options.alone:
            continue
        try:
            made[contender] = make_one(options, folder, name, kind, n_threads)
        except Exception as error:  # a peer that is not there, or cannot
            if contender == "qkv":
                raise
            missing.append(f"{contender}: {peers.first_line(error)}")
    for case, n, n_new, amount, read in cases(name, kind):
        if not wanted(options, case):
            continue
        ids = numpy.random.default_rng(1).integers(256, SHAPES[name]["vocab_size"], n + n_new, dtype=numpy.int32)
        notes = list(missing)
        found = entrants(made, kind, ids[:n], ids[n:], notes)
        peaks = in_turn(found, lambda: made["qkv"].peak(read), options.rounds)
        result = summary(case, "GFLOP/s", amount, found, peaks, notes)
        result["tokens"], result["graph"] = n_new or n, name
        yield result
    made["qkv"].library.model_close(made["qkv"].shim)


# ---- Memory ------------------------------------------------------------------------------------


def one_memory(name_of, options, folder, name, kind, n_threads, results):
    """The most that a process has for opening, the longest prompt, and some steps."""
    import models
    import numpy

    if name_of == "qkv":
        options.opened = models.open_library(options.library)
    ids = numpy.arange(256, 256 + PROMPTS[-1] + 8, dtype=numpy.int32)
    before = models_load.memory("VmRSS")
    timed = Timed(name_of, CONTENDERS[name_of](options, folder, name, kind, n_threads), ids[:-8], ids[-8:])
    timed.call() if hasattr(timed.made, "steps") else (timed.made.prompt(ids[:-8]))
    results.put(models_load.memory("VmHWM") - before)


def memories(options, folder, name, kind, n_threads, names):
    """Megabytes, by contender."""
    options.opened = None  # a library does not cross processes
    megabytes = {who: models_load.alone(one_memory, who, options, folder, name, kind, n_threads) / 1e6 for who in names}
    return {"case": f"{name} {kind}", "megabytes": megabytes, "notes": []}


# ---- Telling -----------------------------------------------------------------------------------


def cell(result, name):
    seconds = result["seconds"].get(name)
    if not seconds:
        return "–"
    ratio = f", {result['ratio'][name]:.2f}" if name in result["ratio"] else ""
    return f"{result['tokens'] / seconds:.4g}{ratio}"


def markdown(results):
    names = list(CONTENDERS)
    lines = ["| case | " + " | ".join(names) + " | of the peak |", "|---|" + "---:|" * (len(names) + 1)]
    for r in results:
        cells = [cell(r, name) for name in names] + [f"{100 * r['share']:.0f} %"]
        lines.append(f"| {r['case']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def markdown_memory(results):
    names = list(CONTENDERS)
    lines = ["| case | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for r in results:
        cells = [f"{r['megabytes'][name]:.0f}" if name in r["megabytes"] else "–" for name in names]
        lines.append(f"| {r['case']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)

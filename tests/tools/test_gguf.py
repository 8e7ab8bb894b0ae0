#!/usr/bin/env python3
"""gguf2safetensors.py on tiny files that this test writes with PyPI gguf as llama.cpp writes them: python3 test_gguf.py [QKV]

Weights come back bit for bit, config.json and tokenizer.json are what the family needs, and what a folder cannot say is refused by name.
With the tool QKV each folder is opened and tokenizes a text, and the GGUF file itself gives the same sizes, ids and numbers as its folder.
Exit status 77: gguf or numpy is not installed.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import gguf
    import numpy as np
except ImportError as missing:
    print(missing)
    sys.exit(77)

from gguf_files import DIM, FFN, HEADS, KV, LAYERS, WIDTH, WORDS, bert, gemma, gpt2, llama, modern_bert, olmo2, phi3, qwen

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = None


def read_safetensors(path):
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    types = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
    out = {}
    for name, field in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            first, end = field["data_offsets"]
            out[name] = np.frombuffer(data[8 + n + first:8 + n + end], types[field["dtype"]]).reshape(field["shape"])
    return out


class Files(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_converter(self, made):
        path = made.write(self.folder)
        return subprocess.run([sys.executable, ROOT / "tools/gguf2safetensors.py", path, self.folder / "out"], capture_output=True, text=True)

    def converted(self, made, **fields):
        done = self.run_converter(made)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = self.folder / "out"
        config = json.loads((out / "config.json").read_text())
        for name, value in fields.items():
            self.assertEqual(config.get(name), value, name)
        weights = read_safetensors(out / "model.safetensors")
        self.assertEqual(weights.keys(), made.weights.keys())
        for name, data in made.weights.items():
            shifted = made.arch.startswith("gemma") and name.endswith("norm.weight")
            want = (data + np.float32(1)) - np.float32(1) if shifted else data
            np.testing.assert_array_equal(weights[name], want, name)
        self.open(out)
        self.read_directly(self.folder / f"{made.arch}.gguf", out)
        return out

    def tool(self, *words):
        done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def read_directly(self, path, out):
        """The file, also by a name that does not tell what it is, beside a folder."""
        if TOOL is None:
            return
        bare = path.with_suffix("")
        bare.symlink_to(path.name)
        infos = [json.loads(self.tool("info", name, "--json")) for name in (bare, out)]
        for info in infos:
            del info["source"], info["files"]
        self.assertEqual(*infos)
        for text in ("he said: hehe 12 <user>", "  he   said\n", ""):
            self.assertEqual(self.tool("tokenize", text, "--json", "--model", path), self.tool("tokenize", text, "--json", "--model", out))
        for name in (path, bare):
            for words in (("embed", "he said: hehe 12"), ("look", "he said", "--json")):
                found, want = (self.tool(*words, "--model", model).replace(str(model), "MODEL") for model in (name, out))
                self.assertEqual(found, want)

    def open(self, out, text="he said: hehe 12"):
        if TOOL is None:
            return
        info = subprocess.run([TOOL, "info", out, "-v"], capture_output=True, text=True)
        self.assertEqual(info.returncode, 0, info.stderr)
        self.assertNotIn("unused", info.stdout + info.stderr)
        ids = subprocess.run([TOOL, "tokenize", text, "--model", out], capture_output=True, text=True)
        self.assertEqual(ids.returncode, 0, ids.stderr)

    def refused(self, made, *words):
        done = self.run_converter(made)
        self.assertEqual(done.returncode, 1, done.stdout)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse((self.folder / "out/model.safetensors").exists())
        if TOOL:
            done = subprocess.run([TOOL, "tokenize", "he", "--model", self.folder / f"{made.arch}.gguf"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words[0].split(" ")[0].strip("'"), done.stderr)


class Families(Files):
    def test_llama(self):
        out = self.converted(llama(), model_type="llama", head_dim=DIM, num_key_value_heads=KV, rope_theta=5000.0, rms_norm_eps=1e-5,
                             tie_word_embeddings=True, attention_bias=True, mlp_bias=False, vocab_size=WORDS, eos_token_id=257)
        made = json.loads((out / "tokenizer.json").read_text())
        self.assertEqual([t["content"] for t in made["added_tokens"]], ["<end>", "<user>"])
        self.assertEqual([t["special"] for t in made["added_tokens"]], [True, False])
        self.assertEqual(len(made["model"]["vocab"]), 259)
        self.assertEqual(json.loads((out / "generation_config.json").read_text()), {"eos_token_id": 257})

    def test_llama3_positions(self):
        made = llama(theta=5e5)
        wavelength = 2 * np.pi * 5e5 ** (np.arange(0, DIM, 2) / DIM)
        smooth = [min(max((8192 / w - 1) / 3, 0), 1) for w in wavelength]
        made.out.add_tensor("rope_freqs.weight", np.array([1 / ((1 - s) / 8 + s) for s in smooth], np.float32))
        self.converted(made, rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                           "original_max_position_embeddings": 8192})

    def test_yarn(self):
        made = llama()
        made.out.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        made.out.add_rope_scaling_factor(4.0)
        made.out.add_rope_scaling_orig_ctx_len(16)
        made.out.add_rope_scaling_yarn_beta_fast(16.0)
        self.converted(made, rope_scaling={"rope_type": "yarn", "factor": 4.0, "beta_fast": 16.0, "original_max_position_embeddings": 16})

    def test_smollm3(self):
        self.converted(llama("smollm3", bias=()), model_type="smollm3", attention_bias=False, no_rope_layer_interval=4)

    def test_qwen(self):
        for arch in ("qwen2", "qwen3"):
            with self.subTest(arch):
                self.setUp()
                self.converted(qwen(arch), model_type=arch, tie_word_embeddings=False, use_sliding_window=False)

    def test_gemma(self):
        slides = ["sliding_attention", "full_attention"]
        for arch, fields in (("gemma", {"hidden_act": "gelu_pytorch_tanh", "rope_theta": 5000.0}),
                             ("gemma2", {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "sliding_window": 4,
                                         "layer_types": (slides * 2)[:LAYERS], "query_pre_attn_scalar": DIM}),
                             ("gemma3", {"model_type": "gemma3_text", "layer_types": [slides[0]] * LAYERS, "rope_local_base_freq": 10000.0})):
            with self.subTest(arch):
                self.setUp()
                out = self.converted(gemma(arch), **fields)
                made = json.loads((out / "tokenizer.json").read_text())["model"]
                self.assertEqual(made["merges"], [["h", "e"], ["▁", "he"], ["▁", "▁"]])
                self.assertEqual(made["vocab"]["▁▁"], 264)

    def test_olmo2(self):
        self.converted(olmo2(), model_type="olmo2", tie_word_embeddings=False)

    def test_phi3(self):
        self.converted(phi3(), model_type="phi3", sliding_window=7)

    def test_modern_bert(self):
        self.converted(modern_bert(), model_type="modernbert", local_attention=6, global_rope_theta=160000.0, local_rope_theta=10000.0,
                       layer_types=["full_attention", "sliding_attention", "sliding_attention"])

    def test_types_and_dequantisation(self):
        made = llama(bias=())
        wide = made.random.standard_normal((FFN, WIDTH)).astype(np.float16)
        made.store("blk.0.ffn_up.weight", wide, gguf.GGMLQuantizationType.F16)
        made.weights["model.layers.0.mlp.up_proj.weight"] = wide
        half = (made.random.standard_normal((FFN, WIDTH)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        made.store("blk.1.ffn_up.weight", half.view(np.uint8), gguf.GGMLQuantizationType.BF16)
        made.weights["model.layers.1.mlp.up_proj.weight"] = half
        exact = made.weights.pop("model.layers.0.mlp.down_proj.weight")
        made.store("blk.0.ffn_down.weight", gguf.quants.quantize(exact, gguf.GGMLQuantizationType.Q8_0), gguf.GGMLQuantizationType.Q8_0)
        done = self.run_converter(made)
        self.assertEqual(done.returncode, 0, done.stderr)
        weights = read_safetensors(self.folder / "out/model.safetensors")
        down = weights.pop("model.layers.0.mlp.down_proj.weight")
        self.assertEqual(down.dtype, np.float32)
        # Q8_0: half a step of max / 127, and a step that is rounded to f16
        self.assertLess(np.max(np.abs(down - exact) / np.abs(exact).max(1, keepdims=True)), (0.5 + 127 / 2048) / 127)
        self.assertEqual({n: (w.dtype, w.tobytes()) for n, w in weights.items()},
                         {n: (w.dtype, w.tobytes()) for n, w in made.weights.items()})
        self.open(self.folder / "out")


def merges_of(tokens, scores):
    """generate_merges of transformers 5, convert_slow_tokenizer.py."""
    ids, merges = {t: i for i, t in enumerate(tokens)}, []
    for token, score in zip(tokens, scores):
        local = [(token[:i], token[i:], score) for i in range(1, len(token)) if token[:i] in ids and token[i:] in ids]
        merges += sorted(local, key=lambda x: (ids[x[0]], ids[x[1]]))
    return [[a, b] for a, b, _ in sorted(merges, key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)]


class ReadAlone(Files):
    """What the tool reads, and the converter does not."""

    def setUp(self):
        super().setUp()
        if TOOL is None:
            self.skipTest("no tool")

    def as_folder(self, made, config, vocab=None):
        """A folder of what the file was made of, written here."""
        path, out = made.write(self.folder), self.folder / "out"
        out.mkdir()
        header, at = {}, 0
        for name, data in made.weights.items():
            header[name] = {"dtype": "F32", "shape": list(data.shape), "data_offsets": [at, at + data.nbytes]}
            at += data.nbytes
        text = json.dumps(header).encode()
        (out / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text
                                                + b"".join(np.ascontiguousarray(d).tobytes() for d in made.weights.values()))
        (out / "config.json").write_text(json.dumps(config | {"vocab_size": WORDS}))
        if vocab:
            (out / "vocab.txt").write_text("\n".join(vocab))
        return path, out

    def same(self, path, out, *texts):
        for text in texts:
            self.assertEqual(json.loads(self.tool("tokenize", text, "--json", "--model", path))["ids"],
                             json.loads(self.tool("tokenize", text, "--json", "--model", out))["ids"])
            self.assertEqual(*(self.tool("embed", text, "--model", model).replace(str(model), "MODEL") for model in (path, out)))

    def test_gpt2(self):
        made = gpt2()
        path, out = self.as_folder(made, {"model_type": "gpt2", "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64,
                                          "n_inner": FFN, "layer_norm_epsilon": 1e-5})
        from gguf_files import byte_tokens
        tokens = [*byte_tokens(), "he", "<end>", "<user>"]
        (out / "tokenizer.json").write_text(json.dumps({
            "added_tokens": [{"id": 257, "content": "<end>", "special": True}, {"id": 258, "content": "<user>", "special": False}],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": ["h e"]}}))
        (out / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
        self.same(path, out, "he said: hehe 12", " <user>he")

    def test_bert(self):
        from gguf_files import BERT_WORDS
        vocab = BERT_WORDS + [f"[unused{i}]" for i in range(WORDS - len(BERT_WORDS))]
        for distilled in (False, True):
            with self.subTest(distilled=distilled):
                self.setUp()
                names = (("dim", "hidden_dim", "n_layers", "n_heads") if distilled else
                         ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"))
                config = dict(zip(names, (WIDTH, FFN, LAYERS, HEADS))) | {"model_type": "distilbert" if distilled else "bert",
                                                                          "max_position_embeddings": 64}
                path, out = self.as_folder(bert(distilled), config, vocab)
                self.same(path, out, "He said hes.", "he [MASK] said")

    def test_roberta(self):
        """<s> A </s></s> B </s>; positions begin at 0, as the rows before are cut off."""
        made = bert()
        for key in ("model", "tokens", "token_type", "cls_token_id", "seperator_token_id", "padding_token_id", "unknown_token_id", "mask_token_id"):
            del made.out.kv_data[0]["tokenizer.ggml." + key]
        from gguf_files import byte_tokens
        tokens = [*byte_tokens(), "he", "<s>", "</s>"]
        made.out.add_tokenizer_model("gpt2")
        made.out.add_tokenizer_pre("roberta-bpe")
        made.out.add_token_list([*tokens, *(f"[PAD{i}]" for i in range(len(tokens), WORDS))])
        made.out.add_token_types([1] * 257 + [3, 3] + [5] * (WORDS - len(tokens)))
        made.out.add_token_merges(["h e"])
        made.out.add_bos_token_id(257)
        made.out.add_eos_token_id(258)
        path = made.write(self.folder)
        self.assertEqual(json.loads(self.tool("tokenize", "hehe", "--pair", "he", "--json", "--model", path))["ids"],
                         [257, 256, 256, 258, 258, 256, 258])

    def test_types_that_are_not_computed(self):
        made = llama(bias=())
        made.out.add_tensor("blk.0.x.weight", np.zeros((2, 66), np.uint8), raw_dtype=gguf.GGMLQuantizationType.IQ2_XXS)
        path = made.write(self.folder)
        self.assertIn("IQ2_XXS blk.0.x.weight  [2,256]", self.tool("info", path))
        made = llama(bias=())
        del made.out.tensors[0]["blk.0.ffn_norm.weight"]
        made.out.add_tensor("blk.0.ffn_norm.weight", np.zeros(66, np.uint8), raw_dtype=gguf.GGMLQuantizationType.IQ2_XXS)
        done = subprocess.run([TOOL, "tokenize", "he", "--model", made.write(self.folder)], capture_output=True, text=True)
        self.assertIn("'blk.0.ffn_norm.weight' is of type IQ2_XXS, which is not supported for weights", done.stderr)

    def told(self, made):
        """What info says of a model."""
        bare = made.write(self.folder).with_suffix("")
        bare.unlink(missing_ok=True)
        bare.symlink_to(bare.with_suffix(".gguf").name)
        return json.loads(self.tool("info", bare, "--json"))

    def test_scalings_by_keys(self):
        made = llama()
        made.out.add_rope_scaling_factor(2.0)  # linear is what an absent type means
        told = self.told(made)
        self.assertEqual((told["rope_type"], told["rope_factor"]), ("linear", 2))
        made = llama()
        made.out.add_float32("llama.rope.scale_linear", 4.0)
        self.assertEqual(self.told(made)["rope_factor"], 4)
        made = llama()
        made.out.add_rope_scaling_type(gguf.RopeScalingType.NONE)
        made.out.add_rope_scaling_factor(4.0)
        self.assertEqual(self.told(made)["rope_type"], "default")
        made = llama()
        made.out.add_tensor("rope_freqs.weight", np.ones(DIM // 2, np.float32))
        self.assertEqual(self.told(made)["rope_type"], "default")

    def test_windows_that_are_absent(self):
        for arch, sliding in (("gemma2", [0, 2]), ("gemma3", [])):
            made = gemma(arch)
            del made.out.kv_data[0][f"{arch}.attention.sliding_window"]
            self.assertEqual(self.told(made)["sliding_layers"], sliding)

    def test_warnings(self):
        made = llama()
        made.out.add_uint32("other.key", 1)
        self.assertIn("1 key of the file is not used; the first is 'other.key'", self.told(made)["warnings"])

    def test_pooling(self):
        made = bert()
        made.out.add_pooling_type(gguf.PoolingType.CLS)
        self.assertIn("the last hidden state of the first token", self.tool("embed", "he", "--model", made.write(self.folder)))

    def test_parts(self):
        made = llama()
        path = made.write(self.folder)
        whole = self.tool("look", "he said", "--json", "--model", path).replace(str(path), "MODEL")
        self.setUp()
        made = llama()
        names = list(made.out.tensors[0])
        first, second = gguf.GGUFWriter(None, "llama"), gguf.GGUFWriter(None, "llama")
        first.kv_data, second.kv_data = [dict(made.out.kv_data[0])], [{}]
        for i, part in enumerate((first, second)):
            part.add_uint16("split.no", i)
            part.add_uint16("split.count", 2)
            part.add_int32("split.tensors.count", len(names))
            for name in names[i::2]:
                part.add_tensor(name, made.out.tensors[0][name].tensor)
            part.write_header_to_file(self.folder / f"m-0000{i + 1}-of-00002.gguf")
            part.write_kv_data_to_file()
            part.write_tensors_to_file()
            part.close()
        path = self.folder / "m-00001-of-00002.gguf"
        self.assertEqual(self.tool("look", "he said", "--json", "--model", path).replace(str(path), "MODEL"), whole)
        (self.folder / "m-00002-of-00002.gguf").unlink()
        done = subprocess.run([TOOL, "tokenize", "he", "--model", path], capture_output=True, text=True)
        self.assertIn("m-00002-of-00002.gguf: cannot open", done.stderr)

    def test_fused(self):
        """llama.cpp's --fuse-qkv: rows of queries, keys and values below each other, after they were permuted."""
        made = llama()
        whole = made.write(self.folder)
        want = self.tool("look", "he said", "--json", "--model", whole).replace(str(whole), "MODEL")
        self.setUp()
        made = llama()
        tensors = made.out.tensors[0]
        for n in range(LAYERS):
            for part in ("weight", "bias"):
                data = np.concatenate([tensors.pop(f"blk.{n}.attn_{inner}.{part}").tensor for inner in "qkv"])
                made.out.add_tensor(f"blk.{n}.attn_qkv.{part}", data)
        path = made.write(self.folder)
        self.assertEqual(self.tool("look", "he said", "--json", "--model", path).replace(str(path), "MODEL"), want)

    def test_merges_of_transformers(self):
        pieces = ["<unk>", "▁", "a", "b", "c", "ab", "bc", "abc", "▁a", "▁ab", "▁abc", "aa", "aaa", "aaaa"]
        random = np.random.default_rng(5)
        for arch in ("llama", "gemma"):
            scores = random.integers(-4, 0, len(pieces)).astype(float)
            made = llama(bias=()) if arch == "llama" else gemma("gemma")
            del made  # only the vocabulary matters: gguf_tokenizer has the same rule as src/model/gguf/vocab.c
            sys.path.insert(0, str(ROOT / "tools"))
            import gguf_tokenizer
            types = [2] + [1] * (len(pieces) - 1)
            order = scores if arch == "llama" else [-i for i in range(len(pieces))]
            self.assertEqual(gguf_tokenizer.merges_of_scores(pieces, types, list(order)), merges_of(pieces[1:], list(order)[1:]))

    def test_trained_from(self):
        path = llama().write(self.folder)
        done = subprocess.run([TOOL, "train", "--text", ROOT / "README.md", "--from", path, "--out", self.folder / "new", "--steps", "1"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("a GGUF file is not trained from", done.stderr)


class Refusals(Files):
    def test_architecture(self):
        made = llama()
        made.out = gguf.GGUFWriter(None, "mamba")
        self.refused(made, "general.architecture is 'mamba'", "'llama'")

    def test_key(self):
        made = llama()
        made.out.add_logit_scale(2.0)
        self.refused(made, "llama.logit_scale is not known")

    def test_experts(self):
        made = llama()
        made.out.add_expert_count(8)
        self.refused(made, "llama.expert_count is 8")

    def test_tensors(self):
        made = llama()
        made.out.add_tensor("blk.0.attn_sinks.weight", np.zeros(4, np.float32))
        self.refused(made, "'blk.0.attn_sinks.weight' is not known in architecture 'llama'")

    def test_missing(self):
        made = llama()
        del made.out.tensors[0]["blk.1.ffn_up.weight"]
        self.refused(made, "'blk.1.ffn_up.weight' is missing")

    def test_rotation_of_a_part(self):
        made = qwen("qwen2")
        made.out.add_rope_dimension_count(4)
        self.refused(made, "qwen2.rope.dimension_count is 4, but heads have 8 channels")

    def test_positions(self):
        made = llama()
        made.out.add_tensor("rope_freqs.weight", np.array([1, 1, 2, 2], np.float32))
        self.refused(made, "rope_freqs.weight")

    def test_words(self):
        made = qwen("qwen2")
        made.out.add_tokenizer_pre("tekken")
        self.refused(made, "tokenizer.ggml.pre is 'tekken'")

    def test_not_gguf(self):
        path = self.folder / "x.gguf"
        path.write_bytes(b"PK\x03\x04" + bytes(100))
        done = subprocess.run([sys.executable, ROOT / "tools/gguf2safetensors.py", path, self.folder / "out"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("x.gguf", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        TOOL = sys.argv.pop(1)
    unittest.main()

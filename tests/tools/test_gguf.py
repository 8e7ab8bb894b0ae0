#!/usr/bin/env python3
"""The tool on tiny GGUF files that this test writes with PyPI gguf as llama.cpp writes them: python3 test_gguf.py QKV

Each file gives the same sizes, ids and bits of numbers as a model folder of the weights that it was made of, and what qkv cannot compute is
refused by name. gguf_folders.json has the config.json and the files of a tokenizer of each folder. Exit status 77: gguf or numpy is not
installed.
"""
import json
import pathlib
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

from gguf_files import DIM, FFN, HEADS, KV, LAYERS, WIDTH, WORDS, bert, bloom, gemma, gpt2, gptneox, llama, modern_bert, olmo2, phi3, qwen

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = json.loads((HERE / "gguf_folders.json").read_text())
TOOL = None


class Files(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def tool(self, *words):
        done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def as_folder(self, made, files, vocab=None):
        """The file, and a folder of what it was made of."""
        path, out = made.write(self.folder), self.folder / "out"
        out.mkdir()
        header, at = {}, 0
        for name, data in made.weights.items():
            header[name] = {"dtype": "F32", "shape": list(data.shape), "data_offsets": [at, at + data.nbytes]}
            at += data.nbytes
        text = json.dumps(header).encode()
        (out / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text
                                                + b"".join(np.ascontiguousarray(d).tobytes() for d in made.weights.values()))
        for name, content in files.items():
            (out / f"{name}.json").write_text(json.dumps(content))
        if vocab:
            (out / "vocab.txt").write_text("\n".join(vocab))
        return path, out

    def like_folder(self, made, name):
        if made.arch.startswith("gemma"):  # the 1 is added, and taken away again, in f32
            for weight, data in made.weights.items():
                if weight.endswith("norm.weight"):
                    made.weights[weight] = (data + np.float32(1)) - np.float32(1)
        path, out = self.as_folder(made, FOLDERS[name])
        self.same(path, out, "he said: hehe 12 <user>", "  he   said\n", "")
        self.assertNotIn("unused", self.tool("info", out, "-v"))
        bare = path.with_suffix("")  # a name that does not tell what it is
        bare.symlink_to(path.name)
        infos = [json.loads(self.tool("info", name, "--weights", "f32", "--json")) for name in (bare, out)]
        for info in infos:
            del info["source"], info["files"]
        self.assertEqual(*infos)
        looks = [self.tool("look", "he said", "--json", "--weights", "f32", "--model", m).replace(str(m), "MODEL") for m in (path, bare, out)]
        self.assertEqual(looks[:2], [looks[2]] * 2)

    def same(self, path, out, *texts):
        """Ids, and the bits of vectors."""
        for text in texts:
            self.assertEqual(*(json.loads(self.tool("tokenize", text, "--json", "--model", model))["ids"] for model in (path, out)))
            if text:
                self.assertEqual(*(self.tool("embed", text, "--weights", "f32", "--model", model).replace(str(model), "MODEL") for model in (path, out)))

    def refused(self, made, words):
        done = subprocess.run([TOOL, "tokenize", "he", "--model", made.write(self.folder)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn(words, done.stderr)


class Families(Files):
    def test_llama(self):
        self.like_folder(llama(), "llama")

    def test_llama3_positions(self):
        made = llama(theta=5e5)
        wavelength = 2 * np.pi * 5e5 ** (np.arange(0, DIM, 2) / DIM)
        smooth = [min(max((8192 / w - 1) / 3, 0), 1) for w in wavelength]
        made.out.add_tensor("rope_freqs.weight", np.array([1 / ((1 - s) / 8 + s) for s in smooth], np.float32))
        self.like_folder(made, "llama3_positions")

    def test_yarn(self):
        made = llama()
        made.out.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        made.out.add_rope_scaling_factor(4.0)
        made.out.add_rope_scaling_orig_ctx_len(16)
        made.out.add_rope_scaling_yarn_beta_fast(16.0)
        self.like_folder(made, "yarn")

    def test_smollm3(self):
        self.like_folder(llama("smollm3", bias=()), "smollm3")

    def test_qwen(self):
        for arch in ("qwen2", "qwen3"):
            with self.subTest(arch):
                self.setUp()
                self.like_folder(qwen(arch), arch)

    def test_gemma(self):
        for arch in ("gemma", "gemma2", "gemma3"):
            with self.subTest(arch):
                self.setUp()
                self.like_folder(gemma(arch), arch)

    def test_olmo2(self):
        self.like_folder(olmo2(), "olmo2")

    def test_phi3(self):
        self.like_folder(phi3(), "phi3")

    def test_gptneox(self):
        for parallel in (True, False):
            with self.subTest(parallel=parallel):
                self.setUp()
                files = json.loads(json.dumps(FOLDERS["gptneox"]))
                files["config"]["use_parallel_residual"] = parallel
                FOLDERS["gptneox, parallel" if parallel else "gptneox, not"] = files
                self.like_folder(gptneox(parallel), "gptneox, parallel" if parallel else "gptneox, not")

    def test_bloom(self):
        self.like_folder(bloom(), "bloom")
        self.setUp()
        made = bloom()
        made.out.kv_data[0]["bloom.feed_forward_length"].value = 3 * WIDTH
        self.refused(made, "feed-forwards of 4 times its width")

    def test_modern_bert(self):
        self.like_folder(modern_bert(), "modern_bert")

    def test_types(self):
        """All types of blocks that PyPI gguf quantises to, as it dequantises them; blocks of 256 are more than a row has here."""
        made = llama(bias=())
        down, up = ("ffn_down", "mlp.down_proj", (WIDTH, FFN)), ("ffn_up", "mlp.up_proj", (FFN, WIDTH))
        output = "attn_output", "self_attn.o_proj", (WIDTH, HEADS * DIM)
        places = {"F16": (0, *up), "BF16": (1, *up), "Q8_0": (0, *down), "Q4_0": (1, *down), "Q4_1": (2, *down), "Q5_0": (0, *output),
                  "Q5_1": (1, *output), "MXFP4": (2, *output)}
        for name, (n, part, theirs, shape) in places.items():
            kind = gguf.GGMLQuantizationType[name]
            data = gguf.quants.quantize(made.random.standard_normal(shape).astype(np.float32), kind)
            made.store(f"blk.{n}.{part}.weight", data, kind)
            made.weights[f"model.layers.{n}.{theirs}.weight"] = gguf.quants.dequantize(data, kind)
        self.like_folder(made, "llama_without_biases")
        path = self.folder / "llama.gguf"
        self.assertEqual(*(json.loads(self.tool("info", m, "--json"))["weights"] == w for m, w in ((path.with_suffix(""), "file"),
                                                                                                  (self.folder / "out", "f32"))))
        exact, blocks = (np.array(json.loads(self.tool("embed", "he said: hehe 12", "--json", "--weights", w, "--model", path))["vectors"][0]["vector"])
                         for w in ("f32", "file"))
        self.assertLess(np.abs(exact - blocks).max(), 0.05 * np.abs(exact).max())
        self.assertGreater(np.abs(exact - blocks).max(), 0)


def merges_of(tokens, scores):
    """generate_merges of transformers 5, convert_slow_tokenizer.py."""
    ids, merges = {t: i for i, t in enumerate(tokens)}, []
    for token, score in zip(tokens, scores):
        local = [(token[:i], token[i:], score) for i in range(1, len(token)) if token[:i] in ids and token[i:] in ids]
        merges += sorted(local, key=lambda x: (ids[x[0]], ids[x[1]]))
    return [[a, b] for a, b, _ in sorted(merges, key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)]


class Others(Files):
    def test_gpt2(self):
        made = gpt2()
        path, out = self.as_folder(made, {"config": {
            "model_type": "gpt2", "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64, "n_inner": FFN,
            "layer_norm_epsilon": 1e-5, "vocab_size": WORDS}})
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
                                                                          "max_position_embeddings": 64, "vocab_size": WORDS}
                path, out = self.as_folder(bert(distilled), {"config": config}, vocab)
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

    def test_xlm_roberta(self):
        """A Unigram vocabulary without a map of characters."""
        made = bert()
        for key in [k for k in made.out.kv_data[0] if k.startswith("tokenizer.ggml.")]:
            del made.out.kv_data[0][key]
        pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁he", "he", "s", "said", "▁s", ".", "1", "▁12"]
        scores = [0.0] * 4 + [float(np.float32(-2.1 - i / 3)) for i in range(len(pieces) - 4)]
        n_left = WORDS - len(pieces)
        pieces += [f"[PAD{i}]" for i in range(n_left)]
        scores += [-1000.0] * n_left
        made.out.add_tokenizer_model("t5")
        made.out.add_tokenizer_pre("default")
        made.out.add_token_list(pieces)
        made.out.add_token_scores(scores)
        made.out.add_token_types([3, 3, 3, 2] + [1] * (len(pieces) - 4 - n_left) + [5] * n_left)
        for name, token in (("bos", 0), ("eos", 2), ("unknown", 3), ("padding", 1)):
            made.out.add_uint32(f"tokenizer.ggml.{name}_token_id", token)
        made.out.add_add_space_prefix(True)
        made.out.add_remove_extra_whitespaces(True)
        made.out.add_add_bos_token(True)
        made.out.add_add_eos_token(True)
        config = {"model_type": "bert", "hidden_size": WIDTH, "intermediate_size": FFN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
                  "max_position_embeddings": 64, "vocab_size": WORDS, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
        path, out = self.as_folder(made, {"config": config, "tokenizer_config": {"tokenizer_class": "XLMRobertaTokenizer"}, "tokenizer": {
            "added_tokens": [{"id": i, "content": pieces[i], "special": True} for i in range(4)],
            "model": {"type": "Unigram", "unk_id": 3, "vocab": list(map(list, zip(pieces, scores)))}}})
        self.same(path, out, "he said hehe.", "12 he</s>  zz")
        self.assertEqual(json.loads(self.tool("tokenize", "he", "--pair", "he", "--json", "--model", path))["ids"], [0, 5, 2, 2, 5, 2])
        made.out = bert().out
        made.out.kv_data[0]["tokenizer.ggml.model"].value = "t5"
        self.refused(made, "'t5' is read of an XLM-RoBERTa alone")

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
        """Of scores, of Gemma of ids, in the order that transformers gives them."""
        pieces = ["▁", "a", "b", "c", "ab", "bc", "abc", "▁a", "▁ab", "▁abc", "aa", "aaa", "aaaa"]
        random = np.random.default_rng(5)
        first, words = 259, ["a abc aab aaaaaaa", "abcabc bc  a bbcc", "aaa ab c aaaaab"]
        for arch in ("llama", "gemma"):
            with self.subTest(arch):
                self.setUp()
                made = llama(bias=()) if arch == "llama" else gemma("gemma")
                if arch == "llama":
                    for key in [k for k in made.out.kv_data[0] if k.startswith("tokenizer.ggml.")]:
                        del made.out.kv_data[0][key]
                    made.sentencepiece(True)
                keys, scores = made.out.kv_data[0], random.integers(-4, 0, len(pieces)).astype(float)
                tokens = [*keys["tokenizer.ggml.tokens"].value[:first], *pieces]
                n_left = WORDS - len(tokens)
                keys["tokenizer.ggml.tokens"].value = [*tokens, *(f"[PAD{i}]" for i in range(n_left))]
                keys["tokenizer.ggml.scores"].value = [0.0] * first + [*scores] + [-1e4] * n_left
                keys["tokenizer.ggml.token_type"].value = [2, 3, 3] + [6] * 256 + [1] * len(pieces) + [5] * n_left
                files = json.loads(json.dumps(FOLDERS["gemma" if arch == "gemma" else "phi3"]))
                if arch == "llama":
                    files["config"] = FOLDERS["llama_without_biases"]["config"]
                files["tokenizer"]["model"]["vocab"] = {t: i for i, t in enumerate(tokens)}
                order = scores if arch == "llama" else [-i for i in range(len(pieces))]
                files["tokenizer"]["model"]["merges"] = merges_of(pieces, list(order))
                path, out = self.as_folder(made, files)
                for text in words:
                    self.assertEqual(*(self.tool("tokenize", text, "--json", "--model", model) for model in (path, out)))

    def test_trained_from(self):
        """A run from the file is a run from its folder; the folder that it writes has the file's vocabulary."""
        (self.folder / "text").write_text("he said hehe\nhe\n\n" * 20)
        path, out = self.as_folder(llama(), FOLDERS["llama"])
        for model, new in ((path, "a"), (out, "b")):
            self.tool("train", "--text", self.folder / "text", "--from", model, "--out", self.folder / new, "--steps", "2", "--quiet")
        self.assertEqual(*((self.folder / new / "model.safetensors").read_bytes() for new in "ab"))
        self.assertEqual(*(self.tool("tokenize", "hehe <user>", "--json", "--model", model) for model in (path, self.folder / "a")))
        self.assertEqual(*(json.loads(self.tool("info", self.folder / new, "--json"))["eos_id"] for new in "ab"))


class Refusals(Files):
    def test_architecture(self):
        made = llama()
        made.out = gguf.GGUFWriter(None, "mamba")
        made.out.add_tensor("token_embd.weight", np.zeros((2, 2), np.float32))
        self.refused(made, "general.architecture 'mamba' is not supported; of GGUF files qkv loads \"llama\"")

    def test_key(self):
        made = llama()
        made.out.add_uint32("llama.other", 1)
        self.refused(made, "key 'llama.other' is not known here")

    def test_scale(self):
        made = llama()
        made.out.add_logit_scale(2.0)
        self.refused(made, "key 'llama.logit_scale' is 2, which is not supported")

    def test_experts(self):
        made = llama()
        made.out.add_expert_count(8)
        self.refused(made, "key 'llama.expert_count' is 8, which is not supported")

    def test_tensors(self):
        made = llama()
        made.out.add_tensor("blk.0.attn_sinks.weight", np.zeros(4, np.float32))
        self.refused(made, "tensor 'blk.0.attn_sinks.weight' is not known in architecture 'llama'")

    def test_missing(self):
        made = llama()
        del made.out.tensors[0]["blk.1.ffn_up.weight"]
        self.refused(made, "tensor 'blk.1.ffn_up.weight' is missing")

    def test_rotation_of_a_part(self):
        made = qwen("qwen2")
        made.out.add_rope_dimension_count(4)
        self.refused(made, "key 'qwen2.rope.dimension_count' is 4, but heads have 8 channels")

    def test_rotation_of_more(self):
        made = gptneox()
        made.out.kv_data[0]["gptneox.rope.dimension_count"].value = 6
        self.refused(made, "of which at most all are rotated")

    def test_fused_rows(self):
        made = gptneox()
        del made.out.tensors[0]["blk.0.attn_qkv.bias"]
        made.out.add_tensor("blk.0.attn_qkv.bias", np.zeros(3 * WIDTH - 3, np.float32))
        self.refused(made, "tensor 'blk.0.attn_qkv.bias' has 45 rows, not 16 of queries and twice 16 of keys and values")

    def test_positions(self):
        made = llama()
        made.out.add_tensor("rope_freqs.weight", np.array([1, 1, 2, 2], np.float32))
        self.refused(made, "rope_freqs.weight")

    def test_words(self):
        made = qwen("qwen2")
        made.out.add_tokenizer_pre("tekken")
        self.refused(made, "key 'tokenizer.ggml.pre' is 'tekken', and how it cuts words is not known here")

    def test_not_gguf(self):
        path = self.folder / "x.gguf"
        path.write_bytes(b"PK\x03\x04" + bytes(100))
        done = subprocess.run([TOOL, "info", path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("x.gguf", done.stderr)


if __name__ == "__main__":
    TOOL = sys.argv.pop(1)
    unittest.main()

"""Models, heads and pages: the embedded model, and arrays beside the reference."""
import html.parser
import json
import math
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import numpy as np
import reference

import qkv

TEXT = "I was watching the [MASK] when it opened."


def manifest(page):
    return json.loads(re.search(r'id="qkv-manifest">(.*?)</script>', page.html, re.DOTALL).group(1))


SEER = pathlib.Path(__file__).parents[2] / "models" / "seer"
BOATS = pathlib.Path(__file__).parents[2] / "examples" / "images" / "two-boats.png"


class Names(unittest.TestCase):
    def test_by_the_name_of_its_folder(self):
        """As in the tool, where there is no such folder. The name was taken for one of a repository to download."""
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for name in ("models/default", pathlib.Path("models/default"), "models/default/"):
                self.assertEqual(repr(qkv.load(name)), repr(qkv.load()))
            os.makedirs("models/default")
            pathlib.Path("models/default/config.json").write_text("{}")
            with self.assertRaisesRegex(qkv.FileError, "models/default: no model.safetensors in this folder"):
                qkv.load("models/default")
            os.chdir(before)


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not SEER.exists():
            raise unittest.SkipTest("models/seer is not here")
        cls.model = qkv.load(SEER)

    def test_a_masked_array(self):
        with self.assertRaisesRegex(qkv.DTypeError, "^image is a masked array"):
            self.model.see(np.ma.masked_greater(np.zeros((48, 48, 3), np.uint8), 0))

    def test_a_file(self):
        heads = self.model.look(image=BOATS)
        self.assertEqual((heads.n_queries, heads.n_keys), (37, 37))
        self.assertEqual(heads.tokens[:3] + heads.tokens[-1:], ["[CLS]", "0,0", "0,1", "5,5"])
        weights = heads.weights(0, 0)
        self.assertEqual(weights.shape, (37, 37))
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
        self.assertIn('"qkv-manifest"', heads.page().html)
        self.assertEqual(self.model.labels(BOATS, n=1)[0].token, "two red boats")

    def test_rollout(self):
        heads = self.model.look(image=BOATS)
        weights = np.stack([[heads.weights(layer, head) for head in range(4)] for layer in range(3)]).astype(np.float64)
        for kind, fused in (("mean", weights.mean(1)), ("max", weights.max(1)), ("min", weights.min(1))):
            x = np.eye(37)[0]
            for layer in fused[::-1]:
                rows = layer + np.eye(37)
                x = x @ (rows / rows.sum(axis=1, keepdims=True))
            np.testing.assert_allclose(heads.rollout(heads=kind), x, atol=1e-5)
        np.testing.assert_allclose(heads.rollout(1, 3), (heads.rollout(1) + heads.rollout(2)) / 2, atol=1e-6)
        with self.assertRaisesRegex(qkv.ArgumentError, "must be one of 'mean', 'max', 'min'"):
            heads.rollout(heads="median")
        with self.assertRaisesRegex(qkv.ArgumentError, "first, end"):
            heads.rollout(37)
        text = qkv.load().look("I was watching the [MASK].")
        self.assertAlmostEqual(float(text.rollout(2).sum()), 1, delta=1e-5)
        with self.assertRaisesRegex(qkv.UnsupportedError, "layers of a model"):
            qkv.heads(np.ones((1, 4, 8), np.float32), np.ones((1, 4, 8), np.float32)).rollout()

    def test_rollout_of_all_tokens(self):
        heads = qkv.load().look("I was watching the [MASK] when it opened.")
        for kind in ("mean", "max", "min"):
            rows = np.stack([heads.rollout(i, heads=kind) for i in range(heads.n_queries)])
            np.testing.assert_allclose(heads.rollout_map(heads=kind), rows, atol=1e-6)
        with self.assertRaisesRegex(qkv.ArgumentError, "must be one of"):
            heads.rollout_map(heads="median")

    def test_norms(self):
        """Of layer 0, by float64 and the stored weights alone."""
        heads = qkv.load().look("I was watching the [MASK] when it opened.")
        ids = qkv.load().tokenize("I was watching the [MASK] when it opened.").ids
        bytes_ = (pathlib.Path(qkv.__file__).parent / "model" / "model.safetensors").read_bytes()
        size = int.from_bytes(bytes_[:8], "little")

        def stored(name):
            row = json.loads(bytes_[8:8 + size])[f"bert.{name}"]
            begin, end = (8 + size + at for at in row["data_offsets"])
            kind = {"F32": np.float32, "F16": np.float16}[row["dtype"]]
            return np.frombuffer(bytes_[begin:end], kind).reshape(row["shape"]).astype(np.float64)

        x = (stored("embeddings.word_embeddings.weight")[ids] + stored("embeddings.token_type_embeddings.weight")[0]
             + stored("embeddings.position_embeddings.weight")[:len(ids)])
        x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-12)
        x = x * stored("embeddings.LayerNorm.weight") + stored("embeddings.LayerNorm.bias")
        part = "encoder.layer.0.attention."
        values = x @ stored(part + "self.value.weight").T + stored(part + "self.value.bias")
        output = stored(part + "output.dense.weight")
        for head in range(heads.n_heads):
            of = slice(head * heads.head_dim, (head + 1) * heads.head_dim)
            norms = np.linalg.norm(values[:, of] @ output[:, of].T, axis=1)
            np.testing.assert_allclose(heads.norms(0, head), heads.weights(0, head) * norms, rtol=1e-4, atol=1e-6)
        with self.assertRaisesRegex(qkv.UnsupportedError, "norms"):
            qkv.heads(np.ones((1, 4, 8), np.float32), np.ones((1, 4, 8), np.float32)).norms(0, 0)

    def test_a_page_has_the_image_and_effects(self):
        page = manifest(self.model.look(image=BOATS).page(effects=True))
        self.assertEqual([page["image"][name] for name in ("width", "rows", "columns", "first")], [48, 6, 6, 1])
        self.assertEqual(page["effects"]["what"], "ln P(two red boats)")

    def test_over_image(self):
        heads = self.model.look(image=BOATS)
        with tempfile.TemporaryDirectory() as folder:
            try:
                heads.over_image(f"{folder}/all.png")
            except qkv.UnsupportedError as reason:
                self.skipTest(str(reason))
            heads.over_image(f"{folder}/one.svg", (2, 3), query=4, smooth=True)
            heads.over_image(f"{folder}/rollout.png", heads.rollout(), opacity=0.7, title="Rollout")
            self.assertIn("what 0,3 looks at", pathlib.Path(folder, "one.svg").read_text())
            for made in pathlib.Path(folder).iterdir():
                self.assertGreater(made.stat().st_size, 5000)
            with self.assertRaisesRegex(qkv.ArgumentError, "for each of 37 tokens, or of 36 patches"):
                heads.over_image(f"{folder}/x.png", np.zeros(35, np.float32))
            with self.assertRaisesRegex(qkv.ArgumentError, "query is 37"):
                heads.over_image(f"{folder}/x.png", query=37)
            with self.assertRaisesRegex(qkv.ArgumentError, "opacity = 2"):
                heads.over_image(f"{folder}/x.png", opacity=2.0)
            for words, options in (
                    ("opacity = 0: must be above 0", {"opacity": 0}), ("opacity = nan: must be", {"opacity": math.nan}),
                    ("opacity = '1' is not a real number", {"opacity": "1"}),
                    ("query = '1' is not a whole number", {"query": "1"}),
                    ("shown is complex64", {"shown": np.ones(37, np.complex64)}),
                    ("shown is <U1", {"shown": np.array(["1"] * 36)})):
                with self.subTest(words=words), self.assertRaisesRegex(qkv.QkvError, words):
                    heads.over_image(f"{folder}/x.png", **options)
            with self.assertRaisesRegex(qkv.UnsupportedError, "needs an image"):
                qkv.load().look("a text").over_image(f"{folder}/x.png")

    def test_an_array_is_the_file(self):
        tokens = self.model.see(BOATS)
        self.assertEqual((tokens.grid, tokens.n_prefix, len(tokens)), ((6, 6), 1, 37))
        rng = np.random.default_rng(5)
        pixels = rng.integers(0, 256, (40, 31, 3), dtype=np.uint8)
        first, turned = self.model.labels(pixels, n=48), self.model.labels(np.asfortranarray(pixels), n=48)
        self.assertEqual(first, turned)
        self.assertAlmostEqual(sum(label.probability for label in first), 1, delta=1e-6)
        self.assertEqual(self.model.see(pixels, size=64).grid, (8, 8))
        grey = pixels[:, :, 0]
        self.assertEqual(self.model.labels(grey), self.model.labels(np.stack([grey] * 3, axis=2)))

    def test_the_bytes_of_a_file_are_the_file(self):
        content = pathlib.Path(BOATS).read_bytes()
        self.assertEqual(self.model.labels(content), self.model.labels(BOATS))
        with self.assertRaisesRegex(qkv.FormatError, "the image: "):
            self.model.labels(content[:-9])

    def test_an_image_of_pil(self):
        try:
            from PIL import Image
        except ImportError:
            self.skipTest("needs Pillow")
        with Image.open(BOATS) as image:
            self.assertEqual(self.model.labels(image), self.model.labels(BOATS))

    def test_refusals(self):
        with self.assertRaisesRegex(qkv.ArgumentError, "reads images, not texts"):
            self.model.look("a text")
        for texts in (["a text"], []):
            with self.assertRaisesRegex(qkv.ArgumentError, "reads images, not texts"):
                self.model.embed(texts)
        with self.assertRaisesRegex(qkv.ArgumentError, "reads texts, not images"):
            qkv.load().look(image=BOATS)
        with self.assertRaisesRegex(qkv.ArgumentError, "a text, or an image"):
            self.model.look()
        with self.assertRaisesRegex(qkv.ArgumentError, "must be uint8"):
            self.model.look(image=np.zeros((8, 8, 3)))
        with self.assertRaises(qkv.QkvError):
            self.model.look(image="no/such.png")


class Embedded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = qkv.load()

    def test_what_it_is(self):
        self.assertEqual((self.model.kind, self.model.architecture), ("encoder", "bert"))
        self.assertEqual((self.model.n_layers, self.model.n_heads), (4, 4))

    def test_tokens(self):
        tokens = self.model.tokenize(TEXT)
        self.assertEqual(tokens.texts, "[CLS] i was watching the [MASK] when it opened . [SEP]".split())
        self.assertEqual(tokens.spans[5], (19, 25))
        self.assertEqual(self.model.decode(tokens.ids), "i was watching the when it opened.")
        pair = self.model.tokenize("A dog.", "It ran.")
        self.assertEqual(pair.types.tolist(), [0] * 5 + [1] * 4)

    def test_words_for_a_mask(self):
        rows = self.model.fill(TEXT, n=1600)[0]
        self.assertEqual(len({row.id for row in rows}), 1600)
        probabilities = [row.probability for row in rows]
        self.assertEqual(probabilities, sorted(probabilities, reverse=True))
        self.assertAlmostEqual(sum(probabilities), 1, delta=1e-4)
        self.assertEqual(len(self.model.fill("the [MASK] and the [MASK]")), 2)
        with self.assertRaisesRegex(qkv.ArgumentError, r"no \[MASK\]"):
            self.model.fill("nothing is masked")

    def test_next_sentences_and_vectors(self):
        self.assertTrue(0 < self.model.follows("I saw a dog.", "It was big.") < 1)
        vectors = self.model.embed(["the door opened", "the door closed", ""])
        self.assertEqual(vectors.shape, (3, self.model.hidden))
        np.testing.assert_array_equal(self.model.embed(["the door closed"])[0], vectors[1])
        with self.assertRaisesRegex(qkv.ArgumentError, "texts is a str"):
            self.model.embed("the door")

    def test_heads(self):
        heads = self.model.look(TEXT)
        numbers = heads.numbers()
        n = len(heads.tokens)
        for layer in range(4):
            for head in range(4):
                p = heads.weights(layer, head)
                np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
                # means are over the queries that are neither [CLS] nor [SEP]
                entropy = -(p * np.log(np.maximum(p, 1e-30))).sum(axis=1)[1:n - 1].mean()
                self.assertAlmostEqual(numbers["entropy"][layer, head], entropy, delta=1e-4)
                self.assertAlmostEqual(numbers["confidence"][layer, head], p.max(axis=1)[1:n - 1].mean(), delta=1e-5)
                self.assertEqual(heads.looks_at(layer, head, 5)[0], p[5].argmax())
        found = heads.sharpest()
        self.assertEqual(found.weight, heads.weights(found.layer, found.head)[found.query, found.key])
        self.assertEqual(heads.label(1, 1), "prev")
        rows = heads.rows()
        self.assertEqual(len(rows), 16)
        self.assertEqual((rows[5]["layer"], rows[5]["head"], rows[5]["label"]), (1, 1, "prev"))
        self.assertEqual({number.name for number in qkv.NUMBERS}, set(numbers))
        with self.assertRaisesRegex(qkv.ArgumentError, "no head 4.0"):
            heads.weights(4, 0)

    def test_errors(self):
        with self.assertRaisesRegex(qkv.UnsupportedError, "predicts the next token"):
            self.model.generate("A dog")
        with self.assertRaises(qkv.FileError), tempfile.TemporaryDirectory() as folder:
            qkv.load(folder)
        with self.assertRaisesRegex(qkv.ArgumentError, "weights is"):
            qkv.load(weights="int4")

    def test_bf16(self):
        half = qkv.load(weights="bf16").fill(TEXT)[0]
        whole = self.model.fill(TEXT)[0]
        self.assertAlmostEqual(half[0].probability, whole[0].probability, delta=0.01)


class Writers(unittest.TestCase):
    """The writer and the translator of the repository."""

    models = pathlib.Path(__file__).resolve().parents[2] / "models"

    def test_a_decoder(self):
        model = qkv.load(self.models / "writer")
        self.assertEqual(model.kind, "decoder")
        greedy = model.generate("The girl", max_new=8, sample=False, beams=1)
        self.assertEqual(greedy, model.generate("The girl", max_new=8, sample=False, beams=1))
        self.assertLessEqual(len(greedy.ids), 8)
        self.assertIn(greedy.end, ("eos", "max_new"))
        drawn = {model.generate("The girl", max_new=8, sample=True, seed=seed).text for seed in range(5)}
        self.assertGreater(len(drawn), 1)
        # As in the tool, what is said of draws asks for one.
        for options in ({"temperature": 0.5}, {"top_k": 5}, {"top_p": 0.5}, {"seed": 1}):
            with self.subTest(options=options):
                implied = model.generate("The girl", max_new=8, **options)
                self.assertEqual(implied, model.generate("The girl", max_new=8, sample=True, **options))
                self.assertEqual(model.generate("The girl", max_new=8, sample=False, **options).ids, greedy.ids)
        self.assertNotEqual(model.generate("The girl", max_new=8, seed=1).ids, greedy.ids)
        self.assertEqual(model.generate("The girl", max_new=8, seed=0),
                         model.generate("The girl", max_new=8, sample=True))
        heads = model.look("The girl opened the door.")
        self.assertTrue(heads.causal)
        self.assertEqual(np.triu(heads.weights(0, 0), 1).max(), 0)
        told = manifest(heads.page(effects=True))
        self.assertEqual(told["effects"]["place"], len(heads.tokens) - 1)
        self.assertRegex(told["effects"]["what"], r"^ln P\(\S+\) after token \d+$")
        self.assertTrue(all(math.isfinite(row["effect"]) for row in told["heads"]))

    def test_texts_with_nul_bytes(self):
        """What follows a NUL is the text's, not what lies behind some copy of its beginning."""
        with tempfile.TemporaryDirectory() as folder:
            for path in (self.models / "writer").iterdir():
                shutil.copy(path, folder)
            path = pathlib.Path(folder, "tokenizer.json")
            tokenizer = json.loads(path.read_text())
            ids = tokenizer["model"]["vocab"]
            ids["Ā"], ids["."] = ids["."], ids["Ā"]  # Ā is byte 0
            path.write_text(json.dumps(tokenizer))
            model = qkv.load(folder)
        greedy = model.generate("The girl", max_new=8, sample=False, beams=1)
        self.assertEqual(greedy.text, " was watching the bowl\0 The")
        self.assertEqual(model.decode(greedy.ids), greedy.text)
        self.assertEqual(model.decode([ids["Ā"]] * 300_000), "\0" * 300_000)

    def test_a_pair(self):
        model = qkv.load(self.models / "translator")
        self.assertEqual(model.kind, "pair")
        self.assertTrue(model.generate("the red door", max_new=20).text)


class Gguf(unittest.TestCase):
    path = Writers.models.parent / "tests/golden/gguf/tiny.gguf"

    def test_a_gguf_file(self):
        model = qkv.load(self.path)
        self.assertEqual((model.kind, model.architecture, model.n_layers, model.n_heads), ("decoder", "llama", 1, 2))
        self.assertEqual(model.tokenize("he said").ids.tolist(), [256, 32, 115, 97, 105, 100])
        self.assertEqual(np.triu(model.look("he said").weights(0, 0), 1).max(), 0)

    def test_what_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            cut = pathlib.Path(folder) / "cut.gguf"
            cut.write_bytes(self.path.read_bytes()[:3000])
            with self.assertRaisesRegex(qkv.FormatError, "cut.gguf: .* the file ends after"):
                qkv.load(cut)
        with self.assertRaisesRegex(qkv.FileError, "Ollama has no model 'no-such-model'"):
            qkv.load("ollama:no-such-model")


class Arrays(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(7)
        self.q, self.k = (rng.standard_normal((n, 30, 16)).astype(np.float32) for n in (4, 2))
        self.names = [f"token {j}" for j in range(30)]

    def test_weights_and_numbers(self):
        for rules in ({}, {"causal": True}, {"window": (3, 0)}, {"scale": 0.1}):
            with self.subTest(rules=rules):
                heads = qkv.heads(self.q, self.k, tokens=self.names, **rules)
                _, _, p = reference.attention(self.q[None], self.k[None], self.k[None], **rules)
                for h in range(4):
                    np.testing.assert_allclose(heads.weights(0, h), p[0, h], atol=1e-5)
                np.testing.assert_allclose(heads.numbers()["confidence"][0], p[0].max(axis=-1).mean(axis=-1), atol=1e-5)
                part = heads.weights(0, 1, rows=(5, 9), keys=(2, 8))
                np.testing.assert_array_equal(part, heads.weights(0, 1)[5:9, 2:8])

    def test_two_texts(self):
        heads = qkv.heads(self.q[:, :7], self.k, two_texts=True, queries=list("abcdefg"), tokens=self.names)
        self.assertEqual((heads.n_queries, heads.n_keys), (7, 30))
        self.assertTrue(np.isnan(heads.numbers()["mean_distance"]).all())
        self.assertIn("token 29", heads.page().html)

    def test_errors(self):
        with self.assertRaisesRegex(qkv.ShapeError, "tokens has 3 texts"):
            qkv.heads(self.q, self.k, tokens=["a", "b", "c"])
        with self.assertRaisesRegex(qkv.DTypeError, "read from float32"):
            qkv.heads(self.q.astype(np.float16), self.k.astype(np.float16))
        with self.assertRaisesRegex(qkv.ShapeError, "must be"):
            qkv.heads(self.q[0], self.k)


class Pages(unittest.TestCase):
    def test_a_page_names_the_call_that_made_it(self):
        heads = qkv.load().look(TEXT)
        self.assertEqual(manifest(heads.page())["made_by"],
                         "`page()` of `model.look(text)`; `effects=True` adds effects")
        self.assertEqual(manifest(heads.page([(0, 0)], effects=True))["made_by"],
                         "`page(effects=True)` of `model.look(text)`")
        arrays = qkv.heads(*np.ones((2, 2, 5, 8), np.float32))
        self.assertEqual(manifest(arrays.page())["made_by"], "`page()` of `qkv.heads(q, k)`")

    def test_a_page_needs_nothing_from_outside(self):
        page = qkv.load().look(TEXT).page()
        self.assertEqual((page.n_heads, page.n_left_out), (16, 0))
        self.assertNotRegex(page.html, r"(src|href)\s*=\s*[\"']https?:")
        self.assertIn("default-src 'none'", page.html)
        self.assertLess(len(page.html), 400_000)

    def test_a_cell_is_one_sandboxed_frame(self):
        heads = qkv.heads(*np.ones((2, 2, 5, 8), np.float32), tokens=["<b>", "&amp;", "\"", "'", "</iframe><script>"])
        frames = []

        class Parser(html.parser.HTMLParser):
            def handle_starttag(self, tag, attributes):
                frames.append((tag, dict(attributes)))

        Parser().feed(heads._repr_html_())
        self.assertEqual([tag for tag, _ in frames], ["iframe"])
        self.assertNotIn("allow-same-origin", frames[0][1]["sandbox"])
        self.assertEqual(frames[0][1]["srcdoc"], heads.page().html)

    def test_chosen_heads_and_files(self):
        heads = qkv.load().look(TEXT)
        page = heads.page([(1, 1), (3, 0)])
        self.assertEqual(page.n_heads, 2)
        self.assertEqual(heads.page(["1.1", "3.0"]).html, page.html)
        for wrong in "1", "1.*", "1.1,3.0", "-1.0", "٣.0":
            with self.assertRaisesRegex(qkv.ArgumentError, r"heads\[1\] is .*, and must be a head L\.H"):
                heads.page([(1, 1), wrong])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.html")
            heads.save(path)
            self.assertEqual(path.read_text(), heads.page().html)
        self.assertTrue(re.search(r"\bprev\b", page.html))

    def test_effects(self):
        model = qkv.load()
        heads = model.look("I was watching the door when [MASK] opened.")
        shown = manifest(heads.page(effects=True))
        word = model.fill("I was watching the door when [MASK] opened.", n=1)[0][0]
        told = shown["effects"]
        self.assertEqual((told["what"], told["word"], told["place"]), ("ln P(it) at token 7", word.token, 7))
        self.assertAlmostEqual(math.exp(told["log_p"]), word.probability, delta=1e-5)
        effects = {(row["layer"], row["head"]): row["effect"] for row in shown["heads"]}
        self.assertEqual(len(effects), 16)
        # docs/effects.md: without head 3.0 ln P(it) falls by 0.87
        self.assertEqual(min(effects, key=effects.get), (3, 0))
        self.assertAlmostEqual(effects[3, 0], -0.87, delta=0.005)
        chosen = manifest(heads.page([(1, 1), (3, 0)], effects=True))
        self.assertEqual([row["effect"] for row in chosen["heads"]], [effects[1, 1], effects[3, 0]])
        self.assertNotIn("effects", manifest(heads.page()))
        several = manifest(model.look("The [MASK] saw the [MASK].").page([(0, 0)], effects=True))["effects"]
        self.assertEqual(several["what"], "the mean ln P of the 2 likeliest words for the blanks")
        self.assertEqual(several["place"], -1)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.html")
            heads.save(path, effects=True)
            self.assertEqual(manifest(qkv.Page(path.read_text(), 16, 0)), shown)

    def test_effects_without_a_prediction(self):
        with self.assertRaisesRegex(qkv.ArgumentError, "predicts nothing here"):
            qkv.load().look("Nothing is masked.").page(effects=True)
        with self.assertRaisesRegex(qkv.UnsupportedError, "only heads of Model.look"):
            qkv.heads(*np.ones((2, 2, 5, 8), np.float32)).page(effects=True)


if __name__ == "__main__":
    unittest.main()

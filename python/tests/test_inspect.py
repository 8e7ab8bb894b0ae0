"""qkv.inspect beside the weights that transformers' eager attention returns."""
import contextlib
import html
import html.parser
import importlib.util
import inspect
import io
import logging
import pathlib
import tempfile
import unittest
from unittest import mock

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
    raise unittest.SkipTest("torch or transformers is not installed")

import numpy as np
import tiny_models as tiny
import torch
import transformers

import qkv
import qkv.transformers
from qkv import _c
from qkv.page import _set_bias
from qkv.picture import sees
from qkv.recorded import Names
from qkv.seen import Seen

transformers.logging.set_verbosity_error()
WITHIN = 1e-5
SHOWN = [name for name in tiny.ALL if name != "Llama 4"]  # chunks are refused
ATTENTIONS = {"self": "attentions", "encoder": "encoder_attentions", "decoder": "decoder_attentions",
              "cross": "cross_attentions"}


class Words:
    """A tokenizer as far as names go: a few tokens are special, and every other id is a word."""

    def convert_ids_to_tokens(self, ids):
        special = {0: "[PAD]", 1: "[CLS]", 2: "[SEP]", 5: ".", 6: "Ġthe", 7: "▁a"}
        return [special.get(int(token), f"w{int(token) % 11}") for token in ids]


def watched(name, side="left", call=None, **options):
    """(what was seen, eager's outputs with weights)"""
    model, (given, _) = tiny.make(name), tiny.inputs(name, side)
    with torch.no_grad():
        want = model(**given, output_attentions=True)
        with contextlib.redirect_stderr(io.StringIO()), qkv.inspect(model, **options) as seen:
            (call or model)(**given)
    return seen, want


def real(name, which, side, batch):
    """The tokens of a row of the batch as a slice: (queries, keys)."""
    given, _ = tiny.inputs(name, side)
    masks = {"self": given.get("attention_mask"), "encoder": given.get("attention_mask"),
             "decoder": given.get("decoder_attention_mask"), "cross": given.get("attention_mask")}
    if name == "Whisper":
        masks["encoder"] = masks["cross"] = None
    keys = masks[which]
    queries = masks["decoder"] if which == "cross" else keys
    return [slice(None) if mask is None else mask[batch].bool().numpy() for mask in (queries, keys)]


class Weights(unittest.TestCase):
    def test_equal_eager(self):
        for name in SHOWN:
            for side in ("left", "right"):
                seen, want = watched(name, side, keep="qk")
                worst = 0
                for which in seen.which:
                    layers = getattr(want, ATTENTIONS[which])
                    for layer, batch, head in np.ndindex(len(layers), 3, 4):
                        rows, keys = real(name, which, side, batch)
                        exact = layers[layer][batch, head].numpy()[rows][:, keys]
                        got = seen[batch].weights(layer, head, which=which)
                        self.assertEqual(got.shape, exact.shape)
                        worst = max(worst, np.abs(got - exact).max())
                        part = seen.weights(layer, head, which=which, batch=batch, rows=(2, 4), keys=(1, 3))
                        self.assertTrue(np.array_equal(part, got[2:4, 1:3]))
                with self.subTest(name=name, side=side):
                    self.assertLessEqual(worst, WITHIN)
                    if side == "left":
                        print(f"{name:10} {worst:.1e}")

    def test_batches_without_padding(self):
        seen, want = watched("Llama", "none", keep="qk")
        self.assertEqual(len(seen), 3)
        self.assertEqual(seen.weights(0, 0).shape, (12, 12))
        self.assertLessEqual(np.abs(seen[2].weights(1, 3) - want.attentions[1][2, 3].numpy()).max(), WITHIN)

    def test_gradients_are_those_without_it(self):
        given, _ = tiny.inputs("Llama", "left")
        made = []
        for see in (False, True):
            model = tiny.make("Llama", "qkv").train()
            with qkv.inspect(model, keep="stats") if see else contextlib.nullcontext():
                model(**given).logits.square().mean().backward()
            made.append(model.model.layers[0].self_attn.q_proj.weight.grad)
        self.assertTrue(torch.equal(*made))


class Numbers(unittest.TestCase):
    def test_equal_those_of_weights_in_double(self):
        for name in SHOWN:
            seen, _ = watched(name, "left", keep="qk", tokenizer=Words())
            kept, _ = watched(name, "left", keep="stats", tokenizer=Words())
            for batch in range(3):
                for row in kept.rows(batch=batch):
                    p = seen.weights(row["layer"], row["head"], which=row["which"], batch=batch).astype(np.float64)
                    names = seen.tokens(which=row["which"], batch=batch)
                    want = self.numbers(p, names, name, row["which"])
                    for key, value in want.items():
                        with self.subTest(name=name, which=row["which"], number=key):
                            self.assertAlmostEqual(row[key], value, delta=WITHIN * max(1, abs(value)))

    def numbers(self, p, names, model, which):
        """Some of the numbers from weights, by their definitions. With sinks entropy is that of p / sum p."""
        averaged = np.ones(len(p), bool)
        if which != "cross":
            averaged = np.array([name not in ("[CLS]", "[SEP]", "[PAD]") for name in names])
            if not averaged.any():
                averaged[:] = True
        i, j = np.arange(len(p))[:, None], np.arange(p.shape[1])
        w = p / p.sum(1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = -np.where(w > 0, w * np.log(w), 0).sum(1)
        made = {"entropy": entropy[averaged].mean(), "confidence": p.max(1)[averaged].mean(),
                "effective_keys": (1 / (w**2).sum(1))[averaged].mean(), "n_queries": averaged.sum()}
        if which != "cross":
            made["mean_distance"] = (w * abs(i - j)).sum(1)[averaged].mean()
            made["mass_self"] = (p * (i == j)).sum(1)[averaged].mean()
            made["mass_previous"] = (p * (j == i - 1)).sum(1)[averaged].mean()
            made["mass_window"] = (p * (abs(i - j) <= 8)).sum(1)[averaged].mean()
        if model != "Whisper":
            made["mass_cls"] = p[:, [name == "[CLS]" for name in names]].sum(1)[averaged].mean()
            made["mass_punctuation"] = p[:, [name == "." for name in names]].sum(1)[averaged].mean()
        causal = which in ("self", "decoder") and model in (*tiny.DECODERS, *tiny.PAIRS, "Whisper")
        if model not in tiny.WINDOWS:
            sees = j <= i if causal else np.ones(p.shape, bool)
            share = p.sum(0) / sees.sum(0)
            made["received_largest"] = share.max()
            made["received_key"] = np.argmax(share) if share.max() - np.sort(share)[-2] > 1e-5 else None
        return {key: value for key, value in made.items() if value is not None}

    def test_of_stats_equal_those_of_arrays(self):
        for name in SHOWN:
            for side in ("left", "right"):
                both = [watched(name, side, keep=keep, tokenizer=Words())[0] for keep in ("qk", "stats")]
                for batch in range(3):
                    for a, b in zip(*(seen.rows(batch=batch) for seen in both), strict=True):
                        with self.subTest(name=name, which=a["which"]):
                            self.assertEqual(a.keys(), b.keys())
                            for key, value in a.items():
                                if isinstance(value, float):
                                    self.assertAlmostEqual(b[key], value, delta=1e-6 * max(1, abs(value)), msg=key)
                                else:
                                    self.assertEqual(b[key], value)

    def test_without_what_keys_receive(self):
        seen, _ = watched("BERT", keep="stats", received=False)
        self.assertNotIn("received_largest", seen.rows()[0])
        self.assertIn("entropy", seen.rows()[0])
        self.assertNotIn("received", seen.stats(0))

    def test_tables(self):
        seen, _ = watched("T5", keep="stats")
        table = seen.heads()
        self.assertEqual(len(table), 3 * 2 * 4)
        if importlib.util.find_spec("pandas"):
            self.assertEqual(list(table.columns[:4]), ["which", "layer", "head", "label"])

    def test_statistics_of_rows(self):
        for name in ("Llama", "T5"):
            kept, want = watched(name, "left", keep="stats")
            which = "cross" if name == "T5" else "self"
            found = kept.stats(1, which=which, batch=2)
            rows, keys = real(name, which, "left", 2)
            exact = getattr(want, ATTENTIONS[which])[1][2].numpy()[:, rows][:, :, keys]
            self.assertLessEqual(np.abs(found["largest"] - exact.max(-1)).max(), WITHIN)
            self.assertLessEqual(np.abs(found["received"] - exact.sum(1)).max(), 1e-4)

    def test_memory_grows_with_length(self):
        sizes = []
        for length in (200, 400, 800):
            model = t_llama(length)
            with torch.no_grad(), qkv.inspect(model, keep="stats") as seen:
                model(tiny.ids(1, length))
            sizes.append(seen.bytes)
        self.assertEqual(sizes[1] * 2, sizes[2])
        self.assertEqual(sizes[0] * 4, sizes[2])


def t_llama(length):
    torch.manual_seed(1)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=tiny.N_TOKENS, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=length)).eval()


class Generation(unittest.TestCase):
    def test_calls_of_generate_are_joined(self):
        """The rows of all calls are those of one call on the whole text."""
        for name in [*tiny.DECODERS, *tiny.PAIRS, "Whisper"]:
            if name == "Llama 4":
                continue
            for cache in ("dynamic", "static"):
                for keep in ("qk", "stats"):
                    model, (given, _) = tiny.make(name), tiny.inputs(name, "left")
                    given = {key: value for key, value in given.items() if not key.startswith("decoder")}
                    with contextlib.redirect_stderr(io.StringIO()), torch.no_grad():
                        with qkv.inspect(model, keep=keep, tokenizer=Words()) as seen:
                            made = model.generate(**given, do_sample=False, max_new_tokens=9, min_new_tokens=9,
                                                  cache_implementation=cache)
                        with qkv.inspect(model, keep=keep, tokenizer=Words()) as whole:
                            model(**self.as_one(name, given, made, seen))
                    with self.subTest(name=name, cache=cache, keep=keep):
                        self.assertEqual(len(seen.runs), 1)
                        self.compare(seen, whole, keep, name in tiny.WINDOWS)

    def as_one(self, name, given, made, seen):
        made = made[:, :-1]  # nothing attends from the last token
        if name == "Whisper":  # whose result begins later
            made = torch.from_numpy(np.concatenate(seen._run().names["queries"]._parts, 1))
        if "attention_mask" not in given or name in tiny.PAIRS:
            return {**given, "decoder_input_ids": made, "decoder_attention_mask": torch.ones_like(made)}
        more = made.shape[1] - given["attention_mask"].shape[1]
        mask = torch.nn.functional.pad(given["attention_mask"], (0, more), value=1)
        return {"input_ids": made, "attention_mask": mask, "position_ids": (mask.cumsum(1) - 1).clamp(min=0)}

    def compare(self, seen, whole, keep, windows):
        self.assertEqual(seen.which, whole.which)
        for batch in range(3):
            for a, b in zip(seen.rows(batch=batch), whole.rows(batch=batch), strict=True):
                lost = b.keys() - a.keys()  # where a cache has forgotten tokens
                known = {"mass_same_token", "mass_duplicate", "mass_induction", "n_same_token"}
                self.assertLessEqual(lost, known if keep == "stats" and windows else set())
                self.assertLessEqual(a.keys(), b.keys())
                for key, value in a.items():
                    if isinstance(value, float) and key != "received_key":
                        self.assertAlmostEqual(value, b[key], delta=1e-4 * max(1, abs(value)), msg=key)
            for which in seen.which if keep == "qk" else []:
                p, q = (each.weights(1, 2, which=which, batch=batch) for each in (seen, whole))
                self.assertEqual(p.shape, q.shape)
                self.assertLessEqual(np.abs(p - q).max(), WITHIN)
            self.assertEqual(seen[batch].tokens(which=seen.which[0]), whole[batch].tokens(which=seen.which[0]))

    def test_beams_are_refused(self):
        model, (given, _) = tiny.make("Llama"), tiny.inputs("Llama", "left")
        with self.assertRaisesRegex(qkv.UnsupportedError, "num_beams=1"), qkv.inspect(model, keep="stats"):
            model.generate(**given, num_beams=3, do_sample=False, max_new_tokens=12, min_new_tokens=12)
        self.assertEqual(model.config._attn_implementation, "eager")

    def test_runs(self):
        """Each call that continues no other is a run; a cache of before is continued from where it is."""
        model = tiny.make("Llama")
        with torch.no_grad(), contextlib.redirect_stderr(io.StringIO()):
            cache = getattr(model(tiny.ids(), use_cache=True), tiny.CACHE)
            with qkv.inspect(model, keep="qk") as seen:
                model(tiny.ids(1, 5))
                model(tiny.ids(2, 7))
                model.model(tiny.ids(2, 4))
                model.model(tiny.ids(2, 3))
                more = model(tiny.ids(3, 2, seed=5), **{tiny.CACHE: cache})
                model(tiny.ids(3, 1, seed=6), **{tiny.CACHE: getattr(more, tiny.CACHE)})
            whole = model(torch.cat([tiny.ids(), tiny.ids(3, 2, seed=5), tiny.ids(3, 1, seed=6)], 1),
                          output_attentions=True)
        self.assertEqual([run.weights(0, 0).shape for run in seen.runs],
                         [(5, 5), (7, 7), (4, 4), (3, 3), (3, 15)])
        self.assertEqual([len(run) for run in seen.runs], [1, 2, 2, 2, 3])
        exact = whole.attentions[1][2, 3, 12:].numpy()
        self.assertLessEqual(np.abs(seen[2].weights(1, 3) - exact).max(), WITHIN)


class Frames(html.parser.HTMLParser):
    """The frames of a cell."""

    def __init__(self):
        super().__init__()
        self.sandboxes, self.documents = [], []

    def handle_starttag(self, tag, attrs):
        if tag == "iframe":
            self.sandboxes.append(dict(attrs)["sandbox"])
            self.documents.append(dict(attrs)["srcdoc"])


class Shown(unittest.TestCase):
    def test_names_of_tokens(self):
        given, _ = tiny.inputs("BERT", "left")
        seen, _ = watched("BERT", keep="qk", tokenizer=Words())
        hidden = int((given["attention_mask"][2] == 0).sum())
        words = Words().convert_ids_to_tokens(given["input_ids"][2, hidden:])
        self.assertEqual([name.strip("▁Ġ") for name in words], seen[2].tokens())
        self.assertEqual(seen[0].tokens().__len__(), 12)
        names = Names(Words())
        self.assertEqual(names.of_ids(np.array([6, 7, 1])), ["the", "a", "[CLS]"])

    def test_patches(self):
        seen, _ = watched("ViT", keep="qk")
        names = seen.tokens()
        self.assertEqual(names[:3] + names[-1:], ["[CLS]", "0,0", "0,1", "3,3"])
        self.assertEqual(len(names), 17)

    def test_chosen_layers(self):
        seen, want = watched("BART", keep="qk", layers=[1])
        self.assertEqual({row["layer"] for row in seen.rows()}, {1})
        exact = want.cross_attentions[1][0, 2].numpy()
        self.assertLessEqual(np.abs(seen.weights(1, 2, which="cross") - exact).max(), WITHIN)
        with self.assertRaisesRegex(qkv.ArgumentError, r"no layer 0 of 'cross': seen are \[1\]"):
            seen.weights(0, 0, which="cross")

    def test_it_says_its_bytes_first(self):
        said, model = io.StringIO(), tiny.make("Llama")
        with contextlib.redirect_stderr(said), qkv.inspect(model, keep="qk") as seen, torch.no_grad():
            model(tiny.ids())
        want = 3 * 12 * 8 * (4 + 2) * 4 * 2
        self.assertEqual(said.getvalue(), f'qkv.inspect: keep="qk" stores {want / 1e3:.1f} kB: queries and keys of '
                         "3 x 12 tokens in 2 layers of self attention\n")
        self.assertEqual(seen.bytes, want)

    def test_pages(self):
        for name in SHOWN:
            seen, _ = watched(name, keep="qk", tokenizer=Words())
            for which in seen.which:
                with self.subTest(name=name, which=which):
                    page = seen[2].page(which=which)
                    self.assertEqual((page.n_heads, page.n_left_out), (8, 0))
                    chosen = seen.page(which=which, heads=[(1, 3), (0, 2)])
                    self.assertEqual(chosen.heads, [(1, 3), (0, 2)])
        self.assertEqual(seen._repr_html_().count("<iframe sandbox"), 2)
        biased, _ = watched("T5", keep="qk")
        self.assertIn("<iframe sandbox", biased._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.html")
            seen.save(str(path), which="decoder")
            self.assertGreater(path.stat().st_size, 100_000)

    def test_a_page_has_biases_by_distance(self):
        rng = np.random.default_rng(5)
        q, k = rng.normal(size=(1, 2, 5, 8)).astype(np.float32), rng.normal(size=(1, 2, 7, 8)).astype(np.float32)
        bias = rng.normal(size=(2, 11)).astype(np.float32)
        added = np.stack([[row[4 - i:11 - i] for i in range(5)] for row in bias])
        shown = qkv.heads(q[0], k[0], scale=1, added=added)
        desc = _c.qkv_attention_desc.from_address(shown._view(1).desc)
        row = _c.qkv_page_head()
        made = _set_bias(row, desc)
        np.testing.assert_array_equal(made, bias[1])
        self.assertEqual((row.distance_before, row.distance_after), (4, 6))
        self.assertEqual(shown.page().n_heads, 2)
        added[1, 3, 2] += 1
        with self.assertRaisesRegex(qkv.UnsupportedError, "no position biases but those by distance"):
            qkv.heads(q[0], k[0], scale=1, added=added).page()

    def test_the_overview_of_few_heads(self):
        """Its frame is as high as what it shows, not as that of many heads: no empty band above the page."""
        torch.manual_seed(1)
        model = transformers.BertModel(transformers.BertConfig(
            vocab_size=tiny.N_TOKENS, hidden_size=16, intermediate_size=16, num_hidden_layers=2,
            num_attention_heads=2)).eval()
        with torch.no_grad(), contextlib.redirect_stderr(io.StringIO()), qkv.inspect(model, keep="qk") as seen:
            model(tiny.ids(1, 8))
        above, below = (int(part.split("px", 1)[0]) for part in seen.page()._repr_html_().split("height: ")[1:3])
        self.assertLess(above, 240)
        self.assertGreater(above, 2 * 47 + 64)
        self.assertEqual(below, 720)

    def test_a_page_of_many_heads(self):
        """128 tokens of 144 heads: at most 2 MB by default, all of them by save()."""
        torch.manual_seed(1)
        model = transformers.BertModel(transformers.BertConfig(
            vocab_size=tiny.N_TOKENS, hidden_size=768, intermediate_size=64, num_hidden_layers=12,
            num_attention_heads=12, initializer_range=0.1)).eval()
        with torch.no_grad(), contextlib.redirect_stderr(io.StringIO()), qkv.inspect(model, keep="qk") as seen:
            model(tiny.ids(1, 128))
        page = seen.page()
        cell = page._repr_html_()
        self.assertTrue(r'"made_by":"`page()` of `qkv.inspect(model, keep=\u0022qk\u0022)`"' in page.html)
        self.assertLessEqual(len(cell.encode()), 2_000_000)
        self.assertEqual(page.overview.count("<figure"), 144)
        self.assertEqual(page.overview.count('<figure class="in"'), page.n_heads)
        for layer, head in page.heads:
            self.assertIn(f"{layer}.{head}", page.overview.split("marked here:")[1].split("page(heads")[0])
        frames = Frames()
        frames.feed(cell)
        self.assertEqual(frames.sandboxes, ["", "allow-scripts allow-downloads"])
        self.assertEqual(frames.documents, [page.overview, page.html])
        self.assertNotRegex(page.overview, r"<script|https?://")
        self.assertEqual(page.n_heads + page.n_left_out, 144)
        self.assertGreater(page.n_heads, 15)
        confident = sorted(seen.rows(), key=lambda row: -row["confidence"])[:page.n_heads]
        self.assertEqual([(row["layer"], row["head"]) for row in confident], page.heads)
        self.assertEqual(seen.page(limit_bytes=0).n_heads, 144)
        self.assertEqual(len(seen.rows()), 144)

    def test_pictures(self):
        """By libqkvview, cairo and pango where they are, else an error that names them."""
        seen, _ = watched("Mistral", keep="qk", tokenizer=Words())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "head.svg")
            try:
                seen.picture(str(path), 1, 2, batch=1)
            except qkv.UnsupportedError as error:
                self.assertRegex(str(error), "pictures need (libqkvview|cairo and pango)")
            else:
                self.assertIn("self attention, layer 1, head 2", path.read_text())
                seen.picture(str(path), 1, 2, batch=1, palette="cividis", values=True, size=600, max=0.5, title="Mine")
                self.assertRegex(path.read_text(), "(?s)<title>Mine</title>.*Colours run from 0 to 0.5, and what is")
                with self.assertRaisesRegex(qkv.QkvError, "size = 7: must be 0, or 64 to 8192"):
                    seen.picture(str(path), 1, 2, batch=1, size=7)
            with self.assertRaisesRegex(qkv.QkvError, "palette = 'red': must be one of qkv, viridis"):
                seen.picture(str(path), 1, 2, batch=1, palette="red")
        exact = seen[1].weights(0, 1) > 0
        self.assertTrue(np.array_equal(sees(seen._open("self", 0, 1)), exact))

    def test_map(self):
        seen, _ = watched("Llama", keep="qk")
        made = seen.map(1, 3, batch=1, n_runs=2, seed=3)
        self.assertEqual((made.queries.shape, made.keys.shape), ((10, 2), (10, 2)))
        self.assertTrue(np.isfinite(made.queries).all() and made.report["kl"] >= 0)
        self.assertEqual(made.report["n_runs"], 2)
        again = seen.map(1, 3, batch=1, n_runs=2, seed=3)
        self.assertTrue(np.array_equal(made.keys, again.keys))
        with self.assertRaisesRegex(qkv.ArgumentError, "map has no option 'speed'"):
            seen.map(0, 0, speed=3)


    def test_heads_and_seen_have_the_same_methods(self):
        for name in ("array", "compare", "label", "looks_at", "map", "numbers", "page", "picture", "plot", "rollout",
                     "rows", "save", "sharpest", "table", "weights"):
            ours, theirs = (list(inspect.signature(getattr(kind, name)).parameters) for kind in (qkv.Heads, Seen))
            only = {"which", "batch", "limit_bytes"}  # a run has several attentions and rows
            with self.subTest(name=name):
                self.assertEqual([each for each in ours if each != "effects"],
                                 [each for each in theirs if each not in only])

    def test_questions_of_heads(self):
        seen, _ = watched("BART", keep="qk", tokenizer=Words())
        opened = seen[1]._open("cross", 1, 1)
        self.assertEqual(seen.label(1, 2, which="cross", batch=1), opened.label(0, 2))
        self.assertEqual(seen.looks_at(1, 2, 3, which="cross", batch=1), opened.looks_at(0, 2, 3))
        found = seen.sharpest(which="encoder")
        self.assertEqual(found.weight, seen.weights(found.layer, found.head, which="encoder")[found.query, found.key])
        self.assertEqual(found.weight, max(part.sharpest().weight for part in seen._parts("encoder", 0)))
        numbers = seen.numbers(which="decoder")["entropy"]
        self.assertEqual(numbers.tolist(), [[row["entropy"] for row in seen.rows()
                                             if (row["which"], row["layer"]) == ("decoder", n)] for n in (0, 1)])
        self.assertEqual(len(seen.table(batch=1)), 24)

    def test_a_rollout_equals_that_of_weights_in_double(self):
        for name, which in (("BERT", "self"), ("Llama", "self"), ("BART", "decoder"), ("T5", "encoder")):
            seen, _ = watched(name, keep="qk", tokenizer=Words())
            p = np.asarray(seen[1].array(which=which)).astype(np.float64)
            eye = np.eye(p.shape[-1])
            for heads, fused in (("mean", p.mean(1)), ("max", p.max(1)), ("min", p.min(1))):
                want = np.zeros(len(eye))
                want[1:3] = 0.5
                for layer in fused[::-1]:
                    want = want @ ((layer + eye) / (layer + eye).sum(1, keepdims=True))
                with self.subTest(name=name, heads=heads):
                    np.testing.assert_allclose(seen[1].rollout(1, 3, heads=heads, which=which), want, atol=WITHIN)
        with self.assertRaisesRegex(qkv.UnsupportedError, "queries and keys are not the same tokens"):
            watched("BART", keep="qk")[0].rollout(which="cross")
        with self.assertRaisesRegex(qkv.ArgumentError, "heads is 'sum', and must be one of 'mean', 'max', 'min'"):
            seen.rollout(heads="sum", which="encoder")
        with self.assertRaisesRegex(qkv.ArgumentError, "first = 1000 is not in"):
            seen.rollout(1000, which="encoder")

    def test_an_array_of_all_weights(self):
        seen, _ = watched("BART", keep="qk", tokenizer=Words())
        whole = np.asarray(seen[1].array(which="cross"))
        for layer, head in np.ndindex(2, 4):
            np.testing.assert_array_equal(whole[layer, head], seen[1].weights(layer, head, which="cross"))
        chosen, _ = watched("Llama", keep="qk", layers=[1])
        np.testing.assert_array_equal(chosen.array()[1, -1], chosen.weights(1, 3))
        with self.assertRaisesRegex(qkv.ArgumentError, r"no layer 0: there are \[1\]"):
            chosen.array()[0]
        last = seen[-1].array(which="encoder")
        np.testing.assert_array_equal(last[0, 0], seen.weights(0, 0, which="encoder", batch=2))

    def test_rows_of_a_batch_beside_each_other(self):
        model = tiny.make("BERT")
        ids = tiny.ids(2, 8)
        ids[1] = ids[0]
        ids[1, 3] = (ids[0, 3] - 3 + 5) % 90 + 3
        with torch.no_grad(), contextlib.redirect_stderr(io.StringIO()), qkv.inspect(model, keep="qk") as seen:
            model(ids)
        made = seen[0].compare(seen[1])
        self.assertEqual(made.pairs, [(n, n) for n in range(8)])
        np.testing.assert_array_equal(made.difference(1, 2), seen[1].weights(1, 2) - seen[0].weights(1, 2))
        self.assertEqual([(row["layer"], row["head"]) for row in made.rows()].__len__(), 8)
        with self.assertRaisesRegex(qkv.ArgumentError, "other is a str, and must be a Seen"):
            seen.compare("a")

    def test_an_empty_cell(self):
        for keep in ("stats", "qk"):
            with qkv.inspect(tiny.make("Llama"), keep=keep) as seen:
                said = seen._repr_html_()
            self.assertEqual(said, f"<pre>{html.escape(repr(seen))}</pre>")
            self.assertIn("nothing yet", said)

    def test_endings_of_files(self):
        seen, _ = watched("Llama", keep="qk", tokenizer=Words())
        one, _ = watched("Llama", keep="qk", layers=[1])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "two.html")
            seen.save(path, heads=[(1, 3), (0, 2)])
            self.assertEqual(path.read_text(), seen.page(heads=[(1, 3), (0, 2)], limit_bytes=0).html)
            for chosen in (None, [(1, 2)]):
                path = pathlib.Path(folder, "head.png")
                try:
                    seen.save(path, heads=chosen)
                except qkv.UnsupportedError as error:
                    self.assertRegex(str(error), "pictures need (libqkvview|cairo and pango)")
                else:
                    self.assertTrue(path.read_bytes().startswith(b"\x89PNG"))
            with self.assertRaisesRegex(qkv.ArgumentError, "ends with '.gif': it must be .html"):
                seen.save(f"{folder}/a.gif")
            with self.assertRaisesRegex(qkv.ArgumentError, r"layers \[1\] were seen, and a picture of all heads"):
                one.save(f"{folder}/a.png")


class Pipelines(unittest.TestCase):
    def test_the_model_and_the_tokenizer_of_a_pipeline(self):
        model = tiny.make("BERT")
        pipeline = object.__new__(transformers.FillMaskPipeline)  # whose tokenizer would need files
        pipeline.model, pipeline.tokenizer = model, Words()
        with torch.no_grad(), qkv.inspect(pipeline) as seen:
            model(tiny.ids(1, 4))
        self.assertEqual((len(seen.rows()), len(seen.tokens())), (8, 4))
        self.assertTrue(all(name.startswith("w") or name in ("the", "a", ".") for name in seen.tokens()))

        class Others(Words):
            def convert_ids_to_tokens(self, ids):
                return ["other" for _ in ids]

        with torch.no_grad(), qkv.inspect(pipeline, tokenizer=Others()) as seen:
            model(tiny.ids(1, 4))
        self.assertEqual(seen.tokens(), ["other"] * 4)


class Contexts(unittest.TestCase):
    def state(self, model):
        return ([config._attn_implementation for config in (model.config, model.get_encoder().config)],
                sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()),
                qkv.transformers.watched.recorder)

    def test_everything_is_as_before(self):
        for implementation in ("eager", "sdpa", "qkv"):
            model = tiny.make("T5", implementation)
            before = self.state(model)
            with qkv.inspect(model):
                self.assertNotEqual(self.state(model), before)
            self.assertEqual(self.state(model), before)
            with self.assertRaises(ZeroDivisionError), qkv.inspect(model):
                raise ZeroDivisionError
            self.assertEqual(self.state(model), before)
            given, _ = tiny.inputs("T5")
            with self.assertRaises(RuntimeError), qkv.inspect(model):
                model(**{**given, "input_ids": given["input_ids"].float()})
            self.assertEqual(self.state(model), before)

    def test_no_warning_that_callers_did_not_cause(self):
        said = []
        for name in ("BERT", "GPT-2", "BART"):
            model, (given, _) = tiny.make(name), tiny.inputs(name)
            with mock.patch.object(logging.Logger, "warning_once", lambda _, text, *more: said.append(text)):
                with torch.no_grad():
                    model(**given)
                    without = list(said)
                    with qkv.inspect(model):
                        model(**given)
            self.assertEqual(said, without, name)

    def test_one_inside_another(self):
        first, second = tiny.make("Llama"), tiny.make("BERT")
        with torch.no_grad(), qkv.inspect(first) as outer:
            with qkv.inspect(second) as inner:
                second(tiny.ids(1, 4))
            first(tiny.ids(1, 6))
        self.assertEqual([each.stats(0)["largest"].shape for each in (outer, inner)], [(4, 6), (4, 4)])

    def test_layers_that_share_a_module(self):
        """ALBERT has one module for all layers; each call of it is a layer of its own."""
        torch.manual_seed(2)
        model = transformers.AlbertModel(transformers.AlbertConfig(
            vocab_size=tiny.N_TOKENS, embedding_size=32, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
            num_attention_heads=4, initializer_range=0.3), add_pooling_layer=False).eval()
        model.set_attn_implementation("eager")
        given, counts = tiny.inputs("BERT", "left")
        with torch.no_grad(), contextlib.redirect_stderr(io.StringIO()), qkv.inspect(model, keep="qk") as seen:
            model(**given)
            model(**given)
        want = model(**given, output_attentions=True).attentions
        self.assertEqual([len(seen.runs), len(seen.rows())], [2, 12])
        rows = counts[2].bool().numpy()
        for layer in range(3):
            exact = want[layer][2, 3].detach().numpy()[rows][:, rows]
            self.assertLessEqual(np.abs(seen[2].weights(layer, 3) - exact).max(), WITHIN)

    def test_a_model_inside_a_module(self):
        module = torch.nn.Sequential(tiny.make("BERT"))
        with torch.no_grad(), qkv.inspect(module) as seen:
            module[0](tiny.ids(1, 4))
        self.assertEqual(len(seen.rows()), 8)


class Errors(unittest.TestCase):
    def test_each_names_what_is_wrong(self):
        kept, _ = watched("BART", keep="stats")
        arrays, _ = watched("Llama", keep="qk")

        def see(model, call=None, **options):
            with contextlib.redirect_stderr(io.StringIO()), torch.no_grad(), qkv.inspect(model, **options) as seen:
                if call:
                    call(model)
            return seen

        meta = transformers.LlamaForCausalLM._from_config(tiny.make("Llama").config).to("meta")
        cells = torch.ones(3, 1, 12, 12, dtype=torch.bool).tril()
        holes = torch.ones(3, 12, dtype=torch.long)
        holes[1, 4] = 0
        cases = [
            (qkv.UnsupportedError, r'is on meta, .* call model.to\("cpu"\)', lambda: see(meta)),
            (qkv.UnsupportedError, "BloomModel has attention of its own", lambda: see(transformers.BloomModel(
                transformers.BloomConfig(vocab_size=9, hidden_size=8, n_layer=1, n_head=2)))),
            (qkv.UnsupportedError, "Linear holds no model of transformers", lambda: see(torch.nn.Linear(2, 2))),
            (qkv.DTypeError, r"float64, .* call model.float\(\)", lambda: see(tiny.make("Llama").double())),
            (qkv.ArgumentError, 'must be "stats" or "qk"', lambda: see(tiny.make("Llama"), keep="all")),
            (qkv.ArgumentError, "no attention was seen", lambda: see(tiny.make("Llama")).rows()),
            (qkv.UnsupportedError, "packed sequences or chunks",
             lambda: see(tiny.make("Llama 4"), lambda model: model(tiny.ids()))),
            (qkv.UnsupportedError, "a mask of cells",
             lambda: see(tiny.make("Llama"), lambda model: model(tiny.ids(), attention_mask=cells))),
            (qkv.UnsupportedError, "row 1 of the batch has padding between its keys",
             lambda: see(tiny.make("Llama"), lambda model: model(tiny.ids(), attention_mask=holes)).rows(batch=1)),
            (qkv.ArgumentError, "which is None, and must be one of 'encoder', 'decoder', 'cross'",
             lambda: kept.stats(0)),
            (qkv.UnsupportedError, r'weights\(\) needs queries and keys, .* keep="qk"', lambda: kept.weights(0, 0)),
            (qkv.UnsupportedError, r"page\(\) needs", lambda: kept.page()),
            (qkv.UnsupportedError, r"stats\(\) reads", lambda: arrays.stats(0)),
            (qkv.ArgumentError, "batch is 7, and there are 3 rows", lambda: arrays.weights(0, 0, batch=7)),
            (IndexError, "no row 3", lambda: arrays[3]),
            (qkv.ArgumentError, "there is no head 0.4", lambda: arrays.weights(0, 4)),
            (qkv.ArgumentError, "^there is no head 1.4: its layer has heads 0 to 3$", lambda: arrays.weights(1, 4)),
            (qkv.ArgumentError, "^there is no head 1.4: its", lambda: arrays.label(1, 4)),
            (qkv.ArgumentError, "^there is no head 1.4: its", lambda: arrays.page(heads=["1.4"])),
            (qkv.ArgumentError, "^head = '0' is not a whole number", lambda: arrays.weights(1, "0")),
            (qkv.ArgumentError, "^layer = '0' is not a whole number", lambda: arrays.weights("0", 0)),
            (qkv.ArgumentError, "^batch = '0' is not a whole number", lambda: arrays.weights(0, 0, batch="0")),
            (qkv.ArgumentError, "^batch = 0.0 is not a whole number", lambda: arrays.table(batch=0.0)),
            (qkv.ArgumentError, "no layer 2 of 'self'", lambda: arrays.weights(2, 0)),
            (qkv.ArgumentError, "layers is empty", lambda: see(tiny.make("Llama"), layers=[])),
            (qkv.ArgumentError, "layers = 1.5 is not a whole number", lambda: see(tiny.make("Llama"), layers=[1.5])),
            (qkv.ArgumentError, "layers has 7, and the model has layers 0 to 1$",
             lambda: see(tiny.make("Llama"), lambda model: model(tiny.ids()), layers=[7])),
            (qkv.ArgumentError, "layers has 2, and the model has layers 0 to 1 of encoder, 0 to 1 of decoder",
             lambda: see(tiny.make("BART"), lambda model: model(**tiny.inputs("BART")[0]), layers=[0, 2])),
            (qkv.ArgumentError, r"layers is 3, and must be a list, such as \[0\]",
             lambda: see(tiny.make("Llama"), layers=3)),
            (qkv.KeywordError, r"layer: use layers=\[3\]", lambda: see(tiny.make("Llama"), layer=3)),
            (qkv.ArgumentError, "tokenizer is a str, and must be one of transformers",
             lambda: see(tiny.make("Llama"), tokenizer="bert-base-uncased")),
            (qkv.ArgumentError, "heads is empty", lambda: arrays.page(heads=[])),
            (qkv.ArgumentError, r"limit_bytes = -1 is not in \[0,", lambda: arrays.page(limit_bytes=-1)),
            (qkv.ArgumentError, "seed = 18446744073709551617 is not in", lambda: arrays.map(0, 0, seed=2**64 + 1)),
            (qkv.ArgumentError, "n_runs = 1.5 is not a whole number", lambda: arrays.map(0, 0, n_runs=1.5)),
        ]
        for kind, words, refused in cases:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                refused()


if __name__ == "__main__":
    unittest.main()

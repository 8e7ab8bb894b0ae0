"""qkv.transformers.ablated beside models whose output projections lack the columns of a head."""
import contextlib
import importlib.util
import io
import threading
import unittest

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
    raise unittest.SkipTest("torch or transformers is not installed")

import tiny_models as tiny
import torch
import transformers

import qkv
from qkv.transformers import ablated

transformers.logging.set_verbosity_error()
WITHIN = 1e-5
# What reads the output of the attention of a layer, by which attention it is.
PROJECTIONS = {
    "BERT": {None: "bert.encoder.layer.{}.attention.output.dense"},
    "ModernBERT": {None: "model.layers.{}.attn.Wo"},
    "GPT-2": {None: "transformer.h.{}.attn.c_proj"},
    "T5": {"encoder": "encoder.block.{}.layer.0.SelfAttention.o", "decoder": "decoder.block.{}.layer.0.SelfAttention.o",
           "cross": "decoder.block.{}.layer.1.EncDecAttention.o"},
    **dict.fromkeys(("BART", "Whisper"), {
        "encoder": "model.encoder.layers.{}.self_attn.out_proj",
        "decoder": "model.decoder.layers.{}.self_attn.out_proj",
        "cross": "model.decoder.layers.{}.encoder_attn.out_proj"}),
    **dict.fromkeys(("Llama", "Qwen3", "Gemma 3", "Gemma 2", "Mistral", "gpt-oss", "Llama 4"),
                    {None: "model.layers.{}.self_attn.o_proj"}),
}
N_HEADS = 4


def projection(model, name, which, layer):
    if name == "ViT":  # its parts have other names in other releases
        return [part for path, part in model.named_modules()
                if path.endswith(("attention.o_proj", "attention.output.dense"))][layer]
    return model.get_submodule(PROJECTIONS[name][which].format(layer))


def without(name, which, heads, implementation):
    """A model whose projections do not read some heads."""
    made = tiny.make(name, implementation)
    with torch.no_grad():
        for layer, head in heads:
            of = projection(made, name, which, layer)
            # Conv1D has the weights of a Linear the other way round.
            columns = of.weight if isinstance(of, transformers.pytorch_utils.Conv1D) else of.weight.T
            dim = columns.shape[0] // N_HEADS
            columns[head * dim:(head + 1) * dim] = 0
    return made


def logits(model, given):
    with torch.no_grad():
        return model(**given).logits


class Zero(unittest.TestCase):
    def test_equal_a_projection_without_the_head(self):
        """With the same bits: a sum has 0 in the place of the head either way."""
        heads = [(0, 1), (1, 2), (1, 3)]
        for name in tiny.ALL:
            (given, counts), plain = tiny.inputs(name, "left"), tiny.make(name)
            real = ... if counts is None else counts.bool()
            before = logits(plain, given)
            for which in PROJECTIONS.get(name, {None: ""}):
                with self.subTest(name=name, which=which):
                    with ablated(plain, ["0.1", (1, 2), "1.3"], which=which):
                        got = logits(plain, given)
                    self.assertTrue(torch.equal(got, logits(without(name, which, heads, "qkv"), given)))
                    want = logits(without(name, which, heads, "eager"), given)
                    self.assertLessEqual((got - want)[real].abs().max(), WITHIN * want.abs().max())
                    self.assertGreater((got - before).abs().max(), 1e-3 * before.abs().max())
            self.assertEqual(plain.config._attn_implementation, "eager")
            self.assertTrue(torch.equal(logits(plain, given), before))

    def test_all_heads_of_a_layer(self):
        model, (given, _) = tiny.make("Llama"), tiny.inputs("Llama")
        with ablated(model, ["1.*", "1.2"]):
            got = logits(model, given)
        self.assertTrue(torch.equal(got, logits(without("Llama", None, [(1, n) for n in range(4)], "qkv"), given)))

    def test_blocks_add_up_and_end(self):
        model, (given, _) = tiny.make("BERT", "qkv"), tiny.inputs("BERT", "right")
        plain, one, both = (logits(without("BERT", None, heads, "qkv"), given)
                            for heads in ([], [(0, 1)], [(0, 1), (1, 0)]))
        with ablated(model, ["0.1"]):
            self.assertTrue(torch.equal(logits(model, given), one))
            with ablated(model, ["1.0"]):
                self.assertTrue(torch.equal(logits(model, given), both))
            self.assertTrue(torch.equal(logits(model, given), one))
            with self.assertRaises(ZeroDivisionError), ablated(model, ["1.0"]):
                raise ZeroDivisionError
            self.assertTrue(torch.equal(logits(model, given), one))
        self.assertTrue(torch.equal(logits(model, given), plain))
        self.assertEqual(model.config._attn_implementation, "qkv")

    def test_generate_by_a_cache(self):
        for name, which in (("Llama", None), ("BART", "encoder"), ("BART", "cross")):
            given, _ = tiny.inputs(name)
            given = {key: given[key] for key in ("input_ids", "attention_mask")}
            options = dict(max_new_tokens=6, do_sample=False)
            model = tiny.make(name)
            with ablated(model, ["0.1", "1.*"], which=which):
                got = model.generate(**given, **options)
            want = without(name, which, [(0, 1), *((1, n) for n in range(4))], "qkv").generate(**given, **options)
            self.assertEqual(got.tolist(), want.tolist(), name)

    def test_a_layer_that_is_called_several_times(self):
        torch.manual_seed(3)
        config = transformers.AlbertConfig(vocab_size=99, embedding_size=16, hidden_size=32, num_hidden_layers=3,
                                           num_attention_heads=4, intermediate_size=48, initializer_range=0.3)
        model, ids = transformers.AlbertModel(config).eval(), tiny.ids()
        with torch.no_grad():
            plain = model(ids, output_hidden_states=True).hidden_states
            with ablated(model, ["1.0"]):
                got = model(ids, output_hidden_states=True).hidden_states
        self.assertLess((got[1] - plain[1]).abs().max(), 1e-5)
        self.assertGreater((got[2] - plain[2]).abs().max(), 1e-3)

    def test_gradients(self):
        """Those of the model without the head; of the head itself they are 0."""
        given, _ = tiny.inputs("Llama", "left")
        model, other = tiny.make("Llama"), without("Llama", None, [(0, 1)], "qkv")
        with ablated(model, ["0.1"]):
            model(**given).logits.square().mean().backward()
        other(**given).logits.square().mean().backward()
        for (name, mine), theirs in zip(model.named_parameters(), other.parameters()):
            if name == "model.layers.0.self_attn.o_proj.weight":
                self.assertEqual(mine.grad[:, 8:16].abs().max(), 0)
                theirs.grad[:, 8:16] = 0
            self.assertTrue(torch.equal(mine.grad, theirs.grad), name)
        rows = model.model.layers[0].self_attn.q_proj.weight.grad
        self.assertEqual(rows[8:16].abs().max(), 0)
        self.assertGreater(rows[:8].abs().max(), 0)

    def test_beside_inspect(self):
        model, (given, _) = tiny.make("BERT"), tiny.inputs("BERT")
        with contextlib.redirect_stderr(io.StringIO()), qkv.inspect(model, keep="qk") as seen:
            logits(model, given)
            with ablated(model, ["0.1"]):
                logits(model, given)
        first, second = seen.runs
        self.assertEqual(abs(first.weights(0, 1) - second.weights(0, 1)).max(), 0)
        self.assertGreater(abs(first.weights(1, 1) - second.weights(1, 1)).max(), 1e-3)

    def test_a_block_is_of_its_thread(self):
        model, (given, _) = tiny.make("BERT", "qkv"), tiny.inputs("BERT")
        want, got = logits(model, given), []
        with ablated(model, ["0.1"]):
            other = threading.Thread(target=lambda: got.append(logits(model, given)))
            other.start()
            other.join()
            self.assertFalse(torch.equal(logits(model, given), want))
        self.assertTrue(torch.equal(got[0], want))


class Mean(unittest.TestCase):
    def test_equals_hooks(self):
        """What the projection reads, with the mean over the tokens that are no padding."""
        for side in "none", "left", "right":
            given, mask = tiny.inputs("BERT", side)
            model, other = tiny.make("BERT"), tiny.make("BERT", "qkv")

            def averaged(module, arguments, mask=mask):
                o, heads = arguments[0], slice(8, 24)
                real = mask[:, :, None]
                o = o.clone()
                o[:, :, heads] = (o[:, :, heads] * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
                return (o,)

            projection(other, "BERT", None, 0).register_forward_pre_hook(averaged)
            with ablated(model, ["0.1", "0.2"], by="mean"):
                got = logits(model, given)
            want = logits(other, given)
            self.assertLessEqual((got - want)[mask.bool()].abs().max(), WITHIN * want.abs().max(), side)

    def test_refusals(self):
        model = tiny.make("Llama")
        with self.assertRaisesRegex(qkv.UnsupportedError, "this call has 1 queries and 13 keys"):
            with ablated(model, ["0.1"], by="mean"):
                model.generate(tiny.ids(), max_new_tokens=3, do_sample=False)
        model, given = tiny.make("BERT"), {"input_ids": tiny.ids(), "attention_mask": torch.ones(3, 1, 12, 12)}
        with self.assertRaisesRegex(qkv.UnsupportedError, "mask of cells"), ablated(model, ["0.1"], by="mean"):
            logits(model, given)


class Errors(unittest.TestCase):
    def test_what_is_not_there(self):
        for name, heads, options, said in (
            ("BERT", ["0.9"], {}, r"there is no head 0\.9: its layer has heads 0 to 3"),
            ("BERT", ["0.1", "7.1"], {}, r"there is no head 7\.1: layers are 0 to 1, heads 0 to 3"),
            ("BERT", ["2.*"], {}, r"there is no head 2\.\*: layers are 0 to 1"),
            ("BERT", ["0.1"], {"which": "cross"}, "layer 0 was not ablated"),
            ("BERT", ["0.1"], {"which": "other"}, "which is 'other', and must be one of 'self'"),
            ("BART", ["0.1"], {}, "which is None, and must be one of 'encoder', 'decoder', 'cross'"),
            ("BART", ["0.1"], {"which": "self"}, "which is 'self', and must be one of 'encoder'"),
            ("BERT", "0.1", {}, r"heads is '0\.1', and must be a list"),
            ("BERT", [], {}, "heads is empty"),
            ("BERT", ["0.x"], {}, r"heads\[0\] is '0\.x', and must be a head L\.H"),
            ("BERT", ["0.1", "*.1"], {}, r"heads\[1\] is '\*\.1'"),
            ("BERT", ["٣.1"], {}, r"heads\[0\] is"),
            ("BERT", [(0, 1, 2)], {}, r"heads\[0\] is \(0, 1, 2\), and must be a pair"),
            ("BERT", [(0, -1)], {}, r"heads\[0\]\[1\] = -1 is not in"),
            ("BERT", [(0, 1.5)], {}, r"heads\[0\]\[1\] = 1\.5 is not a whole number"),
            ("BERT", ["0.1"], {"by": "patch"}, 'by is \'patch\', and must be "zero" or "mean"'),
            ("BERT", ["0.1"], {"layers": [1]}, "use heads="),
        ):
            with self.subTest(heads=heads, options=options):
                model, (given, _) = tiny.make(name), tiny.inputs(name)
                with self.assertRaisesRegex((qkv.ArgumentError, qkv.UnsupportedError, qkv.KeywordError), said):
                    with ablated(model, heads, **options):
                        logits(model, given)
                self.assertEqual(model.config._attn_implementation, "eager")
                logits(model, given)

    def test_what_qkv_did_not_compute(self):
        model, (given, _) = tiny.make("BERT"), tiny.inputs("BERT")
        with self.assertRaisesRegex(qkv.UnsupportedError, "layer 0 was not ablated"), ablated(model, ["0.1"]):
            pass
        with self.assertRaisesRegex(qkv.UnsupportedError, "holds no model"), ablated(torch.nn.Linear(2, 2), ["0.1"]):
            pass
        pair, (given, _) = tiny.make("BART"), tiny.inputs("BART")
        with torch.no_grad():
            encoded = pair.get_encoder()(given["input_ids"])
            with self.assertRaisesRegex(qkv.UnsupportedError, "layer 1 was not ablated"):
                with ablated(pair, ["1.1"], which="encoder"):
                    pair(encoder_outputs=encoded, decoder_input_ids=given["decoder_input_ids"])

    def test_compiled(self):
        """A graph that was compiled before knows nothing of the block, and one that is compiled inside has no heads."""
        for before in False, True:
            model, (given, _) = tiny.make("Llama", "qkv"), tiny.inputs("Llama")
            compiled = torch.compile(model, backend="eager")
            if before:
                logits(compiled, given)
            with self.assertRaisesRegex(qkv.UnsupportedError, "without torch.compile"), ablated(model, ["0.1"]):
                logits(compiled, given)


if __name__ == "__main__":
    unittest.main()

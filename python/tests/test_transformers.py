"""qkv.transformers beside transformers' own eager attention: tiny random models of fourteen architectures."""
import dataclasses
import importlib.util
import unittest
from unittest import mock

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
    raise unittest.SkipTest("torch or transformers is not installed")

import tiny_models as tiny
import torch
import transformers
from transformers import masking_utils as theirs

import qkv
import qkv.transformers
from qkv import rules as rules_module
from qkv import transformers as ours

transformers.logging.set_verbosity_error()
WITHIN = 1e-5
LOST = 1e-3
GRADIENT = 5e-5  # two layers forward and back in float32


def logits(model, given):
    with torch.no_grad():
        return model(**given).logits


def apart(got, want, counts=None):
    """The largest difference, over the largest logit; of places that count."""
    if counts is not None:
        got, want = got[counts.bool()], want[counts.bool()]
    assert got.shape == want.shape and want.numel() and torch.isfinite(want).all()
    return ((got - want).abs().max() / want.abs().max()).item()


class Replaced:
    """The mask function replaced by another one."""

    def __init__(self, function):
        self.function = function

    def __enter__(self):
        transformers.AttentionMaskInterface.register("qkv", self.function)

    def __exit__(self, *raised):
        transformers.AttentionMaskInterface.register("qkv", ours.mask)


class Registered(unittest.TestCase):
    def test_the_import_does_it(self):
        for interface in (transformers.AttentionInterface, transformers.AttentionMaskInterface):
            self.assertIn("qkv", interface().valid_keys())
        ours.register()  # once more changes nothing


class Logits(unittest.TestCase):
    def test_equal_eager(self):
        for name in tiny.ALL:
            for side in ("none", "left", "right"):
                with self.subTest(name=name, side=side):
                    given, counts = tiny.inputs(name, side)
                    difference = apart(logits(tiny.make(name, "qkv"), given), logits(tiny.make(name), given), counts)
                    self.assertLessEqual(difference, WITHIN)
                    if side == "left":
                        print(f"{name:10} {difference:.1e}")

    def test_masks_stay_rules(self):
        """No model of these makes a mask of cells."""
        made = []

        def watch(*arguments, **options):
            made.append(ours.mask(*arguments, **options))
            return made[-1]

        for name in tiny.ALL:
            with self.subTest(name=name), Replaced(watch):
                made.clear()
                logits(tiny.make(name, "qkv"), tiny.inputs(name, "left")[0])
                self.assertTrue(made or name == "ViT")
                self.assertEqual([type(mask) for mask in made], [rules_module.RuleMask] * len(made))


class NoMaskIsLost(unittest.TestCase):
    def compare(self, name, side="left"):
        given, counts = tiny.inputs(name, side)
        return apart(logits(tiny.make(name, "qkv"), given), logits(tiny.make(name), given), counts)

    def test_each_rule_counts(self):
        """Without any one of its rules a model's logits differ: the comparison above sees a mask that is dropped."""
        nothing = {"padding": {"kv_len": None, "seg_q": None, "seg_k": None}, "causal": {"causal": False},
                   "window": {"window": (-1, -1)}}
        for name in tiny.ALL:
            rules = ["padding"] if name != "ViT" else []
            rules += ["causal"] if name in {**tiny.DECODERS, **tiny.PAIRS, "Whisper": 0} else []
            rules += ["window"] if name in tiny.WINDOWS else []
            for rule in rules:
                def without(*arguments, rule=rule, **options):
                    found = ours.mask(*arguments, **options).rules
                    return rules_module.RuleMask(dataclasses.replace(found, **nothing[rule]))

                with self.subTest(name=name, rule=rule), Replaced(without):
                    self.assertGreater(self.compare(name), LOST)

    def test_a_mask_that_is_none(self):
        for name in tiny.ALL:
            if name == "ViT":
                continue
            with self.subTest(name=name), Replaced(lambda *arguments, **options: None):
                if name == "ModernBERT":  # where its windows lie is not known without a mask
                    with self.assertRaisesRegex(qkv.UnsupportedError, "sliding_window = 4 and no mask"):
                        self.compare(name)
                else:
                    self.assertGreater(self.compare(name), LOST)

    def test_padding_does_not_matter(self):
        for name in [*tiny.ENCODERS, *tiny.DECODERS, *tiny.PAIRS]:
            for side in ("left", "right"):
                with self.subTest(name=name, side=side):
                    given, counts = tiny.inputs(name, side)
                    model = tiny.make(name, "qkv")
                    first = logits(model, given)
                    hidden = given["attention_mask"] == 0
                    given["input_ids"] = given["input_ids"].masked_fill(hidden, 50)
                    # Since transformers 5.24 the experts of gpt-oss multiply tokens in groups, padding among them.
                    bound = 1e-6 if name == "gpt-oss" else 0
                    self.assertLessEqual(apart(logits(model, given), first, counts), bound)
                    # a causal query before the padding does not see it in any case
                    if side == "left" or name not in tiny.DECODERS:
                        unmasked = logits(model, {**given, "attention_mask": None})
                        self.assertGreater(apart(unmasked, first, counts), LOST)

    def test_later_tokens_do_not_matter(self):
        for name in tiny.DECODERS:
            given, _ = tiny.inputs(name)
            model = tiny.make(name, "qkv")
            first = logits(model, given)
            given["input_ids"][:, 8] = 50
            other = logits(model, given)
            with self.subTest(name=name):
                # experts work on batches of tokens, whose bits depend on the other tokens
                self.assertLessEqual(apart(other[:, :8], first[:, :8]), WITHIN if name == "gpt-oss" else 0)
                self.assertGreater((first[:, 8:] - other[:, 8:]).abs().max().item(), LOST)


class Generation(unittest.TestCase):
    def written(self, name, implementation, side, **options):
        model = tiny.make(name, implementation)
        given, _ = tiny.inputs(name, side)
        given = {key: value for key, value in given.items() if not key.startswith("decoder")}
        return model.generate(**given, do_sample=False, max_new_tokens=10, min_new_tokens=10, **options)

    def test_ids_equal_eager(self):
        for name in [*tiny.DECODERS, *tiny.PAIRS, "Whisper"]:
            for side in ("none", "left", "right"):
                if (name, side) == ("Llama 4", "right"):
                    continue  # the last query's chunk is all padding: eager then looks at every key alike, qkv at none
                for cache in ("dynamic", "static"):
                    with self.subTest(name=name, side=side, cache=cache):
                        want = self.written(name, "eager", side, cache_implementation=cache)
                        got = self.written(name, "qkv", side, cache_implementation=cache)
                        self.assertEqual(got.tolist(), want.tolist())

    def test_beams_and_sampling(self):
        for options in ({"num_beams": 3}, {"do_sample": True, "top_k": 20}):
            for name in ("Llama", "T5"):
                with self.subTest(name=name, options=options):
                    made = []
                    for implementation in ("eager", "qkv"):
                        torch.manual_seed(3)
                        given, _ = tiny.inputs(name, "left")
                        given.pop("decoder_input_ids", None)
                        model = tiny.make(name, implementation)
                        made.append(model.generate(**given, max_new_tokens=8, **{"do_sample": False, **options}))
                    self.assertEqual(made[0].tolist(), made[1].tolist())

    def test_one_token_after_another_equals_all_at_once(self):
        for name in tiny.DECODERS:
            model = tiny.make(name, "qkv")
            given = tiny.ids()
            whole = logits(model, {"input_ids": given})
            cache, parts = None, []
            for first, end in ((0, 5), (5, 6), (6, 9), (9, 12)):
                with torch.no_grad():
                    made = model(given[:, first:end], **{tiny.CACHE: cache}, use_cache=True)
                cache = getattr(made, tiny.CACHE)
                parts.append(made.logits)
            with self.subTest(name=name):
                self.assertLessEqual(apart(torch.cat(parts, 1), whole), WITHIN)


class Training(unittest.TestCase):
    def gradients(self, name, implementation, dtype, **options):
        model = tiny.make(name, implementation).to(dtype).train()
        # In float64 transformers' eager masks make rows without keys NaN.
        given, counts = tiny.inputs(name, "none" if name in ("ModernBERT", "Llama 4") else "right")
        given = {key: value.to(dtype) if value.is_floating_point() else value for key, value in given.items()}
        torch.manual_seed(5)
        out = model(**given).logits
        weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(4)).to(dtype)
        if counts is not None:
            weights = weights * counts[:, :, None]
        (out * weights).sum().backward()
        return {key: value.grad.double() for key, value in model.named_parameters() if value.grad is not None}

    def test_gradients_near_those_of_double(self):
        """As near as float32 eager is, within a factor of 3, or GRADIENT of the largest."""
        for name in tiny.ALL:
            with self.subTest(name=name), NoDropout():
                exact = self.gradients(name, "eager", torch.float64)
                eager = self.gradients(name, "eager", torch.float32)
                got = self.gradients(name, "qkv", torch.float32)
                self.assertEqual(got.keys(), exact.keys())
                largest = max(want.abs().max() for want in exact.values())
                for key, want in exact.items():
                    self.assertTrue(torch.isfinite(want).all(), key)
                    scale = want.abs().max().clamp(min=1e-2 * largest)  # that of a bias of keys is rounding
                    bound = max(3 * ((eager[key] - want).abs().max() / scale).item(), GRADIENT)
                    self.assertLessEqual(((got[key] - want).abs().max() / scale).item(), bound, key)

    def test_biases_and_sinks_learn(self):
        with NoDropout():
            for name, part in (("T5", "relative_attention_bias"), ("gpt-oss", "sinks")):
                found = {k: g for k, g in self.gradients(name, "qkv", torch.float32).items() if part in k}
                self.assertEqual(len(found), 2)
                for gradient in found.values():
                    self.assertGreater(gradient.abs().max().item(), 0)

    def test_t5_has_its_bias_by_distance(self):
        """No call gets a mask of all pairs, and all get the numbers, but cross-attention, which has none."""
        asked = []

        class Watched(ours.Problem):
            def __init__(self, q, k, v, **more):
                asked.append((more["mask"], more["distance_bias"], q.shape[2], k.shape[2]))
                super().__init__(q, k, v, **more)

        model, (given, _) = tiny.make("T5", "qkv"), tiny.inputs("T5")
        with mock.patch.object(ours, "Problem", Watched):
            model(**given).logits.sum().backward()
        self.assertTrue(all(mask is None for mask, *_ in asked))
        of_self = [(bias, len_q, len_k) for _, bias, len_q, len_k in asked if bias is not None]
        self.assertEqual(len(of_self), 2 * len(asked) // 3)
        for (numbers, before), len_q, len_k in of_self:
            self.assertEqual((numbers.shape[1], before), (len_q + len_k - 1, len_q - 1))
        for implementation in ("eager", "sdpa"):  # which have the tensors that they had
            other = tiny.make("T5", implementation)
            with torch.no_grad():
                made = other.encoder.block[0].layer[0].SelfAttention.compute_bias(3, 5)
            self.assertEqual(made.shape, (1, other.config.num_heads, 3, 5))

    def test_dropout(self):
        """A share of the weights is 0, others grow, the seed is torch's, and the mean stays."""
        q, k, v = (torch.randn(1, 4, 64, 16, generator=torch.Generator().manual_seed(n)) for n in range(3))
        module = torch.nn.Module()
        module.is_causal = False
        plain = ours.attention(module, q, k, v, None)[0]
        torch.manual_seed(1)
        first = ours.attention(module, q, k, v, None, dropout=0.5)[0]
        torch.manual_seed(1)
        self.assertTrue(torch.equal(first, ours.attention(module, q, k, v, None, dropout=0.5)[0]))
        mean = sum(ours.attention(module, q, k, v, None, dropout=0.5)[0] for _ in range(400)) / 400
        self.assertGreater((first - plain).abs().max().item(), 0.1)
        self.assertLess((mean - plain).abs().max().item(), 0.15)
        value = v.clone().requires_grad_()
        o = ours.attention(module, q, k, value, None, dropout=0.5)[0]
        o.sum().backward()  # o is linear in v: the same weights in both passes
        self.assertAlmostEqual((value.grad * v).sum().item(), o.sum().item(), delta=1e-2)

    def test_checkpointing(self):
        model = tiny.make("Llama", "qkv").train()
        given, _ = tiny.inputs("Llama", "left")
        model(**given).logits.square().mean().backward()
        want = model.model.layers[0].self_attn.q_proj.weight.grad.clone()
        model.zero_grad()
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model(**given, use_cache=False).logits.square().mean().backward()
        self.assertTrue(torch.equal(model.model.layers[0].self_attn.q_proj.weight.grad, want))


class Masks(unittest.TestCase):
    """Rules beside transformers' own masks of cells."""

    def functions(self, draw, batch, length):
        left = torch.randint(0, 4, (batch,), generator=draw)
        position_ids = torch.cat([torch.arange(n) for n in (3, length - 5, 2)]).expand(batch, -1)
        packed = theirs.find_packed_sequence_indices(position_ids)
        chosen = [theirs.causal_mask_function, theirs.bidirectional_mask_function,
                  theirs.sliding_window_causal_mask_function(3), theirs.sliding_window_bidirectional_mask_function(2),
                  theirs.chunked_causal_mask_function(4, left), theirs.chunked_causal_mask_function(4, left * 0),
                  theirs.and_masks(theirs.sliding_window_causal_mask_function(5), theirs.sliding_window_overlay(2))]
        return chosen, [theirs.and_masks(theirs.packed_sequence_mask_function(packed),
                                         theirs.remap_positions_for_packed_sequence(each, position_ids))
                        for each in chosen[:4]]

    def cases(self):
        draw = torch.Generator().manual_seed(1)
        for n_queries, n_keys, q_offset, kv_offset in ((9, 9, 0, 0), (1, 9, 8, 0), (3, 9, 10, 4), (9, 14, 0, 0),
                                                       (2, 6, 11, 8), (4, 8, 4, 0)):
            plain, packed = self.functions(draw, 3, 9)
            for function in plain + (packed if n_keys == n_queries else []):
                listed = (torch.rand(3, q_offset + n_queries, generator=draw) < 0.7).bool()
                right = torch.arange(listed.shape[1]) < torch.tensor([[listed.shape[1]], [3], [0]])
                for padding in (None, listed, ~right, right):
                    yield n_queries, n_keys, q_offset, kv_offset, function, padding

    def test_rules_equal_masks_of_cells(self):
        n = 0
        for n_queries, n_keys, q_offset, kv_offset, function, padding in self.cases():
            given = dict(batch_size=3, q_length=n_queries, kv_length=n_keys, q_offset=q_offset, kv_offset=kv_offset,
                         mask_function=function, attention_mask=padding)
            want = theirs.sdpa_mask(**given, allow_is_causal_skip=False)
            got = ours.mask(**given, allow_is_causal_skip=True, allow_is_bidirectional_skip=True)
            self.assertIs(type(got), rules_module.RuleMask)
            self.assertEqual(got.shape, want.shape)
            self.assertTrue(torch.equal(got.rules.dense(), want), (given, got))
            q, k, v = (torch.randn(3, 2, length, 8) for length in (n_queries, n_keys, n_keys))
            by_rules = qkv.attention(q, k, v, **got.rules.keywords())
            self.assertLessEqual((by_rules - qkv.attention(q, k, v, mask=want)).abs().max().item(), 1e-6)
            n += 1
        self.assertGreater(n, 150)

    def test_operations_on_masks(self):
        """What a model may do with its mask: the result is that of the mask of cells."""
        kept = [lambda m: m.clone(), lambda m: m.contiguous(), lambda m: m.to(torch.bool), lambda m: m.to("cpu"),
                lambda m: m.detach(), lambda m: m[:, :, :, :5], lambda m: m[:, :, 1:3], lambda m: m[1:],
                lambda m: m[:, :, -1:, 2:7], lambda m: m[:, :, :, : m.shape[-1]]]
        others = [lambda m: ~m, lambda m: m.float(), lambda m: m & True, lambda m: m[:, 0],
                  lambda m: m.expand(-1, 4, -1, -1),
                  lambda m: torch.where(m, 0.0, -1.0), lambda m: m[..., None], lambda m: torch.cat([m, m], -1),
                  lambda m: m.all(), lambda m: m[:, :, ::2], lambda m: m.repeat(1, 2, 1, 1), lambda m: m.sum(-1)]
        for n_queries, n_keys, q_offset, kv_offset, function, padding in list(self.cases())[::7]:
            if n_queries < 3 or n_keys < 8:
                continue
            mask = ours.mask(3, n_queries, n_keys, q_offset, kv_offset, function, padding)
            cells = mask.rules.dense()
            for n, operation in enumerate(kept):
                made = operation(mask)
                if mask.rules.chunk is None:
                    self.assertIs(type(made), rules_module.RuleMask)
                got = made.rules.dense() if isinstance(made, rules_module.RuleMask) else made
                self.assertTrue(torch.equal(got, operation(cells)), n)
            for n, operation in enumerate(others):
                made = operation(mask)
                self.assertNotIsInstance(made, rules_module.RuleMask)
                self.assertTrue(torch.equal(made, operation(cells)), n)

    def test_a_function_of_a_model_becomes_cells(self):
        def mine(batch, head, query, key):
            return (key <= query) | (key < 3)

        self.assertNotIsInstance(ours.mask(1, 6, 6, mask_function=mine), rules_module.RuleMask)
        made = []
        for implementation in ("eager", "qkv"):
            model = tiny.make("Llama", implementation)
            embedded = model.model.embed_tokens(tiny.ids())
            mask = theirs.create_causal_mask(model.config, embedded, tiny.padding("left"), None,
                                             or_mask_function=lambda b, h, i, j: j < 3)
            made.append(logits(model, {"input_ids": tiny.ids(), "attention_mask": mask}))
        self.assertEqual(type(mask), torch.Tensor)
        counts = tiny.padding("left")
        counts[2] = 0  # its queries see nothing but padding in part
        self.assertLessEqual(apart(made[1], made[0], counts), WITHIN)

    def test_packed_sequences(self):
        position_ids = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 0, 1]])
        cu = torch.tensor([0, 4, 10, 12], dtype=torch.int32)
        for name in ("Llama", "Mistral"):
            given = {"input_ids": tiny.ids(1), "position_ids": position_ids, "use_cache": False}
            want = logits(tiny.make(name), given)
            model = tiny.make(name, "qkv")
            self.assertLessEqual(apart(logits(model, given), want), WITHIN)
            for more in ({"cu_seq_lens_q": cu, "cu_seq_lens_k": cu, "max_length_q": 6, "max_length_k": 6},
                         {"cu_seq_lens_q": cu}):
                self.assertLessEqual(apart(logits(model, {**given, **more}), want), WITHIN)
                # without position_ids the sequences are still apart
                lost = {"input_ids": given["input_ids"][:, :10], "cu_seq_lens_q": torch.tensor([0, 4, 10]),
                        "use_cache": False}
                changed = {**lost, "input_ids": lost["input_ids"].clone()}
                changed["input_ids"][:, 0] = 50
                self.assertTrue(torch.equal(logits(model, lost)[:, 4:], logits(model, changed)[:, 4:]))

    def test_compiled(self):
        """Inside torch.compile masks are cells, and attention is the operator: one graph."""
        for name in ("Llama", "gpt-oss"):
            model = tiny.make(name, "qkv")
            given, counts = tiny.inputs(name, "left")
            want = logits(model, given)
            compiled = torch.compile(model, fullgraph=name == "Llama", backend="eager")
            self.assertLessEqual(apart(logits(compiled, given), want, counts), WITHIN)

    def test_autocast(self):
        given, counts = tiny.inputs("Llama", "left")
        made = []
        for implementation in ("eager", "qkv"):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                made.append(logits(tiny.make("Llama", implementation), given).float())
        self.assertLessEqual(apart(made[1], made[0], counts), 0.05)
        self.assertGreater(apart(made[1], logits(tiny.make("Llama"), given), counts), WITHIN)

    def test_half_precision(self):
        for dtype in (torch.bfloat16, torch.float16):
            given, counts = tiny.inputs("Llama", "left")
            want = logits(tiny.make("Llama"), given)
            self.assertLessEqual(apart(logits(tiny.make("Llama", "qkv").to(dtype), given).float(), want, counts), 0.1)


class Errors(unittest.TestCase):
    def test_numbers(self):
        """Learnt scales would lose their gradient, and torch's operators would take windows that are none."""
        x, learnt = torch.randn(1, 2, 5, 8), torch.nn.Parameter(torch.tensor(0.5))
        module = torch.nn.Identity()

        def by_jvp(**rules):
            return torch.func.jvp(lambda q: qkv.transformers.attention(module, q, x, x, None, **rules)[0], (x,), (x,))

        for call in (lambda **rules: qkv.transformers.attention(module, x, x, x, None, **rules), by_jvp):
            for name in ("scaling", "softcap"):
                with self.assertRaisesRegex(qkv.UnsupportedError, f"{name} requires a gradient"):
                    call(**{name: learnt})
            for n in (-5, 2.5):
                with self.assertRaisesRegex(qkv.ArgumentError, f"sliding_window = {n} is not"):
                    call(sliding_window=n, is_causal=True)

    def test_masks_of_0_and_1(self):
        x, bias = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 5)
        sees = (torch.randn(1, 1, 5, 5) > -0.5)
        for more in ({}, {"position_bias": bias}):
            want, got = (qkv.transformers.attention(torch.nn.Identity(), x, x, x, mask, **more)[0]
                         for mask in (sees, sees.long()))
            torch.testing.assert_close(got, want, rtol=0, atol=0)

    def test_each_names_what_is_wrong(self):
        model = tiny.make("Llama", "qkv")
        module = model.model.layers[0].self_attn
        q, k = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8)

        def call(*mask, **options):
            return ours.attention(module, q, k, k, *(mask or (None,)), **options)

        short = ours.mask(2, 6, 5)
        cases = [
            (qkv.UnsupportedError, "has a paged cache", lambda: call(cache=object())),
            (qkv.UnsupportedError, "passes block_indices, which qkv does not know", lambda: call(block_indices=q)),
            (qkv.UnsupportedError, "output_attentions=True stores", lambda: call(output_attentions=True)),
            (qkv.UnsupportedError, "output_attentions=True stores",
             lambda: model(tiny.ids(), output_attentions=True)),
            (qkv.UnsupportedError, r'the model is on cuda:1, .* call model.to\("cpu"\)',
             lambda: ours.mask(2, 6, 6, device="cuda:1")),
            (qkv.UnsupportedError, r'query is on meta, .* call model.to\("cpu"\)',
             lambda: ours.attention(module, q.to("meta"), k, k, None)),
            (qkv.ShapeError, r"attention_mask is \(2, 6\)", lambda: call(torch.ones(2, 6, dtype=torch.bool))),
            (qkv.ShapeError, "the mask is of 6 queries and 5 keys, and LlamaAttention has 6 and 6",
             lambda: call(short)),
            (qkv.ShapeError, "mask has 5 keys", lambda: call(torch.ones(2, 1, 6, 5, dtype=torch.bool))),
            (qkv.ShapeError, "query has 3 dimensions", lambda: ours.attention(module, q[0], k, k, None)),
            (qkv.ArgumentError, "must rise from 0 to 6",
             lambda: ours.attention(module, q[:1], k[:1], k[:1], None, cu_seq_lens_q=torch.tensor([0, 3, 5]))),
            (qkv.UnsupportedError, "for a batch of 2", lambda: call(cu_seq_lens_q=torch.tensor([0, 6]))),
            (qkv.DTypeError, "q is float64", lambda: ours.attention(module, q.double(), k.double(), k.double(), None)),
        ]
        for kind, words, refused in cases:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                refused()
        self.assertIsNone(call(position_ids=q, output_attentions=False, head_mask=None)[1])


class NoDropout:
    """Dropout of all modules and of attention is 0, in training, too."""

    def __enter__(self):
        self.kept = torch.nn.functional.dropout
        torch.nn.functional.dropout = lambda x, p=0.5, training=True, inplace=False: x
        self.call = ours.attention
        transformers.AttentionInterface.register(
            "qkv", lambda *arguments, **options: self.call(*arguments, **{**options, "dropout": 0.0}))

    def __exit__(self, *raised):
        torch.nn.functional.dropout = self.kept
        transformers.AttentionInterface.register("qkv", self.call)


if __name__ == "__main__":
    unittest.main()

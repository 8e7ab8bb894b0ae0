"""What someone writes who is new to it: keywords of other libraries, typos, values of another kind."""
import inspect
import pydoc
import unittest

import numpy as np

import qkv
from qkv.keywords import RULES

X = np.ones((1, 2, 5, 8), np.float32)


class Keywords(unittest.TestCase):
    def refused(self, call, *words, **given):
        with self.assertRaises(qkv.KeywordError) as raised:
            call(**given)
        self.assertIsInstance(raised.exception, TypeError)  # as Python's own
        for each in words:
            self.assertIn(each, str(raised.exception))

    def calls(self):
        """(name, call) of every function that takes rules as keywords."""
        cache, q = qkv.KVCache(kv_heads=2, dim=8, pages=2), X[:, :, :1]
        cache.append(0, X[0], X[0])
        return [
            ("attention", lambda **rules: qkv.attention(X, X, X, **rules)),
            ("attention", lambda **rules: qkv.attention(X, X, X, lse=True, **rules)),
            ("Problem", lambda **rules: qkv.Problem(X, X, X, **rules)),
            ("attend", lambda **rules: cache.attend(q, **rules)),
        ]

    def test_names_of_torch(self):
        for name, call in self.calls():
            with self.subTest(call=name):
                self.refused(call, f"{name}() has no keyword is_causal: use causal=True", is_causal=True)
                self.refused(call, "attn_mask: use mask=", attn_mask=np.ones((5, 5), bool))
                self.refused(call, "enable_gqa: leave it out, k and v may have fewer heads", enable_gqa=True)
                window = "a number of tokens" if name == "attend" else "(left, right)"
                self.refused(call, "sliding_window: use window=", window, sliding_window=3)
        self.refused(lambda: qkv.attention(X, X, X, dropout_p=0.1), "dropout_p: use dropout=0.1 with seed=")
        self.refused(lambda: qkv.attention(X, X, X, softmax_scale=X), "softmax_scale: use scale=…")
        self.refused(lambda: qkv.attention(X, X, X, need_weights=True), "qkv.Problem(…).weights")
        self.refused(lambda: qkv.heads(X[0], X[0], is_causal=True), "heads() has no keyword is_causal: use causal=True")
        self.refused(lambda: qkv.heads(X[0], X[0], attn_mask=None), "attn_mask: use added=")
        self.refused(lambda: qkv.inspect(None, layer=3), "inspect() has no keyword layer: use layers=[3]")
        self.refused(lambda: qkv.Problem(X, X, X, stats=["entropy"]), "stats: it is one of forward()")

    def test_typos(self):
        for name, call in self.calls():
            with self.subTest(call=name):
                self.refused(call, f"{name}() has no keyword casual: did you mean causal?", casual=True)
                self.refused(call, "it has alibi, arithmetic, block_mask, causal, chunk", zzz=1)
        self.refused(lambda: qkv.attention(X, X, X, stat=["entropy"]), "did you mean stats?")
        self.refused(lambda: qkv.heads(X[0], X[0], token=[]), "did you mean tokens?")
        self.refused(lambda: qkv.inspect(None, tokeniser=1), "did you mean tokenizer?")
        # Python's own message where it says all
        with self.assertRaisesRegex(TypeError, "missing 1 required positional argument: 'v'"):
            qkv.attention(X, X)

    def test_no_other_error_stands_before_it(self):
        try:
            qkv.attention(X, X, X, casual=True)
        except qkv.KeywordError as error:
            self.assertIsNone(error.__context__)

    def test_rules_are_those_that_are_read(self):
        self.assertEqual(set(inspect.signature(qkv.Problem._describe).parameters) - {"self", "q", "k", "v"}, RULES)

    def test_help_lists_rules(self):
        for thing in (qkv.attention, qkv.Problem):
            with self.subTest(thing=thing):
                told = set(inspect.signature(thing).parameters)
                self.assertLessEqual({"causal", "window", "kv_len", "sinks", "layout", "context"}, told)
                said = pydoc.plain(pydoc.render_doc(thing))
                for name in RULES:
                    self.assertRegex(said, rf"(?m)^[ |]*{name}  +\S")
                self.assertRegex(said, r"kv_len +tokens, .* Default len_k")
                self.assertRegex(said, r"scale +the factor\. Default 1/sqrt\(dim\)")
        self.assertEqual(inspect.signature(qkv.attention).parameters["layout"].default, "bhld")
        self.assertEqual(inspect.signature(qkv.KVCache.attend).parameters["causal"].default, True)
        self.assertNotIn("kv_len", inspect.signature(qkv.KVCache.attend).parameters)


class Values(unittest.TestCase):
    def test_each_says_what_was_expected(self):
        heads, model = qkv.heads(X[0], X[0]), qkv.load()
        cache = qkv.KVCache(kv_heads=1, dim=8, pages=1)
        problem = qkv.Problem(X, X, X)
        lse = problem.forward().lse
        cases = [
            (r"tokens\[0\] is .*0.*, and must be a text", lambda: qkv.heads(X[0], X[0], tokens=np.arange(5))),
            ("tokens is 'abcde', and must be a list of texts", lambda: qkv.heads(X[0], X[0], tokens="abcde")),
            ("tokens is 5, and must be a list of texts", lambda: qkv.heads(X[0], X[0], tokens=5)),
            (r"text is \['a'\], and must be a text", lambda: model.look(["a"])),
            ("pair is 3, and must be a text", lambda: model.look("a", 3)),
            (r"text is \['a'\], and must be a text", lambda: model.fill(["a"])),
            ("second is None, and must be a text", lambda: model.follows("a", None)),
            ("text is 3, and must be a text", lambda: model.generate(3)),
            (r"texts\[1\] is 2, and must be a text", lambda: model.embed(["a", 2])),
            (r"window is 3, and must be a pair of numbers, such as \(3, 0\) for 3 tokens before a query",
             lambda: qkv.attention(X, X, X, window=3)),
            (r"window is \(1, 0\), and must be a number of tokens here", lambda: cache.attend(X, window=(1, 0))),
            (r"stats is 'entropy', and must be a list, such as \['entropy'\]",
             lambda: qkv.attention(X, X, X, stats="entropy")),
            (r"stats has no 'entrpy' \(did you mean 'entropy'\?\); it has largest,",
             lambda: qkv.attention(X, X, X, stats=["entrpy"])),
            (r"stats has 'classes' without a value: pass a mapping", lambda: qkv.attention(X, X, X, stats=["classes"])),
            (r"want is 'received', and must be a list", lambda: problem.columns(lse, want="received")),
            ("the mask_mod asks whether a whole array is true, as `and`",
             lambda: qkv.mask_mod(lambda b, h, i, j: j <= i and i - j < 3, len_q=5, len_k=5)),
            ("each comparison in parentheses",
             lambda: qkv.mask_mod(lambda b, h, i, j: 0 <= i - j < 3, len_q=5, len_k=5)),
            (r"returned shape \(2,\), which does not broadcast to \(5, 5\)",
             lambda: qkv.mask_mod(lambda b, h, i, j: np.ones(2, bool), len_q=5, len_k=5)),
            ("the mask_mod is a bool, and must be a function", lambda: qkv.mask_mod(True, len_q=5, len_k=5)),
            (r"parts\[0\] is a ndarray, and must be \(o, lse\)", lambda: qkv.merge([X, X])),
            (r"parts\[0\] is a ndarray, and must be \(o, lse\)", lambda: qkv.merge((X, X[..., 0]))),
            (r"parts\[0\] is a tuple of 1, and must be", lambda: qkv.merge([(X,)])),
            ("parts is a ndarray, and must be a list", lambda: qkv.merge(X)),
            (r"heads\[0\] is 1, and must be a pair", lambda: heads.page([1])),
            (r"heads is 1, and must be a list of \(layer, head\)", lambda: heads.page(1)),
        ]
        for words, call in cases:
            with self.subTest(words=words), self.assertRaisesRegex(qkv.QkvError, words):
                call()

    def test_errors_of_a_mask_mod_stay_its_own(self):
        def broken(b, h, i, j):
            raise ValueError("of the caller")

        with self.assertRaisesRegex(ValueError, "of the caller"):
            qkv.mask_mod(broken, len_q=5, len_k=5)

    def test_arrays_of_texts(self):
        names = np.array(["the", "door", "was", "not", "shut"])
        heads = qkv.heads(X[0], X[0], tokens=names, queries=iter(names))
        self.assertEqual(heads.tokens, list(names))
        self.assertEqual(heads.queries, list(names))


if __name__ == "__main__":
    unittest.main()

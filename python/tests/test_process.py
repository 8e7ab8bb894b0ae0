"""Threads, processes and signals."""
import copy
import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
import unittest
import unittest.mock

import numpy as np
from pace import cpu_of

import qkv
import qkv.models
import qkv.onnx
from qkv.context import Interruptible


def arrays(seed, length=200):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((2, 4, length, 32)).astype(np.float32) for _ in range(3)]


def digest(seed):
    return qkv.attention(*arrays(seed), causal=True).tobytes()


class Copies(unittest.TestCase):
    def test_what_holds_memory_of_the_library_has_none(self):
        """A copy would free the same memory again."""
        q, k, v = (x[0] for x in arrays(1, 9))
        model, calls = qkv.load(), {"copied": copy.copy, "copied deeply": copy.deepcopy, "pickled": pickle.dumps}
        for made in (qkv.Context(1), qkv.Problem(q, k, v), qkv.KVCache(kv_heads=4, dim=32, pages=2), qkv.heads(q, k),
                     model, model.tokenize("a dog"), model.look("a dog"), model._run(model.tokenize("a dog"))):
            name = type(made).__name__
            for how, call in calls.items():
                with self.subTest(name=name, how=how):
                    with self.assertRaisesRegex(qkv.UnsupportedError, f"a {name} cannot be copied or pickled"):
                        call(made)
        page = qkv.heads(q, k).page()
        self.assertEqual(pickle.loads(pickle.dumps(page)).html, page.html)
        blocks = copy.deepcopy(qkv.mask_mod(lambda b, h, i, j: j <= i, len_q=9, len_k=9))
        np.testing.assert_array_equal(qkv.attention(q, k, v, block_mask=blocks), qkv.attention(q, k, v, causal=True))


class Handles(unittest.TestCase):
    def test_what_was_never_made_is_not_freed(self):
        """An object of which only __new__ has run, as copies and failed constructors of subclasses leave it."""
        with unittest.mock.patch("sys.unraisablehook") as hook:
            for kind in (qkv.Context, qkv.KVCache, qkv.Heads, qkv.Model, qkv.Tokens, qkv.Problem, qkv.models._Run):
                made = kind.__new__(kind)
                del made
        self.assertEqual([str(call.args[0].object) for call in hook.call_args_list], [])


class Memory(unittest.TestCase):
    def test_calls_that_can_be_interrupted_leave_nothing(self):
        x = np.ones((1, 2, 40, 8), np.float32)

        def count():
            gc.collect()
            return sum(isinstance(each, Interruptible) for each in gc.get_objects())

        before = count()
        for name, call in (("attention", lambda: qkv.onnx.attention(x, x, x)),
                           ("heads", lambda: qkv.heads(x[0], x[0]).sharpest()),
                           ("map", lambda: qkv.heads(x[0], x[0]).map(0, 0, n_iters=2))):
            with self.subTest(name=name):
                for _ in range(5):
                    call()
                self.assertEqual(count(), before)


class Threads(unittest.TestCase):
    def test_each_has_its_context(self):
        want = [digest(seed) for seed in range(4)]
        got, contexts = [b""] * 4, [None] * 4

        def work(n):
            for _ in range(20):
                got[n] = digest(n)
            contexts[n] = qkv.context()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, want)
        self.assertEqual(len(set(map(id, contexts))), 4)

    def together(self, *calls, times=30):
        """Calls functions again and again, each in a thread of its own. An exception of one is that of the test."""
        raised, start = [], threading.Barrier(len(calls))

        def work(call):
            start.wait()
            try:
                for _ in range(times):
                    call()
            except Exception as error:
                raised.append(error)

        threads = [threading.Thread(target=work, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if raised:
            raise raised[0]

    def test_one_problem(self):
        """Outputs of other layouts and types, statistics and gradients at once: each call has its own descriptor."""
        q, k, v = (x.astype(np.float16) for x in arrays(2, 150))
        problem = qkv.Problem(q, k, v, causal=True)
        o, lse, stats = problem.forward(stats=["entropy"])
        wide = problem.forward(out_dtype="float32").o
        d_q = problem.backward(o, o=o, lse=lse).d_q
        self.assertEqual(problem.forward().o.tobytes(), o.tobytes())  # no type of an earlier call
        lengths_first = np.zeros((2, 150, 4, 32), np.float32)

        def check(found, want):
            np.testing.assert_array_equal(found, want)

        self.together(
            lambda: check(problem.forward().o, o),
            lambda: check(problem.forward(out=lengths_first.transpose(0, 2, 1, 3), out_dtype="float32").o, wide),
            lambda: check(problem.forward(stats=["entropy"]).stats["entropy"], stats["entropy"]),
            lambda: check(problem.backward(o, o=o, lse=lse).d_q, d_q),
            lambda: check(problem.backward(wide, o=wide, lse=lse).d_q.shape, q.shape))

    def test_one_cache(self):
        """Sequences of two threads share no page: the mean of the values of each is its own."""
        n, q = 16_000, np.zeros((1, 1, 1, 1), np.float32)
        cache = qkv.KVCache(sequences=2, kv_heads=1, dim=1, pages=2 * n // 16, page_len=16)

        def fill(sequence):
            rows = np.full((1, n, 1), sequence, np.float32)
            cache.append(sequence, rows, rows)
            self.assertEqual(cache.attend(q, first_sequence=sequence).item(), sequence)
            cache.truncate(sequence, 0)

        self.together(lambda: fill(0), lambda: fill(1), times=100)

    def test_heads_that_are_measured(self):
        q, k, _ = (x[0] for x in arrays(4, 300))
        want = qkv.heads(q, k, causal=True).numbers()
        for _ in range(5):
            heads = qkv.heads(q, k, causal=True)

            def check(heads=heads):
                for name, values in heads.numbers().items():
                    np.testing.assert_array_equal(values, want[name])

            self.together(check, check, lambda heads=heads: heads.weights(0, 1), lambda heads=heads: heads.sharpest(),
                          times=3)

    def test_heads_beside_calls_of_the_thread_that_opened_them(self):
        """They have a context of their own: with that of their thread one of the two was refused as busy."""
        q, k, v = arrays(7, 300)
        heads, others = (qkv.heads(q[0], k[0], causal=n == 1) for n in range(2))
        model = qkv.load()
        seen = model.look("a dog")
        want, first, second = qkv.attention(q, k, v), heads.weights(0, 1), others.weights(0, 1)
        third = seen.weights(1, 1)
        here, raised = threading.Event(), []

        def work():
            try:
                while not here.is_set():
                    np.testing.assert_array_equal(heads.weights(0, 1), first)
                    np.testing.assert_array_equal(seen.weights(1, 1), third)
                    np.testing.assert_array_equal(model.look("a dog").weights(1, 1), third)
            except Exception as error:
                raised.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(100):
                np.testing.assert_array_equal(qkv.attention(q, k, v), want)
                np.testing.assert_array_equal(others.weights(0, 1), second)
        finally:
            here.set()
            thread.join()
        self.assertEqual(raised, [])

    def test_one_context(self):
        """A context serves one call at a time, and says so."""
        made, said = qkv.Context(n_threads=1), []

        def work(seed, length):
            problem = qkv.Problem(*arrays(seed, length), context=made)
            while not said:
                try:
                    problem.forward()
                except qkv.BusyError as error:
                    said.append(str(error))

        self.together(lambda: work(5, 1000), lambda: work(6, 1000), times=1)
        self.assertEqual(set(said), {"the context is inside another call: give each thread a context of its own"})

    def test_any_number_has_the_same_bits(self):
        want = digest(1)
        for n in (1, 2, 5):
            made = qkv.Context(n_threads=n)
            self.assertEqual(made.n_threads, n)
            o = qkv.attention(*arrays(1), causal=True, context=made)
            self.assertEqual(o.tobytes(), want)
        qkv.set_num_threads(1)
        self.assertEqual(qkv.context().n_threads, 1)
        self.assertEqual(digest(1), want)
        qkv.set_num_threads(0)

    def test_other_threads_run_meanwhile(self):
        ticks, done = [], threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.perf_counter())
                time.sleep(0.001)

        def ticks_within(length):
            q, k, v = arrays(2, length)
            began = time.perf_counter()
            qkv.attention(q, k, v)
            ended = time.perf_counter()
            return sum(began < at < ended for at in ticks)

        thread = threading.Thread(target=tick)
        thread.start()
        # a call may be over before others have their turn: then one of four times the work
        n_met = next((n for n in map(ticks_within, (3000, 6000, 12000)) if n > 2), 0)
        done.set()
        thread.join()
        self.assertGreater(n_met, 2)


class Processes(unittest.TestCase):
    def test_fork_and_spawn(self):
        want = [digest(seed) for seed in range(3)]  # the parent's threads have started
        for method in ("fork", "spawn"):
            with self.subTest(method=method), multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.map(digest, range(3)), want)
        self.assertEqual(digest(0), want[0])


class Signals(unittest.TestCase):
    def test_ctrl_c_ends_a_call(self):
        # a shell starts what runs in the background with SIGINT ignored
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        q, k, v = (np.ones((1, 8, 30000, 64), np.float32) for _ in range(3))
        part = cpu_of(lambda: qkv.attention(q[:, :, :1000], k, v))  # 1/30 of the call

        def interrupt(began):
            while time.process_time() < began + part / 4:  # the call has begun: nothing else computes
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        began = time.process_time()
        thread = threading.Thread(target=interrupt, args=(began,))
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            qkv.attention(q, k, v)
        self.assertLess(time.process_time() - began, 10 * part)
        thread.join()
        digest(0)  # the context serves the next call

    def test_what_a_handler_raises_is_raised(self):
        class Mine(Exception):
            pass

        def handler(number, frame):
            raise Mine

        q, k, v = (np.ones((1, 8, 30000, 64), np.float32) for _ in range(3))
        before = signal.signal(signal.SIGPROF, handler)
        signal.setitimer(signal.ITIMER_PROF, 0.3)  # of CPU time: within the call, however busy the machine
        try:
            with self.assertRaises(Mine):
                qkv.attention(q, k, v)
        finally:
            signal.signal(signal.SIGPROF, before)


if __name__ == "__main__":
    unittest.main()

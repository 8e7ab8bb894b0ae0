"""qkv.torch, threads and processes: torch's number of threads, and workers of a DataLoader by fork and by spawn."""
import ctypes
import importlib.util
import os
import shutil
import subprocess
import tempfile
import threading
import unittest

if importlib.util.find_spec("torch") is None:
    raise unittest.SkipTest("torch is not installed: ./dev test --deep torch installs it")

import torch
from pace import PATIENCE

import qkv
import qkv.torch as ours
from qkv.torch import bridge


def attend(seed, length=200):
    """Many heads with a window: enough work for several threads."""
    made = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(2, 4, length, 32, generator=made) for _ in range(3))
    small = ours.scaled_dot_product_attention(*(x[:1, :1, :8, :8] for x in (q, k, v)))
    return ours.attention(q, k, v, is_causal=True)[0].flatten(), small.flatten()


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, n):
        return torch.cat(attend(n))


class Threads(unittest.TestCase):
    def setUp(self):
        before = torch.get_num_threads()
        self.addCleanup(torch.set_num_threads, before)
        self.addCleanup(qkv.set_num_threads, 0)

    def test_torch_says_how_many(self):
        want = torch.cat(attend(1))
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            self.assertEqual(bridge.context().n_threads, n)
            self.assertTrue(torch.equal(torch.cat(attend(1)), want))
        qkv.set_num_threads(2)
        self.assertEqual(bridge.context().n_threads, 2)
        self.assertIs(bridge.context(), qkv.context())
        self.assertTrue(torch.equal(torch.cat(attend(1)), want))

    @unittest.skipIf(shutil.which("cc") is None, "there is no C compiler")
    def test_a_thread_that_python_meets_again(self):
        """To Python it is a new thread each time, whose objects go: the context of its small calls must not."""
        code = """#include <pthread.h>
                  static void (*call)(void);
                  static void *run(void *none) { for (int i = 0; i < 5; i++) call(); return none; }
                  int again(void (*given)(void)) {
                      pthread_t thread;
                      call = given;
                      return pthread_create(&thread, 0, run, 0) || pthread_join(thread, 0);
                  }"""
        want, got = torch.cat(attend(1)), []

        def call():
            got.append(torch.equal(torch.cat(attend(1)), want))
            got.append(len([bytearray(b"\xff" * n) for n in range(64, 4096, 16)]) > 0)  # over what was freed

        kind = ctypes.CFUNCTYPE(None)
        with tempfile.TemporaryDirectory() as folder:
            source, made = (os.path.join(folder, name) for name in ("again.c", "again.so"))
            with open(source, "w") as file:
                file.write(code)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", made, source, "-lpthread"], check=True)
            self.assertEqual(ctypes.CDLL(made).again(kind(call)), 0)
        self.assertEqual(got, [True] * 10)

    def test_each_thread_of_python(self):
        want = [torch.cat(attend(n)) for n in range(4)]
        got = [None] * 4

        def work(n):
            for _ in range(10):
                got[n] = torch.cat(attend(n))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for a, b in zip(got, want, strict=True):
            self.assertTrue(torch.equal(a, b))


class Processes(unittest.TestCase):
    def test_workers_of_a_data_loader(self):
        want = torch.stack([torch.cat(attend(n)) for n in range(4)])  # the parent's threads have started
        for method in ("fork", "spawn"):
            with self.subTest(method):
                loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2,
                                                     multiprocessing_context=method, timeout=PATIENCE)
                self.assertTrue(torch.equal(torch.cat(list(loader)), want))


if __name__ == "__main__":
    unittest.main()

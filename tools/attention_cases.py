#!/usr/bin/env python3
"""Makes tests/attn/attention_cases.bin: 40 small attention problems with results in float64.

Forward by numpy, row by row from the definition; gradients by PyTorch's autograd in float64. Inputs are not stored: both
sides make them with the same integer hash, so that cases may have 300 keys and the file stays small.

    python3 tools/attention_cases.py        needs numpy and torch; the tests themselves need no Python

Layout, little-endian: "QKVCASE1", i64 number of cases, then per case
    i64 x 20   B H G Lq Lk D Dv flags q_offset window_left window_right mask_type mask_len_k mask_dims seed has_d_lse
               offsets_per_batch 0 0 0          (mask_dims: bit n set if mask dimension n is not broadcast)
    f64 x 2    scale softcap
    i64        q_offsets[B] kv_len[B] q_len[B]
    f64        o[B,H,Lq,Dv] lse[B,H,Lq] d_q[B,H,Lq,D] d_k[B,G,Lk,D] d_v[B,G,Lk,Dv]
"""
import math
import pathlib
import struct

import numpy as np
import torch

SCALE, SOFTCAP, CAUSAL, WINDOW, Q_OFFSET, KV_LEN, Q_LEN, MASK = (1 << n for n in range(8))
BOOL, ADDITIVE = 1, 2
M64 = (1 << 64) - 1


def mix(x):
    """splitmix64"""
    x = (x + 0x9E3779B97F4A7C15) & M64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M64
    return x ^ (x >> 31)


def words(seed, stream, n):
    return [mix((seed * 1000 + stream) * 1000003 + i) for i in range(n)]


def values(seed, stream, shape):
    """multiples of 2^-22 in [-2, 2)"""
    n = math.prod(shape)
    w = np.array([x >> 40 for x in words(seed, stream, n)], dtype=np.float64)
    return (w / 2.0**22 - 2).reshape(shape)


class Case:
    def __init__(self, seed, B=1, H=1, G=None, Lq=5, Lk=7, D=8, Dv=None, **options):
        self.seed, self.B, self.H, self.G = seed, B, H, G if G is not None else H
        self.Lq, self.Lk, self.D, self.Dv = Lq, Lk, D, Dv if Dv is not None else D
        self.flags, self.scale, self.softcap = 0, 0.0, 0.0
        self.left = self.right = self.offset = 0
        self.mask_type = self.mask_len_k = self.mask_dims = 0
        self.d_lse = options.pop("d_lse", 0)
        self.offsets, self.kv_len, self.q_len = [0] * B, [Lk] * B, [Lq] * B
        self.per_batch = 0
        if options.pop("causal", 0):
            self.flags |= CAUSAL
        if "scale" in options:
            self.flags |= SCALE
            self.scale = float(np.float32(options.pop("scale")))
        if "softcap" in options:
            self.flags |= SOFTCAP
            self.softcap = float(np.float32(options.pop("softcap")))
        if "window" in options:
            self.flags |= WINDOW
            self.left, self.right = options.pop("window")
        if "offset" in options:
            self.flags |= Q_OFFSET
            offset = options.pop("offset")
            if isinstance(offset, list):
                self.per_batch, self.offsets = 1, offset
            else:
                self.offset, self.offsets = offset, [offset] * B
        if "kv_len" in options:
            self.flags |= KV_LEN
            self.kv_len = options.pop("kv_len")
        if "q_len" in options:
            self.flags |= Q_LEN
            self.q_len = options.pop("q_len")
        if "mask" in options:
            self.flags |= MASK
            self.mask_type = options.pop("mask")
            self.mask_dims = options.pop("dims", 15)
            self.mask_len_k = options.pop("mask_len", 0)
        assert not options, options

    def mask(self):
        last = self.mask_len_k or self.Lk
        if not self.mask_dims & 8:
            last = 1
            self.mask_len_k = 1
        full = [self.B, self.H, self.Lq]
        shape = [n if self.mask_dims >> i & 1 else 1 for i, n in enumerate(full)] + [last]
        w = words(self.seed, 9, math.prod(shape))
        hidden = np.array([x % 4 == 0 for x in w], dtype=bool).reshape(shape)
        bias = np.where(hidden, -np.inf, values(self.seed, 10, shape))
        if self.mask_type == BOOL:
            bias = np.where(hidden, -np.inf, 0.0)
        if last == 1:
            return np.broadcast_to(bias, full + [self.Lk])
        short = np.full(full + [self.Lk], -np.inf)
        short[..., :last] = np.broadcast_to(bias, full + [last])
        return short

    def sees(self, b, i, j):
        p = i + self.offsets[b]
        if self.flags & CAUSAL and j > p:
            return False
        if self.flags & WINDOW:
            if self.left >= 0 and j < p - self.left or self.right >= 0 and j > p + self.right:
                return False
        return j < self.kv_len[b]

    def run(self):
        B, H, G, Lq, Lk, D, Dv = self.B, self.H, self.G, self.Lq, self.Lk, self.D, self.Dv
        q, k = values(self.seed, 1, (B, H, Lq, D)), values(self.seed, 2, (B, G, Lk, D))
        v, d_o = values(self.seed, 3, (B, G, Lk, Dv)), values(self.seed, 4, (B, H, Lq, Dv))
        d_lse = values(self.seed, 5, (B, H, Lq)) * (1 if self.d_lse else 0)
        bias = self.mask() if self.flags & MASK else np.zeros((B, H, Lq, Lk))
        scale = self.scale if self.flags & SCALE else (1 / math.sqrt(D) if D else 1.0)
        visible = np.zeros((B, H, Lq, Lk), dtype=bool)
        for b in range(B):
            for i in range(self.q_len[b]):
                for j in range(Lk):
                    visible[b, :, i, j] = self.sees(b, i, j)
        visible &= bias != -np.inf

        o, lse = np.zeros((B, H, Lq, Dv)), np.zeros((B, H, Lq))
        for b in range(B):
            for h in range(H):
                for i in range(self.q_len[b]):
                    see = np.nonzero(visible[b, h, i])[0]
                    g = h // (H // G)
                    if len(see) == 0:
                        lse[b, h, i] = -np.inf
                        continue
                    s = scale * (k[b, g, see] @ q[b, h, i])
                    if self.flags & SOFTCAP:
                        s = self.softcap * np.tanh(s / self.softcap)
                    s = s + bias[b, h, i, see]
                    e = np.exp(s - s.max())
                    o[b, h, i] = (e / e.sum()) @ v[b, g, see]
                    lse[b, h, i] = s.max() + np.log(e.sum())

        grads = self.autograd(q, k, v, d_o, d_lse, bias, scale, visible, o)
        return [o, lse] + grads

    def autograd(self, q, k, v, d_o, d_lse, bias, scale, visible, o):
        repeat = self.H // self.G if self.G else 1
        leaf = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
        see = torch.tensor(visible)
        kk, vv = leaf[1].repeat_interleave(repeat, 1), leaf[2].repeat_interleave(repeat, 1)
        s = scale * leaf[0] @ kk.transpose(2, 3)
        if self.flags & SOFTCAP:
            s = self.softcap * torch.tanh(s / self.softcap)
        s = s + torch.tensor(np.where(bias == -np.inf, 0, bias))
        s = torch.where(see, s, torch.full_like(s, -1e30))
        any_key = see.any(-1)
        m = s.max(-1, keepdim=True).values.detach() if self.Lk else torch.zeros(s.shape[:3] + (1,))
        e = torch.where(see, torch.exp(s - m), torch.zeros_like(s))
        total = torch.where(any_key, e.sum(-1), torch.ones_like(e.sum(-1)))
        out = (e @ vv) / total[..., None]
        assert np.allclose(out.detach().numpy(), o, rtol=0, atol=1e-12)
        lse = torch.where(any_key, torch.log(total) + m[..., 0], torch.zeros_like(total))
        rows = torch.tensor([[i < n for i in range(self.Lq)] for n in self.q_len], dtype=torch.bool).reshape(self.B, 1, self.Lq)
        see_rows = rows.expand(self.B, self.H, self.Lq)
        loss = (torch.tensor(d_o) * out)[see_rows].sum()
        loss = loss + (torch.tensor(d_lse) * lse)[see_rows].sum()
        loss.backward()
        return [x.grad.numpy() if x.grad is not None else np.zeros(x.shape) for x in leaf]

    def pack(self):
        results = self.run()
        head = [self.B, self.H, self.G, self.Lq, self.Lk, self.D, self.Dv, self.flags, self.offset, self.left,
                self.right, self.mask_type, self.mask_len_k, self.mask_dims, self.seed, self.d_lse, self.per_batch,
                0, 0, 0]
        data = struct.pack("<20q2d", *head, self.scale, self.softcap)
        data += struct.pack(f"<{3 * self.B}q", *self.offsets, *self.kv_len, *self.q_len)
        return data + b"".join(x.astype("<f8").tobytes() for x in results)


CASES = [
    dict(),
    dict(Lq=1, Lk=1, D=1),
    dict(Lk=1, D=3, Dv=2),
    dict(Lq=4, Lk=0),
    dict(Lq=0),
    dict(D=0, Dv=4),
    dict(Dv=0),
    dict(B=2, H=3, Lq=4, Lk=4, d_lse=1),
    dict(H=4, G=2, D=5, Dv=3),
    dict(H=4, G=1, D=16, d_lse=1),
    dict(scale=0),
    dict(scale=-0.75),
    dict(scale=1e-3),
    dict(scale=5, d_lse=1),
    dict(softcap=2),
    dict(softcap=0.5, scale=3, d_lse=1),
    dict(causal=1, Lq=7, Lk=7),
    dict(causal=1, Lq=9, Lk=4),
    dict(causal=1, Lq=3, Lk=9, offset=6),
    dict(causal=1, B=3, Lq=5, Lk=6, offset=[-3, 0, 4], d_lse=1),
    dict(window=(2, 0), Lq=9, Lk=9),
    dict(window=(0, 0), Lq=6, Lk=6),
    dict(window=(-1, 1), Lq=6, Lk=8),
    dict(window=(1, -1), Lq=6, Lk=8, offset=3),
    dict(window=(1, 2), causal=1, B=2, Lq=6, Lk=8, offset=[1, -4], d_lse=1),
    dict(kv_len=[0, 3, 7], B=3),
    dict(q_len=[5, 0, 2], B=3, d_lse=1),
    dict(kv_len=[6, 2], q_len=[3, 5], causal=1, B=2, H=2, offset=[2, 0]),
    dict(mask=BOOL, B=2, H=2),
    dict(mask=BOOL, dims=8, B=2, H=2),
    dict(mask=BOOL, dims=12, H=4, G=2, d_lse=1),
    dict(mask=ADDITIVE, B=2, H=2, Lq=4),
    dict(mask=ADDITIVE, dims=9, B=2, H=2, softcap=3, d_lse=1),
    dict(mask=ADDITIVE, dims=7, Lq=8),
    dict(mask=ADDITIVE, mask_len=4, Lk=9, causal=1, offset=3),
    dict(mask=BOOL, mask_len=3, Lk=6, window=(3, 3), kv_len=[5]),
    dict(Lq=3, Lk=300, D=4),
    dict(Lq=140, Lk=5, D=4, causal=1, offset=-70, d_lse=1),
    dict(Lq=2, Lk=257, D=2, Dv=3, mask=ADDITIVE, dims=8, softcap=10, H=2, G=1),
    dict(B=2, H=6, G=3, Lq=5, Lk=6, D=7, Dv=4, causal=1, offset=[1, 2], kv_len=[6, 4], q_len=[5, 3], softcap=4,
         mask=BOOL, dims=13, scale=0.4, d_lse=1),
]


def main():
    assert len(CASES) == 40
    data = b"QKVCASE1" + struct.pack("<q", len(CASES))
    for n, options in enumerate(CASES):
        data += Case(n + 1, **options).pack()
    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "attention" / "golden" / "attention_cases.bin"
    path.write_bytes(data)
    print(f"{path}: {len(data)} bytes, numpy {np.__version__}, torch {torch.__version__}")


if __name__ == "__main__":
    main()

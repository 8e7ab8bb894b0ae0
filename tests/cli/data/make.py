"""Makes the arrays of test_attend.sh: small inputs, and what numpy computes from them in float64.

    python3 tests/cli/data/make.py     (numpy 2, safetensors 0.8; writes beside itself)

Every case is written out in full, [B,H,Lq,Lk] scores and all; the gradients are the textbook formulas.
"""
import pathlib

import numpy as np

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(3)
B, H, G, LQ, LK, D, DV = 2, 4, 2, 5, 7, 8, 6


def save(name, array):
    np.save(here / f"{name}.npy", array)


def attend(q, k, v, visible, bias=0.0, scale=None, softcap=None, grad=None, sink=None,
           grad_lse=0.0, keep=1.0, wants_bias=False, stored=lambda o: o):
    """o, lse and, with grad, dq, dk, dv (and dsink, or the gradient of the bias before any sum); k and v are repeated for
    the query heads of a group. keep: what dropout multiplies the weights by. stored: o as the gradients find it."""
    group = q.shape[1] // k.shape[1]
    kk, vv = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = scale * q @ kk.swapaxes(-1, -2)
    slope = np.ones_like(s)
    if softcap:
        slope = 1 - np.tanh(s / softcap) ** 2
        s = softcap * np.tanh(s / softcap)
    s = np.where(visible, s + bias, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        m = np.maximum(s.max(-1, keepdims=True), -1e300)
        if sink is not None:
            m = np.maximum(m, sink[:, None, None])
        e = np.exp(s - m)
        total = e.sum(-1, keepdims=True)
        if sink is not None:
            total = total + np.exp(sink[:, None, None] - m)
        p = np.where(total > 0, e / total, 0)
        lse = (m + np.log(total))[..., 0]
    lse = np.where(total[..., 0] > 0, lse, -np.inf)  # with a sink, total is never 0
    w = p * keep
    o = w @ vv
    if grad is None:
        return o, lse
    dv = w.swapaxes(-1, -2) @ grad
    delta = (grad * stored(o)).sum(-1, keepdims=True) - np.expand_dims(grad_lse, -1)
    dbias = p * (keep * (grad @ vv.swapaxes(-1, -2)) - delta)
    ds = dbias * slope * scale
    dq, dk = ds @ kk, ds.swapaxes(-1, -2) @ q
    sum_group = lambda x: x.reshape(x.shape[0], k.shape[1], group, *x.shape[2:]).sum(2)
    result = o, lse, dq, sum_group(dk), sum_group(dv)
    if wants_bias:
        return *result, dbias
    if sink is None:
        return result
    weight = np.exp(sink[:, None] - lse)
    return *result, -(weight * delta[..., 0]).sum((0, 2))


f32 = lambda *shape: rng.standard_normal(shape).astype(np.float32)
q, k, v, grad = f32(B, H, LQ, D), f32(B, G, LK, D), f32(B, G, LK, DV), f32(B, H, LQ, DV)
boolean = rng.random((H, 1, LK)) < 0.7
additive = f32(LQ, LK)
short = rng.random((B, 1, LQ, 4)) < 0.7
for name, array in dict(q=q, k=k, v=v, grad=grad, boolean=boolean, additive=additive, short=short,
                        q_double=q.astype(np.float64), q_half=q[0, 0].astype(np.float16),
                        integers=np.arange(12).reshape(3, 4)).items():
    save(name, array)

q, k, v, grad = (x.astype(np.float64) for x in (q, k, v, grad))
i, j = np.arange(LQ)[:, None], np.arange(LK)[None, :]
all_keys = np.ones((B, H, LQ, LK), bool)
kv_len = np.array([5, 0])[:, None, None, None]
offsets = np.array([3, -2])[:, None, None, None]

for name, result in dict(
    plain=attend(q, k, v, all_keys, grad=grad),
    top_left=attend(q, k, v, all_keys & (j <= i)),
    bottom_right=attend(q, k, v, all_keys & (j <= i + LK - LQ), grad=grad),
    offsets=attend(q, k, v, all_keys & (j <= i + offsets)),
    window=attend(q, k, v, all_keys & (j >= i + 1 - 2) & (j <= i + 1 + 1)),
    kv_len=attend(q, k, v, all_keys & (j < kv_len), grad=grad),
    boolean=attend(q, k, v, all_keys & boolean),
    additive=attend(q, k, v, all_keys, bias=additive.astype(np.float64)),
    short=attend(q, k, v, all_keys & np.pad(short, [(0, 0)] * 3 + [(0, LK - 4)])),
    softcap=attend(q, k, v, all_keys, scale=0.5, softcap=1.5, grad=grad),
).items():
    for part, array in zip(("o", "lse", "dq", "dk", "dv"), result):
        save(f"{name}_{part}", array.astype(np.float32))

# Prefixes, chunks, segments, packed bits, ALiBi and sinks, from inputs of their own.
more = np.random.default_rng(4)
segments_k = more.integers(0, 2, (B, LK))
segments_q = more.integers(0, 2, (B, LQ))
segments = np.array([0, 0, 1, 1, 2])
bits = more.integers(0, 256, (H, LQ, 1))
alibi = np.array([0.5, 0.25, 0, -0.125], np.float32)
sink = np.array([0.5, -1, 3, 0], np.float32)
grad_lse = more.standard_normal((B, H, LQ)).astype(np.float32)
for name, array in dict(segments_k=segments_k, segments_q=segments_q, segments=segments, bits=bits, alibi=alibi,
                        sink=sink, grad_lse=grad_lse, k_square=k[:, :, :LQ].astype(np.float32),
                        v_square=v[:, :, :LQ].astype(np.float32)).items():
    save(name, array)
prefix = np.array([4, 0])[:, None, None, None]
of_segment = segments_q[:, None, :, None] == segments_k[:, None, None, :]
of_bits = (bits[None, :, :, 0, None] >> np.arange(LK)) & 1 == 1
slopes = alibi.astype(np.float64)[:, None, None]
for name, result in dict(
    prefix=attend(q, k, v, all_keys & ((j <= i) | (j < prefix)), grad=grad),
    chunk=attend(q, k, v, all_keys & ((i + 1) // 3 == j // 3), grad=grad),
    segments=attend(q, k, v, all_keys & of_segment, grad=grad),
    documents=attend(q, k[:, :, :LQ], v[:, :, :LQ], segments[:, None] == segments),
    bits=attend(q, k, v, all_keys & of_bits, grad=grad),
    alibi=attend(q, k, v, all_keys & (j <= i + 2), bias=slopes * (j - i - 2), grad=grad),
    sink=attend(q, k, v, all_keys & (j <= i - 1), grad=grad, sink=sink.astype(np.float64),
                grad_lse=grad_lse.astype(np.float64)),
).items():
    for part, array in zip(("o", "lse", "dq", "dk", "dv", "dsink"), result):
        save(f"{name}_{part}", array.astype(np.float32))

# Dropout, its words computed here by Philox 4x32-10 (Salmon, Moraes, Dror and Shaw 2011), and the gradient of masks.
def philox(key, counter):
    """Four arrays of words from two words of key and four arrays of counters."""
    key = [np.uint64(x) for x in key]
    c = [np.asarray(x, np.uint64) for x in counter]
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> shift) ^ c[1] ^ key[0], b & low, (a >> shift) ^ c[3] ^ key[1], a & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return c


assert [int(x) for x in philox((0, 0), (0, 0, 0, 0))] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def keep(share, seed):
    """What the weights [B,H,LQ,LK] are multiplied by."""
    bb, hh, ii, jj = np.meshgrid(np.arange(B), np.arange(H), np.arange(LQ), np.arange(LK), indexing="ij")
    words = np.choose(jj % 4, philox((seed & 0xFFFFFFFF, seed >> 32), (jj // 4, ii, bb * H + hh, np.zeros_like(bb))))
    return (words >= int(float(np.float32(share)) * 2.0**32)) / (1 - float(np.float32(share)))


columns = np.random.default_rng(5).standard_normal((H, 1, LK)).astype(np.float32)
save("columns", columns)
for name, bias, result in (
    ("dropout", None, attend(q, k, v, all_keys & (j <= i + 2), grad=grad, keep=keep(0.3, 2**40 + 7))),
    ("dmask", additive, attend(q, k, v, all_keys, bias=additive.astype(np.float64), grad=grad, wants_bias=True)),
    ("dcolumns", columns, attend(q, k, v, all_keys, bias=columns.astype(np.float64), grad=grad, keep=keep(0.5, 3),
                                 softcap=1.5, wants_bias=True)),
):
    for part, array in zip(("o", "lse", "dq", "dk", "dv"), result):
        save(f"{name}_{part}", array.astype(np.float32))
    if bias is not None:
        shape = (1,) * (4 - bias.ndim) + bias.shape
        summed = result[5].sum(tuple(n for n in range(4) if shape[n] == 1), keepdims=True)
        save(f"{name}_dmask", summed.reshape(bias.shape).astype(np.float32))
# Types of 16 bits: inputs rounded to them, the rest in float64, results rounded.
def bf16(x):
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


round_bf16 = lambda x: (bf16(x).astype(np.uint32) << 16).view(np.float32)
round_f16 = lambda x: x.astype(np.float16)
for name, rounded in dict(bf16=round_bf16, f16=round_f16).items():
    as64 = lambda x: rounded(x).astype(np.float64)
    result = attend(as64(q), as64(k), as64(v), all_keys & (j <= i + 2), grad=as64(grad), stored=as64)
    for part, array in zip(("o", "lse", "dq", "dk", "dv"), result):
        save(f"{name}_{part}", array.astype(np.float32) if part == "lse" else rounded(array))
save("q_swapped", q.astype(">f4"))
with open(here / "q_untyped.npy", "wb") as file:  # as ml_dtypes has it saved
    np.lib.format.write_array_header_1_0(file, dict(descr="<V2", fortran_order=False, shape=q.shape))
    file.write(bf16(q).tobytes())
halves = [("k", "BF16", bf16(k)), ("v", "F16", v.astype(np.float16))]
ends = np.cumsum([0] + [array.nbytes for _, _, array in halves])
header = ",".join(f'"{name}":{{"dtype":"{dtype}","shape":{list(array.shape)},"data_offsets":[{ends[n]},{ends[n + 1]}]}}'
                  for n, (name, dtype, array) in enumerate(halves)).replace(" ", "")
header = ("{" + header + "}").encode()
header += b" " * (-len(header) % 8)
(here / "halves.safetensors").write_bytes(
    len(header).to_bytes(8, "little") + header + b"".join(array.tobytes() for _, _, array in halves))

# A BERT without heads for words and sentences: it can be looked at, and nothing else.
import json

import safetensors.numpy

HIDDEN, INNER, LENGTH = 8, 12, 16
words = "[PAD] [UNK] [CLS] [SEP] [MASK] the man opened a door .".split()
tensors = {f"embeddings.{name}_embeddings.weight": f32(n, HIDDEN)
           for name, n in (("word", len(words)), ("position", LENGTH), ("token_type", 2))}
linear = {"attention.self.query": (HIDDEN, HIDDEN), "attention.self.key": (HIDDEN, HIDDEN),
          "attention.self.value": (HIDDEN, HIDDEN), "attention.output.dense": (HIDDEN, HIDDEN),
          "intermediate.dense": (INNER, HIDDEN), "output.dense": (HIDDEN, INNER)}
for name, shape in linear.items():
    tensors[f"encoder.layer.0.{name}.weight"] = f32(*shape)
    tensors[f"encoder.layer.0.{name}.bias"] = f32(shape[0])
for name in ("embeddings.", "encoder.layer.0.attention.output.", "encoder.layer.0.output."):
    tensors[name + "LayerNorm.weight"] = np.ones(HIDDEN, np.float32)
    tensors[name + "LayerNorm.bias"] = np.zeros(HIDDEN, np.float32)
bare = here / "bare"
bare.mkdir(exist_ok=True)
safetensors.numpy.save_file(tensors, bare / "model.safetensors", metadata={"format": "pt"})
(bare / "vocab.txt").write_text("\n".join(words) + "\n")
(bare / "config.json").write_text(json.dumps(dict(
    architectures=["BertModel"], model_type="bert", hidden_act="gelu", hidden_size=HIDDEN,
    num_attention_heads=2, num_hidden_layers=1, intermediate_size=INNER, vocab_size=len(words),
    max_position_embeddings=LENGTH, type_vocab_size=2, layer_norm_eps=1e-12), indent=2) + "\n")

# Packed sequences, one of them without queries, and visible blocks of 32.
rng = np.random.default_rng(6)
cu_q, cu_k = np.array([0, 3, 3, 10]), np.array([0, 4, 9, 16])
pq, pgrad = (rng.standard_normal((H, cu_q[-1], n)).astype(np.float32) for n in (D, DV))
pk, pv = (rng.standard_normal((G, cu_k[-1], n)).astype(np.float32) for n in (D, DV))
for name, array in dict(cu_q=cu_q, cu_k=cu_k, packed_q=pq, packed_k=pk, packed_v=pv, packed_grad=pgrad).items():
    save(name, array)
parts = []
for b in range(3):
    rows, keys = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
    one = [x[None].astype(np.float64) for x in (pq[:, rows], pk[:, keys], pv[:, keys], pgrad[:, rows])]
    n, m = one[0].shape[2], one[1].shape[2]
    parts.append(attend(*one[:3], np.arange(m) <= np.arange(n)[:, None] + m - n, grad=one[3]))
for n, part in enumerate(("o", "lse", "dq", "dk", "dv")):
    save(f"packed_{part}", np.concatenate([x[n][0] for x in parts], 1).astype(np.float32))

L = 70
bq, bk, bv, bgrad = (rng.standard_normal((2, L, 4)).astype(np.float32) for _ in range(4))
blocks = np.array([[[1, 0, 1], [0, 0, 0], [0, 1, 1]], [[0, 1, 0], [1, 1, 1], [0, 0, 1]]], bool)
for name, array in dict(blocks=blocks, blocks_q=bq, blocks_k=bk, blocks_v=bv, blocks_grad=bgrad).items():
    save(name, array)
seen = blocks.repeat(32, 1).repeat(32, 2)[:, :L, :L]
result = attend(*(x[None].astype(np.float64) for x in (bq, bk, bv)), seen[None], grad=bgrad[None].astype(np.float64))
for part, array in zip(("o", "lse", "dq", "dk", "dv"), result):
    save(f"blocks_{part}", array[0].astype(np.float32))

"""Attention as textbooks have it, in float64, with an explicit matrix of weights."""
import numpy as np


def of_batch(n_batch, value):
    return np.broadcast_to(np.asarray(value), (n_batch,))[:, None, None, None]


def offset_of(n_batch, len_q, len_k, rules):
    """The position of query 0 among the keys, of each batch."""
    if rules.get("causal") == "bottom-right":
        return of_batch(n_batch, rules.get("kv_len", len_k)) - of_batch(n_batch, rules.get("q_len", len_q))
    return of_batch(n_batch, rules.get("q_offset", 0))


def sees(n_batch, n_heads, len_q, len_k, rules):
    """[batch, heads, len_q, len_k]: which keys a query sees, one rule after another."""
    i = np.arange(len_q)[None, None, :, None]
    j = np.arange(len_k)[None, None, None, :]

    kv_len, q_len = (of_batch(n_batch, rules.get(name, whole)) for name, whole in (("kv_len", len_k), ("q_len", len_q)))
    offset = offset_of(n_batch, len_q, len_k, rules)
    see = np.ones((n_batch, n_heads, len_q, len_k), dtype=bool) & (j < kv_len) & (i < q_len)
    if rules.get("causal"):
        see &= (j <= i + offset) | (j < of_batch(n_batch, rules.get("prefix_len", 0)))
    if "window" in rules:
        left, right = rules["window"]
        see &= (left is None) | (j - i - offset >= -(left or 0))
        see &= (right is None) | (j - i - offset <= (right or 0))
    if "chunk" in rules:
        see &= (i + offset) // rules["chunk"] == j // rules["chunk"]
    if "segments" in rules:
        of_q, of_k = rules["segments"]
        see &= of_q[:, None, :, None] == of_k[:, None, None, :]
    if rules.get("mask") is not None and rules["mask"].dtype == bool:
        see &= rules["mask"]
    return see


def attention(q, k, v, **rules):
    """(o, lse, weights) of [batch, heads, len, dim]."""
    n_batch, n_heads, len_q, dim = q.shape
    groups = n_heads // k.shape[1]
    q, k, v = q.astype(float), np.repeat(k, groups, axis=1).astype(float), np.repeat(v, groups, axis=1).astype(float)
    s = q @ k.swapaxes(-1, -2) * rules.get("scale", dim**-0.5)
    if "softcap" in rules:
        s = rules["softcap"] * np.tanh(s / rules["softcap"])
    i, j = np.arange(len_q)[:, None], np.arange(k.shape[2])[None, :]
    if "alibi" in rules:
        offset = offset_of(n_batch, len_q, k.shape[2], rules)
        s = s + rules["alibi"].astype(float)[None, :, None, None] * (j - i - offset)
    if "distance_bias" in rules:
        numbers, before = rules["distance_bias"]
        offset = offset_of(n_batch, len_q, k.shape[2], rules)
        at = np.clip(before + j - i - offset, 0, numbers.shape[1] - 1)
        s = s + np.broadcast_to(numbers, (n_heads, numbers.shape[1]))[np.arange(n_heads)[None, :, None, None], at]
    if rules.get("mask") is not None and rules["mask"].dtype != bool:
        s = s + rules["mask"].astype(float)
    s = np.where(sees(n_batch, n_heads, len_q, k.shape[2], rules), s, -np.inf)
    sink = rules["sinks"].astype(float)[None, :, None, None] if "sinks" in rules else np.full((1, 1, 1, 1), -np.inf)
    top = np.maximum(s.max(axis=-1, keepdims=True, initial=-np.inf), sink)
    top = np.where(np.isfinite(top), top, 0)
    e = np.exp(s - top)
    total = e.sum(axis=-1, keepdims=True) + np.exp(sink - top)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + top)[..., 0]
    p = e / np.where(total == 0, 1, total)
    return p @ v, lse, p


def backward(q, k, v, d_o, d_lse, **rules):
    """(d_q, d_k, d_v) without a soft cap."""
    groups = q.shape[1] // k.shape[1]
    _, _, p = attention(q, k, v, **rules)
    whole_k, whole_v = (np.repeat(x, groups, axis=1).astype(float) for x in (k, v))
    o = p @ whole_v
    delta = (d_o * o).sum(axis=-1, keepdims=True) - d_lse[..., None]
    ds = p * (d_o @ whole_v.swapaxes(-1, -2) - delta) * rules.get("scale", q.shape[-1] ** -0.5)

    def of_groups(x):
        return x.reshape(x.shape[0], k.shape[1], groups, *x.shape[2:]).sum(axis=2)

    return ds @ whole_k, of_groups(ds.swapaxes(-1, -2) @ q.astype(float)), of_groups(p.swapaxes(-1, -2) @ d_o)

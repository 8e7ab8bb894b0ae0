#!/usr/bin/env python3
"""Our map beside scikit-learn's t-SNE, from the same start, in one process, on one thread.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 bench/map_peer.py --points 1024 --iters 1000 --method exact
    ... --method barnes-hut --points 10000 --iters 300

needs numpy and scikit-learn, and build/release/libqkvmodel.so. Points are 40 clusters of rows of 64 normal numbers;
metric cosine, perplexity 30, start N(0, 1e-4), all else as both have it by default. Time is that of the whole call.
KL of both maps is computed here, in float64 over all pairs, from scikit-learn's affinities.
"""
import argparse
import ctypes
import pathlib
import time

import numpy
import scipy.sparse
import sklearn
from scipy.spatial.distance import squareform
from sklearn.manifold import TSNE, _t_sne
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

DIM, PERPLEXITY = 64, 30.0
METHODS = {"exact": 1, "barnes-hut": 2}


class MapOptions(ctypes.Structure):
    """qkv_map_options, qkv/inspect.h."""

    _fields_ = [("struct_size", ctypes.c_size_t), ("metric", ctypes.c_int), ("perplexity", ctypes.c_double),
                ("n_iters", ctypes.c_int64), ("n_runs", ctypes.c_int64), ("init", ctypes.c_int),
                ("seed", ctypes.c_uint64), ("no_early_stop", ctypes.c_int), ("center_keys", ctypes.c_int),
                ("balance", ctypes.c_double), ("pca_only", ctypes.c_int), ("start", ctypes.c_void_p),
                ("method", ctypes.c_int), ("theta", ctypes.c_double), ("auto_balance", ctypes.c_int)]


def our_map(library, x, start, method, iters):
    """A map by qkv_inspect_map, and the seconds it took. The first half of the rows are queries."""
    context = ctypes.c_void_p()
    library.qkv_ctx_create.restype = library.qkv_inspect_map.restype = ctypes.c_int
    assert library.qkv_ctx_create(None, ctypes.byref(context), None) == 0
    begin = start.astype(numpy.float64)
    options = MapOptions(ctypes.sizeof(MapOptions), 0, PERPLEXITY, iters, 1, 0, 0, 0, 0, 0, 0, begin.ctypes.data,
                         METHODS[method], 0, 0)
    xy = numpy.empty((len(x), 2))
    half = len(x) // 2
    error = ctypes.create_string_buffer(1024)
    pointer = ctypes.c_void_p
    clock = time.perf_counter()
    status = library.qkv_inspect_map(context, ctypes.byref(options), ctypes.c_int64(half), ctypes.c_int64(len(x) - half),
                                     ctypes.c_int64(x.shape[1]), pointer(x.ctypes.data), pointer(x[half:].ctypes.data),
                                     pointer(xy.ctypes.data), None, None, None, None, error)
    seconds = time.perf_counter() - clock
    assert status == 0, error.raw
    library.qkv_ctx_free(context)
    return xy, seconds


def their_map(x, start, method, iters):
    tsne = TSNE(method=method.replace("-", "_"), metric="cosine", init=start.copy(), perplexity=PERPLEXITY,
                max_iter=iters)
    clock = time.perf_counter()
    xy = tsne.fit_transform(x)
    return xy.astype(numpy.float64), time.perf_counter() - clock


def affinities(x, method):
    """scikit-learn's joint affinities, as a sparse matrix."""
    if method == "exact":
        distances = pairwise_distances(x, metric="cosine") ** 2
        return scipy.sparse.csr_matrix(squareform(_t_sne._joint_probabilities(distances, PERPLEXITY, 0)))
    neighbours = NearestNeighbors(n_neighbors=int(3 * PERPLEXITY + 1), metric="cosine").fit(x)
    distances = neighbours.kneighbors_graph(mode="distance")
    distances.data **= 2
    return _t_sne._joint_probabilities_nn(distances, PERPLEXITY, 0)


def kl_of(joint, xy):
    coo = joint.tocoo()
    apart = xy[coo.row] - xy[coo.col]
    w = 1 / (1 + (apart ** 2).sum(1))
    all_w = 0.0
    for first in range(0, len(xy), 500):
        block = xy[first:first + 500]
        d2 = (block[:, None, 0] - xy[None, :, 0]) ** 2 + (block[:, None, 1] - xy[None, :, 1]) ** 2
        all_w += (1 / (1 + d2)).sum() - len(block)
    p = coo.data.astype(numpy.float64)
    return (p * numpy.log(p * all_w / w)).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1024)
    parser.add_argument("--iters", type=int, default=1000)
    parser.add_argument("--method", choices=METHODS, default="exact")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-kl", action="store_true", help="times only")
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--library", default=root / "build" / "release" / "libqkvmodel.so")
    o = parser.parse_args()
    random = numpy.random.default_rng(o.seed)
    x = random.normal(size=(40, DIM))[random.integers(0, 40, o.points)] + 0.7 * random.normal(size=(o.points, DIM))
    x = numpy.ascontiguousarray(x, numpy.float32)
    start = (1e-4 * random.normal(size=(o.points, 2))).astype(numpy.float32)
    ours, our_seconds = our_map(ctypes.CDLL(str(o.library)), x, start, o.method, o.iters)
    theirs, their_seconds = their_map(x, start, o.method, o.iters)
    print(f"{o.points} points, {o.iters} iterations, {o.method}, seed {o.seed}, scikit-learn {sklearn.__version__}: "
          f"qkv {our_seconds:.2f} s, scikit-learn {their_seconds:.2f} s, ratio {their_seconds / our_seconds:.1f}", flush=True)
    if not o.no_kl:
        joint = affinities(x, o.method)
        kl = kl_of(joint, ours), kl_of(joint, theirs)
        print(f"KL {kl[0]:.5f}, scikit-learn {kl[1]:.5f}, {100 * (kl[0] / kl[1] - 1):+.2f} %")


main()

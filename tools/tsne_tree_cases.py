#!/usr/bin/env python3
"""Makes tests/golden/tsne_tree_cases.bin: stages of scikit-learn's Barnes-Hut t-SNE of 120 points.

    python3 tools/tsne_tree_cases.py   needs numpy and scikit-learn; the tests themselves need no Python

The file is float32, little-endian: the version of scikit-learn (100 major + minor), n, dim, perplexity;
x [n][dim]; start [n][2] and y [n][2]; then, for the metric cosine,
    joint p, of pairs i < j    _joint_probabilities_nn on the int(3 perplexity + 1) nearest, entropies within 1e-5
    kl, gradient [n][2]        _kl_divergence_bh at y, angle 0: over all pairs
    kl, gradient [n][2]        the same with angle 0.5
    rate, kl, map [n][2]       of TSNE(method='barnes_hut', init=start, learning_rate=rate, max_iter=1000); kl is
                               that before the last step
The rate is small enough that a start moved by 1e-6 ends at a KL that differs by 1.2e-3 of it.
"""
import pathlib

import numpy
import sklearn
from sklearn.manifold import TSNE, _t_sne
from sklearn.neighbors import NearestNeighbors

N, DIM, PERPLEXITY, RATE = 120, 16, 8.0, 0.5


def descend(x, start):
    tsne = TSNE(method="barnes_hut", metric="cosine", init=start.copy(), learning_rate=RATE, perplexity=PERPLEXITY,
                max_iter=1000)
    end = tsne.fit_transform(x)
    return tsne.kl_divergence_, end


def main():
    random = numpy.random.default_rng(3)
    centres = random.normal(size=(6, DIM))
    x = (centres[random.integers(0, 6, N)] + 0.7 * random.normal(size=(N, DIM))).astype(numpy.float32)
    start = (1e-4 * random.normal(size=(N, 2))).astype(numpy.float32)
    y = (8 * random.normal(size=(N, 2))).astype(numpy.float32)
    neighbours = NearestNeighbors(n_neighbors=int(3 * PERPLEXITY + 1), metric="cosine", algorithm="brute").fit(x)
    distances = neighbours.kneighbors_graph(mode="distance")
    distances.data **= 2
    joint = _t_sne._joint_probabilities_nn(distances, PERPLEXITY, 0)
    stages = []
    for angle in (0.0, 0.5):
        stages += _t_sne._kl_divergence_bh(y.ravel().copy(), joint, 1, N, 2, angle=angle, num_threads=1)
    kl, end = descend(x, start)
    moved = descend(x, start * numpy.float32(1 + 1e-6))[0]
    print("KL", kl, "from a start moved by 1e-6", moved)
    major, minor = sklearn.__version__.split(".")[:2]
    parts = [100 * int(major) + int(minor), N, DIM, PERPLEXITY, x, start, y,
             joint.toarray()[numpy.triu_indices(N, 1)], *stages, RATE, kl, end]
    flat = numpy.concatenate([numpy.ravel(numpy.asarray(p, "<f4")) for p in parts])
    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "tsne_tree_cases.bin"
    path.write_bytes(flat.tobytes())
    print(path, len(flat), "numbers, scikit-learn", sklearn.__version__)


main()

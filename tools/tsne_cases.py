#!/usr/bin/env python3
"""Makes tests/golden/tsne_cases.bin: stages of scikit-learn's exact t-SNE of 22 points.

    python3 tools/tsne_cases.py        needs numpy and scikit-learn; the tests themselves need no Python

The file is float64, little-endian: the version of scikit-learn (100 major + minor), n, dim, perplexity;
x [n][dim] (floats); start [n][2] and y [n][2] (floats); then for the metrics cosine and euclidean
    conditional p [n][n]   _binary_search_perplexity on float32 distances, entropies within 1e-5
    joint p [n][n]         _joint_probabilities
    kl, gradient [n][2]    _kl_divergence at y
    rate, kl, map [n][2]   of TSNE(method='exact', init=start, learning_rate=rate, max_iter=1000); kl is
                           that before the last step
Rates are small enough that a start moved by 1e-6 ends at the same map. With the default, 50, two such
runs of scikit-learn itself end with KL that differ by several per cent.
"""
import pathlib

import numpy
import sklearn
from scipy.spatial.distance import squareform
from sklearn.manifold import TSNE, _t_sne, _utils
from sklearn.metrics import pairwise_distances

N, DIM, PERPLEXITY = 22, 64, 5.0
RATES = {"cosine": 1.0, "euclidean": 0.5}


def stages(x, start, y, metric):
    distances = pairwise_distances(x, metric=metric) ** 2
    conditional = _utils._binary_search_perplexity(distances.astype(numpy.float32), PERPLEXITY, 0)
    joint = _t_sne._joint_probabilities(distances, PERPLEXITY, 0)
    kl, gradient = _t_sne._kl_divergence(y.astype(numpy.float64).ravel(), joint, 1, N, 2)
    tsne = TSNE(method="exact", metric=metric, init=start.copy(), learning_rate=RATES[metric],
                perplexity=PERPLEXITY, max_iter=1000)
    end = tsne.fit_transform(x)
    return [conditional, squareform(joint), kl, gradient, RATES[metric], tsne.kl_divergence_, end]


def main():
    random = numpy.random.default_rng(2)
    x = random.normal(size=(N, DIM)).astype(numpy.float32)
    start = (1e-4 * random.normal(size=(N, 2))).astype(numpy.float32)
    y = random.normal(size=(N, 2)).astype(numpy.float32)
    major, minor = sklearn.__version__.split(".")[:2]
    parts = [100 * int(major) + int(minor), N, DIM, PERPLEXITY, x, start, y]
    for metric in ("cosine", "euclidean"):
        parts += stages(x, start, y, metric)
    flat = numpy.concatenate([numpy.ravel(numpy.asarray(p, "<f8")) for p in parts])
    path = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "tsne_cases.bin"
    path.write_bytes(flat.astype("<f8").tobytes())
    print(path, len(flat), "numbers, scikit-learn", sklearn.__version__)


main()

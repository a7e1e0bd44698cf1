"""K-means (Lloyd 1982), clusters counted by silhouette: scikit-learn, made deterministic."""

from __future__ import annotations

import importlib
import warnings
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

    from optsched.documents.arrays import Floats, Indices

LARGE = 256  # points, beyond which distances are not computed pair by pair
KEPT = 64  # results: several rules ask for the same bins, ten numbers of clusters for each class


def kmeans(points: Floats, clusters: int, seed: int) -> tuple[Floats, Indices]:
    """Cluster points with k-means++, the best of ten starts.

    Ten starts were scikit-learn's default when PAL was released; today's default is one.

    Parameters
    ----------
    points
        Array (points, features).
    clusters
        Number of clusters, at most the number of distinct points.
    seed
        Of the starts. The result also depends on the order of the points.

    Returns
    -------
    centres, labels
        Arrays (clusters, features) and (points,). Where points are equal but for rounding, some
        clusters may stay empty.
    """
    shape = len(points), points.shape[1]
    return _fitted(np.ascontiguousarray(points).tobytes(), shape, clusters, seed)


@lru_cache(KEPT)
def _fitted(
    points: bytes, shape: tuple[int, int], clusters: int, seed: int
) -> tuple[Floats, Indices]:
    """Return centres and labels, which nobody may write to."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    values = np.frombuffer(points).reshape(shape)
    # With several threads the sums, and so the last digits, depend on which one is first.
    with _openmp().limit(limits=1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # empty clusters
        fitted = KMeans(clusters, init="k-means++", n_init=10, random_state=seed).fit(values)
    centres = np.asarray(fitted.cluster_centers_, dtype=np.float64)
    labels = np.asarray(fitted.labels_, dtype=np.intp)
    for made in (centres, labels):
        made.setflags(write=False)
    return centres, labels


def load() -> None:
    """Import scikit-learn, which takes a second: beforehand, not when bins are first asked for."""
    importlib.import_module("sklearn.cluster")
    _openmp()


@cache  # once scikit-learn is imported: looking for libraries takes as long as a small fit
def _openmp() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def distinct(points: Floats) -> int:
    """Return the number of distinct points of an array (points, features)."""
    return len(np.unique(points, axis=0))


def silhouettes(points: Floats, seed: int) -> dict[int, float]:
    """Return the mean silhouette for each number of clusters from 2 to 10 that the points allow.

    Empty where there are fewer than three points or fewer than two distinct ones.
    """
    most = min(10, len(points) - 1, distinct(points))
    scores = {}
    for clusters in range(2, most + 1):
        labels = kmeans(points, clusters, seed)[1]
        if len(np.unique(labels)) == clusters:
            scores[clusters] = silhouette(points, labels)
    return scores


def silhouette(points: Floats, labels: Indices) -> float:
    """Return the mean silhouette: of many points with one feature by sorting, else by all pairs."""
    if len(points) > LARGE and points.shape[1] == 1:
        return float(_on_a_line(points[:, 0], labels).mean())
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(points, labels))


def _on_a_line(values: Floats, labels: Indices) -> Floats:
    """Return the silhouette of each value: 0 for one that is alone in its cluster."""
    used = np.unique(labels)
    sizes = np.array([np.count_nonzero(labels == label) for label in used])
    distances = np.stack([_distances(values, values[labels == label]) for label in used])
    own = labels == used[:, np.newaxis]
    inside = distances[own.argmax(axis=0), np.arange(len(values))]
    others = np.where(own, np.inf, distances / sizes[:, np.newaxis]).min(axis=0)
    size = sizes[own.argmax(axis=0)]
    inside = inside / np.maximum(size - 1, 1)
    largest = np.maximum(inside, others)
    score = np.divide(others - inside, largest, out=np.zeros_like(values), where=largest > 0)
    return np.where(size > 1, score, 0.0)


def _distances(values: Floats, members: Floats) -> Floats:
    """Return the sum of the distances from each value to some members."""
    ascending = np.sort(members)
    sums = np.concatenate([[0.0], np.cumsum(ascending)])
    below = np.searchsorted(ascending, values)
    near = values * (2 * below - len(members)) - 2 * sums[below]
    distances: Floats = near + sums[-1]
    return distances


def best_clusters(scores: dict[int, float]) -> int:
    """Return the number of clusters with the best silhouette, the least of equal ones."""
    return max(scores, key=lambda clusters: (scores[clusters], -clusters))

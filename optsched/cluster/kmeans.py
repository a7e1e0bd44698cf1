"""K-means, and the number of clusters by silhouette: scikit-learn, made deterministic."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_CLUSTERS = 10


def kmeans(
    points: NDArray[np.float64], clusters: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
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
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    # With several threads the sums, and so the last digits, depend on which one is first.
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # empty clusters
        fitted = KMeans(clusters, init="k-means++", n_init=10, random_state=seed).fit(points)
    centres = np.asarray(fitted.cluster_centers_, dtype=np.float64)
    return centres, np.asarray(fitted.labels_, dtype=np.intp)


def distinct(points: NDArray[np.float64]) -> int:
    """Return the number of distinct points of an array (points, features)."""
    return len(np.unique(points, axis=0))


def silhouettes(points: NDArray[np.float64], seed: int) -> dict[int, float]:
    """Return the mean silhouette for each number of clusters from 2 to 10 that the points allow.

    Empty where there are fewer than three points or fewer than two distinct ones.
    """
    from sklearn.metrics import silhouette_score

    most = min(MOST_CLUSTERS, len(points) - 1, distinct(points))
    scores = {}
    for clusters in range(2, most + 1):
        labels = kmeans(points, clusters, seed)[1]
        if len(np.unique(labels)) == clusters:
            scores[clusters] = float(silhouette_score(points, labels))
    return scores


def best_clusters(scores: dict[int, float]) -> int:
    """Return the number of clusters with the best silhouette, the least of equal ones."""
    return max(scores, key=lambda clusters: (scores[clusters], -clusters))

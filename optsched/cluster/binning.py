"""Bins: the few values that stand for the slowdowns of many GPUs, one class at a time.

`exact` and `geometric` take each GPU to an upper bound of its slowdown and say how far above it
lies, so a placement that is optimal for the bins is within that factor of the optimum. `kmeans_*`
are PAL's, for the sake of its greedy: centres are no bounds, so nothing is guaranteed
(docs/math/pal.md, Binning).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optsched.cluster.kmeans import best_clusters, distinct, kmeans, silhouettes
from optsched.instance import LARGEST, SMALLEST  # the range of slowdowns in a profile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from optsched.documents.arrays import Bools, Floats, Indices


@dataclass(frozen=True, eq=False)
class Binned:
    """Slowdowns of one class, binned.

    Attributes
    ----------
    values
        Value of each bin, ascending, an array (bins,).
    index
        Bin of each GPU, an array (GPUs,).
    guarantee
        Factor f for which slowdown <= value <= f x slowdown holds for every GPU; None where
        values are no bounds.
    """

    values: Floats
    index: Indices
    guarantee: float | None

    @property
    def scores(self) -> Floats:
        """The value of each GPU's bin, an array (GPUs,)."""
        return self.values[self.index]


def exact(slowdown: ArrayLike) -> Binned:
    """Bin by distinct values.

    Parameters
    ----------
    slowdown
        Slowdown of each GPU, (GPUs,), between 1e-9 and 1e12.

    Examples
    --------
    >>> from optsched.cluster.binning import exact
    >>> binned = exact([1.1, 1.0, 1.1])
    >>> binned.values.tolist(), binned.index.tolist()
    ([1.0, 1.1], [1, 0, 1])
    """
    return _binned(_checked(slowdown), guarantee=1.0)


def geometric(slowdown: ArrayLike, epsilon: float) -> Binned:
    """Round slowdowns up to powers of 1 + epsilon; a class that hardly varies gets one bin.

    The value of V is (1 + epsilon) ** ceil(log V / log(1 + epsilon)), except that a class whose
    greatest slowdown is within 1 + epsilon of the least has its greatest one as the only value.
    Then V <= value <= (1 + epsilon) V, exactly, whatever rounding does to powers and logarithms.

    Parameters
    ----------
    slowdown
        Slowdown of each GPU, (GPUs,), between 1e-9 and 1e12.
    epsilon
        Between 1e-9 and 1; 0.01 is one percent.

    Raises
    ------
    ValueError
        If a slowdown or epsilon is out of range.

    Notes
    -----
    Raising one slowdown never lowers its own value. It never lowers another GPU's either, unless it
    ends the exception above: the others then fall back to the powers.

    Examples
    --------
    >>> from optsched.cluster.binning import geometric
    >>> geometric([1.0, 1.3, 1.8], 0.5).values.tolist()
    [1.0, 1.5, 2.25]
    """
    values = _checked(slowdown)
    if not SMALLEST <= epsilon <= 1:
        raise ValueError(f"epsilon must be between {SMALLEST:g} and 1, found {epsilon!r}")
    base = 1.0 + epsilon
    limit = values * base * (1 - 2.0**-50)  # below (1 + epsilon) V after three roundings, above V
    if values.max() <= limit.min():
        return _binned(np.full_like(values, values.max()), guarantee=base)
    power = np.ceil(np.log(values) / math.log(base))
    power -= base ** (power - 1) >= values  # the quotient may be rounded across a whole number
    power += base**power < values
    return _binned(np.minimum(base**power, limit), guarantee=base)


def kmeans_as_released(slowdown: ArrayLike, seed: int = 1) -> Binned:
    """Bin with K-means into 2 clusters and one more for each outlier, as PAL's code does.

    An outlier lies more than three (sample) standard deviations above the mean. The value of a bin
    is its centre over the median of the centres. The code means to choose the 2 by silhouette, but
    returns inside the first turn of the loop: see `kmeans_by_silhouette`.

    Parameters
    ----------
    slowdown
        Slowdown of each GPU, (GPUs,), between 1e-9 and 1e12. Another order of the GPUs may give
        other bins: the starts of K-means are drawn by position.
    seed
        1 in the release.

    Returns
    -------
    Binned
        Without a guarantee: a GPU may be slower than the value of its bin. There are never more
        bins than distinct slowdowns.

    Notes
    -----
    Source: hal-uw/blox-pal, branch artifact, commit 8a59070, placement/pal.py; it has the default
    of ten starts of scikit-learn before 1.4.
    """
    values = _checked(slowdown)
    return _kmeans_bins(values, 2, seed)


def kmeans_by_silhouette(slowdown: ArrayLike, seed: int = 1) -> Binned:
    """Bin with K-means as PAL is published: the number of clusters by silhouette.

    As `kmeans_as_released`, but with the number in 2..10 that has the best mean silhouette over
    GPUs that are no outliers (2 where these are too few or too equal to tell) in the place of 2.

    Parameters
    ----------
    slowdown
        Slowdown of each GPU, (GPUs,), between 1e-9 and 1e12.
    seed
        Of the starts of K-means.

    Returns
    -------
    Binned
        Without a guarantee.

    Notes
    -----
    Source: Jain et al., SC 2024, arXiv 2408.11919, by way of what the released code intends.
    """
    values = _checked(slowdown)
    scores = silhouettes(values[~_outliers(values), np.newaxis], seed)
    return _kmeans_bins(values, best_clusters(scores) if scores else 2, seed)


def _kmeans_bins(values: Floats, typical: int, seed: int) -> Binned:
    points = values[:, np.newaxis]
    clusters = min(typical + int(_outliers(values).sum()), distinct(points))
    centres, labels = kmeans(points, clusters, seed)
    scores = centres[:, 0] / np.median(centres)
    return _binned(scores[labels], guarantee=None)


def _outliers(values: Floats) -> Bools:
    if len(values) < 2:
        return np.zeros(len(values), dtype=np.bool_)
    return np.asarray(values > values.mean() + 3 * values.std(ddof=1))


def _binned(scores: Floats, guarantee: float | None) -> Binned:
    values, index = np.unique(scores, return_inverse=True)
    index = index.astype(np.intp)
    values.setflags(write=False)
    index.setflags(write=False)
    return Binned(values, index, guarantee)


def _checked(slowdown: ArrayLike) -> Floats:
    values = np.asarray(slowdown, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"slowdowns must be a list of one per GPU, found shape {values.shape}")
    wrong = np.flatnonzero(~((values >= SMALLEST) & (values <= LARGEST)))
    if wrong.size:
        n = int(wrong[0])
        limits = f"must be between {SMALLEST:g} and {LARGEST:g}"
        raise ValueError(f"slowdown of GPU number {n} {limits}, found {float(values[n])!r}")
    return values

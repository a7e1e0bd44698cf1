"""Intervals of what several paired samples tell: bootstraps over seeds, or over blocks of jobs.

Source: Efron, "Better bootstrap confidence intervals", 1987 (BCa); blocks as in Carlstein, "The use
of subseries values for estimating the variance of a general statistic from a stationary
sequence", 1986.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from optsched.documents.arrays import Floats, Integers

    Statistic = Callable[..., Floats]
    Ends = tuple[float, float]


MANY = 10
"""Values from which on BCa is used; with fewer, 95 % are visibly less: with 5, some 85 %."""


def bootstrapped(samples: Sequence[Floats], statistic: Statistic) -> Ends | None:
    """Return the bootstrap interval of a statistic of paired samples, None where there is none.

    Bias-corrected and accelerated (BCa) from `MANY` values on. Of fewer a bootstrap has so few
    means that the correction hangs on ties between them: percentiles then, and where BCa has no
    figure, as with all values alike.

    Parameters
    ----------
    samples
        Of one length each; what stands at one place belongs together.
    statistic
        Of samples, along their last axis, which it is given as `axis`.
    """
    from scipy.stats import DegenerateDataWarning, bootstrap

    if len(samples[0]) < 2 or any(np.isnan(sample).any() for sample in samples):
        return None
    told = float(statistic(*samples, axis=-1))
    for method in ("BCa", "percentile") if len(samples[0]) >= MANY else ("percentile",):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", DegenerateDataWarning)
            interval = bootstrap(
                tuple(samples), statistic, paired=True, vectorized=True, method=method,
                confidence_level=SETTINGS.confidence, n_resamples=SETTINGS.resamples, batch=1000,
                rng=np.random.default_rng(0),
            ).confidence_interval  # fmt: skip
        low, high = float(interval.low), float(interval.high)
        if math.isfinite(low) and math.isfinite(high):
            return min(low, told), max(high, told)
    return None


def percentiles(draws: Floats) -> Ends | None:
    """Return the interval that holds the middle share of draws, each of which is a whole."""
    if len(draws) < 2 or np.isnan(draws).any():
        return None
    share = 100 * (1 - SETTINGS.confidence) / 2
    low, high = np.percentile(draws, [share, 100 - share])
    return float(low), float(high)


def mean(values: Floats, axis: int = -1) -> Floats:
    """Return the mean."""
    found: Floats = values.mean(axis=axis)
    return found


def difference_of_means(
    total: Floats, count: Floats, base: Floats, base_count: Floats, axis: int = -1
) -> Floats:
    """Return the mean of what blocks hold in total, less that of a base; NaN of no job."""
    told: Floats = total.sum(axis) / count.sum(axis) - base.sum(axis) / base_count.sum(axis)
    return told


def block_sums(values: Floats, block: int) -> tuple[Floats, Floats]:
    """Return sum and count of the numbers in each block of consecutive jobs; NaN is no number."""
    starts: Integers = np.arange(0, len(values), block)
    is_told = ~np.isnan(values)
    total = np.add.reduceat(np.where(is_told, values, 0.0), starts)
    return total, np.add.reduceat(is_told.astype(float), starts)


def block_length(jobs: int) -> int:
    """Return how many jobs a block has: as many as there are blocks, about."""
    return max(1, round(math.sqrt(jobs)))

"""Fit of the minutes to failure, reason by reason, to table 7."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from optsched.traces.generators.failed_attempts import bends, quantiles
from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.philly_statistics import PHILLY, REASONS
from optsched.traces.generators.random_draws import log_quantiles, stratified
from optsched.traces.generators.workload_models import class_of

GPU_MINUTES_PER_MINUTE = 49_486_648 / 13.5e6
"""Of all trials: table 7's GPU-minutes, over the minutes that make its longest times plausible."""
BENDS = 1.0, 10.0
LEAST_TAIL = 1.1
"""The longest time to failure is at least this times the 95th percentile."""
STEPS = (np.arange(2000) + 0.5) / 2000


def mean_minutes(row, longest, bend):
    """Return the mean minutes to failure of a reason, as the generator draws them."""
    edges = np.log(quantiles(row, longest))
    places = STEPS[:, None] ** np.array(bends(row, bend))
    means = np.exp(edges[:-1] + np.diff(edges) * places).mean(axis=0)
    return float(np.diff(PHILLY.trial_levels) @ means)


def shape(row, minutes):
    """Return the longest time and the bend that give a reason its share of all minutes.

    The tail is stretched if the mean is above that of straight lines in the logarithm, and the
    lines are bent if it is below; it cannot be below that of the staircase.
    """
    wanted = row.time_share / 100 * minutes / row.trials
    least = row.p95 * LEAST_TAIL
    if mean_minutes(row, least, BENDS[0]) < wanted:
        return brentq(lambda most: mean_minutes(row, most, 1.0) - wanted, least, 1e7), BENDS[0]
    if mean_minutes(row, least, BENDS[1]) > wanted:
        return least, BENDS[1]
    return least, brentq(lambda bend: mean_minutes(row, least, bend) - wanted, *BENDS)


def tilt(row, longest, bend, minutes, count=200_000):
    """Return how much log2 of the gang adds to the normal score of a trial's minutes."""
    if row.gpu_time_share == 0:
        return 0.0
    rng = np.random.default_rng(0)
    size = np.array(PHILLY.sizes)
    column = np.minimum(class_of(size), 2)
    among = np.bincount(column, weights=FITTED.size_shares)
    shares = np.array(row.demand)[column] * FITTED.size_shares / among[column]
    gpus = np.repeat(size, np.rint(shares / shares.sum() * count).astype(int))
    score = ndtri(stratified(rng, class_of(gpus)))
    place, first = (np.arange(len(gpus)) + 0.5) / len(gpus), np.zeros(len(gpus), dtype=int)
    table, bent = [quantiles(row, longest)], [bends(row, bend)]
    drawn = log_quantiles(place, PHILLY.trial_levels, table, first, bent)
    total = GPU_MINUTES_PER_MINUTE * minutes
    wanted = row.gpu_time_share / 100 * total / row.trials

    def excess(value):
        order = np.argsort(score + value * np.log2(np.minimum(gpus, FITTED.largest_tilted)))
        return gpus[order] @ drawn / len(gpus) - wanted

    low, high = -1.0, 3.0
    if excess(low) > 0 or excess(high) < 0:
        return low if excess(low) > 0 else high
    return brentq(excess, low, high, xtol=0.005)


def fit(minutes):
    """Return longest times, bends and tilts, if all trials together run so many minutes."""
    shapes = [shape(row, minutes) for row in REASONS]
    tilts = [tilt(row, *form, minutes) for row, form in zip(REASONS, shapes, strict=True)]
    longest, bends = zip(*shapes, strict=True)
    return {
        "longest_trial": tuple(float(f"{most:.4g}") for most in longest),
        "trial_bend": tuple(round(float(bend), 2) for bend in bends),
        "tilt": tuple(round(float(value), 3) for value in tilts),
    }

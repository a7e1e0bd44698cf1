"""Fit of the virtual clusters: shares of jobs and of GPU-hours."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from optsched.traces import US, generate, seen_us
from optsched.traces.generators.philly_statistics import PHILLY
from optsched.traces.generators.virtual_clusters import chances_of

JOBS_COUNT = 20.0
"""Weight of the shares of jobs, beside those of GPU-hours."""


def fit(jobs=96_260, seed=0):
    """Return levels and slopes, and the largest differences that remain, in points."""
    if not _is_set():
        _stand_in()
    trace = generate("philly-atc19", jobs, seed)
    hours = trace.gpus * seen_us(trace) / US / 3600
    logs = np.log(hours)
    table = np.array([row[1:] for row in PHILLY.virtual_clusters]).T
    wanted = table / table.sum(axis=1, keepdims=True)
    count = wanted.shape[1]

    def unpacked(values):
        return np.append(values[: count - 1], 0.0), np.append(values[count - 1 :], 0.0)

    def shares(values):
        chances = chances_of(logs, *unpacked(values))
        return np.array([chances.sum(axis=0) / jobs, hours @ chances / hours.sum()])

    level, slope = np.log(wanted[0]), np.log(wanted[1] / wanted[0]) / 4
    start = np.concatenate(((level - level[-1])[:-1], (slope - slope[-1])[:-1]))
    weight = np.array([[JOBS_COUNT], [1.0]]) / np.sqrt(wanted)
    found = least_squares(lambda v: ((shares(v) - wanted) * weight).ravel(), start)
    level, slope = unpacked(found.x)
    off = 100 * np.abs(shares(found.x) - wanted).max(axis=1)
    constants = {
        "queue_level": tuple(round(float(x), 4) for x in level - level.mean()),
        "queue_slope": tuple(round(float(x), 4) for x in slope - slope.mean()),
    }
    return constants, f"virtual clusters off by {off[0]:.2f} points of jobs, {off[1]:.2f} of hours"


def _is_set():
    from optsched.traces.generators.philly_constants import FITTED

    return bool(FITTED.queue_level)


def _stand_in():
    """Put every job anywhere, so that a trace can be generated at all."""
    from optsched.traces.generators.philly_constants import FITTED

    none = (0.0,) * len(PHILLY.virtual_clusters)
    vars(FITTED).update(queue_level=none, queue_slope=none)

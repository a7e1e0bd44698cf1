"""Fit of the virtual clusters: shares of jobs and of GPU-hours."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from optsched.traces import US, generate, seen_us
from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.philly_statistics import PHILLY, SIZE_CLASSES
from optsched.traces.generators.virtual_clusters import chances_of
from optsched.traces.generators.workload_models import class_of

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


STEPS, LEVEL_STEP, SLOPE_STEP = 400, 0.9, 0.08


def fit_by_size(jobs=96_260, seed=0):
    """Return levels by size class and slopes, and the largest differences that remain, in points.

    How the jobs of a size class are divided is the CSV's table of virtual clusters and sizes, raked
    (Deming & Stephan, 1940) to the shares of the virtual clusters and of the size classes.
    """
    wanted = raked()
    trace = generate("philly-atc19", jobs, seed)
    hours, size = trace.gpus * seen_us(trace) / US / 3600, class_of(trace.gpus)
    logs, is_of = np.log(hours), np.eye(len(SIZE_CLASSES))[size]
    of_hours = np.array([row[2] for row in PHILLY.virtual_clusters])
    of_hours /= of_hours.sum()
    level, slope = np.log(wanted), np.zeros(len(wanted))
    for _ in range(STEPS):
        chances = chances_of(logs, level.T[size], slope)
        found = chances.T @ is_of / jobs
        level = level + LEVEL_STEP * np.log(wanted / found)
        slope = slope + SLOPE_STEP * np.log(of_hours * hours.sum() / (hours @ chances))
        slope -= slope.mean()
    off = 100 * np.abs(found - wanted).max()
    off_hours = 100 * np.abs(hours @ chances / hours.sum() - of_hours).max()
    level -= level.mean(axis=0)
    constants = {
        "queue_levels_by_size": tuple(tuple(row) for row in level.T.round(4).tolist()),
        "queue_slope_by_size": tuple(slope.round(4).tolist()),
    }
    return constants, f"by size off by {off:.2f} points of jobs, {off_hours:.2f} of hours"


def raked(rounds=2000):
    """Return the share of all jobs by virtual cluster and size class; half a job where is none."""
    table = np.array(PHILLY.virtual_cluster_sizes) + 0.5
    rows = np.array([row[1] for row in PHILLY.virtual_clusters])
    columns = np.array(FITTED.class_shares)
    for _ in range(rounds):
        table *= (rows / rows.sum() / table.sum(axis=1))[:, None]
        table *= columns / columns.sum() / table.sum(axis=0)
    return table


def _is_set():
    return bool(FITTED.queue_level)


def _stand_in():
    """Put every job anywhere, so that a trace can be generated at all."""
    none = (0.0,) * len(PHILLY.virtual_clusters)
    vars(FITTED).update(queue_level=none, queue_slope=none)

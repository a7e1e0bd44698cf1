"""Fit of killed jobs: which share of the GPU time, and of the jobs, of each size."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, linprog

from optsched.traces.generators import kills
from optsched.traces.generators.philly_statistics import PHILLY, SIZE_CLASSES
from optsched.traces.generators.random_draws import log_quantiles

TOLERANCE_POINTS, TOLERANCE = 3.0, 0.10
"""A cell of table 3 or 6 is met within so many points, or this share of it."""
BY_SIZE = 3.0
"""Points of the cells of table 3 over all statuses."""
ENOUGH = 0.9
"""Of the tolerance: within it killed jobs are spread over the sizes as evenly as can be."""
ALL = 52.43, 42.98, 60.43, 52.32
"""Table 3: passed, killed, unsuccessful and all jobs, over all sizes."""
GRID = (np.arange(4000) + 0.5) / 4000


def targets(failed, others):
    """Return killed jobs' GPU-hours by size class, and how far the worst cell is off.

    The cells of tables 3 and 6 that hang on them are linear in them; the largest distance, in units
    of the tolerance, is made as small as it can be: 1 and less means that all cells are met at once
    with this GPU time by size. Sizes that table 3 lacks count as the next one that it has.
    """
    use = np.array(PHILLY.utilization)
    total = (failed + others).sum()
    wanted = np.array(PHILLY.status_gpu_time) / 100 * total
    rows, limits = [], []

    def near(coefficients, value, tolerance):
        """Add |coefficients @ killed - value| <= tolerance x distance."""
        rows.append([*coefficients, -tolerance])
        rows.append([*(-np.array(coefficients)), -tolerance])
        limits.extend([value, -value])

    for n in range(len(SIZE_CLASSES)):
        held, row = failed[n] + others[n], np.zeros(4)
        row[n] = use[1][n] - use[0][n]
        known = use[2][n] * failed[n] + use[0][n] * others[n]
        near(row, PHILLY.utilization_all[n] * held - known, BY_SIZE * held)
    near(use[1] - ALL[1], 0.0, within(ALL[1]) * wanted[1])
    near(ALL[0] - use[0], (ALL[0] - use[0]) @ others, within(ALL[0]) * wanted[0])
    known = use[2] @ failed + use[0] @ others
    near(use[1] - use[0], ALL[3] * total - known, within(ALL[3]) * total)
    near(np.ones(4), wanted[1], TOLERANCE_POINTS / 100 * total)
    bounds = [(0.02 * part, 0.9 * part) for part in others] + [(0, None)]
    found = linprog([0, 0, 0, 0, 1], rows, limits, bounds=bounds)
    return _even(rows, limits, others, max(ENOUGH, found.x[4])), float(found.x[4])


def _even(rows, limits, others, distance):
    """Return killed GPU-hours within the distance, of shares as equal as these can be."""
    share = PHILLY.status_gpu_time[1] / (PHILLY.status_gpu_time[0] + PHILLY.status_gpu_time[1])
    rows, limits = [[*row, 0.0] for row in rows], list(limits)
    for n, part in enumerate(others):
        for sign in (1.0, -1.0):
            row = [0.0] * 6
            row[n], row[5] = sign, -part
            rows.append(row)
            limits.append(sign * share * part)
    bounds = [(0, None)] * 4 + [(distance, distance), (0, None)]
    return linprog([0, 0, 0, 0, 0, 1], rows, limits, bounds=bounds).x[:4]


def within(target):
    """Return by how much a cell of a table may be off."""
    return max(TOLERANCE_POINTS, TOLERANCE * target)


def shares(slope, levels, minutes, wanted, extra, work, not_failed):
    """Return the killed shares of jobs that do not fail by size, and of all jobs."""
    found = []
    for c in range(len(SIZE_CLASSES)):
        run = log_quantiles(GRID, levels, minutes, np.full(len(GRID), c))
        weight = run / run.sum()

        def excess(share, c=c, weight=weight):
            logit = slope * np.log(GRID / (1 - GRID)) + kills.kill_offset(share, slope)
            return work[c] * (weight @ (1 / (1 + np.exp(-logit)))) + extra[c] * share - wanted[c]

        found.append(brentq(excess, 1e-6, 1 - 1e-6))
    return found, float(np.dot(found, not_failed))


def fit(levels, minutes, parts, not_failed):
    """Return the constants of kills, and the distance of the worst cell."""
    failed, extra, work = parts
    wanted, distance = targets(failed, extra + work)
    jobs = PHILLY.status_jobs[1] / PHILLY.jobs

    def excess(slope):
        return shares(slope, levels, minutes, wanted, extra, work, not_failed)[1] - jobs

    slope = brentq(excess, 0.001, 4, xtol=0.001) if excess(0.001) > 0 > excess(4) else 0.001
    found, _ = shares(slope, levels, minutes, wanted, extra, work, not_failed)
    constants = {
        "killed": tuple(round(float(share), 4) for share in found),
        "kill_slope": round(float(slope), 3),
    }
    return constants, distance

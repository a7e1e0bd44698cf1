"""Fit of sizes and run times: mean GPUs, figure 2 and GPU-hours per job."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from optsched.traces.generators import failed_attempts, synthetic
from optsched.traces.generators.philly_constants import INNER, between, run_quantiles
from optsched.traces.generators.philly_statistics import PHILLY, REASONS, SIZE_CLASSES
from optsched.traces.generators.random_draws import log_quantiles, stratified, streams
from optsched.traces.generators.synthetic import work_of
from optsched.traces.generators.workload_models import NO_REASON, class_of

CLASSES = range(len(SIZE_CLASSES))
LARGE = 14_721, 3_183
"""Delays of table 2 on 5-8 and on more GPUs: their jobs are taken to be in proportion."""
LONG, LONGER, MOST_BENT = 180.0, 2_000.0, 4.0
"""Minutes from which parts between quantiles are bent, at most so, and from which without limit."""
LEVEL_STRETCH = 0.05
"""Share of the jobs between two quantiles that stand just before the upper one."""
MEAN_GPUS = 1.85
"""4 % below the public 1.928: GPU-hours and figure 2 pull it down."""
RISE = 1.45
"""Failed trials per job on more than 4 GPUs, over those on 2 to 4."""


def class_shares():
    """Return the shares of the size classes: mean GPUs, and trials per job that rise with size."""
    trials = np.array([reason.demand for reason in REASONS]).sum(axis=0)
    large = trials[2] / trials[1] / RISE  # jobs on more than 4 GPUs over those on 2 to 4
    gpus = class_gpus()
    split = np.array(LARGE) / sum(LARGE)
    extra = np.array([gpus[1] - 1, large * (split @ gpus[2:] - 1)])
    two = (MEAN_GPUS - 1) / extra.sum()
    return (1 - two * (1 + large), two, *(two * large * split))


def class_gpus():
    """Return the mean GPUs of a job in each size class."""
    sizes, weights = np.array(PHILLY.sizes), np.array(PHILLY.size_weights, dtype=float)
    kind = class_of(sizes)
    return np.bincount(kind, sizes * weights) / np.bincount(kind, weights)


def failing(world, jobs):
    """Return many jobs' sizes, reasons and trials, as the generator draws them."""
    rng = streams(0, synthetic.STREAMS)
    gpus = synthetic.draw_sizes(rng["sizes"], world, jobs, None)
    reasons = failed_attempts.draw_reasons(rng["reasons"], world, gpus, 1.0, 1.0)
    return gpus, reasons, failed_attempts.draw_trials(rng["trials"], world, gpus, reasons)


def levels_at(grid, row, bend):
    """Return the share of jobs below each time, of the row's quantiles bent so.

    Only parts that end above `LONG` minutes are bent: where trials fail early, a staircase would
    leave no room for them. Before each quantile stands a short stretch in which times hardly rise,
    so that it still holds where a few jobs more or less are below it.
    """
    logs, at = np.log(row), np.log(grid)
    part = np.clip(np.searchsorted(logs, at, side="right") - 1, 0, len(row) - 2)
    way = (at - logs[part]) / (logs[part + 1] - logs[part])
    near, rest = INNER[-1], 1 - LEVEL_STRETCH
    power = np.where(np.array(row)[part + 1] > LONGER, bend, np.minimum(bend, MOST_BENT))
    bent = rest * np.clip(way / near, 0, 1) ** (1 / power)
    bent += LEVEL_STRETCH * np.clip((way - near) / (1 - near), 0, 1)
    bent = np.where(np.array(row)[part + 1] > LONG, bent, way)
    levels = np.array(PHILLY.levels)
    return levels[part] + (levels[part + 1] - levels[part]) * bent


def remaining(seen, share, row, bend):
    """Return levels of the jobs that do not fail, and by how much they were not monotone."""
    grid = np.array(between(row))
    left = levels_at(grid, row, bend)
    left = left - share * np.searchsorted(np.sort(seen), grid) / max(1, len(seen))
    rising = np.maximum.accumulate(np.clip(left, 0, None))
    levels = np.clip(rising / (1 - share), 0, 1)
    return np.concatenate(([0], levels[1:-1], [1])), (rising - left).max()


def own_levels(drawn, table, bend, rounds=3):
    """Return levels of jobs that do not fail, their run times, and what was not monotone.

    The quantiles of figure 2 hold for all jobs: these are what remains after those that fail. A job
    that recovers runs such a time too.
    """
    gpus, reasons, trials = drawn
    size, fails = class_of(gpus), reasons.first < NO_REASON
    lost, longest = trials.per_job(len(gpus))
    place = stratified(np.random.default_rng(1), size)
    minutes = [between(row) for row in table]
    levels = [
        levels_at(np.array(row), full, bend) for row, full in zip(minutes, table, strict=True)
    ]
    for _ in range(rounds):
        run = log_quantiles(place, levels, minutes, size)
        seen = lost + np.where(reasons.failed, 0, work_of(run, longest))
        rows = [
            remaining(seen[fails & (size == c)], fails[size == c].mean(), table[c], bend)
            for c in CLASSES
        ]
        levels, off = zip(*rows, strict=True)
    return levels, log_quantiles(place, levels, minutes, size), off


def gpu_hours(drawn, run):
    """Return GPU-hours per job by size class: of failed jobs, lost before recovery, of work."""
    gpus, reasons, trials = drawn
    lost, longest = trials.per_job(len(gpus))
    size = class_of(gpus)

    def total(minutes):
        return np.bincount(size, minutes * gpus, len(SIZE_CLASSES)) / len(gpus) / 60

    extra = np.where(reasons.failed, 0, lost + work_of(run, longest) - run)
    return (
        total(np.where(reasons.failed, lost, 0)),
        total(extra),
        total(np.where(reasons.failed, 0, run)),
    )


def bend_for(hours, drawn, table, most=12.0):
    """Return the bend at which jobs have so many GPU-hours on average, failed trials included."""

    def excess(bend):
        run = own_levels(drawn, table, bend)[1]
        return sum(part.sum() for part in gpu_hours(drawn, run)) - hours

    return brentq(excess, 1.0, most, xtol=0.02) if excess(1.0) > 0 > excess(most) else most


def least_gpu_hours(shares, read_off=(1.0,) * 4):
    """Return GPU-hours per job that figure 2 implies at the least, for shares of the size classes.

    A share of the jobs between two levels runs at least as long as the lower one says.
    """
    table = np.array([row[:-1] for row in run_quantiles(read_off, 1e5)])
    table[:, 0] = 0
    minutes = np.diff(PHILLY.levels) @ table.T
    return float(np.array(shares) * class_gpus() @ minutes / 60)

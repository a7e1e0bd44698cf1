"""What the sources say against each other, as inequalities: exact arithmetic on their figures."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.calibration import run_times
from optsched.traces.generators.philly_statistics import PHILLY, REASONS

PROPORTIONAL = (0.844, 0.065, 0.075, 0.016)
"""Shares of the size classes in proportion to the delays of table 2, with 1.93 GPUs on average."""
TABLE_7_GPU_MINUTES = Fraction("49486648.15")
"""RTF x demand over all reasons."""


def exact(value):
    """Return the decimal figure that was published as a fraction."""
    return Fraction(str(value))


def least_gpu_hours(shares):
    """Return GPU-hours per job below which figure 2 cannot be met, for shares of the size classes.

    Between two of its quantiles each job runs at least as long as the lower one.
    """
    levels = [exact(level) for level in PHILLY.levels]
    total = Fraction(0)
    for share, gpus, row in zip(shares, class_gpus(), PHILLY.run_minutes, strict=True):
        edges = [Fraction(0), *(exact(minutes) for minutes in row[1:])]
        minutes = sum(
            (high - low) * edge
            for low, high, edge in zip(levels[:-1], levels[1:], edges, strict=True)
        )
        total += exact(share) * gpus * minutes
    return total / 60


def class_gpus():
    """Return the mean GPUs of a job in each size class."""
    kinds = [sum(size > most for most in PHILLY.class_largest) for size in PHILLY.sizes]
    rows = list(zip(kinds, PHILLY.sizes, PHILLY.size_weights, strict=True))
    return [
        Fraction(sum(g * w for k, g, w in rows if k == n), sum(w for k, _, w in rows if k == n))
        for n in range(4)
    ]


def lines():
    """Yield sentences with the figures."""
    public = exact(PHILLY.gpu_hours)
    ours = tuple(round(float(share), 4) for share in run_times.class_shares())
    for name, shares in (("table 2's delays", PROPORTIONAL), ("the generator", ours)):
        least = least_gpu_hours(shares)
        yield (
            f"figure 2 with sizes of {name}: at least {float(least):.2f} GPU-hours a job, public "
            f"{float(public):.2f}"
        )
    failing = TABLE_7_GPU_MINUTES / 60 / PHILLY.jobs
    pairs = sum(reason.jobs for reason in REASONS)
    others = pairs - PHILLY.status_jobs[2]
    yield (
        f"table 7: {float(failing):.2f} GPU-hours of failed trials a job, "
        f"{float(100 * failing / public):.1f} % of the public {float(public):.2f}; table 6: "
        f"unsuccessful jobs have {PHILLY.status_gpu_time[2]} %"
    )
    share = float(Fraction(100 * others, pairs))
    needed = failing / (exact(PHILLY.status_gpu_time[2]) / 100)
    yield (
        f"both, if all trials were of unsuccessful jobs: {float(needed):.1f} GPU-hours a job. At "
        f"most {others:,} of {pairs:,} pairs of job and reason ({share:.1f} %) can be of "
        "other jobs, or second reasons of these"
    )

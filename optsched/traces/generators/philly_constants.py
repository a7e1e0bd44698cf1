"""Constants of the Philly generator that no table gives.

`python -m benchmarks.calibration philly` prints them; what each is fitted to is told there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from optsched.traces.generators.philly_statistics import PHILLY

INNER = (0.25, 0.5, 0.75, 0.97)
"""Where run times are tabulated between two quantiles of figure 2, in the logarithm."""


def numbers(text: str) -> tuple[float, ...]:
    """Return the numbers of a text."""
    return tuple(map(float, text.split()))


# fitted: written by `python -m benchmarks.calibration philly`
LONGEST_TRIAL = """
    1928 2557 4088 2291 1493 9016 1215 779.4 1844 5658 3014 19900 1073 2681 6481 1415 84.18
    1.837 2239 1.045 0.132 282
"""
TRIAL_BEND = """
    1 1 1 1 10 10 1 1 1 10 10 10 1 1 10 1 10 10 5.02 10 10 1
"""
TILT = """
    0.519 0.029 0.208 0.041 -0.254 -0.389 0.071 0.181 -0.116 -1 -0.044 -0.137 -0.673 -0.285
    1.447 0.98 1.236 0 0.036 0 0 -0.103
"""
QUEUE_LEVEL = """
    3.0356 2.0121 1.8501 1.5733 0.2327 -1.3238 -0.353 -0.3142 -2.4786 -2.8269 -1.4071
"""
QUEUE_SLOPE = """
    -0.4601 -0.5072 -0.2507 -0.1211 -0.0744 0.4616 0.1226 -0.2639 0.5683 0.5146 0.0104
"""
QUEUE_LEVELS_BY_SIZE = (
    """
    3.7426 2.1463 1.8548 2.2255 0.3803 -1.4369 -0.2864 0.4755 -2.9507 -3.9805 -2.1705
""",
    """
    1.6721 3.3187 2.1881 0.3289 1.5703 0.1608 0.2032 -5.0778 -1.411 -3.177 0.2236
""",
    """
    3.6736 0.7446 4.3916 1.4561 -3.5161 1.4815 -5.3096 -3.8187 -1.2444 1.1457 0.9957
""",
    """
    -1.0238 2.5096 1.9183 3.0411 -2.0899 1.7254 -3.7862 -2.3269 -2.482 0.8844 1.6301
""",
)
QUEUE_SLOPE_BY_SIZE = """
    -0.3111 -0.4911 -0.3843 -0.0104 -0.0056 0.2072 0.3518 0.1679 0.5588 0.1261 -0.2093
"""
OWN_LEVELS = (
    """
    0 0.0291 0.0542 0.0746 0.0846 0.0859 0.1248 0.1638 0.203 0.2376 0.2425 0.3067 0.3717 0.4369
    0.4916 0.4985 0.5658 0.6322 0.6987 0.7563 0.7642 0.8772 0.8932 0.9027 0.9072 0.9155 0.9516
    0.955 0.9564 0.9578 0.9605 0.999 0.999 0.999 0.999 1
""",
    """
    0 0.0326 0.0651 0.097 0.1226 0.1256 0.1668 0.2036 0.2375 0.268 0.2721 0.3281 0.3878 0.449
    0.5016 0.5095 0.7057 0.7225 0.7225 0.7225 0.7279 0.8664 0.8738 0.8767 0.8767 0.8838 0.9297
    0.9339 0.9353 0.9373 0.9404 0.988 0.9932 0.9965 0.9991 1
""",
    """
    0 0.0359 0.0596 0.0729 0.076 0.076 0.1006 0.1335 0.1667 0.198 0.2022 0.4271 0.4439 0.4449
    0.4449 0.4519 0.6642 0.6735 0.6801 0.6801 0.6941 0.8445 0.8495 0.8544 0.8583 0.8686 0.9203
    0.925 0.9281 0.9299 0.9335 0.9868 0.9931 0.9972 0.9999 1
""",
    """
    0 0.0367 0.0702 0.0875 0.0958 0.097 0.1227 0.1497 0.1815 0.2162 0.2212 0.2922 0.3613 0.4224
    0.4716 0.4781 0.695 0.7005 0.7049 0.71 0.7274 0.8783 0.8816 0.8816 0.8816 0.8851 0.9317
    0.9328 0.9348 0.9348 0.9374 0.9891 0.9947 0.9987 1 1
""",
)
# end of what is fitted


@dataclass(frozen=True)
class FittedConstants:
    """What is fitted to `PhillyFigures`, or follows from them.

    Attributes
    ----------
    class_shares
        Jobs by size class: mean GPUs, and trials per job that rise with the size (figure 8).
    recovers_infrastructure, recovers_other
        Share of the jobs that get over their first reason to fail, if it is the infrastructure's
        alone or another. Table 7 has 17,581 pairs of job and reason, table 6 has 16,568 failed
        jobs: 1,013 pairs are not the last of a failed job. That half of the jobs that recover do so
        from failures of the infrastructure, and the next two shares, are assumed.
    meets_second, recovers_second
        Of the jobs that got over a reason, so many meet a second; of these so many get over it.
    retries_by_class
        Retries of a reason in proportion, by size class: figure 8 has more for larger gangs, in
        words only; chosen so that the failing gangs of 5 to 8 GPUs leave room for the others in
        figure 2.
    early_minutes
        Median minutes to failure up to which a reason is early.
    longest_trial, trial_bend
        By reason: most minutes to failure; and how they lie between the levels of table 7 (see
        `random_draws.log_quantiles`).
    tilt, largest_tilted
        What log2 of the gang (at most so many GPUs) adds to the normal score of minutes to
        failure, by reason.
    read_off
        By size class, factor on the quantiles of figure 2 from the median up, which were read off
        within 10 %.
    run_bend, longest_run
        How run times lie between the levels of figure 2; and minutes of the longest of a job that
        does not fail.
    own_levels
        What share of the jobs that do not fail runs shorter than `own_minutes`, by size class.
    killed, kill_slope
        Share killed of the jobs that do not fail to their end, by size class; and how the odds
        grow with the run time.
    queue_level, queue_slope
        By virtual cluster: log odds of a job to belong to it are level + slope x log GPU-hours.
    queue_levels_by_size, queue_slope_by_size
        The same where levels hang on the size class as well: a row for each.
    idle_share, idle_most, busy_concentration
        A quarter of the samples of utilisation is 0, quartiles are 0, 48.6 and 92 %
        (InternLM/AcmeTrace @6d6ac9cd, util_gpu_philly).
    """

    class_shares: tuple[float, ...] = (0.819, 0.1162, 0.0533, 0.0115)
    recovers_infrastructure: float = 0.28
    recovers_other: float = 0.028
    meets_second: float = 0.25
    recovers_second: float = 0.5
    retries_by_class: tuple[float, ...] = (1.0, 5.0, 6.0, 6.0)
    early_minutes: float = 20.0
    longest_trial: tuple[float, ...] = numbers(LONGEST_TRIAL)
    trial_bend: tuple[float, ...] = numbers(TRIAL_BEND)
    tilt: tuple[float, ...] = numbers(TILT)
    largest_tilted: int = 16
    read_off: tuple[float, ...] = (0.91, 0.91, 0.91, 1.0)
    run_bend: float = 5.66
    longest_run: float = 12_000.0
    own_levels: tuple[tuple[float, ...], ...] = tuple(map(numbers, OWN_LEVELS))
    killed: tuple[float, ...] = (0.1623, 0.1728, 0.1485, 0.1909)
    kill_slope: float = 0.747
    queue_level: tuple[float, ...] = numbers(QUEUE_LEVEL)
    queue_slope: tuple[float, ...] = numbers(QUEUE_SLOPE)
    queue_levels_by_size: tuple[tuple[float, ...], ...] = tuple(map(numbers, QUEUE_LEVELS_BY_SIZE))
    queue_slope_by_size: tuple[float, ...] = numbers(QUEUE_SLOPE_BY_SIZE)
    idle_share: float = 0.25
    idle_most: float = 0.02
    busy_concentration: float = 1.5

    @cached_property
    def size_shares(self) -> tuple[float, ...]:
        """Return the share of each of `PHILLY.sizes`."""
        return size_shares(self.class_shares)

    @cached_property
    def run_minutes(self) -> tuple[tuple[float, ...], ...]:
        """Return the quantiles of figure 2 as they are used, with the longest run time."""
        return run_quantiles(self.read_off, self.longest_run)

    @cached_property
    def own_minutes(self) -> tuple[tuple[float, ...], ...]:
        """Return run times of the jobs that do not fail, by size class."""
        return tuple(between(row) for row in self.run_minutes)


def size_shares(class_shares: tuple[float, ...]) -> tuple[float, ...]:
    """Return the share of each of `PHILLY.sizes`, from those of the size classes."""
    kinds = [sum(size > most for most in PHILLY.class_largest) for size in PHILLY.sizes]
    pairs = list(zip(kinds, PHILLY.size_weights, strict=True))
    totals = [sum(weight for kind, weight in pairs if kind == n) for n in range(4)]
    return tuple(class_shares[kind] * weight / totals[kind] for kind, weight in pairs)


def run_quantiles(read_off: tuple[float, ...], longest: float) -> tuple[tuple[float, ...], ...]:
    """Return the quantiles of figure 2, from the median up times `read_off`, and the longest."""
    over = PHILLY.run_minutes[2][-1]  # "over 10,000" is no figure to go below
    return tuple(
        (*row[:3], *(m if m == over else m * factor for m in row[3:]), longest)
        for row, factor in zip(PHILLY.run_minutes, read_off, strict=True)
    )


def between(row: tuple[float, ...]) -> tuple[float, ...]:
    """Return the values of a row, with some between each two, at `INNER` in the logarithm."""
    inner = (low * (high / low) ** part for low, high in pairwise(row) for part in (0.0, *INNER))
    return (*inner, row[-1])


FITTED = FittedConstants()

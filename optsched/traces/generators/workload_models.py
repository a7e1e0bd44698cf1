"""What the jobs of a large cluster are like: Philly, and Helios and Acme in their main figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.traces.generators.other_clusters import HELIOS, SEREN, OtherCluster
from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.philly_statistics import PHILLY, REASONS

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats, Integers
    from optsched.traces.generators.arrivals import WeeklyProfile


NO_REASON = len(REASONS)
INFRASTRUCTURE = np.array([reason.category == "IF" for reason in REASONS])
"""Reasons of the infrastructure alone."""
RECOVERS = np.where(INFRASTRUCTURE, FITTED.recovers_infrastructure, FITTED.recovers_other)
"""By reason: what share of the jobs that meet it first gets over it."""
POWERS_OF_TWO = tuple(2**n for n in range(8))


DEMAND = np.array([reason.demand for reason in REASONS], dtype=float)
"""Trials by reason and by GPUs: 1, 2 to 4, more."""


@lru_cache(maxsize=1)
def trials_per_pair() -> Floats:
    """Return how many trials of a reason a job has that meets it, by size class.

    Retries (trials but the first) of a reason are in proportion to `FITTED.retries_by_class`, and
    as many that the reason has its jobs of table 7. Shape (reasons, size classes).
    """
    weights = np.array(FITTED.retries_by_class)
    jobs = np.array([reason.jobs for reason in REASONS], dtype=float)
    low, high = np.zeros(len(jobs)), np.full(len(jobs), 100.0)
    for _ in range(60):
        middle = (low + high) / 2
        found = (DEMAND / (1 + middle[:, None] * weights[:3])).sum(axis=1)
        low, high = np.where(found > jobs, middle, low), np.where(found > jobs, high, middle)
    per_pair: Floats = 1 + high[:, None] * weights
    return per_pair


@dataclass(frozen=True)
class World:
    """What a cluster's jobs are like; rows are those of `SIZE_CLASSES`.

    Attributes
    ----------
    own_levels, own_minutes
        Quantiles of the run time of jobs that do not fail, by size class.
    failed
        Share of the jobs of every size that end as failed; None: as in Philly's table 7.
    killed
        Share killed of the jobs that do not fail, by size class; one for all where the longest are
        told over all sizes, by GPU time.
    kill_slope
        How the odds of being killed grow with the place among the run times.
    stretch
        (a, b): m minutes in Philly are a x m ** b here.
    gang_stretch
        Times of jobs that do not fail grow with GPUs ** this, besides.
    trial_factor
        On the minutes of trials that fail, besides.
    jobs_per_day
        If 0, arrivals are scaled to `load` on `gpus`.
    profile
        Of arrivals by hour and day; None if not known.
    queues
        Names of virtual clusters, as in `FITTED.queue_level`.
    """

    name: str
    source: str
    sizes: tuple[int, ...]
    size_shares: tuple[float, ...]
    own_levels: tuple[tuple[float, ...], ...]
    own_minutes: tuple[tuple[float, ...], ...]
    killed: tuple[float, ...]
    kill_slope: float
    failed: float | None = None
    stretch: tuple[float, float] = (1.0, 1.0)
    gang_stretch: float = 0.0
    trial_factor: float = 1.0
    jobs_per_day: float = 0.0
    gpus: int = 0
    load: float = 0.0
    profile: WeeklyProfile | None = None
    queues: tuple[str, ...] = ()

    @cached_property
    def chances(self) -> Floats:
        """Return by size class and reason, what share of the jobs meets it first.

        In Philly the trials of a reason in table 7 stand by size; how many a job of the size has
        tells `trials_per_pair`. Sizes 5-8 and above have equal chances. Of the pairs of job and
        reason those of second reasons are left out.
        """
        one, few, *many = FITTED.class_shares
        among = np.array([one, few, sum(many)]) * PHILLY.jobs
        columns = DEMAND.T / trials_per_pair()[:, :3].T / among[:, None]
        pairs = np.array([reason.jobs for reason in REASONS])
        seconds = FITTED.meets_second * float(pairs @ RECOVERS) / pairs.sum()
        chances: Floats = columns[[0, 1, 2, 2]] / (1 + seconds)
        if self.failed is None:
            return chances
        lost = 1 - RECOVERS * (1 - FITTED.meets_second * (1 - FITTED.recovers_second))
        return chances * (self.failed / (chances @ lost))[:, None]

    def stretched(self, minutes: Any) -> Any:
        """Return what minutes of Philly are here."""
        factor, exponent = self.stretch
        return factor * minutes**exponent


def class_of(gpus: Integers) -> Integers:
    """Return the size class of each gang, a number into `SIZE_CLASSES`."""
    return np.searchsorted(PHILLY.class_largest, gpus).astype(np.int64)


def powers(exponent: float) -> tuple[float, ...]:
    """Return shares of the sizes 1, 2, 4 ... 128 in proportion to size ** exponent."""
    return tuple(float(size) ** exponent for size in POWERS_OF_TWO)


def philly() -> World:
    """Return Philly as in the ATC'19 paper."""
    return World(
        name="philly-atc19",
        source="Jeon et al., USENIX ATC 2019, tables 2, 3, 6, 7; run times of msr-fiddle/"
        "philly-traces; arrivals and virtual clusters of pkusys/ElasticFlow @04a0109a; GPU-hours "
        "of InternLM/AcmeTrace @6d6ac9cd",
        sizes=PHILLY.sizes,
        size_shares=FITTED.size_shares,
        own_levels=FITTED.own_levels,
        own_minutes=FITTED.own_minutes,
        killed=FITTED.killed,
        kill_slope=FITTED.kill_slope,
        jobs_per_day=PHILLY.jobs / PHILLY.window_days,
        profile=PHILLY.arrivals,
        queues=tuple(name for name, _, _ in PHILLY.virtual_clusters),
    )


def helios() -> World:
    """Return a world with the main figures of Helios, and Philly's shapes."""
    return _like("helios-like", 6_220, HELIOS)


def acme() -> World:
    """Return a world with the main figures of Acme's cluster Seren, and Philly's shapes."""
    return _like("acme-like", 2_288, SEREN)


def _like(name: str, gpus: int, shape: OtherCluster) -> World:
    return World(
        name=name,
        source="InternLM/AcmeTrace @6d6ac9cd data/cluster_summary.csv (mean GPUs, mean and median "
        "run time, GPU time, statuses); shapes and failures of philly-atc19",
        sizes=POWERS_OF_TWO,
        size_shares=powers(shape.size_exponent),
        own_levels=FITTED.own_levels,
        own_minutes=FITTED.own_minutes,
        killed=(shape.killed / (1 - shape.failed),),
        kill_slope=shape.kill_slope,
        failed=shape.failed,
        stretch=shape.stretch,
        gang_stretch=shape.gang_stretch,
        trial_factor=shape.trial_factor,
        gpus=gpus,
        load=0.7,
    )

"""What the jobs of a large cluster are like: Philly, and Helios and Acme in their main figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.philly_statistics import PHILLY, REASONS, SIZE_CLASSES

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats, Integers


NO_REASON = len(REASONS)
INFRASTRUCTURE = np.array([reason.category == "IF" for reason in REASONS])
"""Reasons of the infrastructure alone: after them some jobs run to their end."""
POWERS_OF_TWO = tuple(2**n for n in range(8))


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
        Share killed of the jobs that do not fail, by size class.
    stretch
        (a, b): m minutes in Philly are a x m ** b here.
    jobs_per_day
        If 0, arrivals are scaled to `load` on `gpus`.
    queues
        By name, shares in % of jobs and of GPU-hours.
    """

    name: str
    source: str
    sizes: tuple[int, ...]
    size_shares: tuple[float, ...]
    own_levels: tuple[tuple[float, ...], ...]
    own_minutes: tuple[tuple[float, ...], ...]
    killed: tuple[float, ...]
    failed: float | None = None
    stretch: tuple[float, float] = (1.0, 1.0)
    jobs_per_day: float = 0.0
    gpus: int = 0
    load: float = 0.0
    queues: tuple[tuple[str, float, float], ...] = ()

    @cached_property
    def chances(self) -> Floats:
        """Return by size class and reason, what share of the jobs has trials that fail by it.

        In Philly the jobs of a reason in table 7 are spread over the classes as its trials are;
        sizes 5-8 and above have equal chances.
        """
        classes = class_of(np.array(PHILLY.sizes))
        share = np.bincount(classes, weights=PHILLY.size_shares)
        among = np.array([share[0], share[1], share[2] + share[3]])
        columns = np.array([reason.demand for reason in REASONS]).T / among[:, None]
        per_trial = np.array([r.jobs / r.trials for r in REASONS]) / PHILLY.jobs
        chances: Floats = (columns * per_trial)[[0, 1, 2, 2]]
        if self.failed is None:
            return chances
        lost = chances @ np.where(INFRASTRUCTURE, 1 - FITTED.recovered, 1.0)
        return chances * (self.failed / lost)[:, None]

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
        "philly-traces; arrivals and virtual clusters of pkusys/ElasticFlow @04a0109a",
        sizes=PHILLY.sizes,
        size_shares=PHILLY.size_shares,
        own_levels=FITTED.own_levels,
        own_minutes=FITTED.own_minutes,
        killed=FITTED.killed,
        jobs_per_day=PHILLY.jobs / PHILLY.window_days,
        queues=PHILLY.virtual_clusters,
    )


def helios() -> World:
    """Return a world with the main figures of Helios, and Philly's shapes."""
    shape = FITTED.helios_exponent, FITTED.helios_stretch
    return _like("helios-like", 6_220, *shape, killed=0.221, failed=0.155)


def acme() -> World:
    """Return a world with the main figures of Acme's cluster Seren, and Philly's shapes."""
    shape = FITTED.acme_exponent, FITTED.acme_stretch
    return _like("acme-like", 2_288, *shape, killed=0.075, failed=0.429)


def _like(
    name: str, gpus: int, exponent: float, stretch: tuple[float, float], killed: float,
    failed: float,
) -> World:  # fmt: skip
    return World(
        name=name,
        source="InternLM/AcmeTrace @6d6ac9cd data/cluster_summary.csv (mean GPUs, mean and median "
        "run time, statuses); shapes and failures of philly-atc19",
        sizes=POWERS_OF_TWO,
        size_shares=powers(exponent),
        own_levels=FITTED.own_levels,
        own_minutes=FITTED.own_minutes,
        killed=(killed / (1 - failed),) * len(SIZE_CLASSES),
        failed=failed,
        stretch=stretch,
        gpus=gpus,
        load=0.7,
    )

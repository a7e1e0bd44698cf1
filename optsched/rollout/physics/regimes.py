"""Regimes: at what rate a job gets on, and where the rest of the GPU time that it holds goes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.rollout.engine.state import PPB

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

LOSSES = ("width", "slow_gpu", "distance", "neighbour", "sharing")
"""What GPU time is lost to, in the order in which the factors on a job's speed are multiplied."""


class Regime(NamedTuple):
    """How a job gets on for as long as nothing around it changes.

    Attributes
    ----------
    rate
        Work in parts per billion of the reference.
    per_us
        What is lost and unused in a microsecond: `losses`, then `unused`.
    losing
        What of that is not 0, each with its place.
    """

    rate: int
    per_us: tuple[int, ...]
    losing: tuple[tuple[int, int], ...]

    @property
    def losses(self) -> tuple[int, ...]:
        """For each of `LOSSES` the GPU time that is lost to it, in billionths of a GPU.

        They and the work, rate x GPUs asked for, add up to GPUs held x PPB. Negative where a factor
        is a gain: a narrower gang that is more efficient, GPUs faster than the reference.
        """
        return self.per_us[:-1]

    @property
    def unused(self) -> int:
        """What of the GPUs does not compute: they wait for others, near or far, or take turns.

        In billionths of a GPU, of jobs whose GPUs are busy all of the time when they run alone.
        """
        return self.per_us[-1]


class Factors(NamedTuple):
    """Factors on the speed of a job, and for slow GPUs and distance on its iteration time.

    Attributes
    ----------
    turns
        GPUs held, each counted as the share of its time that it has for the job if all jobs on it
        would compute for more than all of it; equal to the width without sharing.
    """

    width: int
    demand: int
    speedup: float
    slow_gpu: float
    distance: float
    neighbour: float
    sharing: float
    turns: float


def regime_of(factors: Factors, is_recorded: bool = False) -> Regime:
    """Return the regime under some factors: their products, each rounded once.

    Where run times are as recorded, distance and neighbours do not change them: they are seen only
    in what GPUs compute.

    The loss to a factor is the difference that it makes to the work that is done, so that losses
    and work add up to the GPU time held, whatever was rounded.
    """
    width, demand, speed = factors.width, factors.demand, factors.speedup
    distance, neighbour = (1.0, 1.0) if is_recorded else (factors.distance, factors.neighbour)
    speeds = [speed, speed / factors.slow_gpu]
    speeds.append(speed / (factors.slow_gpu * distance))
    speeds.append(speeds[-1] * neighbour)
    speeds.append(speeds[-1] * factors.sharing)
    rates = [max(1, round(PPB * speed)) for speed in speeds]
    done = [width * PPB, *(demand * rate for rate in rates)]
    losses = tuple(before - after for before, after in pairwise(done))
    computing = min(1.0, factors.neighbour * factors.sharing / factors.distance)
    unused = width * PPB - round(PPB * factors.turns * computing)
    per_us = (*losses, max(0, unused))
    losing = tuple((n, lost) for n, lost in enumerate(per_us) if lost)
    return Regime(rates[-1], per_us, losing)


def busy_shares(scenario: Scenario, trace: Trace) -> Floats:
    """Return by job the busy share of its GPUs when it runs alone: the trace's, its model's, or 1.

    Where the trace's were recorded of jobs that ran slower than alone (`recorded_speed`), they are
    divided by that speed. Source of the trace's: Jeon et al., ATC'19, table 3.
    """
    models, speed = scenario.models, scenario.recorded_speed
    told = [models[name].utilisation if name in models else 1.0 for name in trace.model]
    recorded = trace.utilization
    if speed is not None:
        sizes, which = np.unique(trace.gpus, return_inverse=True)
        recorded = np.minimum(1.0, recorded / np.array([speed.at(int(n)) for n in sizes])[which])
    share: Floats = np.where(np.isnan(recorded), told, recorded)
    return share

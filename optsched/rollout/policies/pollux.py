"""Pollux (Qiao et al., OSDI 2021) by dynamic programming: the best power mean of speedups."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.fixed_capacity import SharedOptions, SharedOut
from optsched.rollout.policies.held_gpus import PLACEMENT, Placement
from optsched.rollout.policy_options import Count, Options, Share, takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario

RESTART_S = 30.0
LEAST_SPEEDUP = 0.01  # of a job without GPUs, whose mean would else be 0


class Row(NamedTuple):
    """The widths of a job, 0 among them, and the cost 1/v of each."""

    gpus: tuple[int, ...]
    cost: tuple[float, ...]


class Best(NamedTuple):
    """Least sums of costs: `value[c]` within c GPUs, and which column each job then takes."""

    value: Floats
    choice: NDArray[np.int16]
    rows: Sequence[Row]

    def widths(self, gpus: int) -> list[int]:
        """Return the width of each job, if there are so many GPUs."""
        widths = []
        for n in reversed(range(len(self.rows))):
            width = self.rows[n].gpus[self.choice[n, gpus]]
            widths.append(width)
            gpus -= width
        return widths[::-1]


def best_widths(rows: Sequence[Row], gpus: int) -> Best:
    """Minimise the sum of costs within every number of GPUs, exactly: job by job, over all sums.

    Of equal costs a job takes the least width.
    """
    value = np.zeros(gpus + 1)
    choice = np.zeros((len(rows), gpus + 1), np.int16)
    for n, row in enumerate(rows):
        best = np.full(gpus + 1, np.inf)
        for column, (width, cost) in enumerate(zip(row.gpus, row.cost, strict=True)):
            if width > gpus:
                break
            reached = value[: gpus + 1 - width] + cost
            better = reached < best[width:]
            best[width:][better] = reached[better]
            choice[n, width:][better] = column
        value = best
    return Best(value, choice, rows)


class AutoscalingOptions(Options):
    """The band of utility that the number of nodes is kept in."""

    placement: Placement = Field(default="lowest", description=PLACEMENT)
    low: Share = Field(default=0.35, description="Lower end of the band, above 0.")
    high: Share = Field(default=0.65, description="Upper end of the band, above the lower one.")
    rounds: Count = Field(default=15, description="Epochs over which utility is averaged.")
    min_nodes: Count = Field(default=1, description="Nodes that are always there.")

    @model_validator(mode="after")
    def _is_a_band(self) -> Self:
        if not 0 < self.low < self.high:
            raise ValueError(f"0 < low < high, found {self.low!r} and {self.high!r}")
        return self


class Pollux(SharedOut):
    """Maximise the power mean, p = -1, of the jobs' speedups within C GPUs, once in an epoch.

    That is least sum of 1 / v over the jobs: v is the speedup over one GPU; where a running job's
    width changes, times max(age - 30 s x its changes, 0) / (age + 30 s); at least 0.01. The sum is
    separable, so it is minimised exactly (`best_widths`), where Pollux has a genetic search.

    With autoscaling C follows the load: U = sum of speedups / C, the average over the last `rounds`
    epochs. If it leaves the band from `low` to `high`, the number of nodes becomes the one whose U
    would be nearest to the middle. There are always enough for the largest gang that waits or runs,
    at its least width: in fewer it would never start. Where nodes are not rented, the others stand
    idle.

    Source: petuum/adaptdl, branch osdi21-artifact, simulator/pollux.py and simulator.py (OSDI'21).
    """

    every_epoch = True
    changing = (*SharedOut.changing, "gpus", "seen", "changes")

    def __init__(
        self, name: str, scenario: Scenario, options: SharedOptions | AutoscalingOptions
    ) -> None:
        self.autoscale = isinstance(options, AutoscalingOptions)
        band = options if isinstance(options, AutoscalingOptions) else AutoscalingOptions()
        gpus = options.gpus if isinstance(options, SharedOptions) else scenario.gpus
        super().__init__(name, scenario, SharedOptions(gpus=gpus, placement=options.placement))
        self.band = (band.low, band.high)
        self.min_nodes = band.min_nodes
        self.most = self.gpus
        self.seen: deque[float] = deque(maxlen=band.rounds)
        self.changes: dict[int, int] = {}
        self._upto = np.cumsum([0, *self.held.cluster.size])
        if self.autoscale:
            self.gpus = int(self._upto[min(self.min_nodes, self.held.cluster.nodes)])

    def decide(self, view: View) -> Decision:
        """Share out the GPUs at epochs; between them nothing changes."""
        self.take_note(view)
        if not view.is_epoch:
            return NOTHING
        if self.autoscale and self.active:
            self._scale(view)
        return self.share_out(view, min(self.gpus, self.available), self.held.rent(view, self.gpus))

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs."""
        rows = [self._row(view, job, self.curve(view, job)) for job in jobs]
        widths = dict(zip(jobs, best_widths(rows, gpus).widths(gpus), strict=True))
        for job, width in widths.items():
            if self.held.width(job) not in (0, width):
                self.changes[job] = self.changes.get(job, 0) + 1
        return widths

    def _row(self, view: View, job: int, curve: Curve) -> Row:
        now = self.held.width(job)
        age = (view.now_us - view.submit_us(job)) / US
        restart = max(age - RESTART_S * self.changes.get(job, 0), 0.0) / (age + RESTART_S)
        widths, costs = [0], [1 / LEAST_SPEEDUP]
        for gpus, speed in zip(curve.gpus, curve.speed, strict=True):
            speedup = speed / curve.speed[0]
            speedup *= restart if now and gpus != now else 1.0
            widths.append(gpus)
            costs.append(1 / max(speedup, LEAST_SPEEDUP))
        return Row(tuple(widths), tuple(costs))

    # --- autoscaling --------------------------------------------------------------------------

    def _scale(self, view: View) -> None:
        """Move to another number of nodes if the average utility leaves the band."""
        jobs = list(self.active)
        curves = [self.curve(view, job) for job in jobs]
        held = [self.held.width(job) for job in jobs]
        self.seen.append(_utility(curves, held, self.gpus))
        utility = sum(self.seen) / len(self.seen)
        low, high = self.band
        nodes, least = self.held.nodes_for(self.gpus), self._least_nodes(curves)
        too_many = utility < low and nodes > least
        too_few = utility > high and nodes < self.held.cluster.nodes
        if not (too_many or too_few or nodes < least):
            return
        rows = [self._row(view, job, curve) for job, curve in zip(jobs, curves, strict=True)]
        best = best_widths(rows, self.most)
        middle = (low + high) / 2

        def distance(count: int) -> float:
            gpus = int(self._upto[count])
            return abs(_utility(curves, best.widths(gpus), gpus) - middle)

        choices = range(least, self.held.cluster.nodes + 1)
        self.gpus = int(self._upto[min(choices, key=lambda count: (distance(count), count))])
        self.seen.clear()

    def _least_nodes(self, curves: Sequence[Curve]) -> int:
        """Return the nodes without which some gang could not even run at its least width."""
        widest = max((curve.least for curve in curves), default=0)
        return max(self.min_nodes, self.held.nodes_for(widest))


def _utility(curves: Sequence[Curve], widths: Sequence[int], gpus: int) -> float:
    """Return the sum of speedups per GPU."""
    pairs = zip(curves, widths, strict=True)
    return sum(curve.speed_at(width) / curve.speed[0] for curve, width in pairs) / gpus


@takes(SharedOptions)
def pollux(scenario: Scenario, seed: int, options: SharedOptions) -> Pollux:
    """Maximise the power mean of speedups."""
    return Pollux("pollux", scenario, options)


@takes(AutoscalingOptions)
def pollux_autoscaling(scenario: Scenario, seed: int, options: AutoscalingOptions) -> Pollux:
    """Maximise the power mean of speedups, on as many nodes as are used well."""
    return Pollux("pollux-autoscaling", scenario, options)

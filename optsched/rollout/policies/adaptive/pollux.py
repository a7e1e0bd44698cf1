"""Pollux (Qiao et al., OSDI 2021) by dynamic programming: the best power mean of speedups."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.adaptive.apart import Apart
from optsched.rollout.policies.adaptive.power_mean import Choices, widths_within
from optsched.rollout.policies.adaptive.rescaling import Rescaling
from optsched.rollout.policies.adaptive.width_history import GROWTH, Growth
from optsched.rollout.policies.fixed_capacity import SharedOfType, SharedOptions
from optsched.rollout.policies.held_gpus import PLACEMENT, Placing
from optsched.rollout.policy_options import Count, GpuType, Options, Share, takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario

RESTART_S = 30.0
LEAST_SPEEDUP = 0.01  # of a job without GPUs, whose mean would else be 0
Place = Literal["apart", "lowest", "best-fit", "pal"]
APART = f"apart: at most one job of several nodes on each node. {PLACEMENT}"


class PolluxOptions(Options):
    """How many GPUs are shared out, which, and how fast jobs may grow."""

    gpus: Count | None = Field(
        default=None, description=SharedOptions.model_fields["gpus"].description
    )
    placement: Place = Field(default="apart", description=APART)
    growth: Growth | None = Field(default=2.0, description=GROWTH)
    gpu_type: GpuType = None


class AutoscalingOptions(Options):
    """The band of utility that the number of nodes is kept in."""

    placement: Place = Field(default="apart", description=APART)
    growth: Growth | None = Field(default=2.0, description=GROWTH)
    low: Share = Field(default=0.35, description="Lower end of the band, above 0.")
    high: Share = Field(default=0.65, description="Upper end of the band, above the lower one.")
    rounds: Count = Field(default=15, description="Epochs over which utility is averaged.")
    min_nodes: Count = Field(default=1, description="Nodes that are always there.")
    gpu_type: GpuType = None

    @model_validator(mode="after")
    def _is_a_band(self) -> Self:
        if not 0 < self.low < self.high:
            raise ValueError(f"0 < low < high, found {self.low!r} and {self.high!r}")
        return self


class Pollux(Rescaling):
    """Maximise the power mean, p = -1, of the jobs' speedups within C GPUs, once in an epoch.

    That is least sum of 1 / v over the jobs: v is the goodput over that at a fair share of C / jobs
    GPUs, rounded up; where a running job's width changes, times max(age - 30 s x its restarts, 0) /
    (age + 30 s); at least 0.01. The sum is separable, so it is minimised exactly (`best_widths`),
    where Pollux has a genetic search. Goodput is throughput x statistical efficiency where the
    job's model has batch sizes, else its speedup.

    A job gets at most twice the GPUs that it has run on so far, one at first (its least width). At
    most one job of several nodes is on each node: a job that finds no such place for its width gets
    less, which the search does not foresee. Nor does it know that a job is slower on several nodes.
    """

    changing = (*Rescaling.changing, "gpus", "seen")

    def __init__(
        self, name: str, scenario: Scenario, options: PolluxOptions | AutoscalingOptions
    ) -> None:
        self.autoscale = isinstance(options, AutoscalingOptions)
        band = options if isinstance(options, AutoscalingOptions) else AutoscalingOptions()
        gpus = options.gpus if isinstance(options, PolluxOptions) else None
        shared = SharedOfType(gpus=gpus, gpu_type=options.gpu_type)
        super().__init__(name, scenario, shared, options.growth)
        self.placing = self.placed_by(options.placement)
        self.band = (band.low, band.high)
        self.min_nodes = band.min_nodes
        self.seen: deque[float] = deque(maxlen=band.rounds)
        self._most = len(self.held.fleet)
        self._arrays: dict[int, tuple[Curve, tuple[Integers, Floats]]] = {}  # by identity
        if self.autoscale:
            self.gpus = self.held.gpus_of_first(self.min_nodes)

    def decide(self, view: View) -> Decision:
        """Share out the GPUs at epochs; between them nothing changes."""
        self.take_note(view)
        if not view.is_epoch:
            return NOTHING
        if self.autoscale and self.active:
            self._scale(view)
        if isinstance(self.placing, Apart):
            self.placing.first_nodes = (1 << self.held.nodes_for(self.gpus)) - 1
        return self.share_out(view, min(self.gpus, self.available), self.held.rent(view, self.gpus))

    def placed_by(self, placement: str) -> Placing:
        """Return what chooses GPUs, by its name."""
        is_apart = placement == "apart" and not self.curves.types.are_several
        return Apart(self._narrower) if is_apart else super().placed_by(placement)

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs."""
        return dict(zip(jobs, self._best(view, jobs, gpus), strict=True))

    def _best(self, view: View, jobs: Sequence[int], gpus: int) -> list[int]:
        """Return the widths of the best power mean."""
        fair = -(-gpus // max(1, len(jobs)))
        return widths_within(self._choices(view, jobs, fair), gpus)

    def _choices(self, view: View, jobs: Sequence[int], fair: int) -> Choices:
        """Return what jobs may have, each GPU that is not held at a restart's cost."""
        gpus, speeds, counts, now, factors, bases = [], [], [], [], [], []
        known: dict[int, tuple[Curve, float]] = {}
        for job in jobs:
            whole = self.curve(view, job)
            if id(whole) not in known:
                known[id(whole)] = (whole, whole.speed_at(whole.at_most(fair) or whole.least))
            count = 1 + self.history.count(view, job, whole)
            columns = self._columns(whole)
            gpus.append(columns[0][:count])
            speeds.append(columns[1][:count])
            counts.append(count)
            bases.append(known[id(whole)][1])
            now.append(self.held.width(job))
            factors.append(self._factor(view, job) if now[-1] else 1.0)
        if not counts:
            return Choices.none()
        every, many = np.concatenate(gpus), np.array(counts)
        is_kept = every == np.repeat(now, many)
        factor = np.where(is_kept, 1.0, np.repeat(factors, many))
        speedup = np.concatenate(speeds) / np.repeat(bases, many) * factor
        return Choices(every, 1 / np.maximum(speedup, LEAST_SPEEDUP), many)

    def _factor(self, view: View, job: int) -> float:
        age = (view.now_us - view.submit_us(job)) / US
        restarts = self.history.restarts.get(job, 0)
        return max(age - RESTART_S * restarts, 0.0) / (age + RESTART_S)

    def _columns(self, curve: Curve) -> tuple[Integers, Floats]:
        """Return the widths and speeds of a curve, none at all first."""
        found = self._arrays.get(id(curve))
        if found is None or found[0] is not curve:
            arrays = np.array((0, *curve.gpus)), np.array((0.0, *curve.speed))
            found = self._arrays[id(curve)] = (curve, arrays)
        return found[1]

    def _narrower(self, view: View, job: int, gpus: int) -> int:
        return self.allowed(view, job).at_most(gpus)

    # --- autoscaling --------------------------------------------------------------------------

    def _scale(self, view: View) -> None:
        """Move to another number of nodes if the average utility leaves the band.

        There are always enough for the largest gang that waits or runs, at its least width.
        """
        jobs = list(self.active)
        curves = [self.curve(view, job) for job in jobs]
        held = [self.held.width(job) for job in jobs]
        self.seen.append(_utility(curves, held, self.gpus))
        utility, is_full = sum(self.seen) / len(self.seen), len(self.seen) == self.seen.maxlen
        low, high = self.band
        nodes, least = self.held.nodes_for(self.gpus), self._least_nodes(curves)
        too_many = is_full and utility < low and nodes > least
        too_few = is_full and utility > high and nodes < self._most
        if too_many or too_few or nodes < least:
            wanted = self._nodes_near((low + high) / 2, view, jobs, curves, least)
            self.gpus = self.held.gpus_of_first(wanted)
            self.seen.clear()

    def _nodes_near(
        self, middle: float, view: View, jobs: Sequence[int], curves: Sequence[Curve], least: int
    ) -> int:
        """Return the number of nodes whose utility is nearest to the middle, by bisection."""

        def distance(count: int) -> float:
            """Return by how much the utility is too high."""
            gpus = self.held.gpus_of_first(count)
            return _utility(curves, self._best(view, jobs, gpus), gpus) - middle

        few, many = least, self._most
        while few + 1 < many:
            half = (few + many) // 2
            few, many = (few, half) if distance(half) < 0 else (half, many)
        return few if abs(distance(few)) <= abs(distance(many)) else many

    def _least_nodes(self, curves: Sequence[Curve]) -> int:
        """Return the nodes without which some gang could not even run at its least width."""
        widest = max((curve.least for curve in curves), default=0)
        return max(self.min_nodes, self.held.nodes_for(widest))


def _utility(curves: Sequence[Curve], widths: Sequence[int], gpus: int) -> float:
    """Return the sum of speedups over one GPU (the least width) per GPU."""
    pairs = zip(curves, widths, strict=True)
    return sum(curve.speed_at(width) / curve.speed[0] for curve, width in pairs) / gpus


@takes(PolluxOptions)
def pollux(scenario: Scenario, seed: int, options: PolluxOptions) -> Pollux:
    """Maximise the power mean of speedups over a fair share."""
    return Pollux("pollux", scenario, options)


@takes(AutoscalingOptions)
def pollux_autoscaling(scenario: Scenario, seed: int, options: AutoscalingOptions) -> Pollux:
    """Maximise the power mean of speedups, on as many nodes as are used well."""
    return Pollux("pollux-autoscaling", scenario, options)

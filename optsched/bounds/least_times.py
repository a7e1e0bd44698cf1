"""What each job needs at least in a scenario: release, time on GPUs, and earliest end.

All numbers are whole microseconds on the side that keeps the bound valid; line by line in
docs/obligations-bounds.md.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from optsched.bounds.attempts import Attempts
from optsched.bounds.lower_hull import lower_hull
from optsched.bounds.places import OUTWARD, Places, speedup_at
from optsched.bounds.schedules import Schedules, refuse_unknown_physics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.scenario import Model, Scenario
    from optsched.traces.trace import Trace

US: Final = 1_000_000
PPB: Final = 1_000_000_000
STEPS: Final = 1 << 16


class Piece(NamedTuple):
    """A part of a job's speed: `rate` / STEPS of the greatest, at `width` GPUs per speed of 1."""

    rate: int
    width: Fraction


class Needs(NamedTuple):
    """What a job needs, whatever the schedule.

    Attributes
    ----------
    release_us
        The first moment at which it can hold GPUs that count.
    length_us
        It counts as held for so long at least, at full speed.
    pieces
        Of full speed, by ascending width; their rates add up to STEPS. One piece if it is rigid.
    shift_us
        Forced waiting between its attempts, averaged over what is held before it.
    end_us
        It cannot end sooner, with the whole cluster to itself.
    """

    release_us: int
    length_us: int
    pieces: tuple[Piece, ...]
    shift_us: int
    end_us: int


class _Part(NamedTuple):
    """A phase of a job: its share of the work, its greatest rate, and that of each useful width."""

    share: Fraction
    rate: int
    rates: tuple[int, ...]


class World(NamedTuple):
    """All that a bound on times depends on.

    Attributes
    ----------
    jobs
        In the order of the trace.
    submit_us
        By job.
    capacity
        GPUs that jobs can hold at once, shared ones as often as they can be shared.
    largest_node
        GPUs of the largest node.
    """

    jobs: list[Needs]
    submit_us: list[int]
    capacity: int
    largest_node: int


def world_of(scenario: Scenario, trace: Trace, schedules: Schedules) -> World:
    """Return what every schedule of a class needs for a trace in a scenario.

    Raises
    ------
    UnknownPhysics
        If the scenario has something that the bounds do not know.
    """
    refuse_unknown_physics(scenario)
    reader = _Reader(scenario, trace, schedules)
    submit = [int(moment) for moment in trace.submit_us.tolist()]
    capacity = reader.places.gpus * scenario.sharing.max_jobs_per_gpu
    jobs = [reader.needs(job) for job in range(len(submit))]
    return World(jobs, submit, capacity, reader.places.largest_node)


class _Reader:
    """Reads jobs one by one; what is alike for many is remembered."""

    def __init__(self, scenario: Scenario, trace: Trace, schedules: Schedules) -> None:
        self.scenario, self.trace, self.schedules = scenario, trace, schedules
        self.places = Places(scenario)
        self.epoch_us = max(1, round(scenario.epoch_s * US))
        self.ends_at_us = max(1, round(scenario.epoch_s * US)) if scenario.finish_at_epochs else 1
        self._attempts = Attempts(scenario, schedules)
        self._speeds: dict[tuple[str, int], tuple[list[_Part], tuple[Piece, ...]]] = {}
        self._gpus, self._run = trace.gpus.tolist(), trace.run_us.tolist()

    def needs(self, job: int) -> Needs:
        """Return what a job needs."""
        name, width = self.trace.model[job], self._gpus[job]
        parts, pieces = self._known(name, width)
        work = self._run[job] * PPB
        works = [(work * part.share).__floor__() - len(parts) + 1 for part in parts]
        running = sum(-(-own // part.rate) for own, part in zip(works, parts, strict=True))
        release = self._release(int(self.trace.submit_us[job]))
        model = self.scenario.models.get(name)
        is_rigid = model is None or not model.phases
        least = self._attempts.least(self.trace, job, running, model)
        if least.is_straight and not self.schedules.trials:
            alone = _alone(works, parts, *self._attempts.overheads(model))
            least = least._replace(end_us=max(least.end_us, alone))
        end = min(release + least.fails_us, _rounded(release + least.end_us, self.ends_at_us))
        if is_rigid:
            held = least.held_us
            if least.is_straight and self._holds_whole_rounds:
                held = _rounded(held, self.ends_at_us)
            return Needs(release, held, pieces, least.shift_us, max(end, release + held))
        return Needs(release + least.before_us, least.progress_us, pieces, 0, end)

    def _release(self, submit: int) -> int:
        return submit if self.scenario.decide_on else _rounded(submit, self.epoch_us)

    @property
    def _holds_whole_rounds(self) -> bool:
        """Whether every stretch for which a job holds GPUs begins and ends with an epoch."""
        scenario = self.scenario
        return scenario.finish_at_epochs and not scenario.decide_on and not scenario.downtime

    def _known(self, name: str, width: int) -> tuple[list[_Part], tuple[Piece, ...]]:
        key = (name, width)
        if key not in self._speeds:
            self._speeds[key] = self._parts(self.scenario.models.get(name), width)
        return self._speeds[key]

    def _parts(self, model: Model | None, demand: int) -> tuple[list[_Part], tuple[Piece, ...]]:
        """Return the phases of a job, and the pieces of speed."""
        if model is None or not model.phases:
            rate = _greatest_rate(self.places.speed(model, demand))
            return [_Part(Fraction(1), rate, (rate,))], (Piece(STEPS, Fraction(demand)),)
        widths = sorted({demand, *(k for p in model.phases for k in p.curve.widths)})
        widths = [k for k in widths if k <= self.places.gpus]
        place = {k: self.places.speed(model, k) for k in widths}
        times = [Fraction(p.work_gpu_s) / speedup_at(p.curve, demand) for p in model.phases]
        shares, rates, points = [], [], []
        for phase, time in zip(model.phases, times, strict=True):
            own = speedup_at(phase.curve, demand)
            speed = {k: speedup_at(phase.curve, k) / own * place[k] for k in widths}
            most = max(speed.values())
            shares.append(time / sum(times) * (2 - OUTWARD))
            rates.append([_greatest_rate(value * OUTWARD) for value in speed.values()])
            points += [
                (min(STEPS, (value / most * STEPS).__ceil__()), k) for k, value in speed.items()
            ]
        useful = _undominated([tuple(column) for column in zip(*rates, strict=True)])
        parts = [
            _Part(share, max(own), own)
            for share, own in zip(shares, zip(*useful, strict=True), strict=True)
        ]
        return parts, hull(points)


def _undominated(columns: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the rates by phase of widths but for those that another one is never slower than."""
    kept: list[tuple[int, ...]] = []
    for column in sorted(set(columns), reverse=True):
        if not any(all(map(int.__le__, column, other)) for other in kept):
            kept.append(column)
    return kept


def _alone(works: Sequence[int], parts: Sequence[_Part], first: int, change: int) -> int:
    """Return the least microseconds of a job that has the cluster to itself.

    A shortest path over its phases: `first` before all, and `change` before a phase at another
    width than the one before. Within a phase a change is of no use, for one of its two widths is
    no slower for the whole of it.
    """
    if not change or len(parts) == 1:
        return first + sum(-(-work // part.rate) for work, part in zip(works, parts, strict=True))
    best = [first] * len(parts[0].rates)
    for number, (work, part) in enumerate(zip(works, parts, strict=True)):
        if number:
            least = min(best) + change
            best = [min(own, least) for own in best]
        best = [own - (-work // rate) for own, rate in zip(best, part.rates, strict=True)]
    return min(best)


def _rounded(time: int, step: int) -> int:
    """Return a time rounded up to whole steps."""
    return -(-time // step) * step


def _greatest_rate(speed: Fraction) -> int:
    """Return a rate that no rounding of the speed to parts per billion exceeds."""
    return max(1, (speed * PPB + Fraction(501, 1000)).__floor__())


def hull(points: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    """Return the lower convex hull of (speed in STEPS, GPUs), from (0, 0) to full speed."""
    corners = lower_hull([(0, 0), *points])
    return tuple(
        Piece(far[0] - near[0], Fraction((far[1] - near[1]) * STEPS, far[0] - near[0]))
        for near, far in pairwise(corners)
    )

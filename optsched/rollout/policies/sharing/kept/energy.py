"""What kept groups cost, as `GroupCosts` has it for the objective 'run-to-completion'."""

from __future__ import annotations

from itertools import combinations
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from optsched.eaco.group_figures import JOULES_PER_KWH
from optsched.eaco.settings import SETTINGS
from optsched.rollout.policies.eaco_adapter import work_left_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.documents.arrays import Floats
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.eaco_adapter import EacoInstanceParts
    from optsched.rollout.policies.sharing.kept.groups import KeptGroup, Member
    from optsched.rollout.policies.sharing.kept.mixes import Mixes

    Types = tuple[str, ...]


NEAR = 1e-7
"""Relative: neither rounding nor `SETTINGS.done_share` makes as much of a difference."""


class Step(NamedTuple):
    """A group of equally slow jobs, and one more: rates, watts of a GPU, and the most ever."""

    rate: float
    rate_before: float
    watts: float
    watts_before: float
    watts_alone: float
    most_watts: float


class Joining(NamedTuple):
    """A job that comes to a group of equally slow jobs, and ends before they do, or stays apart.

    The rest of the group then goes on as it would have, so only that job's own time counts.

    Attributes
    ----------
    beside_w, apart_w
        Watts of a GPU for each second that it works beside the group, and apart from it.
    near_w, near_beside_w
        What rounding and `SETTINGS.done_share` make at most, for each second apart, and for each
        second of its work beside the group or of the group's.
    """

    beside_w: float
    apart_w: float
    near_w: float
    near_beside_w: float

    @property
    def reach(self) -> float:
        """How many times as long as a job the longest may take, so that it is certain to save.

        Provided that it takes as long beside the group as apart, and ends before its jobs.
        """
        gain_w = self.apart_w - self.beside_w - self.near_w - self.near_beside_w
        return gain_w / self.near_beside_w * (1 - NEAR) if gain_w > 0 else 0.0

    def is_cheaper(
        self, beside_s: float, apart_s: float, shortest_s: float, longest_s: float
    ) -> bool | None:
        """Tell whether it costs less beside the group than apart, if that is certain.

        Parameters
        ----------
        beside_s, apart_s
            What it works there.
        shortest_s, longest_s
            The least and the most work of the group's jobs.
        """
        if beside_s * (1 + NEAR) >= shortest_s:
            return None
        rise = beside_s * self.beside_w - apart_s * self.apart_w
        near = (longest_s + beside_s) * self.near_beside_w + apart_s * self.near_w
        return rise < 0 if abs(rise) > near else None


class Energy:
    """Energies of groups until their last jobs end, at full power, nobody moved.

    Attributes
    ----------
    left
        By job of which it was asked, how many seconds it still needs alone.
    """

    def __init__(self, mixes: Mixes, parts: EacoInstanceParts) -> None:
        power = parts.template.nodes[0].power
        self.mixes = mixes
        self._above_sleep_w = power.base_w - power.sleep_w
        self._steps: dict[tuple[Types, str], Step | None] = {}
        self._joinings: dict[tuple[Types, str, int, int], Joining | None] = {}
        self.left: dict[int, float] = {}
        self._kwh: dict[KeptGroup, tuple[Types, float]] = {}
        self._view: View | None = None

    def begin(self, view: View) -> None:
        """Begin a decision: jobs have got on since the last one."""
        self._view = view
        self.left.clear()
        self._kwh.clear()

    def look_at(self, members: Iterable[Member]) -> None:
        """Ask how long jobs still need, if that is not known."""
        jobs = [member.job for member in members if member.job not in self.left]
        if jobs:
            self.ask(jobs)

    def ask(self, jobs: Sequence[int]) -> Floats:
        """Return how many seconds each of some jobs still needs, and remember it."""
        assert self._view is not None
        seconds = work_left_s(self._view, jobs)
        self.left.update(zip(jobs, seconds.tolist(), strict=True))
        return seconds

    def left_s(self, member: Member) -> float:
        """Return how long a job still needs alone, which was asked."""
        return self.left[member.job]

    def alone(self, member: Member, gpus: int) -> float:
        """Return the kWh of a job alone on a node of so many GPUs."""
        return self._of((member.type,), [self.left[member.job]], member.gang, gpus)

    def kwh(self, works: list[tuple[str, float]], gang: int, gpus: int) -> float:
        """Return the kWh of jobs, by type and work, on nodes of so many GPUs."""
        works.sort()
        types = tuple([name for name, _ in works])
        share = self._above_sleep_w / gpus
        if len(works) == 1:
            return gang * (works[0][1] * (self.mixes.of(types).gpu_w + share)) / JOULES_PER_KWH
        if len(works) == 2:
            joules = self._of_two(types, works[0][1], works[1][1], share)
            if joules is not None:
                return gang * joules / JOULES_PER_KWH
        return self._of(types, [work for _, work in works], gang, gpus)

    def rise(self, group: KeptGroup, member: Member, gpus: int) -> float:
        """Return by how many kWh a group costs more with one more job."""
        types, before = self._kwh.get(group, ((), 0.0))
        left = self.left
        works = [(each.type, left[each.job]) for each in group.members]
        if types != group.types:
            before = self.kwh(works, group.gang, gpus)
            self._kwh[group] = group.types, before
        works.append((member.type, left[member.job]))
        return self.kwh(works, group.gang, gpus) - before

    def _of(self, types: Types, works: Sequence[float], gang: int, gpus: int) -> float:
        """Return the kWh of jobs of some types, sorted, with so much work each."""
        share, of, done = self._above_sleep_w / gpus, self.mixes.of, SETTINGS.done_share
        total, mix, left = 0.0, of(types), list(works)
        while len(left) > 1:
            now = of(types)
            mix = now if now.is_known else mix
            speeds, watts = mix.speeds, mix.gpu_w + share
            rates = [speeds[name] for name in types]
            seconds = min([work / rate for work, rate in zip(left, rates, strict=True)])
            rest = [work - seconds * rate for work, rate in zip(left, rates, strict=True)]
            total += seconds * watts
            going = [n for n, work in enumerate(rest) if work > done * works[n]]
            left = [rest[n] for n in going]
            works = [works[n] for n in going]
            types = tuple([types[n] for n in going])
        if left:  # one alone, at rate 1
            total += left[0] * (of(types).gpu_w + share)
        return gang * total / JOULES_PER_KWH

    def _of_two(self, types: Types, one_s: float, other_s: float, share_w: float) -> float | None:
        """Return the joules of a GPU of two jobs; None if rounding leaves something of both."""
        mix, done = self.mixes.of(types), SETTINGS.done_share
        first, second = types
        rate, other_rate = mix.speeds[first], mix.speeds[second]
        seconds = min(one_s / rate, other_s / other_rate)
        total = seconds * (mix.gpu_w + share_w)
        rest, other_rest = one_s - seconds * rate, other_s - seconds * other_rate
        if other_rest > done * other_s:
            if rest > done * one_s:
                return None
            return total + other_rest * (self.mixes.of((second,)).gpu_w + share_w)
        if rest > done * one_s:
            return total + rest * (self.mixes.of((first,)).gpu_w + share_w)
        return total

    # --- what is told without the costs -------------------------------------------------------

    def joining(self, types: Types, name: str, gpus: int, gpus_apart: int) -> Joining | None:
        """Return what a job of a type takes beside a group and apart; None if that varies.

        Parameters
        ----------
        types
            Of the group, sorted.
        gpus, gpus_apart
            Of a node here and there.
        """
        key = (types, name, gpus, gpus_apart)
        if key not in self._joinings:
            self._joinings[key] = self._made_joining(*key)
        return self._joinings[key]

    def _made_joining(self, types: Types, name: str, gpus: int, gpus_apart: int) -> Joining | None:
        step = self._step(types, name)
        if step is None:
            return None
        beside, apart = self._above_sleep_w / gpus, self._above_sleep_w / gpus_apart
        more = (step.watts + beside) / step.rate
        less = (step.watts_before + beside) / step.rate_before
        near = NEAR * (step.most_watts + beside + apart)
        return Joining(more - less, step.watts_alone + apart, near, near / step.rate)

    def rise_within(self, group: KeptGroup, member: Member, gpus: int) -> tuple[float, float]:
        """Return limits of `rise`; infinite where more than types must be looked at."""
        step = self._step(group.types, member.type)
        lefts = [self.left[each.job] for each in group.members]
        work = self.left[member.job]
        if step is None or work * (1 + NEAR) >= min(lefts):
            return -inf, inf
        share, seconds = self._above_sleep_w / gpus, work / step.rate
        rise = seconds * (step.watts + share)
        rise -= seconds * step.rate / step.rate_before * (step.watts_before + share)
        error = NEAR * (max(lefts) / step.rate + seconds) * (step.most_watts + share)
        each = group.gang / JOULES_PER_KWH
        return (rise - error) * each, (rise + error) * each

    def _step(self, types: Types, name: str) -> Step | None:
        key = (types, name)
        if key not in self._steps:
            self._steps[key] = self._made_step(types, name)
        return self._steps[key]

    def _made_step(self, types: Types, name: str) -> Step | None:
        wider = tuple(sorted((*types, name)))
        after, before = self.mixes.of(wider), self.mixes.of(types)
        rates, rates_before = {*after.speeds.values()}, {*before.speeds.values()}
        if len(rates) != 1 or len(rates_before) != 1:
            return None
        sizes = range(1, len(wider) + 1)
        parts = {part for size in sizes for part in combinations(wider, size)}
        return Step(
            rates.pop(),
            rates_before.pop(),
            after.gpu_w,
            before.gpu_w,
            self.mixes.of((name,)).gpu_w,
            max(self.mixes.of(part).gpu_w for part in parts),
        )

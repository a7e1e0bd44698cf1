"""What kept groups cost, as `GroupCosts` has it for the objective 'run-to-completion'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.group_figures import JOULES_PER_KWH
from optsched.eaco.settings import SETTINGS
from optsched.rollout.policies.eaco_adapter import work_left_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.eaco_adapter import EacoInstanceParts
    from optsched.rollout.policies.sharing.kept.groups import KeptGroup, Member
    from optsched.rollout.policies.sharing.kept.mixes import Mixes

    Types = tuple[str, ...]


class Energy:
    """Energies of groups until their last jobs end, at full power, nobody moved."""

    def __init__(self, mixes: Mixes, parts: EacoInstanceParts) -> None:
        power = parts.template.nodes[0].power
        self.mixes = mixes
        self._above_sleep_w = power.base_w - power.sleep_w
        self._left_s: dict[int, float] = {}
        self._kwh: dict[KeptGroup, tuple[Types, float]] = {}
        self._view: View | None = None

    def begin(self, view: View) -> None:
        """Begin a decision: jobs have got on since the last one."""
        self._view = view
        self._left_s.clear()
        self._kwh.clear()

    def look_at(self, members: Iterable[Member]) -> None:
        """Ask how long jobs still need, if that is not known."""
        known, view = self._left_s, self._view
        jobs = [member.job for member in members if member.job not in known]
        if jobs and view is not None:
            known.update(zip(jobs, work_left_s(view, jobs), strict=True))

    def left_s(self, member: Member) -> float:
        """Return how long a job still needs alone, which was asked."""
        return self._left_s[member.job]

    def alone(self, member: Member, gpus: int) -> float:
        """Return the kWh of a job alone on a node of so many GPUs."""
        return self._of((member.type,), [self._left_s[member.job]], member.gang, gpus)

    def kwh(self, works: list[tuple[str, float]], gang: int, gpus: int) -> float:
        """Return the kWh of jobs, by type and work, on nodes of so many GPUs."""
        works.sort()
        types = tuple([name for name, _ in works])
        return self._of(types, [work for _, work in works], gang, gpus)

    def rise(self, group: KeptGroup, member: Member, gpus: int) -> float:
        """Return by how many kWh a group costs more with one more job."""
        types, before = self._kwh.get(group, ((), 0.0))
        left = self._left_s
        works = [(each.type, left[each.job]) for each in group.members]
        if types != group.types:
            before = self.kwh(works, group.gang, gpus)
            self._kwh[group] = group.types, before
        works.append((member.type, left[member.job]))
        return self.kwh(works, group.gang, gpus) - before

    def _of(self, types: Types, works: Sequence[float], gang: int, gpus: int) -> float:
        """Return the kWh of jobs of some types, sorted, with so much work each."""
        share, total, mix = self._above_sleep_w / gpus, 0.0, self.mixes.of(types)
        left = list(works)
        while len(left) > 1:
            now = self.mixes.of(types)
            mix = now if now.is_known else mix
            rates = [mix.speeds[name] for name in types]
            seconds = min([work / rate for work, rate in zip(left, rates, strict=True)])
            total += seconds * (mix.gpu_w + share)
            left = [work - seconds * rate for work, rate in zip(left, rates, strict=True)]
            going = [n for n, rest in enumerate(left) if rest > SETTINGS.done_share * works[n]]
            left = [left[n] for n in going]
            works = [works[n] for n in going]
            types = tuple([types[n] for n in going])
        if left:  # one alone, at rate 1
            total += left[0] * (self.mixes.of(types).gpu_w + share)
        return gang * total / JOULES_PER_KWH

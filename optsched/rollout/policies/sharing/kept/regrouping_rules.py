"""EaCO's greedy rules that part all jobs anew: each does what the rule of its name does.

Those are in `optsched.eaco.greedy.published_rules` and `simple_rules`. Here it is for jobs without
deadlines, and what is allowed is known by gang size and types.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from random import Random
from typing import TYPE_CHECKING

from optsched.eaco.greedy.published_rules import THRESHOLDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.rollout.policies.sharing.kept.groups import Member
    from optsched.rollout.policies.sharing.kept.regrouped import Draft, Regrouped


def all_apart(groups: Regrouped, waiting: Sequence[Member]) -> None:
    """Let the running groups stay, and give jobs, which all find some, GPUs of their own."""
    groups.waiting += _exclusively(groups, waiting)


def random_pairs(groups: Regrouped, jobs: Sequence[Member], seed: int) -> None:
    """Do as `gandiva_gavel` where not all jobs find GPUs of their own."""
    speeds = groups.mixes.speeds
    groups.part(
        group
        for group in groups.kept.inside()
        if len(group.members) == 1 or speeds(group.types) < THRESHOLDS.kept_from
    )
    of, parted = groups.kept.of, groups.parted
    free = [member for member in jobs if member.job not in of or of[member.job] in parted]
    for chosen in sorted(_drawn(groups, free, Random(seed))):
        draft = groups.alone(chosen[0])
        if draft is None:
            groups.waiting += chosen
            continue
        for member in chosen[1:]:
            groups.pair(draft, member)
        groups.open(draft)


def _drawn(groups: Regrouped, free: list[Member], generator: Random) -> list[tuple[Member, ...]]:
    """Return all jobs: pairs that do not lose, and those that found none."""
    mixes = groups.mixes
    pairs: list[tuple[Member, ...]] = []
    for _ in range(len(free)):
        if len(free) < 2:
            break
        one, other = sorted(generator.sample(free, 2))
        types = mixes.wider((one.type,), other.type) if one.gang == other.gang else None
        if types is None or mixes.speeds(types) < THRESHOLDS.kept_from:
            continue
        if groups.alone(one) is not None:
            for member in (one, other):
                del free[bisect_left(free, member)]
            pairs.append((one, other))
    return [*pairs, *((member,) for member in free)]


def fifo_packed(groups: Regrouped, jobs: Sequence[Member], _: int = 0) -> None:
    """Do as `fifo_packed`."""
    groups.part(groups.kept.inside())
    rest = _exclusively(groups, jobs)
    for n, member in enumerate(rest):
        best, most = None, THRESHOLDS.packed_from
        for draft in _open_to(groups, member):
            speeds = groups.mixes.of(tuple(sorted((*draft.types, member.type)))).speeds
            both = speeds[draft.types[0]] + speeds[member.type]
            if len(draft.types) == 1 and both > most:
                best, most = draft, both
        if best is None:
            groups.waiting += rest[n:]
            break
        groups.join(best, member)


def _exclusively(groups: Regrouped, jobs: Sequence[Member]) -> Sequence[Member]:
    """Place jobs alone up to the first that finds no room; return that one and those behind it."""
    for n, member in enumerate(jobs):
        draft = groups.alone(member)
        if draft is None:
            return jobs[n:]
        groups.open(draft)
    return ()


def _open_to(groups: Regrouped, member: Member) -> Iterator[Draft]:
    """Yield the groups that a job may join, in order."""
    wider = groups.mixes.wider
    for draft in groups.drafts:
        if draft.gang == member.gang and wider(draft.types, member.type) is not None:
            yield draft


def longest_first(groups: Regrouped, jobs: Sequence[Member], _: int = 0) -> None:
    """Do as the rule of that name."""
    groups.part(groups.kept.inside())
    groups.energy.look_at(jobs)
    times = groups.times_left_s(jobs)
    order = sorted(range(len(jobs)), key=times.__getitem__, reverse=True)
    left = _Left([jobs[n] for n in order])
    late = []
    for n, member in enumerate(left.jobs):
        if left.is_taken[n]:
            continue
        left.take(n)
        draft = groups.alone(member)
        if draft is None:
            late.append(member)
            continue
        groups.open(draft)
        found = left.after(n, groups, draft)
        while found is not None:
            other = left.jobs[found]
            if groups.pays(draft, other):
                left.take(found)
                groups.join(draft, other)
            found = left.after(found, groups, draft)
    for member in late:
        rises = [(groups.kwh_with(d, member) - groups.kwh(d), d) for d in _open_to(groups, member)]
        if rises:
            groups.join(min(rises, key=lambda rise: rise[0])[1], member)
        else:
            groups.waiting.append(member)


class _Left:
    """Jobs in the order of a rule, and which of each gang size and type are in no group yet."""

    def __init__(self, jobs: list[Member]) -> None:
        self.jobs, self.is_taken = jobs, bytearray(len(jobs))
        self._of: dict[int, dict[str, list[int]]] = {}
        for n, member in enumerate(jobs):
            self._of.setdefault(member.gang, {}).setdefault(member.type, []).append(n)

    def take(self, n: int) -> None:
        """Let a job be left no more."""
        member = self.jobs[n]
        rest = self._of[member.gang][member.type]
        del rest[bisect_left(rest, n)]
        self.is_taken[n] = True

    def after(self, n: int, groups: Regrouped, draft: Draft) -> int | None:
        """Return the next job behind another that may join a group; None if there is none."""
        left = self._of[draft.gang]
        found = []
        for name in groups.mixes.followers(draft.types):
            rest = left.get(name)
            if rest and rest[-1] > n:
                found.append(rest[bisect_right(rest, n)])
        return min(found) if found else None

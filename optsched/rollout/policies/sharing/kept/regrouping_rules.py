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
    from collections.abc import Callable, Iterator, Sequence

    from optsched.rollout.policies.sharing.kept.groups import Member
    from optsched.rollout.policies.sharing.kept.mixes import Mixes

    Kind = tuple[str, int] | tuple[str, int, str]  # type and gang size of jobs that wait, or run
    from optsched.rollout.policies.sharing.kept.regrouped import Draft, Regrouped

MOST_IN_POOL = 21
"""Of so many `random.Random.sample` draws two from a pool, of more by their places alone."""


def all_apart(groups: Regrouped, waiting: Sequence[Member]) -> None:
    """Let the running groups stay, and give jobs, which all find some, GPUs of their own."""
    groups.waiting += _exclusively(groups, waiting)


def random_pairs(groups: Regrouped, waiting: Sequence[Member], seed: int) -> None:
    """Do as `gandiva_gavel` where not all jobs find GPUs of their own."""
    kept, speeds = groups.kept, groups.mixes.speeds
    groups.part(
        group
        for by_types in kept.shelves.values()
        for types, shelf in by_types.items()
        if len(types) == 1 or speeds(types) < THRESHOLDS.kept_from
        for _, group in shelf
    )
    running = [each for group in groups.parted for each in group.members]
    free = sorted([*running, *waiting])
    kinds: dict[Kind, int] = {}
    kind_of = [kinds.setdefault((each.type, each.gang), len(kinds)) for each in free]
    for each in running:
        kind = each.type, each.gang, "runs"
        kind_of[bisect_left(free, each)] = kinds.setdefault(kind, len(kinds))
    partners = _drawn(groups, kind_of, [*kinds], Random(seed))
    passed, vain = {*partners.values()}, set[int]()
    for n, number in enumerate(kind_of):
        if number in vain or n in passed:
            continue
        draft = groups.alone(free[n])
        if draft is not None:
            if n in partners:
                groups.pair(draft, free[partners[n]])
            groups.open(draft)
            vain.clear()
        elif free[n].job not in kept.of:
            vain.add(number)
    placed = {each.job for draft in groups.drafts for each in draft.members}
    groups.waiting += [each for each in running if each.job not in placed]


def _drawn(
    groups: Regrouped,
    kind_of: Sequence[int],
    kinds: Sequence[Kind],
    generator: Random,
) -> dict[int, int]:
    """Return which jobs are paired, by their places: by the first of a pair the other one.

    Parameters
    ----------
    kind_of
        By place the number of a job's kind.
    kinds
        Those that run find GPUs alone: their own.
    """
    mixes = groups.mixes
    gains: list[set[int]] = []
    for name, gang, *runs in kinds:
        can_be_alone = runs or groups.host(name, gang) is not None
        gains.append(
            {
                n
                for n, (other, size, *_) in enumerate(kinds)
                if can_be_alone and size == gang and _gain(mixes, name, other)
            }
        )
    partners: dict[int, int] = {}
    left, draw = list(range(len(kind_of))), generator.getrandbits
    for _ in range(len(left)):
        count = len(left)
        if count < 2:
            break
        one, other = two_of(draw, count)
        if one > other:
            one, other = other, one
        first = left[one]
        if kind_of[left[other]] in gains[kind_of[first]]:
            partners[first] = left[other]
            del left[other], left[one]
    return partners


def _gain(mixes: Mixes, one: str, other: str) -> bool:
    """Tell whether jobs of some types may be a pair, which does not lose."""
    types = mixes.wider((one,), other)
    return types is not None and mixes.speeds(types) >= THRESHOLDS.kept_from


def two_of(draw: Callable[[int], int], count: int) -> tuple[int, int]:
    """Return `random.Random.sample(range(count), 2)`, of a generator whose bits `draw` draws.

    Of few, the last one takes the place of the first that was drawn; of many, one that was drawn
    already is drawn again.
    """
    bits = count.bit_length()
    one = draw(bits)
    while one >= count:
        one = draw(bits)
    if count <= MOST_IN_POOL:
        count -= 1
        bits = count.bit_length()
        other = draw(bits)
        while other >= count:
            other = draw(bits)
        return one, count if other == one else other
    other = draw(bits)
    while other >= count or other == one:
        other = draw(bits)
    return one, other


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

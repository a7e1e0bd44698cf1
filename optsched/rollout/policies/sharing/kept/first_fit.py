"""Groups of jobs each of which joins the first that it may: what of them changes from call to call.

So "longest-first" forms groups where it always pays to join, and where there is room enough: of the
jobs of a gang size by their order and types alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optsched.rollout.policies.sharing.kept.groups import Member
    from optsched.rollout.policies.sharing.kept.mixes import Mixes

    Types = tuple[str, ...]

MOST_GROWING = 32
"""As many groups as may wait for further jobs: each job is compared with all of them."""


class Group(NamedTuple):
    """Jobs in the order in which they joined.

    Attributes
    ----------
    types
        Theirs, sorted.
    """

    types: Types
    jobs: tuple[int, ...]


class FirstFit:
    """Jobs in order, parted into groups: each is in the first that it might join.

    Attributes
    ----------
    jobs
        In order.
    """

    def __init__(self, mixes: Mixes) -> None:
        self.mixes = mixes
        self.jobs: list[int] = []
        self._growing: list[tuple[Group, ...]] = [()]  # before each job, and behind the last
        self._full: list[Group | None] = []  # by job: the one that takes no other after it

    def groups(self) -> Iterator[Group]:
        """Yield all groups."""
        yield from filter(None, self._full)
        yield from self._growing[-1]

    def arrange(self, jobs: list[int], members: Mapping[int, Member]) -> list[Group] | None:
        """Part other jobs, or the same in another order; return the groups that were none before.

        From the first job that stands elsewhere they are formed anew, until those behind are as
        before and find the same groups that may still grow. None, with nothing as it was, if too
        many of those wait for further jobs.
        """
        start, alike = _alike(self.jobs, jobs)
        more = len(self.jobs) - len(jobs)
        growing, full, n = list[tuple[Group, ...]](), list[Group | None](), start
        now = self._growing[start]
        while n < len(jobs) - alike or now != self._growing[n + more]:
            if n == len(jobs):
                break
            now, done = self._with(now, members[jobs[n]])
            if len(now) > MOST_GROWING:
                return None
            growing.append(now)
            full.append(done)
            n += 1
        before, after = [*self._full[start : n + more]], [*full]
        if n == len(jobs):
            before += self._growing[-1]
            after += now
        self._growing[start + 1 : n + more + 1] = growing
        self._full[start : n + more] = full
        self.jobs = jobs
        known = {*before}
        return [group for group in after if group is not None and group not in known]

    def _with(
        self, growing: tuple[Group, ...], member: Member
    ) -> tuple[tuple[Group, ...], Group | None]:
        """Return the groups that may still grow with one more job, and the one that it fills."""
        at, group = len(growing), Group((member.type,), (member.job,))
        for n, (types, jobs) in enumerate(growing):
            wider = self.mixes.wider(types, member.type)
            if wider is not None:
                at, group = n, Group(wider, (*jobs, member.job))
                break
        if self.mixes.followers(group.types):
            return (*growing[:at], group, *growing[at + 1 :]), None
        return growing[:at] + growing[at + 1 :], group


def _alike(before: Sequence[int], after: Sequence[int]) -> tuple[int, int]:
    """Return how many jobs are the same at the beginning, and how many of the others at the end."""
    shorter = min(len(before), len(after))
    start = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    rest = shorter - start
    return start, next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)

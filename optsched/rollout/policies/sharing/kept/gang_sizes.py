"""Running groups of a gang size in order, and which jobs of that size go beside which."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from optsched.rollout.policies.sharing.kept.groups import KeptGroup, Member

    Members = tuple[Member, ...]
    # Who is alone, and its group, if it runs.
    Alone = tuple[Member, KeptGroup | None]
    # By type, in order.
    Offers = dict[str, deque[Alone]]
    # A job, the group beside whose first job it goes, if that runs, and that first job.
    Pair = tuple[Member, KeptGroup | None, Member]


class Pairing(NamedTuple):
    """Which jobs of a gang size go beside which.

    Attributes
    ----------
    pairs
        Those that do not run, in order.
    last
        The first job that finds no partner; those behind it are not looked at.
    left
        Who is alone still.
    """

    pairs: list[Pair]
    last: Member | None
    left: Offers

    def copied(self) -> Offers:
        """Return a copy of who is alone still."""
        return {name: row.copy() for name, row in self.left.items()}


@dataclass(slots=True)
class GangSize:
    """Groups of a gang size.

    Attributes
    ----------
    firsts
        By type the jobs that come first in their groups, with these, in order.
    others
        The other jobs, in order.
    is_in_force
        Whether the pairs that would be formed are those that run.
    known
        Pairs as they were found since groups changed, by the jobs on which they depend besides.
    """

    firsts: dict[str, list[tuple[Member, KeptGroup]]] = field(default_factory=dict)
    others: list[Member] = field(default_factory=list)
    is_in_force: bool = False
    known: dict[tuple[Members, Members, Members], Pairing] = field(default_factory=dict)

    def add(self, group: KeptGroup) -> None:
        """Take note of a group."""
        first, *others = group.members
        insort(self.firsts.setdefault(first.type, []), (first, group))
        for member in others:
            insort(self.others, member)
        self._change()

    def remove(self, group: KeptGroup) -> None:
        """Forget a group."""
        first, *others = group.members
        row = self.firsts[first.type]
        del row[bisect_left(row, (first,))]
        for member in others:
            del self.others[bisect_left(self.others, member)]
        self._change()

    def _change(self) -> None:
        self.is_in_force = False
        self.known.clear()

    def late(self, start: Member) -> list[tuple[Member, KeptGroup]]:
        """Return the jobs that come first in their groups, but not before another one."""
        late: list[tuple[Member, KeptGroup]] = []
        for row in self.firsts.values():
            if row and row[-1][0] > start:
                late += row[bisect_left(row, (start,)) :]
        return late

    def alone(self) -> Offers:
        """Return who is alone."""
        return {
            name: deque([(first, group) for first, group in row if len(group.members) == 1])
            for name, row in self.firsts.items()
        }

    def offers(self, late: Collection[Member]) -> Offers:
        """Return who would be alone if only the first jobs of groups were there, but late ones."""
        parted = {*late}
        return {
            name: deque([each for each in row if each[0] not in parted] if parted else row)
            for name, row in self.firsts.items()
        }

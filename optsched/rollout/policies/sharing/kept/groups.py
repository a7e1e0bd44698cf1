"""The groups that run now, and the GPUs that are free, kept up to date by a policy itself."""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from optsched.rollout.policies.free_nodes import FreeNodes
from optsched.rollout.policies.sharing.node_pools import WHOLE, NodePools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.sharing.kept.mixes import Mixes
    from optsched.rollout.policies.sharing.kept.packed_pairs import PackedPairs

    Gpus = tuple[int, ...]
    Shares = tuple[tuple[int, int], ...]
    Types = tuple[str, ...]
    Position = tuple[float, int]


LAST = inf
"""The rank of groups that a round opens."""


class Member(NamedTuple):
    """A job as rules see it; those with less come first in the queue and in groups.

    Attributes
    ----------
    rank
        Of its queue: less is earlier.
    job
        Its number.
    type
        Its type in the instance of EaCO.
    gang
        How many GPUs it asks for.
    kind
        Its type, and what else its rank at present depends on.
    """

    rank: float
    job: int
    type: str
    gang: int
    kind: tuple[str, ...]


class KeptGroup:
    """Jobs on the same GPUs.

    Attributes
    ----------
    gpus
        Ascending; none before a round is over, if it opens the group.
    members
        In order.
    types
        Of its members, sorted.
    position
        Where it stands among groups: as its first member did when the round began; groups that a
        round opens come last.
    is_wide
        Whether it is on several nodes.
    is_inside
        Whether the instance of EaCO has it, see `NodePools`.
    """

    __slots__ = ("gang", "gpus", "is_inside", "is_wide", "members", "position", "types")

    def __init__(self, members: list[Member], gpus: Gpus, position: Position) -> None:
        self.members, self.gpus, self.position = members, gpus, position
        self.gang = members[0].gang
        self.types = tuple(sorted(member.type for member in members))
        self.is_wide = False
        self.is_inside = True

    def add(self, member: Member) -> None:
        """Let a job come to the group."""
        insort(self.members, member)
        self.types = tuple(sorted((*self.types, member.type)))

    def remove(self, member: Member) -> None:
        """Let a job leave the group."""
        self.members.remove(member)
        self.types = tuple(sorted(each.type for each in self.members))


class KeptGroups:
    """Groups by their GPUs, by gang size and types, and what is free beside them.

    Parameters
    ----------
    has_shelves
        Whether there are `shelves` and `misfits`, for rules that look for groups by them.

    Attributes
    ----------
    shelves
        By gang size and types the groups of the instance, each with its position, in that order.
    of
        By running job its group.
    free
        The GPUs that nobody holds.
    pools
        The nodes as the instance has them; those of the last call of `look_at`.
    whole
        The set of the nodes of which jobs outside the instance hold nothing.
    version
        Rises whenever anything changes.
    misfits
        Groups that may not run as they are.
    unplaced
        By type and gang size the version at which a rule found nothing for such a job.
    labels
        Those of the last round, of the rules that have some.
    pairs
        It is told of each group that rules may find; None where no rule asks it.
    """

    def __init__(self, cluster: Cluster, mixes: Mixes, *, has_shelves: bool = True) -> None:
        self.cluster, self.mixes, self._has_shelves = cluster, mixes, has_shelves
        self.free = FreeNodes(cluster)
        self.shelves: dict[int, dict[Types, list[tuple[Position, KeptGroup]]]] = {}
        self.by_gpus: dict[Gpus, KeptGroup] = {}
        self.of: dict[int, KeptGroup] = {}
        self.version = 0
        self.misfits: set[KeptGroup] = set()
        self.unplaced: dict[tuple[str, int], int] = {}
        self.labels: dict[str, int] = {}
        self.pairs: PackedPairs | None = None
        self.pools = NodePools(cluster, None, {})
        self.whole = 0
        self._ready: Sequence[bool] = ()
        self._wide: dict[KeptGroup, Shares] = {}
        self._outside: set[KeptGroup] = set()
        self._is_known = False

    # --- jobs ---------------------------------------------------------------------------------

    def add(self, member: Member, gpus: Gpus) -> None:
        """Let a job hold GPUs, alone or beside those that hold the same ones."""
        group = self.by_gpus.get(gpus)
        if group is None:
            group = KeptGroup([member], gpus, member[:2])
            self.free.take(gpus)
            self.open(group)
        else:
            self.widen(group, member)
            self.settle(group)

    def open(self, group: KeptGroup) -> None:
        """Let the jobs of a new group hold its GPUs, which are taken."""
        node_of = self.cluster.node_of
        self.by_gpus[group.gpus] = group
        for member in group.members:
            self.of[member.job] = group
        group.is_wide = node_of[group.gpus[0]] != node_of[group.gpus[-1]]
        if group.is_wide:
            self._wide[group] = self.cluster.shares(group.gpus)
            self._is_known = False
        self.shelve(group)

    def widen(self, group: KeptGroup, member: Member) -> None:
        """Let a job come to a group, which keeps its position."""
        self.unshelve(group)
        group.add(member)
        self.of[member.job] = group
        self.shelve(group)

    def narrow(self, group: KeptGroup, member: Member) -> None:
        """Let a job leave a group in which others stay, and which keeps its position."""
        self.unshelve(group)
        group.remove(member)
        del self.of[member.job]
        self.shelve(group)

    def settle(self, group: KeptGroup) -> None:
        """Let a group stand where its first member does."""
        position = group.members[0][:2]
        if position != group.position:
            self.unshelve(group)
            group.position = position
            self.shelve(group)

    def remove(self, job: int) -> None:
        """Let a job that held GPUs hold none."""
        group = self.of[job]
        member = next(each for each in group.members if each.job == job)
        if len(group.members) > 1:
            self.narrow(group, member)
            self.settle(group)
            return
        self.unshelve(group)
        del self.of[job], self.by_gpus[group.gpus]
        self.free.release(group.gpus)
        if group.is_wide:
            del self._wide[group]
            self._is_known = False
        self._outside.discard(group)

    def shelve(self, group: KeptGroup) -> None:
        """Let rules find a group, if the instance has it."""
        self.version += 1
        if not (group.is_inside and self._has_shelves):
            return
        by_types = self.shelves.setdefault(group.gang, {})
        insort(by_types.setdefault(group.types, []), (group.position, group))
        if not self.mixes.allows(group.types):
            self.misfits.add(group)
        if self.pairs is not None:
            self.pairs.shelved(group)

    def unshelve(self, group: KeptGroup) -> None:
        """Let rules find a group no more."""
        self.version += 1
        if not (group.is_inside and self._has_shelves):
            return
        by_types = self.shelves[group.gang]
        shelf = by_types[group.types]
        del shelf[bisect_left(shelf, (group.position,))]
        if not shelf:
            del by_types[group.types]
        self.misfits.discard(group)
        if self.pairs is not None:
            self.pairs.unshelved(group)

    # --- nodes --------------------------------------------------------------------------------

    def look_at(self, ready: Sequence[bool], across: Mapping[int, Gpus]) -> NodePools:
        """Return the pools of nodes as they are now, or with jobs that are to be across nodes."""
        if self._is_known and not across and ready == self._ready:
            return self.pools
        self._is_known, self._ready = not across, ready
        apart = [*self._wide]
        if not all(ready):
            node_of = self.cluster.node_of
            apart += [
                group
                for group in self.by_gpus.values()
                if not group.is_wide and not ready[node_of[group.gpus[0]]]
            ]
        held = {group.members[0].job: group.gpus for group in apart}
        wide = {group.members[0].job: shares for group, shares in self._wide.items()}
        self.pools = pools = NodePools(self.cluster, ready, held, across, wide)
        self.version += 1
        outside = {self.of[job] for job in pools.outside - across.keys()}
        for group in outside ^ self._outside:
            self.unshelve(group)
            group.is_inside = group not in outside
            self.shelve(group)
        self._outside = outside
        self.whole = sum(1 << node for node in pools.nodes.get(WHOLE, ()))
        return pools

    def inside(self) -> Iterator[KeptGroup]:
        """Yield the groups that the instance has."""
        return (group for group in self.by_gpus.values() if group.is_inside)

    @property
    def outside(self) -> set[int]:
        """The running jobs that the instance does not have."""
        return {member.job for group in self._outside for member in group.members}

    @property
    def last(self) -> Position:
        """Where the last of all groups stands."""
        shelves = (shelf for by_types in self.shelves.values() for shelf in by_types.values())
        inside = (shelf[-1][0] for shelf in shelves)
        outside = (group.position for group in self._outside)
        return max(chain(inside, outside), default=(-inf, 0))

    def types(self) -> Iterator[str]:
        """Yield the types of the jobs that the instance has; some more than once."""
        for by_types in self.shelves.values():
            for types in by_types:
                yield from types

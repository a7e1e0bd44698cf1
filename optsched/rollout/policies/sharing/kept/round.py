"""One round of a rule over kept groups: what it changes, at first on trial."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from optsched.rollout.policies.sharing.kept.groups import LAST, KeptGroup
from optsched.rollout.policies.sharing.kept.pool_packing import put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optsched.rollout.policies.sharing.kept.energy import Energy
    from optsched.rollout.policies.sharing.kept.groups import KeptGroups, Member

    Gpus = tuple[int, ...]


class Round:
    """What a rule does with the jobs that wait; the running ones stay.

    Groups that it opens are packed into the nodes as `optsched.eaco.greedy.node_packing` does it:
    those of a pool in the order of their size, each on the fullest node that has room.

    Attributes
    ----------
    opened
        Groups on GPUs of their own, in the order in which they were opened.
    joined
        Jobs, and the groups to which they came.
    came
        The jobs that got GPUs of their own or came to others.
    rank
        Of a job, at present: less is earlier.
    energy
        What groups cost now.
    """

    def __init__(self, kept: KeptGroups, rank: Callable[[Member], float], energy: Energy) -> None:
        self.energy = energy
        self.kept, self.pools, self.mixes, self.rank = kept, kept.pools, kept.mixes, rank
        self.opened: list[KeptGroup] = []
        self.joined: list[tuple[KeptGroup, Member]] = []
        self.came: list[Member] = []
        self._taken: dict[int, int] = {}  # by node outside of the pool of whole ones
        self._node_of: dict[KeptGroup, int] = {}  # likewise
        self._on_whole: list[KeptGroup] = []
        self._base = [nodes & kept.whole for nodes in kept.free.nodes_with]
        self._packed = list(self._base)

    # --- what rules do ------------------------------------------------------------------------

    def alone(self, member: Member) -> KeptGroup | None:
        """Give a job GPUs of its own, if there are any; return its group."""
        node = next(self.hosts(member), None)
        return None if node is None else self.open(member, node)

    def hosts(self, member: Member) -> Iterator[int]:
        """Yield a node of each pool that has GPUs for a job; -1 stands for the whole ones."""
        gang = member.gang
        if not self.mixes.allows((member.type,)):
            return
        free, taken, torn = self.kept.free.count, self._taken, self.pools.torn
        for _, node in torn[bisect_left(torn, (gang,)) :]:
            if free[node] - taken.get(node, 0) >= gang:
                yield node
        if self.pools.whole and self._pack(gang) is not None:
            yield -1

    def open(self, member: Member, node: int) -> KeptGroup:
        """Let a job have GPUs of a node that `hosts` yields."""
        group = KeptGroup([member], (), (LAST, len(self.opened)))
        if node < 0:
            packed = self._pack(member.gang)
            assert packed is not None
            self._packed = packed
            self._on_whole.append(group)
        else:
            self._taken[node] = self._taken.get(node, 0) + member.gang
            self._node_of[group] = node
        self.opened.append(group)
        self.came.append(member)
        self.kept.of[member.job] = group
        self.kept.shelve(group)
        return group

    def join(self, group: KeptGroup, member: Member) -> None:
        """Put a job beside others."""
        self.kept.widen(group, member)
        self.joined.append((group, member))
        self.came.append(member)

    def place_of(self, group: KeptGroup) -> tuple[float, ...]:
        """Return where a group stood among groups as the round began, by the present ranks."""
        if group.position[0] == LAST:
            return group.position
        come = {member.job for joined, member in self.joined if joined is group}
        return min((self.rank(each), each.job) for each in group.members if each.job not in come)

    def gpus_beside(self, group: KeptGroup) -> int:
        """Return how many GPUs each node has in the pool of a group."""
        if group.gpus:
            return self.gpus_of_node(self.kept.cluster.node_of[group.gpus[0]])
        return self.gpus_of_node(self._node_of.get(group, -1))

    def gpus_of_node(self, node: int) -> int:
        """Return how many GPUs each node has in the pool of a node of `hosts`."""
        pools = self.pools
        return pools.width if node < 0 else pools.gpus[pools.at[node][0]]

    # --- whole nodes --------------------------------------------------------------------------

    def _pack(self, gang: int) -> list[int] | None:
        """Return by number of free GPUs the whole nodes that are left beside one more gang."""
        if all(group.gang >= gang for group in self._on_whole):
            packed = list(self._packed)
            return packed if put(packed, gang, self.pools.whole) is not None else None
        packed = list(self._base)
        gangs = sorted([gang, *(group.gang for group in self._on_whole)], reverse=True)
        return (
            packed
            if all(put(packed, each, self.pools.whole) is not None for each in gangs)
            else None
        )

    # --- the end ------------------------------------------------------------------------------

    def take(self) -> None:
        """Let the groups that were opened have GPUs: the lowest free ones of their nodes."""
        free, first = self.kept.free, self.kept.cluster.first
        nodes_of = {group: [node] for group, node in self._node_of.items()}
        packed = list(self._base)
        for group in sorted(self._on_whole, key=lambda group: -group.gang):
            nodes = put(packed, group.gang, self.pools.whole)
            assert nodes is not None
            nodes_of[group] = nodes
        for group in self.opened:
            nodes = nodes_of[group]
            if len(nodes) == 1:
                group.gpus = free.gpus(nodes[0], group.gang)
            else:
                size = self.pools.width
                group.gpus = tuple(first[node] + n for node in nodes for n in range(size))
            free.take(group.gpus)

    def places(self) -> dict[int, Gpus]:
        """Return the GPUs of the jobs that get some: those that join others come first."""
        new = {member.job for _, member in self.joined}
        groups = {group for group, _ in self.joined if group.gpus in self.kept.by_gpus}
        place = {
            member.job: group.gpus
            for group in sorted(groups, key=self.place_of)
            for member in sorted(group.members, key=lambda each: (self.rank(each), each.job))
            if member.job in new
        }
        for group in self.opened:
            members = sorted(group.members, key=lambda each: (self.rank(each), each.job))
            place |= {member.job: group.gpus for member in members}
        return place

    def keep(self) -> None:
        """Let what was on trial be so."""
        kept = self.kept
        for group, _ in self.joined:
            if group.gpus in kept.by_gpus:
                kept.settle(group)
        for group in self.opened:
            kept.unshelve(group)
            group.position = group.members[0][:2]
            kept.open(group)

    def undo(self) -> None:
        """Let everything be as it was before, GPUs that were taken included."""
        kept = self.kept
        for group, member in reversed(self.joined):
            kept.narrow(group, member)
        for group in self.opened:
            kept.unshelve(group)
            del kept.of[group.members[0].job]
            if group.gpus:
                kept.free.release(group.gpus)

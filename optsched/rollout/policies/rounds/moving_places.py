"""Rules for rounds in which every job may move, with what a choice of GPUs depended on.

Free GPUs are a set as in `Lanes`. A rule keeps nothing of them: it is told which ones are free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from optsched.rollout.policies.node_sets import members
from optsched.rollout.policies.rounds.lanes import MOST_PARTS, Lanes, lowest
from optsched.rollout.policies.rounds.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.placement_round import GangJob
    from optsched.rollout.policies.rounds.places import Pick, RuledPlaces

    Gpus = tuple[int, ...]

ANY = -1
"""All GPUs there may be: a choice that depends on each of them."""


class Place(NamedTuple):
    """GPUs that were chosen for a gang.

    Attributes
    ----------
    taken
        The bits of the set of free GPUs that are turned as they are taken.
    gpus
        Their numbers, ascending.
    looked_at
        A set of GPUs. If just the same of these are free, the rule chooses the place again.
    node
        Where the rule took the best place of the best node, this node; else -1.
    why
        Of the best place of a node, by what nodes are compared: the least is best. Else what tells
        whether the rule chooses the place again after a change.
    """

    taken: int
    gpus: Gpus
    looked_at: int
    node: int = -1
    why: tuple[int, ...] = ()


if TYPE_CHECKING:
    Choose = Callable[[GangJob, int], Place]


class MovingPlaces(Protocol):
    """A rule that chooses some of the free GPUs for a gang.

    Attributes
    ----------
    everything
        The set in which all GPUs are free.
    """

    everything: int

    def begin(self) -> Choose:
        """Begin a round, and return the rule: a place for a gang among GPUs that suffice."""
        ...

    def again(self, gang: GangJob, last: Place, free: int, changed: int) -> Place:
        """Return what the rule chooses, which once chose a place among other GPUs.

        Parameters
        ----------
        changed
            What was free then and is not now, or the other way round.
        """
        ...


class MovingPacked:
    """The rule `packing_rules.consolidate` without caps.

    Above the lanes of a set of free GPUs there is a bit for each number of GPUs and each node: it
    is set if the node has so many free GPUs. So the best fit is where the first one is set of those
    that suffice.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.lanes, self._nodes = Lanes(cluster), cluster.nodes
        self._above = self.lanes.bits
        self.everything = self.with_counts(self.lanes.everything)
        self._most = cluster.largest
        self._best_fit: Remembered[tuple[int, int, int], Place] = Remembered(
            self._first_of, MOST_PARTS
        )

    def with_counts(self, gpus: int) -> int:
        """Return a set of GPUs with how many there are of each node."""
        for node in range(self._nodes):
            gpus |= self._having(node, self.lanes.mask(gpus, node).bit_count())
        return gpus

    def begin(self) -> Choose:
        """Begin a round, and return the rule."""
        return self.choose

    def choose(self, gang: GangJob, free: int) -> Place:
        """Return the best fit of a node, else the nodes with the most free GPUs."""
        fitting = free >> self._above + gang.gpus * self._nodes
        if fitting:
            node = ((fitting & -fitting).bit_length() - 1) % self._nodes
            return self._best_fit[node, self.lanes.mask(free, node), gang.gpus]
        return self._of_several(gang.gpus, free)

    def again(self, gang: GangJob, last: Place, free: int, changed: int) -> Place:
        """Return what the rule chooses: to ask it is as quick as to look at what has changed."""
        return self.choose(gang, free)

    def _of_several(self, left: int, free: int) -> Place:
        places = []
        for count in range(self._most, 0, -1):
            having = free >> self._above + count * self._nodes & ~(-1 << self._nodes)
            for node in members(having):
                mask = self.lanes.mask(free, node)
                places.append(self._first_of(node, mask, min(count, left)))
                left -= count
                if left <= 0:
                    gpus = sorted(gpu for place in places for gpu in place.gpus)
                    return Place(sum(place.taken for place in places), tuple(gpus), ANY)
        raise AssertionError("there are as many free GPUs")

    def _first_of(self, node: int, free: int, size: int) -> Place:
        """Return the first free GPUs of a node."""
        taken, gpus = self.lanes.part[node, lowest(free, size)]
        count = free.bit_count()
        return Place(
            taken | self._having(node, count) | self._having(node, count - size), gpus, ANY
        )

    def _having(self, node: int, count: int) -> int:
        return 1 << self._above + count * self._nodes + node


class MovingRuled:
    """Any rule of PAL's table, on arrays; nothing is known of why it chooses what it does."""

    def __init__(self, cluster: Cluster, places: RuledPlaces) -> None:
        self._lanes = Lanes(cluster)
        self._places, self._free = places, self._lanes.everything
        self.everything = self._free
        self._pick: Pick = places.rule()

    def begin(self) -> Choose:
        """Begin a round, and return the rule."""
        self._pick = self._places.rule()
        return self.choose

    def choose(self, gang: GangJob, free: int) -> Place:
        """Return a place for a gang."""
        for turn, gpus in (
            (self._places.release, free & ~self._free),
            (self._places.take, self._free & ~free),
        ):
            if gpus:
                turn(self._lanes.numbers(gpus))
        self._free = free
        picked = self._pick(gang)
        assert picked is not None, "no rule of these wants more than room"
        return Place(self._lanes.set_of(picked), picked, ANY)

    def again(self, gang: GangJob, last: Place, free: int, changed: int) -> Place:
        """Return what the rule chooses."""
        return self.choose(gang, free)

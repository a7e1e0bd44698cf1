"""Free GPUs for rounds in which every job may move, with what a choice of GPUs depended on.

Free GPUs are masks by node, in one array: bit n of a node for its n-th GPU. What rules look at
besides is brought up to date when they are asked, for the nodes whose masks have changed.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from optsched.rollout.policies.free_nodes import members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.placement_round import GangJob
    from optsched.rollout.policies.rounds.places import RuledPlaces

    Gpus = tuple[int, ...]

MOST_GPUS = 64
"""Of a node, for masks in an array."""

MOST_MASKS, MOST_PLACES = 1 << 12, 1 << 14
"""For how many of which what follows from them is remembered: masks, and masks of a node."""


class Place(NamedTuple):
    """GPUs that were chosen for a gang.

    Attributes
    ----------
    gpus
        Ascending.
    masks
        (node, which of its GPUs) of each node, ascending; or (GPU, 1) of each where no rule asks.
    why
        What tells whether the rule would choose them again after changes on other nodes.
    """

    gpus: Gpus
    masks: tuple[tuple[int, int], ...]
    why: tuple[int, ...]


if TYPE_CHECKING:
    Choose = Callable[[GangJob], Place | None]


class MovingPlaces(Protocol):
    """Free GPUs, all of the cluster at first, and a rule that chooses some of them for a gang."""

    @property
    def free(self) -> int:
        """How many are free."""
        ...

    def begin(self) -> Choose:
        """Begin a round, and return the rule: a place for a gang, or None if there is none."""
        ...

    def take(self, place: Place) -> None:
        """Mark the free GPUs of a place as in use."""
        ...

    def release(self, place: Place) -> None:
        """Mark the GPUs of a place as free."""
        ...

    def stays(self, gang: GangJob, place: Place, changed: Mapping[int, int]) -> bool:
        """Tell whether a gang would surely get a place again that it once got.

        Parameters
        ----------
        changed
            By node the GPUs that were free then and are not now, or the other way round.
        """
        ...


class MaskedPlaces:
    """Free GPUs as masks by node."""

    def __init__(self, cluster: Cluster) -> None:
        self.first = cluster.first
        self.free = cluster.gpus
        self.masks = array("Q", [(1 << size) - 1 for size in cluster.size])

    def take(self, place: Place) -> None:
        """Mark the free GPUs of a place as in use."""
        masks = self.masks
        for node, mask in place.masks:
            masks[node] ^= mask
        self.free -= len(place.gpus)

    def release(self, place: Place) -> None:
        """Mark the GPUs of a place as free."""
        masks = self.masks
        for node, mask in place.masks:
            masks[node] ^= mask
        self.free += len(place.gpus)

    def place(self, masks: Iterable[tuple[int, int]], why: tuple[int, ...]) -> Place:
        """Return the place of some GPUs of each node."""
        ordered, first = tuple(sorted(masks)), self.first
        if len(ordered) == 1:
            ((node, mask),) = ordered
            return Place(_gpus(first[node], mask), ordered, why)
        gpus = [gpu for node, mask in ordered for gpu in _gpus(first[node], mask)]
        return Place(tuple(gpus), ordered, why)


class ChangedMasks:
    """Which nodes have changed since they were last asked for; at first all have."""

    def __init__(self) -> None:
        self._seen: NDArray[np.uint64] | None = None

    def nodes(self, masks: array[int]) -> list[int]:
        """Return these nodes, and ask for the next ones from now on."""
        now = np.frombuffer(masks, dtype=np.uint64)
        if self._seen is None:
            self._seen = now.copy()
            return list(range(len(masks)))
        nodes: list[int] = (now != self._seen).nonzero()[0].tolist()
        if nodes:
            self._seen[:] = now
        return nodes


class MovingPacked(MaskedPlaces):
    """The rule `packing_rules.consolidate` without caps."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._count = list(cluster.size)
        self._bits = [1 << node for node in range(cluster.nodes)]
        self._nodes_with = [0] * (cluster.largest + 1)
        for node, size in enumerate(cluster.size):
            self._nodes_with[size] |= 1 << node

    def take(self, place: Place) -> None:
        """Mark the free GPUs of a place as in use."""
        self._turn(place)
        self.free -= len(place.gpus)

    def release(self, place: Place) -> None:
        """Mark the GPUs of a place as free."""
        self._turn(place)
        self.free += len(place.gpus)

    def _turn(self, place: Place) -> None:
        """Let GPUs that are free be in use, or the other way round, and count them again."""
        masks, counts, nodes_with, bits = self.masks, self._count, self._nodes_with, self._bits
        for node, mask in place.masks:
            mask ^= masks[node]
            before, count, bit = counts[node], mask.bit_count(), bits[node]
            masks[node], counts[node] = mask, count
            nodes_with[before] ^= bit
            nodes_with[count] ^= bit

    def begin(self) -> Choose:
        """Begin a round, and return the rule."""
        return self.choose

    def choose(self, gang: GangJob) -> Place | None:
        """Return the best fit of a node, else the nodes with the most free GPUs."""
        left, masks = gang.gpus, self.masks
        for group in self._nodes_with[left:]:
            if group:
                node = (group & -group).bit_length() - 1
                return _first_of(node, self.first[node], masks[node], left)
        if left > self.free:
            return None
        parts: list[tuple[int, int]] = []
        for count, group in reversed(list(enumerate(self._nodes_with))):
            for node in members(group):
                parts.append((node, lowest(masks[node], min(count, left))))
                left -= count
                if left <= 0:
                    return self.place(parts, ())
        return None

    def stays(self, gang: GangJob, place: Place, changed: Mapping[int, int]) -> bool:
        """Tell whether no node that has changed is a better fit than the one of a place."""
        if not place.why:
            return False
        (best, fewest), size, counts = place.why, gang.gpus, self._count
        for node in changed:
            count = counts[node]
            if node == best or size <= count < fewest or (count == fewest and node < best):
                return False
        return True


class MovingRuled:
    """Any rule of PAL's table, on arrays; nothing is known of why it chooses what it does."""

    def __init__(self, places: RuledPlaces) -> None:
        self._places = places

    @property
    def free(self) -> int:
        """How many GPUs are free."""
        return self._places.free

    def begin(self) -> Choose:
        """Begin a round, and return the rule."""
        pick = self._places.rule()

        def choose(gang: GangJob) -> Place | None:
            gpus = pick(gang)
            return None if gpus is None else Place(gpus, tuple((gpu, 1) for gpu in gpus), ())

        return choose

    def take(self, place: Place) -> None:
        """Mark the free GPUs of a place as in use."""
        self._places.take(place.gpus)

    def release(self, place: Place) -> None:
        """Mark the GPUs of a place as free."""
        self._places.release(place.gpus)

    def stays(self, gang: GangJob, place: Place, changed: Mapping[int, int]) -> bool:
        """Return False: it is asked anew."""
        return False


@lru_cache(MOST_MASKS)
def lowest(mask: int, count: int) -> int:
    """Return the first GPUs of a mask, so many of them."""
    rest = mask
    for _ in range(count):
        rest &= rest - 1
    return mask ^ rest


@lru_cache(MOST_PLACES)
def _first_of(node: int, first: int, free: int, size: int) -> Place:
    """Return the first free GPUs of the best fit, whose node and number of free GPUs are why."""
    mask = lowest(free, size)
    return Place(_gpus(first, mask), ((node, mask),), (node, free.bit_count()))


@lru_cache(MOST_PLACES)
def _gpus(first: int, mask: int) -> tuple[int, ...]:
    """Return which GPUs of a node a mask is of."""
    return tuple([first + n for n in members(mask)])

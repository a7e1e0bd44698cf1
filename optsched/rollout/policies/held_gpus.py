"""GPUs that jobs of changing widths hold, and where those go that start or change."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate, compress
from typing import TYPE_CHECKING, Any, Literal, Protocol

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.free_nodes import ALL, FreeNodes
from optsched.rollout.prices.fleets import fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

    Gpus = tuple[int, ...]


class Placing(Protocol):
    """Chooses GPUs for jobs whose widths are settled and fit; keeps nothing between calls."""

    def place(self, view: View, held: Holdings, widths: Mapping[int, int]) -> dict[int, Gpus]:
        """Return GPUs for each of the jobs, and let them hold these."""
        ...


class Holdings(Restorable):
    """Who holds which GPUs, as a policy itself knows it: nothing is asked twice.

    Attributes
    ----------
    of
        By job, the GPUs that it holds.
    nodes_of
        By GPU type the set of its nodes.
    fleet
        The nodes that are rented, in the order in which they are needed: types in proportion.
    """

    changing = ("of", "_nodes", "_back", "usable", "ready_nodes")

    def __init__(self, scenario: Scenario, gpu_type: str | None = None) -> None:
        self.cluster = Cluster(scenario)
        self.fleet = fleet(self.cluster, gpu_type)
        self._is_part = len(self.fleet) < self.cluster.nodes
        self._nodes = FreeNodes(self.cluster)
        self._back: list[int] = []  # GPUs that were given back: most are taken again at once
        self.of: dict[int, Gpus] = {}
        self.usable = ALL
        self.ready_nodes = self.cluster.nodes
        self._is_rented = scenario.rented is not None
        self._nodes_change, self._closes = scenario.nodes_change, bool(scenario.downtime)
        self._ready: Sequence[bool] | None = None
        self._upto = [0]
        masks: dict[int, int] = {}
        for node in self.fleet:
            size = self.cluster.size[node]
            self._upto.append(self._upto[-1] + size)
            masks[size] = masks.get(size, 0) | 1 << node
        self._sized = list(masks.items())
        self.nodes_of = dict.fromkeys(self.cluster.types.names, 0)
        for node, name in enumerate(self.cluster.types.of_node):
            self.nodes_of[name] |= 1 << node

    def look(self, view: View) -> None:
        """Take note of which nodes can be used now."""
        if not self._nodes_change:
            return
        ready = view.ready
        if ready is self._ready:
            return
        self._ready = ready if isinstance(ready, tuple) else None
        self.usable = sum(map((1).__lshift__, compress(range(len(ready)), ready)))
        self.ready_nodes = sum(ready)
        if self._is_part:
            self.usable &= sum(1 << node for node in self.fleet)

    @property
    def nodes(self) -> FreeNodes:
        """What is free."""
        if self._back:
            self._nodes.release(sorted(self._back))
            self._back.clear()
        return self._nodes

    @property
    def taken(self) -> int:
        """GPUs that jobs hold, wherever they are."""
        return self.cluster.gpus - self._total_free

    @property
    def _total_free(self) -> int:
        return self._nodes.total + len(self._back)

    @property
    def free(self) -> int:
        """Free GPUs in nodes that can be used."""
        if self.usable == ALL:
            return self._total_free
        return self.free_on(self.usable)

    def free_on(self, nodes: int) -> int:
        """Return how many GPUs of a set of nodes are free."""
        groups = enumerate(self.nodes.nodes_with)
        return sum(count * (group & nodes).bit_count() for count, group in groups)

    def is_stuck(self, job: int) -> bool:
        """Tell whether a job holds GPUs of a node that is closed: whoever gives one up loses it."""
        if not self._closes or self.usable == ALL:
            return False
        return any(not self.usable >> self.cluster.node_of[gpu] & 1 for gpu in self.of.get(job, ()))

    @property
    def stuck(self) -> list[int]:
        """Jobs of which that is so."""
        is_open = not self._closes or self.usable == ALL
        return [] if is_open else [job for job in self.of if self.is_stuck(job)]

    def width(self, job: int) -> int:
        """Return how many GPUs a job holds."""
        return len(self.of.get(job, ()))

    def hold(self, job: int, gpus: Gpus) -> None:
        """Let a job without GPUs hold some."""
        self.of[job] = gpus
        self.nodes.take(gpus)

    def release(self, jobs: Iterable[int]) -> None:
        """Take back the GPUs of jobs that hold any."""
        for job in jobs:
            gpus = self.of.pop(job, None)
            if gpus is not None:
                self._back += gpus

    def take_lowest(self, count: int, back: Iterable[int]) -> list[int]:
        """Give GPUs back, then take the first free ones; return these."""
        self._back += back
        gpus = self._nodes.exchange(self._back, count, self.usable)
        self._back.clear()
        return gpus

    def lowest(self, count: int, nodes: int = ALL) -> Gpus:
        """Return free GPUs, those of the lowest nodes; so that the highest ones fall empty."""
        return tuple(self.nodes.lowest(count, self.usable & nodes))

    def nodes_for(self, gpus: int) -> int:
        """Return how many nodes, from the first on, have so many GPUs; all if they have fewer."""
        return min(bisect_left(self._upto, gpus), len(self.fleet))

    def gpus_of_first(self, nodes: int) -> int:
        """Return how many GPUs so many nodes have, from the first on."""
        return self._upto[min(nodes, len(self.fleet))]

    def rent(self, view: View, gpus: int) -> int | dict[str, int] | None:
        """Return how many nodes to rent so that there are so many GPUs; None to change nothing."""
        if not self._is_rented:
            return None
        if self.cluster.types.are_several:
            return self._rent_types(view, self.fleet[: self.nodes_for(gpus)])
        wanted, now = self.nodes_for(gpus), view.rented
        if wanted >= now:
            return None if wanted == now else wanted
        return wanted if now > self.ready_nodes or self._has_empty_node() else None

    def _rent_types(self, view: View, nodes: Sequence[int]) -> dict[str, int] | None:
        wanted = dict.fromkeys(self.nodes_of, 0)
        for node in nodes:
            wanted[self.cluster.types.of_node[node]] += 1
        rent = {name: count for name, count in wanted.items() if count != view.rented_of(name)}
        return rent or None

    def _has_empty_node(self) -> bool:
        nodes_with = self.nodes.nodes_with
        return any(nodes_with[size] & mask & self.usable for size, mask in self._sized)


class Lowest:
    """Free GPUs of the lowest nodes; a job that changes its width keeps what it can."""

    def place(self, view: View, held: Holdings, widths: Mapping[int, int]) -> dict[int, Gpus]:
        """Return GPUs for each of the jobs, and let them hold these."""
        kept: dict[int, Gpus] = {}
        wider: dict[int, int] = {}
        back: list[int] = []
        for job, width in widths.items():
            own = held.of.pop(job, ())
            more = width - len(own)
            if more > 0:
                wider[job] = more
            elif more < 0:
                back += own[width:]
                own = own[:width]
            kept[job] = own
        for job, gpus in zip(wider, self.exchange(held, back, wider.values()), strict=True):
            own = kept[job]
            kept[job] = tuple(sorted((*own, *gpus))) if own else gpus
        held.of.update(kept)
        return kept

    def exchange(self, held: Holdings, back: list[int], counts: Collection[int]) -> list[Gpus]:
        """Give GPUs back, then take free ones, so many for each job; return them."""
        gpus = held.take_lowest(sum(counts), back)
        ends = accumulate(counts)
        return [tuple(gpus[end - count : end]) for count, end in zip(counts, ends, strict=True)]


class BestFit(Lowest):
    """The node with the fewest free GPUs that suffice, else few nodes close together."""

    def exchange(self, held: Holdings, back: list[int], counts: Collection[int]) -> list[Gpus]:
        """Give GPUs back, then take free ones, so many for each job; return them."""
        held.nodes.release(sorted(back))
        found = []
        for count in counts:
            gpus = held.nodes.gang(count, held.usable) or held.lowest(count)
            held.nodes.take(gpus)
            found.append(gpus)
        return found


class PalGreedy:
    """PAL's greedy placement, job by job in the order of their classes.

    A job that changes its width is placed again; all others keep their GPUs.
    """

    def __init__(self) -> None:
        from optsched.pal.greedy.rules import BY_NAME
        from optsched.rollout.policies.placement_rules import RoundRule

        self._rules = RoundRule(BY_NAME["pal-greedy"])
        self._world: object = None

    def place(self, view: View, held: Holdings, widths: Mapping[int, int]) -> dict[int, Gpus]:
        """Return GPUs for each of the jobs, and let them hold these."""
        from optsched.pal.greedy.list_scheduling import place
        from optsched.rollout.policies.placement_round import Batch, ClusterData, GangJob

        if not widths:
            return {}
        if not isinstance(self._world, ClusterData):
            self._world = ClusterData(view)
        held.release(widths)
        jobs = list(widths)
        ready = list(view.ready)
        batch = Batch(view, self._world, jobs, [()] * len(jobs), self._world.usable(ready))
        models = [view.model(job) for job in jobs]
        batch.gangs = [
            GangJob(widths[job], self._world.class_of(model), model)
            for job, model in zip(jobs, models, strict=True)
        ]
        state = batch.state()
        for gpus in held.of.values():
            state.take(_indices(gpus))
        placed = place(
            batch.gangs,
            state,
            self._rules.rule(batch.world, batch.penalties, state),
            order=batch.class_order(),
        )
        places = {jobs[n]: tuple(sorted(gpus.tolist())) for n, gpus in placed.items()}
        for job, gpus in places.items():
            held.hold(job, gpus)
        rest = {job: width for job, width in widths.items() if job not in places}
        return places | Lowest().place(view, held, rest)


def _indices(gpus: Gpus) -> Any:
    import numpy as np

    return np.array(gpus, dtype=np.intp)


Placement = Literal["lowest", "best-fit", "pal"]
PLACEMENT = "Where GPUs are taken: on the lowest nodes, by best fit, or by PAL's greedy rule."
PLACINGS: dict[str, Callable[[], Placing]] = {
    "lowest": Lowest,
    "best-fit": BestFit,
    "pal": PalGreedy,
}


def placing(name: str) -> Placing:
    """Return a placing by its name."""
    return PLACINGS[name]()

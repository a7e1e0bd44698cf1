"""Rented nodes of several GPU types: every job has a type and a width, and nodes of its own type.

Source: docs/math/boa.md, Offers; the allocator is that of `Elastic`, type by type.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import insort
from typing import TYPE_CHECKING, ClassVar

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.elastic import Elastic, ElasticOptions
from optsched.rollout.policies.node_sets import members
from optsched.rollout.prices.node_rates import prices_of_types

if TYPE_CHECKING:
    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario

    Gpus = tuple[int, ...]
    Option = tuple[str, int]


class TypedNodes(Elastic):
    """Every job gets the type and width that its phase wants, and nodes of each type are rented.

    A job that wants a node or more gets empty nodes, one that wants less shares a node, the fullest
    that has room. Jobs start when all that they want is there, the earliest first on each type, and
    run on as they are until another width or type that they want is. Rented are the nodes with jobs
    and those that jobs wait for; idle nodes are returned.

    Attributes
    ----------
    options
        By job, the type and the width that it wants.
    """

    changing: ClassVar[tuple[str, ...]] = (*Elastic.changing, "options")

    def __init__(self, name: str, scenario: Scenario, options: ElasticOptions) -> None:
        super().__init__(name, scenario, options)
        cluster, self.options = self.held.cluster, dict[int, "Option"]()
        types = cluster.types
        self.node_sizes = {
            name: max(s for s, t in zip(cluster.size, types.of_node, strict=True) if t == name)
            for name in types.names
        }
        self.counts = {name: types.of_node.count(name) for name in types.names}
        self.usd_per_h = prices_of_types(scenario)

    @abstractmethod
    def option(self, view: View, job: int) -> Option:
        """Return the type and the width that a job wants in its phase."""

    def width(self, view: View, job: int) -> int:
        """Return the width that a job wants in its phase."""
        return self.option(view, job)[1]

    # --- what jobs are on ---------------------------------------------------------------------

    def type_of(self, job: int) -> str | None:
        """Return the type of the GPUs that a job holds, None if it holds none."""
        gpus = self.held.of.get(job)
        return self.held.cluster.type_of(gpus) if gpus else None

    def curve_on(self, view: View, job: int, gpu_type: str) -> Curve:
        """Return the curve of a job in its phase on a type."""
        phases = self.curves.by_type(view.model(job), view.demand(job))
        return phases[min(view.phase(job), len(phases) - 1)][gpu_type]

    def curve(self, view: View, job: int) -> Curve:
        """Return the curve of a job in its phase, on the type that it holds or else wants."""
        return self.curve_on(view, job, self.type_of(job) or self.options[job][0])

    # --- a call -------------------------------------------------------------------------------

    def decide(self, view: View) -> Decision:
        """Start jobs, move those that want something else, and rent nodes of each type."""
        self.held.look(view)
        self._take_note(view)
        solves = self.refresh(view)
        self._review(view)
        places: dict[int, Gpus] = {}
        for jobs in (self.waiting, self.growing):
            for job in list(jobs):
                if gpus := self._seats(job):
                    self.held.release([job])
                    self.held.hold(job, gpus)
                    places[job] = gpus
                    jobs.remove(job)
        rent = self._rent(view)
        if not (places or solves or rent):
            return NOTHING
        return Decision(place=places, rent=rent or None, solves=tuple(solves))

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait."""
        insort(self.waiting, job)
        self.options[job] = self.option(view, job)

    def forget(self, job: int) -> None:
        """Let a job want nothing: it holds no GPUs any more."""
        self.options.pop(job, None)
        if job in self.growing:
            self.growing.remove(job)

    def refresh(self, view: View) -> list[SolveRecord]:
        """Return the calls of solvers."""
        return []

    def _review(self, view: View) -> None:
        """Let stale jobs want what their phase wants."""
        jobs, self.stale = sorted(self.stale), set()
        for job in jobs:
            if job not in self.held.of:
                continue
            self.options[job] = self.option(view, job)
            is_there = self.options[job] == (self.type_of(job), self.held.width(job))
            if is_there and job in self.growing:
                self.growing.remove(job)
            elif not is_there and job not in self.growing:
                insort(self.growing, job)

    # --- places -------------------------------------------------------------------------------

    def _seats(self, job: int) -> Gpus:
        """Return the GPUs that a job wants, none if there are too few; it may keep its own."""
        held, (gpu_type, width) = self.held, self.options[job]
        own = held.of.get(job, ()) if self.type_of(job) == gpu_type else ()
        if len(own) >= width:
            return own[:width]
        nodes, size = held.nodes_of[gpu_type] & held.usable, self.node_sizes[gpu_type]
        if width < size:
            return self._beside(own, width, nodes)
        whole = tuple(gpu for gpu in own if self._is_alone(job, gpu))
        chosen = list(whole)
        its = {held.cluster.node_of[gpu] for gpu in whole}
        for node in members(nodes):
            if node in its or held.nodes.count[node] == held.cluster.size[node]:
                chosen += held.nodes.gpus(node, min(held.nodes.count[node], width - len(chosen)))
            if len(chosen) == width:
                return tuple(sorted(chosen))
        return ()

    def _is_alone(self, job: int, gpu: int) -> bool:
        """Tell whether nobody else has GPUs of the node of one of a job's GPUs."""
        held, node = self.held, self.held.cluster.node_of[gpu]
        own = sum(held.cluster.node_of[other] == node for other in held.of[job])
        return own + held.nodes.count[node] == held.cluster.size[node]

    def _beside(self, own: Gpus, width: int, nodes: int) -> Gpus:
        """Return GPUs of one node: that of a job's own, else the fullest that has room."""
        held, node_of = self.held, self.held.cluster.node_of
        for node in {node_of[gpu] for gpu in own}:
            its = tuple(gpu for gpu in own if node_of[gpu] == node)
            if len(its) + held.nodes.count[node] >= width and nodes >> node & 1:
                return tuple(sorted((*its, *held.nodes.gpus(node, width - len(its)))))
        fullest = held.nodes.best_fit(width, nodes)
        return held.nodes.gpus(fullest, width) if fullest >= 0 else ()

    # --- nodes --------------------------------------------------------------------------------

    def _rent(self, view: View) -> dict[str, int]:
        """Return by type how many nodes to rent, where that is not as it is."""
        held, node_type = self.held, self.held.cluster.types.of_node
        needed = dict.fromkeys(self.node_sizes, 0)
        for node, free in enumerate(held.nodes.count):
            needed[node_type[node]] += free < held.cluster.size[node]
        narrow = dict.fromkeys(self.node_sizes, 0)
        for job in (*self.waiting, *self.growing):
            name, width = self.options[job]
            lacking = width - (held.width(job) if self.type_of(job) == name else 0)
            if width >= self.node_sizes[name]:
                needed[name] += -(-lacking // self.node_sizes[name])
            else:
                narrow[name] += max(lacking, 0)
        rent = {}
        for name, size in self.node_sizes.items():
            nodes = min(needed[name] + -(-narrow[name] // size), self.counts[name])
            if nodes != view.rented_of(name):
                rent[name] = nodes
        return rent

"""Places where jobs that are spread over several nodes keep apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.free_nodes import ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.held_gpus import Holdings

    Gpus = tuple[int, ...]
    Narrower = Callable[[View, int, int], int]


class Apart:
    """One node for every job that fits on one, and at most one job of several nodes on each node.

    The widest jobs come first, each on the fullest node that has room. A job that finds no place
    for its width gets what it finds, and none of the others moves; if there is nothing at all for
    some job, all are placed anew.

    Parameters
    ----------
    narrower
        Of the view, a job and a number of GPUs: the largest width within it that the job may have;
        0 if there is none.

    Notes
    -----
    Source: Pollux, OSDI 2021, section 4.2, interference avoidance; the repair of allocations in
    petuum/adaptdl, branch osdi21-artifact, simulator/pollux.py, which takes the GPUs on such nodes
    from all jobs but the first.
    """

    def __init__(self, narrower: Narrower) -> None:
        self.narrower = narrower
        self.first_nodes = ALL

    def place(self, view: View, held: Holdings, widths: Mapping[int, int]) -> dict[int, Gpus]:
        """Return GPUs for the jobs, fewer than wanted for some, and let them hold these.

        A job that is left out holds nothing any more. Others, too, may be named: they are moved.
        """
        if not widths:
            return {}
        before = dict(held.of)
        held.release(widths)
        places = self._placed(view, held, widths, before)
        if len(places) == len(widths):
            return places
        every = {job: len(gpus) for job, gpus in before.items()} | dict(widths)
        held.release(list(held.of))
        places = self._placed(view, held, every, before)
        return {job: gpus for job, gpus in places.items() if gpus != before.get(job)}

    def _placed(
        self, view: View, held: Holdings, widths: Mapping[int, int], before: Mapping[int, Gpus]
    ) -> dict[int, Gpus]:
        nodes = self._nodes(held, sum(widths.values()))
        spread, places = spread_nodes(held), {}
        for job in sorted(widths, key=lambda job: (-widths[job], job)):
            gpus = place_apart(held, widths[job], nodes, spread)
            if gpus is None:
                most = max(_most_together(held, nodes), held.free_on(nodes & ~spread))
                width = self.narrower(view, job, min(most, widths[job] - 1))
                gpus = _still_free(held, before.get(job, ()), width, spread)
                gpus = gpus or (place_apart(held, width, nodes, spread) if width else None)
            if gpus is not None:
                held.hold(job, gpus)
                places[job] = gpus
                spread |= nodes_if_spread(held, gpus)
        return places

    def _nodes(self, held: Holdings, gpus: int) -> int:
        """Return the first nodes, if they have room, so that the others can be given back."""
        first = self.first_nodes & held.usable
        return first if held.free_on(first) >= gpus else held.usable


def place_apart(held: Holdings, width: int, nodes: int, spread: int) -> Gpus | None:
    """Return free GPUs of one node, else of nodes without a job that is on several."""
    together = held.nodes.gang(width, nodes, most_nodes=1)
    return together or held.nodes.gang(width, nodes & ~spread)


def _still_free(held: Holdings, gpus: Gpus, width: int, spread: int) -> Gpus | None:
    """Return the GPUs that a job had if it can keep them: a restart would bring it nothing."""
    if len(gpus) != width or nodes_if_spread(held, gpus) & spread:
        return None
    return gpus if gpus and held.nodes.are_free(gpus) else None


def _most_together(held: Holdings, nodes: int) -> int:
    """Return the most GPUs that are free on one node."""
    groups = held.nodes.nodes_with
    return max((count for count, group in enumerate(groups) if group & nodes), default=0)


def spread_nodes(held: Holdings) -> int:
    """Return the set of nodes of the jobs that are on several."""
    nodes = 0
    for gpus in held.of.values():
        nodes |= nodes_if_spread(held, gpus)
    return nodes


def nodes_if_spread(held: Holdings, gpus: Gpus) -> int:
    """Return the set of nodes of a gang that is on several; empty if it is on one."""
    node_of = held.cluster.node_of
    if not gpus or node_of[gpus[0]] == node_of[gpus[-1]]:
        return 0
    nodes = 0
    for gpu in gpus:
        nodes |= 1 << node_of[gpu]
    return nodes

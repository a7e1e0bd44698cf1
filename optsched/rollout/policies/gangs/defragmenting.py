"""Gangs that make room on a node by moving smaller jobs off it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.fifo import Gangs
from optsched.rollout.policies.free_nodes import members

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.fifo import Gpus


class DefragmentingGangs(Gangs):
    """At an epoch one gang that waits gets a node off which smaller jobs are moved."""

    trials: Collection[int] = ()

    def defragment_once(self, view: View, placed: dict[int, Gpus]) -> dict[int, Gpus]:
        """Return moves, and GPUs for the first gang that they make room for; hold all of them."""
        on_node = self._whole_jobs(placed)
        for job, key in sorted((line[0], key) for key, line in self.lines.items()):
            size = view.demand(job)
            if not 1 < size <= view.cluster.largest or size > self.nodes.total:
                continue
            if not self.has_quota(view, job, size):
                continue
            for node in self._most_free_first(view, size):
                moves = self._moves(on_node.get(node, []), node, size)
                if moves is not None:
                    return self._moved(view, job, key, node, moves)
        return {}

    def _whole_jobs(self, placed: dict[int, Gpus]) -> dict[int, list[int]]:
        """Return the jobs that run on one node each, by node, the smallest first."""
        on_node: dict[int, list[int]] = {}
        for job, gpus in self.held.items():
            nodes = {self.nodes.node_of[gpu] for gpu in gpus}
            if len(nodes) == 1 and job not in placed and job not in self.trials:
                on_node.setdefault(nodes.pop(), []).append(job)
        for jobs in on_node.values():
            jobs.sort(key=lambda job: (len(self.held[job]), job))
        return on_node

    def _most_free_first(self, view: View, size: int) -> Iterator[int]:
        for group in reversed(self.nodes.nodes_with):
            for node in members(group & self._usable):
                if view.cluster.size[node] >= size:
                    yield node

    def _moves(self, jobs: list[int], node: int, size: int) -> dict[int, int] | None:
        """Return nodes for the smallest jobs of a node, until a gang fits there; None if not."""
        missing = size - self.nodes.count[node]
        others = self._usable & ~(1 << node)
        available = list(self.nodes.count)
        moves: dict[int, int] = {}
        for job in jobs:
            need = len(self.held[job])
            if missing <= 0 or need >= size:
                break
            fitting = [n for n in self._nodes_with(need, others) if available[n] >= need]
            if not fitting:
                return None
            target = min(fitting, key=lambda n: available[n])
            available[target] -= need
            moves[job] = target
            missing -= need
        return moves if missing <= 0 else None

    def _nodes_with(self, size: int, nodes: int) -> Iterator[int]:
        for group in self.nodes.nodes_with[size:]:
            yield from members(group & nodes)

    def _moved(
        self, view: View, job: int, key: tuple[str, int], node: int, moves: dict[int, int]
    ) -> dict[int, Gpus]:
        places: dict[int, Gpus] = {}
        for small, target in moves.items():
            gpus = self.nodes.gpus(target, len(self.held[small]))
            self.release(view, small)
            self.hold(view, small, gpus)
            places[small] = gpus
        places[job] = self.nodes.gpus(node, view.demand(job))
        self.hold(view, job, places[job])
        self.lines[key].popleft()
        self.relaxing.leave(job)
        if not self.lines[key]:
            del self.lines[key]
        return places

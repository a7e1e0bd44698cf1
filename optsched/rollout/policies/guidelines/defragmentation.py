"""Guideline: small jobs are moved together, so that a gang that waits gets whole servers.

Source: Jeon et al., ATC'19, section 5: defragment the cluster by migrating small jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.free_nodes import ALL, NO_LIMIT
from optsched.rollout.policies.node_sets import members

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.fifo import Gpus
    from optsched.rollout.policies.philly import Philly

    Moves = dict[int, int]
    Shares = list[tuple[int, int]]


class Defragmentation(Restorable):
    """Moves smaller jobs off the servers that a gang in need of a place can have most cheaply.

    Parameters
    ----------
    gangs
        The policy that this is a part of.

    Attributes
    ----------
    in_vain
        By size, stage and whether they share servers, of gangs for which nothing could be moved:
        `released` of the free GPUs.
    """

    changing = ("in_vain",)

    def __init__(self, gangs: Philly) -> None:
        self.gangs = gangs
        self.in_vain: dict[tuple[int, int, bool], int] = {}
        self.on_node: dict[int, list[int]] = {}

    def make_room(self, view: View, vain: list[int], placed: dict[int, Gpus]) -> None:
        """Place gangs that were tried in vain, and the jobs that are moved for them; hold all.

        Parameters
        ----------
        vain
            The gangs; those that get a place are taken out.
        placed
            What is placed by the present decision; what is placed here is added.
        """
        gangs, free = self.gangs, self.gangs.nodes
        self.on_node.clear()
        for job in list(vain):
            size = view.demand(job)
            key = (size, gangs.stage(view, job), gangs.shares(view, job))
            if not 1 < size <= free.total or self.in_vain.get(key) == free.released:
                continue
            if not self.on_node:
                self._look(placed)
            found = self._cheapest(view, *key)
            if found is None:
                self.in_vain[key] = free.released
                continue
            self._apply(view, job, *found, placed)
            vain.remove(job)

    def _look(self, placed: dict[int, Gpus]) -> None:
        """Note the jobs that run on one server each, by server, the smallest first."""
        node_of = self.gangs.nodes.node_of
        for job, gpus in self.gangs.held.items():
            node = node_of[gpus[0]]
            if node == node_of[gpus[-1]] and job not in placed and job not in self.gangs.trials:
                self.on_node.setdefault(node, []).append(job)
        for jobs in self.on_node.values():
            jobs.sort(key=lambda job: (len(self.gangs.held[job]), job))

    def _cheapest(
        self, view: View, size: int, stage: int, shares: bool
    ) -> tuple[Shares, Moves] | None:
        """Return servers for a gang, and where jobs are moved: of those with the fewest missing."""
        for nodes in (~self.gangs.own.nodes, ALL) if shares else (~self.gangs.own.nodes,):
            for parts in self._servers(view, size, stage, nodes & self.gangs.usable):
                moves = self._moves(parts, size, nodes)
                if moves is not None:
                    return parts, moves
        return None

    def _servers(self, view: View, size: int, stage: int, nodes: int) -> Iterator[Shares]:
        """Yield servers for a gang and how many GPUs of each, those with the fewest missing first.

        A gang that one server can hold gets one; others the fewest, in one domain as their stage of
        relaxing demands.
        """
        free, sizes = self.gangs.nodes, view.cluster.size
        count = free.least_nodes(size)
        if count == 1:
            for group in reversed(free.nodes_with):
                for node in members(group & nodes):
                    if sizes[node] >= size:
                        yield [(node, size)]
            return
        for domain in free.domains(free.worst_place(size, stage)[1]):
            emptiest = sorted(members(domain & nodes), key=lambda node: -free.count[node])
            largest = sorted((sizes[node] for node in emptiest), reverse=True)[:count]
            parts, left = [], size
            for node in [node for node in emptiest if sizes[node] >= largest[-1]][:count]:
                parts.append((node, min(left, sizes[node])))
                left -= parts[-1][1]
            if not left:
                yield parts

    def _moves(self, parts: Shares, size: int, nodes: int) -> Moves | None:
        """Return servers for the smallest jobs of some servers, until a gang fits; or None.

        Gangs among them go to some of `nodes`.
        """
        free, held = self.gangs.nodes, self.gangs.held
        others = self.gangs.usable & ~sum(1 << node for node, _ in parts)
        available: dict[int, int] = {}
        moves: Moves = {}
        for node, share in parts:
            missing = share - free.count[node]
            for job in self.on_node.get(node, ()):
                need = len(held[job])
                if missing <= 0 or need >= size:
                    break
                target = self._target(need, others & nodes if need > 1 else others, available)
                if target < 0:
                    return None
                available[target] = available.get(target, free.count[target]) - need
                moves[job] = target
                missing -= need
            if missing > 0:
                return None
        return moves

    def _target(self, need: int, nodes: int, available: Mapping[int, int]) -> int:
        """Return the fullest server that has room for a job; -1 without one."""
        best, least = -1, NO_LIMIT
        for group in self.gangs.nodes.nodes_with[need:]:
            for node in members(group & nodes):
                left = available.get(node, self.gangs.nodes.count[node])
                if need <= left < least:
                    best, least = node, left
            if best >= 0:
                break
        return best

    def _apply(
        self,
        view: View,
        job: int,
        parts: Shares,
        moves: Moves,
        placed: dict[int, Gpus],
    ) -> None:
        gangs, free = self.gangs, self.gangs.nodes
        for small, target in moves.items():
            gpus = free.gpus(target, len(gangs.held[small]))
            gangs.release(view, small)
            gangs.hold(view, small, gpus)
            placed[small] = gpus
        gpus = tuple(sorted(gpu for node, share in parts for gpu in free.gpus(node, share)))
        gangs.hold(view, job, gpus)
        gangs.take_from_line(view, job)
        placed[job] = gpus
        moved = set(moves)
        for node, _ in parts:
            self.on_node[node] = [j for j in self.on_node.get(node, ()) if j not in moved]

"""Guideline: gangs on servers of their own, so that no other gang slows them.

Source: Jeon et al., ATC'19, section 5: mitigate interference by dedicated servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable

if TYPE_CHECKING:
    from optsched.rollout.policies.fifo import Gangs, Gpus


class DedicatedServers(Restorable):
    """On which servers gangs are, and where another one finds a server without any.

    Jobs on one GPU are packed beside them by best fit: they slow no gang, and few servers have only
    such jobs.

    Attributes
    ----------
    gangs_on
        By server, how many gangs have GPUs there.
    nodes
        The set of servers with a gang.
    """

    changing = ("gangs_on", "nodes", "in_vain")

    def __init__(self, gangs: Gangs) -> None:
        self.gangs = gangs
        self.gangs_on: dict[int, int] = {}
        self.nodes = 0
        self.in_vain: dict[int, int] = {}

    def count(self, gpus: Gpus, change: int) -> None:
        """Take note of GPUs that a job gets, or of those that it leaves."""
        if len(gpus) < 2:
            return
        node_of = self.gangs.nodes.node_of
        for node in {node_of[gpu] for gpu in gpus}:
            self.gangs_on[node] = self.gangs_on.get(node, 0) + change
            if self.gangs_on[node]:
                self.nodes |= 1 << node
            else:
                self.nodes &= ~(1 << node)

    def find(self, size: int) -> Gpus | None:
        """Return GPUs for a gang on the fewest servers, without another gang; None without room."""
        free = self.gangs.nodes
        if self.in_vain.get(size, -1) == free.released:
            return None
        gpus = self.gangs.among(~self.nodes, size, 0)
        if gpus is None:
            self.in_vain[size] = free.released
        return gpus

"""Disaggregation: patterns as a plan, which job stands in which node."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.plan import PalPlan, Placement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.documents.arrays import Indices
    from optsched.pal.instance import PalInstance
    from optsched.pal.node_classes.aggregation import NodeClass, NodeClasses
    from optsched.pal.node_classes.pattern_pricing import Pattern


class Places:
    """The GPUs of each job, as patterns say.

    Parameters
    ----------
    open_nodes
        For each class the numbers of its nodes that patterns may use.
    uses
        Shape (patterns,): how many nodes run each.

    Attributes
    ----------
    gpus
        By number of the job, of those that are placed: the numbers of its GPUs.
    """

    def __init__(
        self,
        nodes: NodeClasses,
        open_nodes: Sequence[Indices],
        patterns: Sequence[Pattern],
        uses: Indices,
    ) -> None:
        self.gpus: dict[int, list[int]] = {}
        self._nodes = nodes
        chosen = list(_chosen(open_nodes, patterns, uses))
        for node, pattern in chosen:
            self._keep(nodes.classes[pattern.node_class], node, pattern)
        waiting = [deque(n for n in jobs.jobs if n not in self.gpus) for jobs in nodes.types]
        for node, pattern in chosen:
            gpus = nodes.classes[pattern.node_class].gpus[node].tolist()
            for gang in pattern.gangs:
                if not gang.is_kept and waiting[gang.type]:
                    job = waiting[gang.type].popleft()
                    self.gpus[job] = [gpus[position] for position in gang.positions]
        self.missing = [job for jobs in waiting for job in jobs]

    def _keep(self, node_class: NodeClass, node: int, pattern: Pattern) -> None:
        """Leave jobs where they are."""
        for gang in pattern.gangs:
            if gang.is_kept:
                keep = node_class.keeps.index((gang.type, gang.positions))
                self.gpus[node_class.jobs[node][keep]] = node_class.gpus[
                    node, list(gang.positions)
                ].tolist()

    def plan(self, instance: PalInstance) -> PalPlan:
        """Return the plan; what is missing is left out."""
        names = instance.free_gpus
        placements = tuple(
            Placement.model_construct(
                id=job.id, gpus=tuple(names[gpu] for gpu in self.gpus.get(n, ()))
            )
            for n, job in enumerate(instance.jobs)
        )
        return PalPlan.model_construct(jobs=placements)


def _chosen(
    open_nodes: Sequence[Indices], patterns: Sequence[Pattern], uses: Indices
) -> Iterator[tuple[int, Pattern]]:
    """Yield nodes, by number in their class, with the pattern of each.

    What a solver uses beyond the nodes that there are is left out, and its jobs are missing.
    """
    left = [deque(numbers.tolist()) for numbers in open_nodes]
    for n in np.flatnonzero(uses).tolist():
        for _ in range(int(uses[n])):
            if left[patterns[n].node_class]:
                yield left[patterns[n].node_class].popleft(), patterns[n]

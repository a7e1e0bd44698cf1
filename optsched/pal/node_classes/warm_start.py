"""Warm start of "node-classes" (Gamrath et al., SEA 2015): patterns of the previous epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.node_classes.pattern_pricing import Pattern, PlacedGang, gang_cost
from optsched.pal.plan import Leaf, PalCertificate
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from optsched.pal.job_types import GangType
    from optsched.pal.node_classes.aggregated_relaxation import AggregatedRelaxation
    from optsched.pal.node_classes.aggregation import NodeClasses
    from optsched.search import Search

    Floats = NDArray[np.float64]


PatternKey = tuple[tuple[object, tuple[int, ...]], ...]


class WarmPatterns(NamedTuple):
    """What is left of an epoch.

    Attributes
    ----------
    known
        Patterns by what makes a node's GPUs, as pairs of what makes a type and positions.
    relaxation
        The last one; None at first.
    """

    known: dict[bytes, list[PatternKey]]
    relaxation: AggregatedRelaxation | None

    @classmethod
    def of(
        cls, nodes: NodeClasses, patterns: Sequence[Pattern], relaxation: AggregatedRelaxation
    ) -> WarmPatterns:
        """Return what an epoch leaves; of very many patterns the last ones."""
        known: dict[bytes, dict[PatternKey, None]] = {}
        for pattern in patterns[-SETTINGS.most_patterns :]:
            gangs = tuple((_demand(nodes.types[g.type]), g.positions) for g in pattern.gangs)
            slowdown = nodes.classes[pattern.node_class].slowdown.tobytes()
            known.setdefault(slowdown, {})[gangs] = None
        return cls({slowdown: list(gangs) for slowdown, gangs in known.items()}, relaxation)

    def resumed(self, nodes: NodeClasses) -> Iterator[Pattern]:
        """Yield what nodes can run of what is known, without jobs of types that are gone."""
        types: dict[object, int] = {}
        for t in sorted(range(len(nodes.types)), key=lambda t: nodes.types[t].moving):
            types.setdefault(_demand(nodes.types[t]), t)
        for k, node_class in enumerate(nodes.classes):
            if node_class.keeps:
                continue  # what these ran is kept, and what else they can run depends on it
            for gangs_known in self.known.get(node_class.slowdown.tobytes(), ()):
                gangs = tuple(
                    sorted(
                        PlacedGang(types[demand], positions, is_kept=False)
                        for demand, positions in gangs_known
                        if demand in types
                    )
                )
                if gangs:
                    cost = sum(gang_cost(nodes.types, node_class, g) for g in gangs)
                    yield Pattern(k, gangs, cost)


def previous_gpu_duals(search: Search, nodes: NodeClasses) -> Floats | None:
    """Return the duals of GPUs of the previous epoch, if it had as many; they need not be right."""
    certificate = None if search.start is None else search.start.certificate
    if not isinstance(certificate, PalCertificate):
        return None
    leaf = next(iter(certificate.nodes), None)
    if not isinstance(leaf, Leaf) or len(leaf.gpu_prices) != nodes.slowdown.shape[1]:
        return None
    return np.array(leaf.gpu_prices)


def keeping(nodes: NodeClasses) -> Iterator[Pattern]:
    """Yield the patterns in which nothing moves."""
    for k, node_class in enumerate(nodes.classes):
        gangs = tuple(
            sorted(PlacedGang(keep.type, keep.positions, is_kept=True) for keep in node_class.keeps)
        )
        if gangs:
            yield Pattern(k, gangs, sum(gang_cost(nodes.types, node_class, gang) for gang in gangs))


def _demand(jobs: GangType) -> object:
    """Return what makes jobs a type, whether they run or not."""
    *placed, _, reward = jobs.key
    return (*placed, reward)

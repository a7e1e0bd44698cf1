"""Placements of a round: the rules of the problem PAL, on the jobs and the cluster of a rollout."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from optsched.cluster import binning
from optsched.pal.greedy import packing_rules, pal_rules
from optsched.pal.greedy.list_scheduling import place
from optsched.rollout.policies.placement_round import Placed

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.cluster.binning import Binned
    from optsched.documents.arrays import Floats
    from optsched.pal.greedy.free_gpus import FreeGpus
    from optsched.pal.greedy.list_scheduling import Rule
    from optsched.rollout.policies.placement_round import Batch
    from optsched.rollout.policies.round_options import Bins

BINNINGS: dict[Bins, Callable[[Floats], Binned]] = {
    "released": binning.kmeans_as_released,
    "silhouette": binning.kmeans_by_silhouette,
    "exact": binning.exact,
}


class Placement(Protocol):
    """Gives GPUs to the jobs of a batch; must be picklable.

    Attributes
    ----------
    sticky
        Whether running jobs behind the admitted ones go on where they are.
    settled
        Whether a batch that holds its GPUs already is left alone.
    """

    sticky: bool
    settled: bool

    def place(self, batch: Batch) -> Placed:
        """Return GPUs for the jobs of a batch."""
        ...


class PlacementRules(Protocol):
    """Makes the rule of a round, and says in which order it takes jobs."""

    def rule(self, batch: Batch, state: FreeGpus) -> Rule:
        """Return the rule for one round."""
        ...

    def order(self, batch: Batch) -> list[int]:
        """Return the places in the batch, the job that chooses first first."""
        ...


class Consolidate:
    """Few nodes, by `packing_rules.consolidate`."""

    def rule(self, batch: Batch, state: FreeGpus) -> Rule:
        """Return the rule for one round."""
        return packing_rules.consolidate

    def order(self, batch: Batch) -> list[int]:
        """Return the places in the batch as they are."""
        return list(range(len(batch.jobs)))


class Uniform(Consolidate):
    """All sets of GPUs with equal probability, by `packing_rules.uniform`."""

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)

    def rule(self, batch: Batch, state: FreeGpus) -> Rule:
        """Return the rule for one round; the generator goes on from round to round."""
        return packing_rules.drawn_by(self.generator)


@dataclass
class ByClass:
    """Rules by slowdowns: jobs choose in the order of their classes."""

    bins: Bins = "released"

    def scores(self, batch: Batch) -> dict[str, Floats]:
        """Return the values of bins by class."""
        return batch.world.scores(BINNINGS[self.bins])

    def order(self, batch: Batch) -> list[int]:
        """Return the places in the batch by class."""
        return batch.class_order()


class PmFirst(ByClass):
    """The fastest GPUs, by `pal_rules.pm_first`."""

    def rule(self, batch: Batch, state: FreeGpus) -> Rule:
        """Return the rule for one round."""
        return pal_rules.pm_first_rule(state, self.scores(batch))


class Pal(ByClass):
    """The least product of locality penalty and worst score, by `pal_rules.pal`."""

    def rule(self, batch: Batch, state: FreeGpus) -> Rule:
        """Return the rule for one round."""
        return pal_rules.pal_rule(state, self.scores(batch), batch.penalties)


class PalMultilevel(ByClass):
    """The least product over all levels, by `pal_rules.pal_multilevel`."""

    def rule(self, batch: Batch, state: FreeGpus) -> Rule:
        """Return the rule for one round."""
        return pal_rules.multilevel_rule(state, self.scores(batch), batch.penalties)


@dataclass
class NonSticky:
    """All GPUs are released, and every job is placed again."""

    rules: PlacementRules
    settled: bool = True
    sticky: bool = field(default=False, init=False)

    def place(self, batch: Batch) -> Placed:
        """Return GPUs for the jobs of a batch."""
        state = batch.state()
        rule = self.rules.rule(batch, state)
        return Placed(place(batch.gangs, state, rule, order=self.rules.order(batch)))


@dataclass
class Sticky:
    """Running jobs keep their GPUs unless an admitted one needs them.

    Admitted jobs fit together, so only others are preempted: from the end of the order, until a
    waiting job fits. Those of them beside which it fits as well go on, the earliest first. A
    preempted job waits for the next round, so it overtakes nobody.
    """

    rules: PlacementRules
    settled: bool = field(default=True, init=False)
    sticky: bool = field(default=True, init=False)

    def place(self, batch: Batch) -> Placed:
        """Return GPUs for the jobs of a batch."""
        state = batch.state()
        placed = {n: np.array(gpus) for n, gpus in enumerate(batch.held) if gpus}
        for held in placed.values():
            state.take(held)
        rule = self.rules.rule(batch, state)
        for n, job in enumerate(batch.gangs):
            if n in placed or n in batch.lent:
                continue
            lent = {m: len(placed[m]) for m in sorted(batch.lent) if m in placed}
            for m in preempted(job.gpus - state.free_count(), lent):
                state.release(placed.pop(m))
            gpus = rule(state, job)
            assert gpus is not None, "no rule of these wants more than room"
            state.take(gpus)
            placed[n] = gpus
        return Placed(placed)


def preempted(missing: int, lent: dict[int, int]) -> list[int]:
    """Return the jobs that make room for so many GPUs.

    Parameters
    ----------
    lent
        By job the GPUs that it holds, in the order of jobs; together at least as many.
    """
    chosen = []
    for job in reversed(lent):
        if missing <= 0:
            break
        chosen.append(job)
        missing -= lent[job]
    for job in chosen[::-1]:  # the earliest first
        if missing + lent[job] <= 0:
            chosen.remove(job)
            missing += lent[job]
    return chosen

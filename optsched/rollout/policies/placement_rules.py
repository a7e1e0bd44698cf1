"""Placements of a round: the rules of the problem PAL, on the jobs and the cluster of a rollout."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from optsched.pal.greedy.list_scheduling import place
from optsched.pal.greedy.rules import BINNINGS
from optsched.registry import loaded
from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.placement_round import Placed

if TYPE_CHECKING:
    from optsched.pal.greedy.free_gpus import FreeGpus
    from optsched.pal.greedy.list_scheduling import Rule
    from optsched.pal.greedy.pal_rules import Penalties, Scores
    from optsched.pal.greedy.rules import PlacementRule
    from optsched.rollout.policies.placement_round import Batch, ClusterData


class Placement(Protocol):
    """Gives GPUs to the jobs of a batch; `Restorable`, for it may keep state of its own.

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


@dataclass
class RoundRule(Restorable):
    """A rule of PAL's table in the rounds of a rollout; jobs choose by class where GPUs have bins.

    Attributes
    ----------
    bins
        In place of the rule's own.
    generator
        Goes on from round to round.
    """

    changing = ("generator",)

    row: PlacementRule
    bins: str | None = None
    generator: random.Random = field(default_factory=random.Random)

    def rule(self, world: ClusterData, penalties: Penalties, state: FreeGpus) -> Rule:
        """Return the rule for one round, with penalties by model."""
        return self.row.rule(state, self.scores(world), penalties, self.generator)

    def scores(self, world: ClusterData) -> Scores:
        """Return the values of the bins of GPUs by class; none where the rule looks at none."""
        bins = self.bins or self.row.bins
        return {} if bins is None else world.scores(loaded(BINNINGS[bins]))

    def order(self, batch: Batch) -> list[int]:
        """Return the places in the batch, the job that chooses first first."""
        return list(range(len(batch.jobs))) if self.row.bins is None else batch.class_order()


@dataclass
class NonSticky(Restorable):
    """All GPUs are released, and every job is placed again."""

    changing = ("rules",)

    rules: RoundRule
    settled: bool = True
    sticky: bool = field(default=False, init=False)

    def place(self, batch: Batch) -> Placed:
        """Return GPUs for the jobs of a batch."""
        state = batch.state()
        rule = self.rules.rule(batch.world, batch.penalties, state)
        return Placed(place(batch.gangs, state, rule, order=self.rules.order(batch)))


@dataclass
class Sticky(Restorable):
    """Running jobs keep their GPUs unless an admitted one needs them.

    Admitted jobs fit together, so only others are preempted: from the end of the order, until a
    waiting job fits. Those of them beside which it fits as well go on, the earliest first. A
    preempted job waits for the next round, so it overtakes nobody.
    """

    changing = ("rules",)

    rules: RoundRule
    settled: bool = field(default=True, init=False)
    sticky: bool = field(default=True, init=False)

    def place(self, batch: Batch) -> Placed:
        """Return GPUs for the jobs of a batch."""
        state = batch.state()
        placed = {n: np.array(gpus) for n, gpus in enumerate(batch.held) if gpus}
        for held in placed.values():
            state.take(held)
        rule = self.rules.rule(batch.world, batch.penalties, state)
        for n, job in enumerate(batch.gangs):
            if n in placed or n in batch.lent:
                continue
            usable = {
                m: placed[m][batch.usable[placed[m]]] for m in sorted(batch.lent & placed.keys())
            }
            lent = {m: len(gpus) for m, gpus in usable.items()}  # not on nodes that are closed
            for m in preempted(job.gpus - state.free_count(), lent):
                state.release(usable[m])
                del placed[m]
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

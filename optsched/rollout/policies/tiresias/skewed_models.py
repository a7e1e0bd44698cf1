"""Which gangs Tiresias consolidates: those whose model suffers from distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.greedy.packing_rules import consolidate
from optsched.rollout.policies.placement_rules import RoundRule

if TYPE_CHECKING:
    from optsched.documents.arrays import Indices
    from optsched.pal.greedy.free_gpus import FreeGpus, Gang
    from optsched.pal.greedy.list_scheduling import Rule
    from optsched.pal.greedy.pal_rules import Penalties
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.scenario import Scenario


def skewed_models(scenario: Scenario) -> frozenset[str] | None:
    """Return the models that a profile shows to suffer from distance; None without a profile.

    A profile is a model's own `locality`, as Tiresias' profiler finds it.
    """
    told = {name: model.locality for name, model in scenario.models.items() if model.locality}
    if not told:
        return None
    return frozenset(name for name, factors in told.items() if max(factors) > 1)


@dataclass
class SkewedRule(RoundRule):
    """Gangs of skewed models on few nodes; others use up what is left of nodes."""

    skewed: frozenset[str] = frozenset()

    def rule(self, world: ClusterData, penalties: Penalties, state: FreeGpus) -> Rule:
        """Return the rule for one round."""

        def pick(state: FreeGpus, job: Gang) -> Indices | None:
            gather = consolidate if job.model in self.skewed else fragments
            return gather(state, job)

        return pick


def fragments(state: FreeGpus, job: Gang) -> Indices | None:
    """Pick GPUs of the nodes with the fewest free ones, one node after the other."""
    if state.free_count() < job.gpus:
        return None
    counts, left = state.counts(0), job.gpus
    shares = []
    for node in np.argsort(counts, kind="stable").tolist():
        share = min(int(counts[node]), left)
        if share:
            shares.append((node, share))
        left -= share
        if not left:
            break
    return np.sort(state.gather(shares))

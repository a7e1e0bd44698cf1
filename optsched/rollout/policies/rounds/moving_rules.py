"""Which places stand for a rule in rounds in which every job may move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.greedy.packing_rules import consolidate
from optsched.pal.greedy.pal_rules import pal_rule, pm_first_rule
from optsched.registry import loaded
from optsched.rollout.policies.placement_rules import RoundRule
from optsched.rollout.policies.rounds.binned_places import MOST_BINS, BinnedPlaces
from optsched.rollout.policies.rounds.moving_places import MOST_GPUS, MovingPacked, MovingRuled
from optsched.rollout.policies.rounds.places import ModelPenalties, ruled

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.policies.rounds.moving_places import MovingPlaces


def moving_places_of(view: View, world: ClusterData, rules: RoundRule) -> MovingPlaces:
    """Return all GPUs of a cluster as free, for the rule of a policy."""
    cluster, entry = view.cluster, loaded(rules.row.entry)
    if type(rules) is RoundRule and cluster.largest <= MOST_GPUS:
        if entry is consolidate:
            return MovingPacked(cluster)
        if entry in (pm_first_rule, pal_rule):
            scores = rules.scores(world)
            if max(len(np.unique(row)) for row in scores.values()) <= MOST_BINS:
                penalties = ModelPenalties(world) if entry is pal_rule else None
                return BinnedPlaces(cluster, scores, penalties)
    return MovingRuled(ruled(world, rules))

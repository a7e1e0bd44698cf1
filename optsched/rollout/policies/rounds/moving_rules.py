"""Which places stand for a rule in rounds in which every job may move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.pal.greedy.packing_rules import consolidate
from optsched.pal.greedy.pal_rules import multilevel_rule, pal_rule, pm_first_rule
from optsched.registry import loaded
from optsched.rollout.policies.placement_rules import RoundRule
from optsched.rollout.policies.rounds.binned_places import BinnedPlaces
from optsched.rollout.policies.rounds.moving_places import MovingPacked, MovingRuled
from optsched.rollout.policies.rounds.multilevel_places import MultilevelPlaces
from optsched.rollout.policies.rounds.places import ModelPenalties, ruled

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.policies.rounds.moving_places import MovingPlaces


def moving_places_of(view: View, world: ClusterData, rules: RoundRule) -> MovingPlaces:
    """Return the rule of a policy, for a cluster."""
    cluster, entry = view.cluster, loaded(rules.row.entry)
    if type(rules) is RoundRule:
        if entry is consolidate:
            return MovingPacked(cluster)
        has_nodes_alone = len(cluster.levels) == 2
        if entry in (pm_first_rule, pal_rule) or (entry is multilevel_rule and has_nodes_alone):
            made = MultilevelPlaces if entry is multilevel_rule else BinnedPlaces
            penalties = None if entry is pm_first_rule else ModelPenalties(world)
            return made(cluster, rules.scores(world), penalties)
    return MovingRuled(cluster, ruled(world, rules))

"""Rounds in which every job may move: on sets of GPUs, or compiled."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.greedy.packing_rules import consolidate
from optsched.pal.greedy.pal_rules import multilevel_rule, pal_rule, pm_first_rule
from optsched.registry import loaded
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.placement_round import NO_CLASS
from optsched.rollout.policies.placement_rules import RoundRule
from optsched.rollout.policies.rounds.binned_places import BinnedPlaces
from optsched.rollout.policies.rounds.fresh_rounds import FreshRounds
from optsched.rollout.policies.rounds.moving_places import MovingPacked, MovingRuled
from optsched.rollout.policies.rounds.multilevel_places import MultilevelPlaces
from optsched.rollout.policies.rounds.places import ModelPenalties, ruled

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Order
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.policies.rounds.active_jobs import ActiveJobs
    from optsched.rollout.policies.rounds.moving_places import MovingPlaces
    from optsched.rollout.scenario import Scenario

LEAST_GPUS = 512
"""Of a cluster for which it is worth while to load what is compiled."""
COMPILED = "OPTSCHED_COMPILED"
"""The environment variable: rounds are compiled in no cluster, "0", or in all of them, "1"."""


def moving_rounds_of(
    view: View, world: ClusterData, rules: RoundRule, order: Order, backfill: bool
) -> ActiveJobs:
    """Return the rounds of a policy whose rule draws nothing."""
    cluster, entry = view.cluster, loaded(rules.row.entry)
    places: MovingPlaces
    if _looks_at_bins(rules, cluster):
        scores = rules.scores(world)
        penalties = None if entry is pm_first_rule else ModelPenalties(world)
        if is_compiled(cluster.gpus):
            from optsched.rollout.policies.rounds.compiled_rounds import CompiledRounds
            from optsched.rollout.policies.rounds.round_arrays import RULES, RoundArrays

            arrays = RoundArrays.of(cluster, scores, RULES[entry])
            if arrays is not None:
                return CompiledRounds(view, world, arrays, penalties, order, backfill)
        made = MultilevelPlaces if entry is multilevel_rule else BinnedPlaces
        places = made(cluster, scores, penalties)
    elif type(rules) is RoundRule and entry is consolidate:
        places = MovingPacked(cluster)
    else:
        places = MovingRuled(cluster, ruled(world, rules))
    return FreshRounds(view, world, places, order, backfill, rules.row.bins is not None)


def _looks_at_bins(rules: RoundRule, cluster: Cluster) -> bool:
    """Tell whether it is a rule on bins that is known on sets and on arrays."""
    entry = loaded(rules.row.entry)
    if type(rules) is not RoundRule:
        return False
    has_nodes_alone = len(cluster.levels) == 2
    return entry in (pm_first_rule, pal_rule) or (entry is multilevel_rule and has_nodes_alone)


def is_compiled(gpus: int) -> bool:
    """Tell whether rounds of a cluster are compiled: where numba works, if it is large."""
    told = os.environ.get(COMPILED)
    if told == "0" or (told != "1" and gpus < LEAST_GPUS):
        return False
    try:
        importlib.import_module("numba")
    except (ImportError, OSError):  # there is none, it is not for this numpy, or a library is gone
        return False
    return True


def load(scenario: Scenario) -> None:
    """Compile rounds, or load them, if those of a cluster are: before the first decision."""
    if is_compiled(scenario.gpus):
        from optsched.rollout.policies.rounds.compiled_places import PM_FIRST, place_round
        from optsched.rollout.policies.rounds.round_arrays import RoundArrays

        arrays = RoundArrays.of(Cluster(scenario), {NO_CLASS: np.ones(scenario.gpus)}, PM_FIRST)
        nobody = np.zeros(0, dtype=np.int64)
        if arrays is not None:
            place_round(arrays, nobody, False, nobody)

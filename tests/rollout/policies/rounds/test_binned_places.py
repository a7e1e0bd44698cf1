"""Masks of free GPUs pick those that rules on arrays pick, and know when they would again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.pal.greedy.free_gpus import FreeGpus, column_of
from optsched.pal.greedy.packing_rules import consolidate
from optsched.pal.greedy.pal_rules import multilevel_rule, pal_rule, pm_first_rule
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.placement_round import GangJob
from optsched.rollout.policies.rounds.binned_places import BinnedPlaces
from optsched.rollout.policies.rounds.moving_places import MovingPacked
from optsched.rollout.policies.rounds.multilevel_places import MultilevelPlaces
from tests.support.builders.rollout_parts import scenario
from tests.support.strategies.common import law

PENALTIES = {"near": (1.0, 1.0), "far": (1.0, 1.5), "odd": (1.1, 1.4)}
RULES = ("packed", "pm-first", "pal", "multilevel")


@st.composite
def clusters(draw):
    """A cluster of unlike nodes, and the bins of its GPUs for two classes."""
    groups = st.builds(dict, count=st.integers(1, 3), gpus=st.integers(1, 5))
    world = scenario(draw(st.lists(groups, min_size=1, max_size=3)), None)
    cluster = Cluster(world)
    row = st.lists(
        st.sampled_from([0.9, 1.0, 1.0, 1.35, 2.0]), min_size=cluster.gpus, max_size=cluster.gpus
    )
    return cluster, {name: np.array(draw(row)) for name in "AB"}


def free_in_arrays(cluster):
    columns = [np.array(row)[np.array(cluster.node_of)] for row in cluster.ancestors]
    everywhere = np.ones(cluster.gpus, dtype=np.bool_)
    return FreeGpus(cluster.levels, tuple(map(column_of, columns)), everywhere)


def free_in_masks(cluster, scores, rule):
    if rule == "packed":
        return MovingPacked(cluster)
    if rule == "multilevel":
        return MultilevelPlaces(cluster, scores, PENALTIES)
    return BinnedPlaces(cluster, scores, PENALTIES if rule == "pal" else None)


def rule_on_arrays(state, scores, rule):
    if rule == "packed":
        return consolidate
    if rule == "pm-first":
        return pm_first_rule(state, scores)
    return (pal_rule if rule == "pal" else multilevel_rule)(state, scores, PENALTIES)


gangs = st.builds(
    GangJob,
    st.integers(1, 9),
    st.sampled_from("AB"),
    st.sampled_from(sorted(PENALTIES)),
    st.none(),
)


@pytest.mark.parametrize("name", RULES)
@law(500)
@given(st.data())
def test_masks_give_what_arrays_give(name, data):
    cluster, scores = data.draw(clusters())
    state, places = free_in_arrays(cluster), free_in_masks(cluster, scores, name)
    rule, held = rule_on_arrays(state, scores, name), []
    for _ in range(data.draw(st.integers(1, 12))):
        if held and data.draw(st.integers(0, 3)) == 0:
            place = held.pop(data.draw(st.integers(0, len(held) - 1)))
            state.release(np.array(place.gpus))
            places.release(place)
        gang = data.draw(gangs)
        found = rule(state, gang)
        place = places.choose(gang)
        gpus = None if place is None else place.gpus
        assert gpus == (None if found is None else tuple(sorted(found.tolist())))
        if place is not None:
            held.append(place)
            state.take(np.array(place.gpus))
            places.take(place)
        assert places.free == state.free_count()


@pytest.mark.parametrize("name", RULES)
@law(1000)
@given(st.data())
def test_what_is_said_to_stay_is_chosen_again(name, data):
    """Other jobs take and release GPUs; as long as a place is said to stay, the rule agrees."""
    cluster, scores = data.draw(clusters())
    places, held = free_in_masks(cluster, scores, name), []

    def turn_some():
        if held and data.draw(st.booleans()):
            other = held.pop(data.draw(st.integers(0, len(held) - 1)))
            places.release(other)
        else:
            other = places.choose(data.draw(gangs))
            if other is None:
                return
            held.append(other)
            places.take(other)
        for node, mask in other.masks:
            changed[node] = changed.get(node, 0) ^ mask

    changed = {}
    for _ in range(data.draw(st.integers(0, 4))):
        turn_some()
    gang = data.draw(gangs)
    place = places.choose(gang)
    changed.clear()
    for _ in range(data.draw(st.integers(1, 5))):
        if place is None:
            return
        turn_some()
        real = {node: mask for node, mask in changed.items() if mask}
        if places.stays(gang, place, real):
            again = places.choose(gang)
            assert again is not None
            assert again.gpus == place.gpus
            changed.clear()  # from here on it is as if it had been chosen now


def test_places_do_stay():
    """The law above would hold if nothing ever stayed."""
    cluster = Cluster(scenario(4, 4))
    scores = {"A": np.array([1.0, 1.0, 2.0, 2.0] * 4)}
    for name in RULES:
        places = free_in_masks(cluster, scores, name)
        small, large = GangJob(1, "A", "far"), GangJob(2, "A", "far")
        first = places.choose(large)
        places.take(first)
        place = places.choose(small)
        places.take(place)
        far = places.choose(GangJob(4, "A", "far"))
        assert places.stays(small, place, {3: 0b1100})
        assert far is not None
        assert not places.stays(small, place, dict(place.masks))

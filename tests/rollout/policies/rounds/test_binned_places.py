"""Sets of free GPUs give those that rules on arrays pick, and what is chosen after changes."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.pal.greedy.free_gpus import FreeGpus, column_of
from optsched.pal.greedy.packing_rules import consolidate, drawn_by
from optsched.pal.greedy.pal_rules import multilevel_rule, pal_rule, pm_first_rule
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.placement_round import GangJob
from optsched.rollout.policies.rounds.binned_places import BinnedPlaces
from optsched.rollout.policies.rounds.drawn_rounds import draw_gpus
from optsched.rollout.policies.rounds.lanes import Lanes
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


def rule_on_sets(cluster, scores, rule):
    if rule == "packed":
        return MovingPacked(cluster)
    if rule == "multilevel":
        return MultilevelPlaces(cluster, scores, PENALTIES)
    return BinnedPlaces(cluster, scores, PENALTIES if rule == "pal" else None)


def free_beside(places, held, cluster):
    """What is free beside some places."""
    taken = {gpu for place in held for gpu in place.gpus}
    free = places.lanes.set_of(set(range(cluster.gpus)) - taken)
    return places.with_counts(free) if isinstance(places, MovingPacked) else free


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
def test_sets_give_what_arrays_give(name, data):
    cluster, scores = data.draw(clusters())
    state, places = free_in_arrays(cluster), rule_on_sets(cluster, scores, name)
    rule, held, free = rule_on_arrays(state, scores, name), [], places.everything
    for _ in range(data.draw(st.integers(1, 12))):
        if held and data.draw(st.integers(0, 3)) == 0:
            place = held.pop(data.draw(st.integers(0, len(held) - 1)))
            state.release(np.array(place.gpus))
            free = free_beside(places, held, cluster)
        gang = data.draw(gangs)
        found = rule(state, gang)
        if found is None:
            assert state.free_count() < gang.gpus
            continue
        place = places.choose(gang, free)
        assert place.gpus == tuple(sorted(found.tolist()))
        held.append(place)
        state.take(found)
        free ^= place.taken
        assert free == free_beside(places, held, cluster)


@pytest.mark.parametrize("name", RULES)
@law(1000)
@given(st.data())
def test_what_was_chosen_tells_what_is_chosen_again(name, data):
    """A gang chooses now and then among other free GPUs, as one that never chose before."""
    cluster, scores = data.draw(clusters())
    places, held, gang = rule_on_sets(cluster, scores, name), [], data.draw(gangs)
    last, then, free = None, 0, places.everything
    for _ in range(data.draw(st.integers(1, 12))):
        if held and data.draw(st.booleans()):
            held.pop(data.draw(st.integers(0, len(held) - 1)))
            free = free_beside(places, held, cluster)
        other = data.draw(gangs)
        if other.gpus <= cluster.gpus - sum(len(place.gpus) for place in held):
            held.append(places.choose(other, free))
            free ^= held[-1].taken
        if gang.gpus > cluster.gpus - sum(len(place.gpus) for place in held):
            continue
        anew, changed = places.choose(gang, free), free ^ then
        if last is not None and changed & last.looked_at:
            last = places.again(gang, last, free, changed)
        if last is not None:
            assert last.gpus == anew.gpus
        last, then = last or anew, free


@pytest.mark.parametrize("name", RULES)
def test_many_gangs_remember_their_places_as_if_they_chose_anew(name):
    """In a larger cluster than the laws draw, where three bins and two classes are mixed."""
    draw, cluster = random.Random(1), Cluster(scenario(10, 4))
    scores = {key: np.array(draw.choices((0.9, 1.0, 1.3), k=cluster.gpus)) for key in "AB"}
    places, remembered, other = rule_on_sets(cluster, scores, name), {}, 0
    for _ in range(400):
        some = set(range(cluster.gpus)) - set(draw.sample(range(cluster.gpus), draw.randint(0, 24)))
        free = places.lanes.set_of(some)
        if name == "packed":
            free = places.with_counts(free)
        for size, key, model in itertools.product((1, 2, 4, 6), "AB", PENALTIES):
            gang = GangJob(size, key, model)
            anew = places.choose(gang, free)
            last, then = remembered.get(gang, (anew, free))
            if (free ^ then) & last.looked_at:
                last = places.again(gang, last, free, free ^ then)
            assert last.gpus == anew.gpus
            if draw.random() < 0.7:  # else it is compared with what was longer ago
                remembered[gang] = last, free
            other += last is not anew
    assert name == "packed" or other > 100


def test_a_place_is_chosen_again_without_a_look_at_all_nodes():
    """The law above would hold if the rule were asked every time."""
    cluster = Cluster(scenario(4, 4))
    scores = {"A": np.array([1.0, 1.0, 2.0, 2.0] * 4)}
    for name in ("pm-first", "pal", "multilevel"):
        places, gang = rule_on_sets(cluster, scores, name), GangJob(2, "A", "far")
        place, free = places.choose(gang, places.everything), places.everything
        last = places.lanes.set_of(range(12, 16))
        asked = []
        places.choose = lambda *_, asked=asked: asked.append(True)
        assert not last & place.looked_at or places.again(gang, place, free ^ last, last) is place
        assert not asked
        places.again(gang, place, free ^ place.taken, place.taken)
        assert asked


@law(300)
@given(st.data())
def test_lanes_count_as_one_does_by_hand(data):
    cluster = data.draw(clusters())[0]
    lanes = Lanes(cluster)
    some = data.draw(st.sets(st.integers(0, cluster.gpus - 1)))
    gpus, count = lanes.set_of(some), Counter(cluster.node_of[gpu] for gpu in some)
    assert lanes.numbers(gpus) == tuple(sorted(some))
    assert list(lanes.members(lanes.nodes(gpus))) == sorted(count)
    least = data.draw(st.integers(1, 6))
    having = [(n, list(lanes.members(nodes))) for n, nodes in lanes.by_count(gpus, least)]
    expected = {n: [] for n in sorted(set(count.values())) if n >= least}
    for node in sorted(count):
        if count[node] >= least:
            expected[count[node]].append(node)
    assert having == list(expected.items())
    assert list(lanes.members(lanes.having(gpus, least))) == sorted(
        node for node in count if count[node] >= least
    )
    if count:
        for nodes, number in (
            (lanes.fewest(gpus), min(count.values())),
            (lanes.most(gpus), max(count.values())),
        ):
            assert list(lanes.members(nodes)) == [n for n in sorted(count) if count[n] == number]
    near = {}
    for node in sorted(count):
        near.setdefault(abs(count[node] - least), []).append(node)
    found = [(far, list(lanes.members(nodes))) for far, nodes in lanes.nearest(gpus, least)]
    assert found == sorted(near.items())
    for node, number in count.items():
        assert lanes.mask(gpus, node).bit_count() == number
        whole = lanes.whole(lanes.nodes(lanes.set_of([cluster.first[node]])))
        assert lanes.numbers(gpus & whole) == tuple(
            gpu for gpu in sorted(some) if cluster.node_of[gpu] == node
        )


def test_gpus_are_drawn_as_the_rule_draws_them():
    cluster, sizes = Cluster(scenario(40, 8)), [1, 1, 2, 30, 1, 8, 64, 1, 150, 2, 1, 40, 1]
    state, free = free_in_arrays(cluster), list(range(cluster.gpus))
    here, there = random.Random(5), random.Random(5)
    rule = drawn_by(there)
    for size in sizes:
        found = rule(state, GangJob(size, "A", "far"))
        state.take(found)
        assert draw_gpus(here, free, size) == tuple(found.tolist())
    assert here.getstate() == there.getstate()
    assert free == np.flatnonzero(state.free).tolist()

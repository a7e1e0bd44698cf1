"""PM-First and PAL on sets of nodes pick the GPUs that their rules on arrays pick."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.pal.greedy.free_gpus import FreeGpus, column_of
from optsched.pal.greedy.pal_rules import pal_rule, pm_first_rule
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.placement_round import GangJob
from optsched.rollout.policies.rounds.binned_places import BinnedPlaces
from tests.support.builders.rollout_parts import scenario
from tests.support.strategies.common import law

PENALTIES = {"near": (1.0, 1.0), "far": (1.0, 1.5), "odd": (1.1, 1.4)}


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


@law(1500)
@given(st.data(), st.sampled_from([None, PENALTIES]))
def test_sets_of_nodes_give_what_arrays_give(data, penalties):
    cluster, scores = data.draw(clusters())
    columns = [np.array(row)[np.array(cluster.node_of)] for row in cluster.ancestors]
    everywhere = np.ones(cluster.gpus, dtype=np.bool_)
    state = FreeGpus(cluster.levels, tuple(map(column_of, columns)), everywhere)
    rule = pm_first_rule(state, scores) if penalties is None else pal_rule(state, scores, PENALTIES)
    places, held = BinnedPlaces(cluster, scores, penalties), []
    pick = places.rule()
    for _ in range(data.draw(st.integers(1, 12))):
        if held and data.draw(st.integers(0, 3)) == 0:
            gpus = held.pop(data.draw(st.integers(0, len(held) - 1)))
            state.release(np.array(gpus))
            places.release(gpus)
        size = data.draw(st.integers(1, 9))
        job = GangJob(
            size, data.draw(st.sampled_from("AB")), data.draw(st.sampled_from(sorted(PENALTIES)))
        )
        found, gpus = rule(state, job), pick(job)
        assert gpus == (None if found is None else tuple(sorted(found.tolist())))
        if gpus is not None:
            held.append(gpus)
            state.take(np.array(gpus))
            places.take(gpus)
        assert places.free == state.free_count()

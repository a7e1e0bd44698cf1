"""What distance costs, relative to the best place; ATC'19's tables 4 and 5; unlike nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.physics.distance import Distances
from optsched.rollout.scenario import Scenario
from optsched.rollout.spread import Ladder, Spread
from optsched.traces.trace import US
from tests.rollout.engine.test_accounts import rolled
from tests.support.builders.physics_parts import jobs
from tests.support.builders.rollout_parts import scenario
from tests.support.strategies.common import law

PHILLY = optsched.read_scenario("philly-small")
MIXED = [{"count": 2, "gpus": 8, "domain": "a"}, {"count": 1, "gpus": 8, "domain": "b"},
         {"count": 3, "gpus": 2, "domain": "b"}]  # fmt: skip


def on(servers, gpus, each=8):
    """So many GPUs, evenly on the first servers."""
    assert gpus % servers == 0
    return [node * each + gpu for node in range(servers) for gpu in range(gpus // servers)]


def busy(record, job=0):
    """The share of its GPU time, in %, for which a job's GPUs compute; starts aside."""
    held = record.jobs.allocated_gpu_us[job] - record.jobs.overhead_gpu_us[job]
    return 100 * record.jobs.effective_gpu_us[job] / held


def alone(*places, used, **changes):
    world = PHILLY.changed({"nodes": 16, "gpus_per_node": 8, "costs.start_s": 0.0, **changes})
    made = jobs([len(place) for place in places], run_s=3600, utilization=used)
    return rolled(world, made, *places)


# --- the paper --------------------------------------------------------------------------------


def test_table_4_two_gpus_on_one_server_on_two_and_beside_others():
    """57.7 % on one server, 49.6 % on two, 37.5 % on two with others on them: within 3 points."""
    beside = [1, 2, 9, 10]
    found = (
        busy(alone([0, 1], used=0.577)),
        busy(alone([0, 8], used=0.577)),
        busy(alone([0, 8], beside, used=0.577)),
    )
    assert found == pytest.approx((57.7, 49.6, 37.5), abs=3)


def test_table_5_gangs_of_16_on_2_4_and_8_servers():
    """Relative to the 43.66 % on two servers, which is the best place for 16 GPUs."""
    found = [busy(alone(on(servers, 16), used=0.4366)) for servers in (2, 4, 8)]
    assert found == pytest.approx([43.66, 40.94, 28.56], abs=0.1)


def test_a_gang_that_can_be_on_no_server_does_not_pay_for_being_on_two():
    """Its run time in the trace holds that already; on four, eight and sixteen it does pay."""
    ends = [alone(on(n, 16), used=1.0).jobs.end_us[0] / (3600 * US) for n in (2, 4, 8, 16)]
    assert ends[0] == 1
    assert ends[1:] == pytest.approx([0.854 / 0.8, 0.854 / 0.558, 0.854 / 0.558], rel=1e-6)


def test_simulators_in_which_such_a_gang_always_pays_say_so():
    old = {"spread": None, "locality": [1.0, 1.7]}
    for place, factor in (("best", 1.0), ("one-node", 1.7)):
        record = alone(on(2, 16), used=1.0, **old, reference_place=place)
        assert record.jobs.end_us[0] == pytest.approx(factor * 3600 * US, rel=1e-9)
    for name in ("pal-64", "pal-64-persistent"):
        assert optsched.read_scenario(name).reference_place == "one-node"


def test_where_run_times_are_as_recorded_distance_shows_only_in_what_gpus_compute():
    """It is in the recorded time already, so neither that nor the work done changes with it."""
    near, far = (alone(on(n, 16), used=0.5, reference_place="recorded").jobs for n in (2, 8))
    assert near.end_us[0] == far.end_us[0] == 3600 * US
    assert near.useful_gpu_us[0] == far.useful_gpu_us[0] == 16 * 3600 * US
    assert far.effective_gpu_us[0] / near.effective_gpu_us[0] == pytest.approx(0.558 / 0.854)


# --- nodes of unlike sizes ----------------------------------------------------------------------


def test_nodes_of_unlike_sizes_without_a_topology():
    world = Scenario(nodes=MIXED, trace={"generator": "poisson", "jobs": 1})
    cluster = Cluster(world)
    assert (world.gpus, cluster.nodes, cluster.size) == (30, 6, [8, 8, 8, 2, 2, 2])
    assert cluster.levels == ("node", "domain", "cluster")
    assert cluster.ancestors[1] == [0, 0, 1, 1, 1, 1]
    plain = [{"count": 20, "gpus": 8}, {"count": 83, "gpus": 2}]
    assert scenario(plain, None).gpus == 20 * 8 + 83 * 2
    assert Scenario.from_document(world.model_dump(mode="json", by_alias=True)) == world


def test_the_best_place_is_that_of_the_cluster_and_of_the_size():
    """On nodes of 8 and of 2, five GPUs that are on three of the small ones could be on one."""
    ladder = {"servers": {"counts": [1, 4], "speed": [1.0, 0.25]},
              "domains": {"counts": [1, 2], "speed": [1.0, 0.5]}}  # fmt: skip
    world = scenario(MIXED, None, spread=ladder)
    distances = Distances(world, Cluster(world))
    assert distances.factor(None, (24, 25, 26, 27, 28)) == pytest.approx(3)
    assert distances.factor(None, tuple(range(16))) == 1
    assert distances.factor(None, (*range(8), *range(16, 24))) == pytest.approx(2)
    assert distances.factor(None, tuple(range(30))) == 1  # all of it is the only place


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"nodes": [{"count": 1, "gpus": 8}], "gpus_per_node": 8}, "gpus_per_node: cannot stand"),
        (
            {"nodes": [{"count": 1, "gpus": 8, "domain": "a"}, {"count": 1, "gpus": 2}]},
            "nodes[1].domain: missing: the other groups have one",
        ),
        ({"nodes": [{"count": 1, "gpus": 8}], "quotas": {"q": 9}}, "quotas.q: 9 GPUs, but the"),
        ({"spread": {"servers": {"counts": [2], "speed": [1]}}}, "counts[0]: must begin with 1"),
        ({"spread": {"servers": {"counts": [1], "speed": [0.5]}}}, "speed[0]: is the speed in one"),
        (
            {"spread": {"servers": {"counts": [1, 2, 2], "speed": [1, 0.5, 0.4]}}},
            "spread.servers.counts[2]: 2 after 2: must ascend",
        ),
        (
            {"spread": {"servers": {"counts": [1, 2], "speed": [1, 0.5, 0.6]}}},
            "spread.servers.speed: has 3 values for 2 counts",
        ),
        (
            {"spread": {"domains": {"counts": [1, 2], "speed": [1, 0.5]}}},
            "spread.domains: there are no domains between node and cluster",
        ),
    ],
)  # fmt: skip
def test_faults_of_nodes_and_ladders_name_their_path(changes, expected):
    document = {"schema": "optsched/scenario/1", "nodes": 2, "gpus_per_node": 4,
                "trace": {"generator": "poisson", "jobs": 1}}  # fmt: skip
    if isinstance(changes.get("nodes"), list) and "gpus_per_node" not in changes:
        del document["gpus_per_node"]
    with pytest.raises(optsched.InstanceError) as error:
        Scenario.from_document(document | changes)
    assert any(expected in line for line in error.value.faults), error.value.faults


# --- laws -------------------------------------------------------------------------------------


@st.composite
def ladders(draw):
    counts = sorted({1, *draw(st.sets(st.integers(2, 64), max_size=4))})
    speeds = draw(st.lists(st.floats(0.01, 1), min_size=len(counts) - 1, max_size=len(counts) - 1))
    return Ladder(counts=tuple(counts), speed=(1.0, *sorted(speeds, reverse=True)))


@law(300)
@given(ladders(), st.integers(1, 100))
def test_ladders_never_rise_and_go_through_their_rungs(ladder, count):
    assert ladder.at(count + 1) <= ladder.at(count) * (1 + 1e-12)
    assert [ladder.at(rung) for rung in ladder.counts] == list(ladder.speed)
    assert ladder.speed[-1] <= ladder.at(count) <= 1


def test_a_ladder_is_a_power_of_the_number_between_its_rungs():
    """Half of 2 to 8 in logarithms is 4: the speed there is the geometric mean."""
    ladder = Ladder(counts=(1, 2, 8), speed=(1.0, 0.9, 0.4))
    assert ladder.at(4) == pytest.approx(0.6)
    assert Spread().servers.at(3) == pytest.approx(0.854 * (0.8 / 0.854) ** np.log2(1.5))


@law(300)
@given(st.data())
def test_no_place_is_better_than_the_best_and_one_server_loses_nothing(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    groups = [{"count": 1, "gpus": size, "domain": data.draw(st.sampled_from("ab"))}
              for size in sizes]  # fmt: skip
    spread = Spread(servers=data.draw(ladders()), domains=data.draw(ladders()))
    locality = (1.0, *sorted(data.draw(st.lists(st.floats(1, 3), min_size=2, max_size=2))))
    world = scenario(groups, None, spread=spread, locality=locality)
    cluster = Cluster(world)
    distances, gpus = Distances(world, cluster), range(cluster.gpus)
    chosen = tuple(sorted(data.draw(st.sets(st.sampled_from(gpus), min_size=1))))
    factor = distances.factor(locality, chosen)
    assert factor >= 1 - 1e-12
    if len({cluster.node_of[gpu] for gpu in chosen}) == 1:
        assert factor == 1

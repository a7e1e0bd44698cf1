"""FIFO by best fit: examples by hand, and laws, of Philly with all of its guidelines, too."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.cluster.topology import Topology
from optsched.rollout.engine.engine import Engine
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.fifo import fifo
from optsched.rollout.policies.free_nodes import FreeNodes
from optsched.rollout.policies.node_sets import members
from optsched.rollout.policies.philly import philly
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import US, trace_of
from tests.support.builders.rollout_stub import StubView, scenario
from tests.support.strategies.common import law


def racks(per_rack=2, count=2, width=2):
    domains = [{"id": "all", "level": "cluster"}]
    for rack in range(count):
        domains.append({"id": f"r{rack}", "level": "rack", "parent": "all"})
        for node in range(per_rack):
            gpus = [f"{rack}/{node}/{gpu}" for gpu in range(width)]
            name = f"r{rack}n{node}"
            domains.append({"id": name, "level": "node", "parent": f"r{rack}", "gpus": gpus})
    topology = Topology.from_document({"levels": ["node", "rack", "cluster"], "domains": domains})
    return Scenario(topology=topology, trace={"generator": "none", "jobs": 1})


# --- free GPUs by node --------------------------------------------------------------------------


def test_the_best_fit_is_the_fullest_node_that_suffices():
    nodes = FreeNodes(Cluster(scenario(nodes=3, width=4)))
    nodes.take([0, 4, 5])  # 3, 2 and 4 are free
    assert [nodes.best_fit(size) for size in (1, 2, 3, 4, 5)] == [1, 1, 0, 2, -1]
    assert nodes.best_fit(1, nodes=0b101) == 0
    assert nodes.gpus(1, 2) == (6, 7)
    assert nodes.gang(3) == (1, 2, 3)


def test_a_large_gang_takes_whole_nodes_and_then_the_best_fit():
    nodes = FreeNodes(Cluster(scenario(nodes=4, width=4)))
    nodes.take([0, 4, 5])
    assert nodes.gang(6) == (6, 7, 8, 9, 10, 11)  # a whole node, and the two of node 1
    assert nodes.gang(9) == (6, *range(8, 16))
    assert nodes.gang(14) is None
    assert nodes.gang(9, most_nodes=2) is None


def test_a_gang_stays_in_a_rack_if_one_has_room():
    nodes = FreeNodes(Cluster(racks()))
    nodes.take([0])
    assert nodes.gang(3) == (1, 2, 3)  # the fuller rack
    assert nodes.gang(4) == (4, 5, 6, 7)
    nodes.take([4])
    assert nodes.least_level(4) == 1
    assert nodes.gang(4, level=1) is None
    assert nodes.gang(4, level=2) == (2, 3, 6, 7)


@given(st.lists(st.integers(0, 11), max_size=40))
def test_what_is_kept_is_what_is_free(touched):
    cluster = Cluster(scenario(nodes=3, width=4))
    nodes, used = FreeNodes(cluster), set()
    for gpu in touched:
        (nodes.release if gpu in used else nodes.take)([gpu])
        used ^= {gpu}
        free = [[g for g in range(4 * n, 4 * n + 4) if g not in used] for n in range(3)]
        assert nodes.count == [len(inside) for inside in free]
        assert nodes.total == sum(nodes.count)
        for count, group in enumerate(nodes.nodes_with):
            assert list(members(group)) == [n for n in range(3) if nodes.count[n] == count]
        assert [nodes.gpus(n, nodes.count[n]) for n in range(3)] == [tuple(f) for f in free]


@given(
    st.sets(st.integers(0, 11)),
    st.lists(st.tuples(st.sets(st.integers(0, 11)), st.integers(0, 7)), max_size=4),
    st.integers(-1, 7),
)
def test_what_comes_back_is_free_for_those_who_take_the_lowest(taken, exchanges, set_):
    """Of the nodes that may be used, the first GPUs; -1 stands for all nodes."""
    nodes = FreeNodes(Cluster(scenario(nodes=3, width=4)))
    nodes.take(sorted(taken))
    for given_up, count in exchanges:
        back = given_up & taken
        taken -= back
        free = [gpu for gpu in range(12) if gpu not in taken and set_ >> gpu // 4 & 1]
        assert nodes.exchange(sorted(back, reverse=True), count, set_) == free[:count]
        taken |= set(free[:count])
        assert nodes.lowest(12, set_) == free[count:]
    assert nodes.total == 12 - len(taken)
    for node in range(3):
        left = tuple(gpu for gpu in range(4 * node, 4 * node + 4) if gpu not in taken)
        assert nodes.gpus(node, nodes.count[node]) == left
        assert nodes.nodes_with[len(left)] >> node & 1


# --- first in, first out ------------------------------------------------------------------------


def test_a_gang_that_waits_holds_up_those_behind_it():
    view = StubView(scenario(nodes=2, width=4))
    policy = fifo(view.scenario, 0)
    for size in (3, 4, 2, 1):
        view.submit(size)
    assert view.step(policy).place == {0: (0, 1, 2), 1: (4, 5, 6, 7)}
    view.finish(1)
    assert view.step(policy).place == {2: (4, 5), 3: (3,)}


def test_spread_at_once_unless_it_is_told_to_wait():
    for relax_s, expected in ((0, {2: (3, 7)}), (60, {})):
        view = StubView(scenario(nodes=2, width=4))
        policy = fifo(view.scenario, 0, relax_s=relax_s)
        for size in (3, 3, 2):
            view.submit(size)
        places = view.step(policy).place
        assert {job: places[job] for job in places if job == 2} == expected
        view.wait(59)
        assert not view.step(policy).place
        view.wait(1)
        assert view.step(policy).place == ({} if expected else {2: (3, 7)})


def test_wishes_are_relaxed_step_by_step():
    view = StubView(scenario(nodes=8, width=2))
    policy = fifo(view.scenario, 0, relax_s=60)
    for _ in range(8):
        view.submit(1)
    for job in range(8):  # one GPU of each node is in use
        view.held[job] = (2 * job,)
        policy.held[job] = (2 * job,)
        policy.nodes.take([2 * job])
    view.arrived.clear()
    job = view.submit(6)  # wants 3 nodes, then 6
    assert not view.step(policy).place
    view.wait(60)
    assert view.step(policy).place == {job: (1, 3, 5, 7, 9, 11)}


def test_backfill_lets_others_overtake_but_not_equals():
    view = StubView(scenario(nodes=1, width=4))
    policy = fifo(view.scenario, 0, backfill=True)
    for size in (2, 3, 3, 1, 2):
        view.submit(size)
    assert view.step(policy).place == {0: (0, 1), 3: (2,)}
    view.finish(0)
    assert view.step(policy).place == {1: (0, 1, 3)}


def test_quotas_hold_up_their_queue_only():
    view = StubView(scenario(nodes=2, width=4, quotas={"a": 3}))
    policy = fifo(view.scenario, 0)
    for size, queue in ((2, "a"), (2, "a"), (1, "a"), (3, "b")):
        view.submit(size, queue=queue)
    assert view.step(policy).place == {0: (0, 1), 3: (4, 5, 6)}
    view.finish(0)
    assert view.step(policy).place == {1: (0, 1), 2: (7,)}


def test_a_job_that_failed_gives_its_gpus_back_at_once_and_is_first_again():
    view = StubView(scenario(nodes=1, width=4))
    policy = fifo(view.scenario, 0)
    for size in (4, 2, 2, 2):
        view.submit(size)
    assert list(view.step(policy).place) == [0]
    view.fail(0, back=False)
    assert list(view.step(policy).place) == [1, 2]
    view.arrived.append(0)
    assert not view.step(policy).place
    view.finish(1, 2)
    assert view.step(policy).place == {0: (0, 1, 2, 3)}


def test_nodes_that_are_not_ready_are_left_out():
    view = StubView(scenario(nodes=2, width=4, rented={}))
    policy = fifo(view.scenario, 0)
    view.ready = [False, True]
    view.submit(1)
    view.submit(4)
    assert view.step(policy).place == {0: (4,)}
    view.ready = [True, True]
    assert view.step(policy).place == {1: (0, 1, 2, 3)}


# --- laws ---------------------------------------------------------------------------------------

POLICIES = {
    "fifo": lambda world: fifo(world, 0),
    "backfill": lambda world: fifo(world, 0, backfill=True),
    "relaxing": lambda world: fifo(world, 0, relax_s=30, backfill=True),
    "philly": lambda world: philly(
        world, 0, retry_s=30, dedicated=True, defragment=True, pre_run=True, pool=2, share_after=1
    ),
}


def live(view, draw):
    """Let some jobs come, some end and some fail; trials that are over are passed."""
    for size in draw(st.lists(st.sampled_from([1, 1, 2, 3, 4, 5]), max_size=4)):
        view.submit(size, queue=draw(st.sampled_from("ab")))
    view.wait(draw(st.sampled_from([0, 10, 40])))
    for job in view.running.tolist():
        fate = draw(st.sampled_from(["runs", "runs", "ends", "fails", "fails for now"]))
        if fate.startswith("fails"):
            view.fail(job, back=fate == "fails")
        elif job in view.trials and fate == "ends":
            del view.trials[job]
            view.held[job] = ()
            view.arrived.append(job)
        elif fate == "ends":
            view.finish(job)


@pytest.mark.parametrize("name", POLICIES)
@given(data=st.data())
@law(500)
def test_random_days(name, data):
    """The stub refuses GPUs that are in use, torn gangs and broken quotas."""
    quotas = data.draw(st.sampled_from([{}, {}, {"a": 6}, {"a": 5, "b": 7}]))
    view = StubView(scenario(nodes=3, width=4, quotas=quotas))
    policy, away = POLICIES[name](view.scenario), set()
    for _ in range(data.draw(st.integers(1, 10))):
        live(view, data.draw)
        away = (away | set(view.failed)) - set(view.arrived)  # not back in the queue yet
        before = dict(view.held)
        policy = pickle.loads(pickle.dumps(policy))
        view.step(policy)
        kept = policy.trials.kept.values() if name == "philly" else ()
        aside = {gpu for gpus in kept for gpu in gpus}  # for gangs until they stood their trials
        free = [len(set(view.free_gpus(node)) - aside) for node in range(3)]
        assert free == policy.nodes.count
        if name != "philly":
            assert all(view.held[job] == gpus for job, gpus in before.items() if gpus)
        waiting = [view.demand(job) for job in view.pending.tolist() if job not in away]
        if name == "fifo" and waiting and not quotas:
            assert waiting[0] > view.free.sum()
        if name == "backfill" and waiting and not quotas:
            assert min(waiting) > view.free.sum()


# --- in the engine ------------------------------------------------------------------------------


def rolled(policy, world, **columns):
    """Return the record of a rollout of a few jobs."""
    trace = trace_of("few jobs", "by hand", columns)
    return Engine(world, trace, make(policy, world), seed=0).run()


def test_a_gang_gets_its_locality_or_relaxes_at_an_epoch():
    """Two GPUs stand apart until 300 s; after 120 s of waiting the gang takes them."""
    columns = {"submit_s": [0, 0, 10], "gpus": [3, 3, 2], "run_s": [300, 300, 50]}
    world = scenario(nodes=2, width=4, epoch_s=60)
    starts = {
        relax_s: rolled(f"fifo:relax_s={relax_s}", world, **columns).jobs.first_start_us[2] / US
        for relax_s in (0, 120, 600)
    }
    assert starts == {0: 10, 120: 180, 600: 300}

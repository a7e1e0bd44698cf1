"""Philly's guidelines as switches: examples by hand, and laws."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.philly import philly
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from optsched.rollout.results.outputs import jobs_frame
from optsched.rollout.scenario import Scenario
from optsched.traces.failure_reasons import SHOWN_BY_ONE_GPU
from optsched.traces.generators.registry import generate
from optsched.traces.trace import STATUSES, US, Failure, trace_of
from tests.support.builders.rollout_stub import StubView, scenario
from tests.support.strategies.common import law

SHOWN, HIDDEN = "Syntax error", "MPI error"


def rolled(policy, world, **columns):
    """Return the record of a rollout of a few jobs."""
    trace = trace_of("few jobs", "by hand", columns)
    return Engine(world, trace, make(policy, world), seed=0, keep_intervals=True).run()


def told(record):
    """Who ran where and when, and how it ended."""
    jobs = record.jobs
    return (
        *(jobs.first_start_us.tolist(), jobs.end_us.tolist(), jobs.outcome.tolist()),
        sorted(record.intervals),
    )


# --- waiting for locality -----------------------------------------------------------------------


def test_a_gang_that_waits_for_its_locality_runs_faster_and_starts_later():
    """Two GPUs stand apart until 5,000 s: at once, after a try in vain, or never."""
    columns = {"submit_s": [0, 0, 10], "gpus": [3, 3, 2], "run_s": [5000, 9000, 1000]}
    world = scenario(nodes=2, width=4, spread={}, epoch_s=60)
    found = {}
    for tries in (0, 1, 480):
        jobs = rolled(f"philly:relax_after={tries}", world, **columns).jobs
        found[tries] = (jobs.first_start_us[2] // US, jobs.running_us[2] // US)
    assert found == {0: (10, 1170), 1: (240, 1170), 480: (5100, 1000)}


# --- dedicated servers --------------------------------------------------------------------------


def test_gangs_want_servers_without_other_gangs_until_they_have_waited():
    view = StubView(scenario(nodes=2, width=4))
    policy = philly(view.scenario, 0, retry_s=60, dedicated=True, share_after=2, relax_after=5)
    for size in (2, 2, 2, 1):
        view.submit(size)
    assert view.step(policy).place == {0: (0, 1), 1: (4, 5), 3: (2,)}
    view.wait(60)
    assert not view.step(policy).place
    view.wait(60)
    assert view.step(policy).place == {2: (6, 7)}
    view.finish(1, 2)
    job = view.submit(2)
    assert view.step(policy).place == {job: (4, 5)}


def test_sharing_comes_before_spreading():
    """After one try a gang would share a server; only a try later is it content with two."""
    view = StubView(scenario(nodes=2, width=4))
    policy = philly(view.scenario, 0, retry_s=60, dedicated=True, share_after=1)
    for size in (3, 3, 2):
        view.submit(size)
    assert view.step(policy).place.keys() == {0, 1}
    view.wait(60)
    assert not view.step(policy).place
    view.wait(60)
    assert view.step(policy).place == {2: (3, 7)}


def test_dedicated_servers_take_what_neighbours_cost():
    world = scenario(nodes=2, width=4, neighbours={"shared_server": 0.5})
    columns = {"submit_s": [0, 0], "gpus": [2, 2], "run_s": [100, 100]}
    lost = [
        rolled(policy, world, **columns).jobs.neighbour_loss_gpu_us.tolist()
        for policy in ("philly", "philly:dedicated=true")
    ]
    assert lost == [[200 * US] * 2, [0, 0]]


# --- defragmentation ----------------------------------------------------------------------------


def test_defragmenting_moves_small_jobs_off_a_server():
    view = StubView(scenario(nodes=2, width=4))
    policy = philly(view.scenario, 0, retry_s=600, relax_after=9, defragment=True)
    for size in (3, 1, 1, 1, 1, 1, 3):
        view.submit(size)
    assert view.step(policy).place.keys() == {0, 1, 2, 3, 4, 5}
    view.finish(1, 3)  # one GPU of the first server, and two of the other one
    assert view.held[2] == (4,)
    view.wait(600)
    assert not view.step(policy).place  # three free GPUs, of which no move makes a place
    view.finish(5)
    view.wait(600)
    assert view.step(policy).place == {2: (3,), 6: (4, 5, 7)}


def test_several_gangs_and_gangs_above_a_server_get_whole_servers_in_one_decision():
    view = StubView(scenario(nodes=5, width=2))
    policy = philly(view.scenario, 0, retry_s=600, relax_after=9, defragment=True)
    for size in (1,) * 10:
        view.submit(size)
    view.step(policy)
    view.finish(0, 2, 4, 6, 8)  # five servers with one free GPU each
    large, small = view.submit(4), view.submit(2)
    found = view.step(policy).place
    assert large in found
    assert small not in found  # one GPU is left
    assert len({view.cluster.node_of[gpu] for gpu in found[large]}) == 2
    assert sorted(found) == sorted([large, *(job for job in found if job < 10)])
    assert len(found) == 3


def test_nothing_is_moved_in_vain():
    view = StubView(scenario(nodes=2, width=4))
    policy = philly(view.scenario, 0, retry_s=600, defragment=True)
    for size in (3, 3, 2):
        view.submit(size)
    assert view.step(policy).place.keys() == {0, 1}
    assert not view.step(policy).place  # the two GPUs stand apart, and no job is smaller


def test_a_gang_that_is_moved_gets_a_server_of_its_own_where_they_are_dedicated():
    view = StubView(scenario(nodes=3, width=4))
    policy = philly(view.scenario, 0, retry_s=600, relax_after=9, dedicated=True, defragment=True)
    for size in (3, 3, 1, 1, 1):
        view.submit(size)
    assert view.step(policy).place == {0: (0, 1, 2), 1: (4, 5, 6), 2: (3,), 3: (7,), 4: (8,)}
    view.finish(2)
    job = view.submit(4)
    assert view.step(policy).place == {4: (3,), job: (8, 9, 10, 11)}


# --- trials -------------------------------------------------------------------------------------


def test_gangs_are_tried_on_one_gpu_and_keep_their_places():
    view = StubView(scenario(nodes=1, width=4))
    policy = philly(view.scenario, 0, retry_s=0, pre_run=True, pre_run_s=100, pool=1)
    for size in (2, 2, 1):
        view.submit(size)
    first = view.step(policy)  # both turns have come: their GPUs are kept, and nobody gets them
    assert (first.place, first.pre_run, first.pre_run_us) == ({}, {0: (0,)}, 100 * US)
    view.wait(50)
    view.fail(0, back=False)
    second = view.step(policy)  # its GPUs go to the next, and the pool, too
    assert (second.place, second.pre_run) == ({2: (0,)}, {1: (2,)})
    view.arrived.append(0)
    assert not view.step(policy).pre_run
    view.wait(100)
    view.held[1] = ()
    view.arrived.append(1)
    third = view.step(policy)
    assert (third.place, third.pre_run) == ({1: (2, 3)}, {0: (1,)})


def test_a_gang_that_waits_is_tried_on_a_gpu_that_nobody_can_use():
    view = StubView(scenario(nodes=1, width=4))
    policy = philly(view.scenario, 0, retry_s=0, pre_run=True, pre_run_s=100)
    view.submit(1)
    view.submit(4)
    found = view.step(policy)
    assert (found.place, found.pre_run) == ({0: (0,)}, {1: (1,)})
    view.wait(100)
    view.held[1] = ()
    view.arrived.append(1)
    view.finish(0)
    assert view.step(policy).place == {1: (0, 1, 2, 3)}
    view.fail(1)
    assert view.step(policy).place == {1: (0, 1, 2, 3)}  # its trial counts for good


EARLY = {
    "submit_s": [0],
    "gpus": [4],
    "run_s": [1000],
    "failures": [(Failure(SHOWN, 60 * US),)],
}


def test_a_trial_saves_three_of_four_gpus():
    """It fails after 60 s on one GPU, passes the next trial of 100 s, and runs for 1,000 s."""
    world = scenario(nodes=1, width=4)
    plain = rolled("philly", world, **EARLY).jobs
    tried = rolled("philly:pre_run=true,pre_run_s=100", world, **EARLY).jobs
    assert plain.end_us.tolist() == [1060 * US]
    assert plain.redone_gpu_us.tolist() == [240 * US]
    assert tried.end_us.tolist() == [1160 * US]
    assert (tried.allocated_gpu_us - tried.useful_gpu_us).tolist() == [160 * US]
    assert tried.failures.tolist() == [1]


def test_one_gpu_does_not_find_what_needs_the_gang():
    assert {SHOWN, HIDDEN} & SHOWN_BY_ONE_GPU == {SHOWN}
    columns = EARLY | {"failures": [(Failure(HIDDEN, 60 * US),)]}
    tried = rolled("philly:pre_run=true,pre_run_s=100", scenario(nodes=1, width=4), **columns).jobs
    assert tried.redone_gpu_us.tolist() == [240 * US]
    assert tried.end_us.tolist() == [1160 * US]


def test_a_small_pool_makes_gangs_wait():
    columns = {"submit_s": [0] * 3, "gpus": [2] * 3, "run_s": [1000] * 3}
    starts = {
        pool: rolled(f"philly:pre_run=true,pool={pool}", scenario(nodes=3, width=2), **columns)
        for pool in (1, 2, 3)
    }
    ends = {pool: sorted(record.jobs.end_us // US) for pool, record in starts.items()}
    assert ends == {1: [1120, 1240, 1360], 2: [1120, 1120, 1240], 3: [1120] * 3}


def test_gpus_that_are_kept_on_a_server_that_closes_are_let_go():
    """The gang in its trial would get GPUs of a server that is drained before it is over."""
    down = [{"nodes": [0], "from_s": 50, "to_s": 5000, "kind": "drain"}]
    world = scenario(nodes=2, width=2, downtime=down)
    columns = {"submit_s": [0], "gpus": [2], "run_s": [1000]}
    record = rolled("philly:pre_run=true,pre_run_s=100", world, **columns)
    assert record.intervals == ((0, 0, 100 * US, (0,)), (0, 100 * US, 1100 * US, (2, 3)))


# --- retries ------------------------------------------------------------------------------------


def test_retries_are_learnt_by_reason_and_user():
    view = StubView(scenario())
    policy = philly(view.scenario, 0, stop_retrying=True, stop_below=0.3, prior=2.0)
    asked = []
    for user in "aaab":
        job = view.submit(1, user=user)
        for _ in range(3):
            view.jobs[job]["failures"].append(SHOWN)
            asked.append(policy.retries(view, job, SHOWN))
            if not asked[-1]:
                break
    # Of a: 1/2, 1/3, 1/4 after two retries in vain. Of b, to whom a's are the prior: 1/4.
    assert asked == [True, True, False, False, False, False]
    assert policy.retries(view, job, HIDDEN)


def test_a_retry_that_meets_another_reason_has_helped():
    view = StubView(scenario())
    policy = philly(view.scenario, 0, stop_retrying=True)
    job = view.submit(1, user="a")
    for reason in (SHOWN, SHOWN, HIDDEN):
        view.jobs[job]["failures"].append(reason)
        policy.retries(view, job, reason)
    view.ended.append(job)
    policy.update(view)
    seen = policy.estimates.seen
    assert seen == {
        (SHOWN,): [2, 1],
        (SHOWN, "a"): [2, 1],
        (HIDDEN,): [1, 1],
        (HIDDEN, "a"): [1, 1],
    }


def test_a_false_stop_is_told():
    """Job 1 would have passed; job 2 fails for good whatever is done."""
    world = scenario(nodes=1, width=1)
    why = [(Failure(SHOWN, US),) * 9] + [(Failure(SHOWN, US),) * 4] * 2
    columns = {
        **{"submit_s": [0, 500, 1000], "gpus": [1] * 3, "run_s": [10] * 3},
        **{"failures": why, "status": ["failed", "passed", "failed"]},
    }
    record = rolled("philly:stop_retrying=true,stop_below=0.25", world, **columns)
    figures = metrics(record)
    assert (figures["given_up"], figures["false_stops"], figures["failed"]) == (3, 1, 3)
    assert jobs_frame(record)["given_up"].tolist() == [1, 1, 1]
    plain = metrics(rolled("philly", world, **columns))
    assert (plain["given_up"], plain["false_stops"], plain["passed"]) == (0, 0, 1)


# --- laws ---------------------------------------------------------------------------------------

ALL_ON = (
    "philly:relax_after=3,dedicated=true,share_after=2,defragment=true,pre_run=true,pre_run_s=90,"
    "pool=2,stop_retrying=true,stop_below=0.3"
)
WORLD = {
    "nodes": 4, "gpus_per_node": 4, "epoch_s": 180, "spread": {}, "retries": {"delay_s": 180},
    "neighbours": {"shared_server": 0.771}, "trace": {"generator": "none", "jobs": 1},
    "costs": {"start_s": 30, "restore_s": 30, "checkpoint_every_s": 600},
}  # fmt: skip


@st.composite
def days(draw, reasons=()):
    """A few jobs that leave little room; some fail, for some of these reasons."""
    count = draw(st.integers(4, 14))
    failure = st.builds(Failure, st.sampled_from(reasons or ("",)), st.integers(1, 900 * US))
    failures = [draw(st.lists(failure, max_size=2)) if reasons else () for _ in range(count)]
    return {
        "submit_s": [draw(st.integers(0, 4000)) for _ in range(count)],
        "gpus": [draw(st.sampled_from([1, 1, 1, 2, 3, 4, 6, 8])) for _ in range(count)],
        "run_s": [draw(st.integers(60, 6000)) for _ in range(count)],
        "failures": [tuple(each) for each in failures],
        "status": [draw(st.sampled_from(["passed", "failed"][: 1 + bool(f)])) for f in failures],
        "queue": [draw(st.sampled_from("ab")) for _ in range(count)],
    }  # fmt: skip


@given(days(reasons=(SHOWN, HIDDEN)), st.booleans())
@law(100)
def test_options_of_a_switch_that_is_off_change_nothing(columns, lends):
    quotas = {"quotas": {"a": 8, "b": 8}, "lends_quotas": True} if lends else {}
    world = Scenario(**WORLD | quotas)
    off = "philly:share_after=3,stop_below=0.9,prior=0.5,learn_by=queue,pre_run_s=7,pool=1"
    assert told(rolled(off, world, **columns)) == told(rolled("philly", world, **columns))


@given(days())
@law(100)
def test_without_failures_nothing_is_learnt_of_retries(columns):
    world = Scenario(**WORLD)
    learns = rolled("philly:stop_retrying=true,stop_below=1", world, **columns)
    assert told(learns) == told(rolled("philly", world, **columns))


@given(days(), st.sampled_from([0, 60]), st.sampled_from([1, 100]))
@law(60)
def test_trials_that_find_nothing_change_neither_order_nor_places(columns, retry_s, pool):
    """They take a microsecond, and no two events meet: no sum of jitters is that of others."""
    count = len(columns["gpus"])
    jitters = 0.001 * 2.0 ** np.arange(2 * count)
    columns["submit_s"] = 300 * np.array(columns["submit_s"]) + jitters[:count]
    columns["run_s"] = 300 * np.array(columns["run_s"]) + jitters[count:]
    world = scenario(nodes=3, width=4, epoch_s=60, retries={"delay_s": 60})
    columns["gpus"] = [min(size, 12) for size in columns["gpus"]]
    policy = f"philly:retry_s={retry_s},relax_after=2"
    plain = rolled(policy, world, **columns)
    tried = rolled(f"{policy},pre_run=true,pre_run_s=0.000001,pool={pool}", world, **columns)
    runs = [[i for i in each.intervals if i[2] > i[1] + 1] for each in (plain, tried)]
    before, after = ({job: start for job, start, *_ in each} for each in runs)
    assert all(0 <= after[job] - start <= count**2 for job, start in before.items())
    ordered = sorted(before, key=before.__getitem__)
    for first, second in pairwise(ordered):
        assert before[first] == before[second] or after[first] < after[second]
    places = [{job: gpus for job, *_, gpus in each} for each in runs]
    assert places[0] == places[1]


@given(days(reasons=(SHOWN, HIDDEN)), st.booleans())
@law(60)
def test_moving_jobs_loses_no_work_but_restarts(columns, loses):
    """What is held beyond a job's work is in its accounts, and nothing is redone but for stops."""
    costs = WORLD["costs"] | {"stop_loses_work": loses}
    columns["failures"] = [()] * len(columns["gpus"])
    columns["status"] = ["passed"] * len(columns["gpus"])
    world = Scenario(**WORLD | {"costs": costs})
    record = rolled("philly:relax_after=50,defragment=true,dedicated=true", world, **columns)
    jobs, trace = record.jobs, record.trace
    assert (jobs.useful_gpu_us == trace.run_us * trace.gpus).all()
    assert (jobs.overhead_gpu_us <= (jobs.migrations + 1) * 30 * US * trace.gpus + trace.gpus).all()
    assert loses or not jobs.redone_gpu_us.any()
    assert (jobs.redone_gpu_us[jobs.migrations == 0] == 0).all()
    assert (jobs.migrations[trace.gpus > 4] == 0).all()


@given(days(reasons=(SHOWN, HIDDEN, "CPU out of memory")))
@law(60)
def test_accounts_add_up_with_all_guidelines(columns):
    record = rolled(ALL_ON, Scenario(**WORLD), **columns)
    jobs = record.jobs
    assert (jobs.end_us >= 0).all()
    parts = ("useful", "width_loss", "slow_gpu_loss", "distance_loss", "neighbour_loss")
    parts += ("sharing_loss", "redone", "pre_run", "overhead")
    held = sum(getattr(jobs, f"{part}_gpu_us") for part in parts)
    assert (held == jobs.allocated_gpu_us).all()
    kinds = ("back_off", "fair_share", "capacity", "fragmentation", "order")
    assert (sum(getattr(jobs, f"{kind}_us") for kind in kinds) == jobs.waiting_us).all()
    assert (jobs.pre_run_gpu_us[record.trace.gpus == 1] == 0).all()
    figures = metrics(record)
    assert figures["false_stops"] <= figures["given_up"] <= figures["failed"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=30))
@law(60)
def test_estimates_are_means_of_beta_binomials(outcomes):
    view = StubView(scenario())
    estimates = philly(view.scenario, 0, prior=3.0).estimates
    for user, helps in outcomes:
        job = view.submit(1, user=user)
        estimates.open[job] = (SHOWN, 1)
        view.jobs[job]["failures"] = [SHOWN] if helps else [SHOWN, SHOWN]
        estimates.close(view, job)
    for user in "ab":
        own, others = (
            [h for who, h in outcomes if (who == user) is is_own] for is_own in (True, False)
        )
        mean = (Fraction(3, 2) + sum(others)) / (3 + len(others))
        expected = (3 * mean + sum(own)) / (3 + len(own))
        assert estimates.mean(SHOWN, user) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("guideline", ["dedicated", "defragment", "pre_run", "stop_retrying"])
def test_guidelines_on_a_generated_trace(guideline):
    """All jobs end, whichever is switched on, and the same seed gives the same schedule."""
    trace = generate("philly-atc19", 80, 3, load=0.9, gpus=32, max_gpus=16)
    world = scenario(nodes=4, width=8, epoch_s=300, costs={"restore_s": 30})
    policy = f"philly:{guideline}=true"
    runs = [Engine(world, trace, make(policy, world), seed=0).run() for _ in range(2)]
    assert (runs[0].jobs.end_us >= 0).all()
    assert (runs[0].jobs.end_us == runs[1].jobs.end_us).all()
    assert set(runs[0].jobs.outcome.tolist()) <= set(range(len(STATUSES)))

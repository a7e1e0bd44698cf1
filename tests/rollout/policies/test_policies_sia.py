"""The policy `sia`: choices by hand, and against the exact optimum of one kind of GPUs."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.policies.adaptive.power_mean import Row, best_widths
from optsched.rollout.policies.adaptive.sia import Sia
from optsched.rollout.registry import make
from optsched.sia import SiaInstance
from tests.rollout.policies.rounds.test_kept_rounds import check_against
from tests.rollout.policies.test_kept_shares import elastic_scenarios
from tests.support.builders.rollout_stub import ElasticView, scenario, widths
from tests.support.strategies.common import law


def model(gpus, speedup):
    table = {"kind": "table", "gpus": gpus, "speedup": speedup}
    return {"phases": [{"work_gpu_s": 100.0, "speedup": table}]}


MODELS = {
    "linear": model([1, 2, 3, 4, 6, 8], [1.0, 2.0, 3.0, 4.0, 6.0, 8.0]),
    "steep": model([2, 4, 8], [1.0, 1.9, 3.0]),
    "odd": model([3, 6], [1.0, 1.5]),
    "flat": model([1, 2, 4], [1.0, 1.0, 1.0]),
}
WORLD = scenario(2, 4, models=MODELS, epoch_s=60.0)


def test_configurations_are_powers_of_two_and_whole_nodes():
    view, policy = ElasticView(WORLD), make("sia", WORLD)
    jobs = [view.submit(5 if name == "" else 1, model=name) for name in (*MODELS, "")]
    curves = [policy.curve(view, job) for job in jobs]
    known = [policy._of_curves({"gpu": curve}).every for curve in curves]
    assert [[own.gpus for own in configurations] for configurations in known] == [
        *([1, 2, 4, 8], [2, 4, 8], [3, 6]),  # the third has no configuration of Sia's
        *([1], [5]),
    ]


def test_choices_by_hand():
    """Costs: 8 GPUs 8 ** -0.5 = 0.35, 4 GPUs 0.5, 2 GPUs 0.71, 1 GPU 1, none 1.1."""
    view, policy = ElasticView(WORLD), make("sia:growth=null", WORLD)
    for _ in range(2):
        view.submit(1, model="linear")
    (solve,) = view.step(policy).solves
    assert widths(view) == [4, 4]
    assert (solve.objective, solve.status) == (1.0, "optimal")
    for _ in range(2):
        view.submit(1, model="linear")
    view.step(policy)  # at an age of 0 restarts cost nothing yet
    assert widths(view) == [2, 2, 2, 2]
    for _ in range(6):
        view.submit(1, model="linear")
    (solve,) = view.step(policy).solves
    assert sorted(widths(view)) == [0] * 6 + [2] * 4  # 9.44; one GPU for each of eight: 10.2
    assert solve.objective == pytest.approx(4 * 0.71 + 6 * 1.1)


def test_restarts_are_worth_less_and_less():
    """Of two jobs one ends; the other would get twice as fast by a restart."""
    for restarts, width in ((0, 8), (2, 4)):
        view, policy = ElasticView(WORLD), make("sia:growth=null", WORLD)
        stays, ends = (view.submit(1, model="linear") for _ in range(2))
        view.step(policy)
        assert widths(view) == [4, 4]
        policy.history.restarts[stays] = restarts
        view.wait(120)  # 8 GPUs count (120 - 30 x restarts) / 150 as much: 6.4, or 3.2
        view.finish(ends)
        view.step(policy)
        assert widths(view) == [width]
        assert policy.history.restarts == {stays: restarts + (width == 8)}


def test_between_epochs_nothing_changes():
    view, policy = ElasticView(WORLD), make("sia", WORLD)
    view.submit(1, model="linear")
    view.is_epoch = False
    decision = policy.decide(view)
    assert (decision.place, decision.solves) == ({}, ())


@law(500)
@given(st.data())
def test_every_round_is_the_best_of_its_kind(data):
    """As least sums over all numbers of GPUs have it, with memory that went through a pickle."""
    growth = data.draw(st.sampled_from(["2", "null"]))
    view, policy = ElasticView(WORLD), make(f"sia:gap=0,growth={growth}", WORLD)
    for _ in range(data.draw(st.integers(1, 4))):
        view.wait(data.draw(st.sampled_from([0, 20, 60, 600])))
        for job in list(view.held):
            if data.draw(st.booleans()):
                view.finish(job)
        names = st.sampled_from([*MODELS, ""])
        for name in data.draw(st.lists(names, max_size=4)):
            view.submit(data.draw(st.sampled_from([1, 1, 2, 3, 8, 9])), model=name)
        policy = pickle.loads(pickle.dumps(policy))
        rows, spares = rows_of(pickle.loads(pickle.dumps(policy)), view)
        decision = view.step(policy)
        assert sum(widths(view)) <= 8
        jobs = list(policy.active)
        costs = [
            dict(zip(*row, strict=True))[len(view.held.get(job, ()))]
            for job, row in zip(jobs, rows, strict=True)
        ]
        assert sum(costs) == pytest.approx(best_widths(rows, 8).value[8] if rows else 0, abs=1e-9)
        for solve in decision.solves:  # none if nothing could change
            assert solve.status == "optimal"
            assert solve.objective == pytest.approx(sum(costs) - 1.1 * spares, abs=1e-9)


def rows_of(policy, view):
    """Widths and costs of the jobs in the next round, and how many need not be looked at."""
    policy.take_note(view)
    jobs = list(policy.active)
    if not jobs:
        return [], 0
    every = policy._rows(view, jobs)
    spares = len(every) - len(policy._without_spares(every, {"gpu": 8}))
    instance = policy._instance(every, {"gpu": 8})
    assert SiaInstance.from_document(json.loads(instance.to_json())) == instance
    rows = [
        Row((0, *(o.gpus for o in own)), (waiting.cost, *(o.cost for o in own)))
        for *own, waiting in instance.options
    ]
    return rows, spares


def test_jobs_that_are_alike_are_looked_at_while_there_may_be_gpus_for_them():
    view, policy = ElasticView(WORLD), make("sia", WORLD)
    for name in ["steep"] * 6 + ["linear"] * 20 + ["odd"] * 3:
        view.submit(1, model=name)
    policy.take_note(view)
    every = policy._rows(view, list(policy.active))
    kept = [row.job for row in policy._without_spares(every, {"gpu": 8})]
    assert kept == [*range(4), *range(6, 14), 26, 27]  # of 2, 1 and 3 GPUs
    assert policy._without_spares(every, {"gpu": 0}) == []
    view.step(policy)
    assert policy._without_spares(policy._rows(view, list(policy.active)), {"gpu": 8})[0].job == 0


# --- rounds that are left out -----------------------------------------------------------------


def never_skips(policy):
    """Let a policy solve every round."""
    decide = policy.decide

    def all_of_them(view):
        policy.is_settled, policy._last = False, ""
        return decide(view)

    policy.decide = all_of_them
    return policy


@law(500)
@given(st.data())
def test_rounds_that_are_left_out_would_have_changed_nothing(data):
    views = ElasticView(WORLD), ElasticView(WORLD)
    gap = data.draw(st.sampled_from(["0", "1e-4", "0.05"]))
    named = f"sia:gap={gap},growth={data.draw(st.sampled_from(['2', 'null']))}"
    policies = make(named, WORLD), never_skips(make(named, WORLD))
    names, gangs = st.sampled_from([*MODELS, ""]), st.sampled_from([1, 1, 2, 3, 8])
    for _ in range(data.draw(st.integers(2, 6))):
        wait, ends = data.draw(st.sampled_from([0, 20, 60, 600])), data.draw(st.integers(0, 9))
        new = data.draw(st.lists(st.tuples(gangs, names), max_size=3))
        is_epoch = data.draw(st.sampled_from([True, True, False]))
        decisions = []
        for view, policy in zip(views, policies, strict=True):
            view.wait(wait)
            if ends < len(view.held):
                view.finish(list(view.held)[ends])
            for gang, name in new:
                view.submit(gang, model=name)
            view.is_epoch = is_epoch
            decision = view.step(policy)
            decisions.append((dict(decision.place), decision.stop, decision.rent))
        assert decisions[0] == decisions[1]


def test_a_round_is_left_out_where_nothing_can_change():
    """One job that has all that it can use; then two that share, when costs hardly change more."""
    view, policy, solved = ElasticView(WORLD), make("sia:growth=null", WORLD), []
    for wait, jobs in ((60, 1), (60, 0), (600, 0), (100_000, 1), (60, 0), (60, 0), (60, 0)):
        for _ in range(jobs):
            view.submit(1, model="linear")
        solved.append(len(view.step(policy).solves))
        view.wait(wait)
    assert solved == [1, 0, 0, 1, 1, 0, 0]
    assert widths(view) == [4, 4]


# --- what is kept of jobs that wait -----------------------------------------------------------


@law(300)
@given(st.data())
def test_jobs_that_wait_may_be_given_the_same_as_when_they_are_asked_anew(data):
    check_against(data, data.draw(elastic_scenarios()), "sia", (Sia, "_rows", rows_anew))


def rows_anew(policy, view, jobs):
    policy._waiting.clear()
    return ROWS(policy, view, jobs)


ROWS = Sia._rows


def test_a_job_that_ran_and_failed_between_two_rounds_may_be_given_more_than_before():
    """It got on at 1 GPU, so that it may have 2, though no round saw it run."""
    view, policy = ElasticView(WORLD), make("sia", WORLD)
    job = view.submit(1, model="linear")
    view.step(policy)
    assert widths(view) == [1]
    view.wait(20)
    view.fail(job)
    view.step(policy)
    assert widths(view) == [2]

"""No rollout is below its bound, whatever its physics; and what raises or lowers a bound."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from optsched.bounds.bound import bound_of
from optsched.bounds.least_times import world_of
from optsched.bounds.schedules import Schedules, UnknownPhysics
from optsched.bounds.verify.bounds import verify_bounds
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from optsched.rollout.settings import SETTINGS
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law
from tests.support.strategies.rollout_random import Anything, scenarios, traces

ALL = Schedules(trials=True, gives_up=True)


@pytest.fixture(autouse=True)
def _short_idle(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "idle_epochs", 30)


class Unruly(Anything):
    """Does anything; gives up on some jobs that failed, and tries some, if it may."""

    name = "unruly"
    every_epoch = True

    def __init__(self, seed, wild_calls, schedules):
        super().__init__(seed, wild_calls)
        self.schedules = schedules

    def decide(self, view):
        decision = super().decide(view)
        if not self.schedules.moves and self.has_moves(view, decision):
            return replace(decision, place={}, pre_run={})
        return decision if self.schedules.trials else replace(decision, pre_run={})

    @staticmethod
    def has_moves(view, decision):
        held = {job: view.gpus_of(job) for job in view.running.tolist()}
        return any(
            len(gpus) == len(held.get(job, ())) and tuple(gpus) != held[job]
            for job, gpus in decision.place.items()
        )

    def retries(self, view, job, reason):
        return not self.schedules.gives_up or self.random.random() < 0.8


def is_bounded(world):
    return all(model.batches is None for model in world.models.values())


def check(world, jobs, schedules, record):
    """No job ended before its earliest end; the mean and the last end are above their bounds."""
    needs = world_of(world, jobs, schedules).jobs
    ends = record.jobs.end_us.tolist()
    early = [n for n, end in enumerate(ends) if 0 <= end < needs[n].end_us]
    assert not early, [(needs[n], ends[n]) for n in early]
    if not len(jobs) or min(ends) < 0:
        return
    found = bound_of(world, jobs, schedules)
    verify_bounds(world, jobs, found)
    total = sum(ends) - int(jobs.submit_us.sum())
    assert found.jct_mean_s * 1e6 * len(jobs) <= total * (1 + 1e-15)
    assert found.makespan_s * 1e6 <= max(ends) - int(jobs.submit_us.min())


@law(200)
@given(st.data())
def test_no_rollout_is_below_its_bound(data):
    world = data.draw(scenarios())
    assume(is_bounded(world))
    jobs = data.draw(traces(world))
    flags = {name: st.booleans() for name in ("trials", "gives_up", "moves")}
    schedules = data.draw(st.builds(Schedules, **flags))
    policy = Unruly(data.draw(st.integers(0, 999)), data.draw(st.integers(0, 40)), schedules)
    record = Engine(world, jobs, policy, 0).run()
    assert schedules.moves or not record.jobs.migrations.any()
    check(world, jobs, schedules, record)


@law(60)
@given(st.data())
def test_no_policy_of_the_registry_is_below_its_bound(data):
    world = data.draw(scenarios(plain=True))
    assume(is_bounded(world))
    jobs = data.draw(traces(world))
    name = data.draw(
        st.sampled_from(
            ["fifo", "srtf", "srtf:backfill=true", "las", "pal-greedy", "foresight:simulated=50"]
        )
    )
    check(world, jobs, Schedules(), Engine(world, jobs, make(name, world), 0).run())


@law(40)
@given(st.data())
def test_hindsight_is_between_the_bound_and_wsrpt(data):
    world = data.draw(scenarios(plain=True))
    assume(is_bounded(world))
    jobs = data.draw(traces(world))
    values = []
    for name in ("hindsight:evaluations=8", "wsrpt"):
        record = Engine(world, jobs, make(name, world), 0).run()
        check(world, jobs, Schedules(), record)
        found = metrics(record)
        values.append((found["unfinished"], found["jct_mean_s"] or 0.0))
    assert values[0] <= values[1]


@law(40)
@given(st.data())
def test_more_work_later_or_wider_is_never_less_and_more_gpus_never_more(data):
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(0, 30), st.integers(1, 2), st.integers(1, 30)),
            min_size=1,
            max_size=6,
        )
    )
    world, jobs = scenario(1, 2), trace(*rows)
    index = data.draw(st.integers(0, len(rows) - 1))
    job = int(np.argsort([row[0] for row in rows], kind="stable").tolist().index(index))
    before = world_of(world, jobs, ALL)
    submit, gpus, run = rows[index]
    for changed in ((submit + 3, gpus, run), (submit, 2, run), (submit, gpus, run + 3)):
        later = trace(*rows[:index], changed, *rows[index + 1 :])
        place = [*np.argsort([r[0] for r in (*rows[:index], changed, *rows[index + 1 :])],
                             kind="stable").tolist()].index(index)  # fmt: skip
        after = world_of(world, later, ALL).jobs[place]
        assert after.end_us >= before.jobs[job].end_us
        assert after.length_us >= before.jobs[job].length_us
    one, many = (bound_of(scenario(n, 2), jobs, ALL) for n in (1, 3))
    assert many.jct_mean_s <= one.jct_mean_s * (1 + 1e-6)
    assert many.makespan_s <= one.makespan_s


def test_physics_that_nobody_thought_through_are_refused():
    speedup = {"kind": "amdahl", "parallel_fraction": 0.9, "max_gpus": 2}
    phases = [{"work_gpu_s": 1.0, "speedup": speedup}]
    batches = {"batch_size": 8, "noise_scale": [0.0]}
    world = scenario(1, 2, models={"e": {"phases": phases, "batches": batches}})
    with pytest.raises(UnknownPhysics, match=r"models\[e\].batches"):
        bound_of(world, trace((0, 1, 5)), Schedules())


def test_the_class_in_words_says_what_schedules_may_do():
    words = ALL.words(scenario(1, 2, sharing={"max_jobs_per_gpu": 3}, rented={}))
    assert "up to 3 jobs on a GPU" in words
    assert "with trials" in words
    assert "given up" in words
    assert "no trials" in Schedules().words(scenario(1, 1))

"""Jobs that a policy never starts: the rollout ends when the last thing happened, and says so."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.cli.printing.rollout_tables import comparison, comparison_document
from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from optsched.rollout.settings import SETTINGS
from optsched.traces.trace import US
from tests.support.builders.rollout_parts import gone_on, scenario, trace
from tests.support.strategies.common import law


class OnlySmall:
    """Starts jobs of one GPU, and nothing else ever; rents a node more than it needs."""

    name = "only-small"
    every_epoch = True

    def decide(self, view):
        rent = None if view.scenario.rented is None or view.rented else 1
        free = [gpu for node in range(view.cluster.nodes) for gpu in view.free_gpus(node)]
        small = [job for job in view.pending.tolist() if view.demand(job) == 1]
        place = {job: (gpu,) for job, gpu in zip(small, free, strict=False)}
        return Decision(place=place, rent=rent) if place or rent else NOTHING


JOBS = trace((0, 1, 25), (0, 2, 10), (3, 2, 10), ids=["s", "m", "l"], queue=["a", "a", "b"])


def test_a_rollout_ends_when_the_last_thing_happened():
    """The job of one GPU ends at 25 s; the policy is asked 10,000 times more, for nothing."""
    record = Engine(scenario(1, 2, price_usd_per_gpu_h=3600.0), JOBS, OnlySmall(), 0).run()
    assert record.is_starved
    assert record.end_us == 25 * US
    assert (record.available_gpu_us, record.spent_gpu_us) == (50 * US, 50 * US)
    assert [epoch.now_us for epoch in record.epochs] == [0, 3 * US, 10 * US, 20 * US, 25 * US]
    assert metrics(record)["cost_usd"] == 50
    assert metrics(record)["utilization"] == 0.5
    assert record.jobs.waiting_us.tolist() == [0, 25 * US, 22 * US]


def test_an_end_that_the_scenario_names_stays():
    record = Engine(scenario(1, 2, end_s=1000.0), JOBS, OnlySmall(), 0).run()
    assert record.end_us == 1000 * US
    assert not record.is_starved  # it might still have started them


@law(100)
@given(st.integers(1, 30), st.integers(0, 60), st.booleans())
def test_idle_epochs_cost_nothing(patience, cut, is_rented):
    """However long one waits for a policy, and wherever a rollout is interrupted on the way."""
    parts = {"rented": {"provision_s": 4.0}} if is_rented else {}
    power = {"gpu": {"bare_w": 30, "context_w": 36, "peak_w": 300}, "node": {"base_w": 500}}
    world, ends = scenario(1, 2, power=power, price_usd_per_gpu_h=1.0, **parts), []
    for epochs in (patience, 40):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(vars(SETTINGS), "idle_epochs", epochs)
            engine = Engine(world, JOBS, OnlySmall(), 0)
            for _ in range(cut):
                engine.step()
            record = gone_on(engine, Engine(world, JOBS, OnlySmall(), 0)).run()
        ends.append((metrics(record), record.end_us, list(record.epochs), record.events))
    assert ends[0] == ends[1]


def test_a_rollout_says_which_jobs_wait_for_ever():
    text = (
        "policy 'object of OnlySmall' leaves 2 of 3 jobs waiting for ever: nothing runs, and "
        "nothing else can happen after 25 s; the first, 'm', asks for 2 GPUs in queue 'a'"
    )
    with pytest.warns(RuntimeWarning) as told:
        optsched.simulate(scenario(1, 2), OnlySmall(), trace=JOBS)
    assert str(told[0].message).partition("' leaves")[2] == text.partition("' leaves")[2]


def test_tables_show_jobs_that_have_not_ended_and_over_how_many_means_go():
    with pytest.warns(RuntimeWarning, match="waiting for ever"):
        compared = optsched.compare(scenario(1, 2), ["fifo", OnlySmall()], trace=JOBS)
    note = compared.left_out
    assert note.startswith("Unfinished jobs, in no mean of times: ")
    assert note.endswith(" 2 of 3.")
    assert note in str(compared)
    assert note in comparison(compared)
    assert comparison_document(compared)["unfinished"] == note
    assert "unfinished" in str(compared)
    assert note in compared._repr_html_()
    whole = optsched.compare(scenario(1, 2), ["fifo"], trace=JOBS)
    assert whole.left_out == ""
    assert "unfinished" not in str(whole)


def test_autoscaling_has_nodes_enough_for_the_largest_gang_that_waits():
    """A gang of 12 on nodes of 4: one node is used well by nobody, and would never be left."""
    jobs = trace((0, 1, 100), (0, 12, 100))
    world = scenario(4, 4)
    record = Engine(world, jobs, make("pollux-autoscaling", world, 0), 0).run()
    assert not record.is_starved
    assert np.all(record.jobs.outcome == 0)

"""What a rollout costs by a moment beyond another one: sums at the end, counts in between."""

import numpy as np
import pytest

import optsched
from optsched.rollout import regret
from optsched.rollout.scenario_files import read_scenario


@pytest.fixture(scope="module")
def two():
    scenario = read_scenario("rented-types").changed({"trace.jobs": 12})
    policies = "boa-budgeted", "boa-budgeted:price=0.3"
    return [optsched.simulate(scenario, policy, seed=3) for policy in policies]


def test_at_the_end_it_is_the_difference_of_jobs_and_bills(two):
    learner, told = two
    [jobs], [usd] = regret(learner.record, told.record, np.inf)[2:]
    spent = [float((r.record.jobs.end_us - r.record.trace.submit_us).sum()) for r in two]
    assert jobs == pytest.approx((spent[0] - spent[1]) / 1e6)
    costs = [r.metrics["cost_usd"] for r in two]
    assert usd == pytest.approx(costs[0] - costs[1])
    assert usd != 0 != jobs


def test_in_between_it_counts_jobs_in_the_system(two):
    learner, told = (r.record for r in two)
    hours = [2.0, -1.0, 0.0, 0.31]
    found = regret(learner, told, hours)
    for n, hour in enumerate(hours):
        at_us = learner.trace.submit_us[0] + hour * 3.6e9
        expected = 0.0
        for sign, record in ((1, learner), (-1, told)):
            for came, left in zip(record.trace.submit_us, record.jobs.end_us, strict=True):
                expected += sign * max(min(left, at_us) - came, 0) / 1e6
        assert found.job_s[n] == pytest.approx(expected, abs=1e-3)
        assert found.arrived[n] == (learner.trace.submit_us <= at_us).sum()
    assert found.jct_s[0] == found.job_s[0] / found.arrived[0]


def test_bills_in_between_are_those_of_epochs(two):
    learner, told = (r.record for r in two)
    moments = [e for e in learner.epochs if e.now_us > learner.trace.submit_us[0]][::5]
    hours = [(e.now_us - learner.trace.submit_us[0]) / 3.6e9 for e in moments]
    itself = regret(learner, learner, hours)
    assert not itself.usd.any()
    assert not itself.job_s.any()
    ahead, behind = regret(learner, told, hours), regret(told, learner, hours)
    assert ahead.usd == pytest.approx(-behind.usd)
    assert (ahead.usd != 0).any()


def test_bills_without_prices_of_types_are_gpu_hours_at_the_price():
    scenario = read_scenario("boa-cloud").changed({"trace.jobs": 6, "price_usd_per_gpu_h": 2.0})
    one, other = (
        optsched.simulate(scenario, f"boa-budgeted:price={price}", seed=0) for price in (0.05, 5)
    )
    [usd] = regret(one.record, other.record, np.inf).usd
    assert usd == pytest.approx(one.metrics["cost_usd"] - other.metrics["cost_usd"])
    assert usd > 0


def test_other_arrivals_and_nodes_that_are_not_rented_are_refused(two):
    scenario = two[0].record.scenario
    other = optsched.simulate(scenario, "boa-budgeted", seed=4)
    with pytest.raises(ValueError, match="other arrivals"):
        regret(two[0].record, other.record, 1.0)
    owned = optsched.simulate("philly-small", "fifo", seed=0).record
    with pytest.raises(ValueError, match="not rented"):
        regret(owned, owned, 1.0)

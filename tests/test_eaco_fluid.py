"""The fluid bound: below every plan, met by jobs alone, and a bill that adds up."""

import pytest
from hypothesis import given

import optsched
from eaco_strategies import eaco_instances, small_instance
from optsched.eaco import fluid
from strategies import law


@law(500)
@given(eaco_instances(max_jobs=5, waiting=False, objectives=("run-to-completion",)))
def test_below_the_energy_of_every_optimum(instance):
    bound = fluid(instance)
    best = optsched.solve(instance).objective / float(instance.per_kwh)
    assert bound.bound_kwh <= best * (1 + 1e-9)
    assert sum(bound.energy_kwh.values()) == pytest.approx(bound.bound_kwh)
    assert set(bound.energy_kwh) == {job.id for job in instance.jobs}


def test_a_job_alone_pays_what_it_draws():
    found = fluid(small_instance(["a"], types={"a": 0.5}))
    assert found.bound_kwh == pytest.approx((20 + 0.5 * 100 + 100 / 4) / 1000)


def test_sharing_shares_the_bill():
    instance = small_instance(["a", "a"], measured={"a a": [1.0, 1.0]}, types={"a": 0.25})
    found = fluid(instance)
    assert found.bound_kwh == pytest.approx((20 + 0.5 * 100 + 100 / 4) / 1000)
    assert found.energy_kwh["j0"] == pytest.approx(found.energy_kwh["j1"])

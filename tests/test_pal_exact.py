"""The exact method against brute force, the specification and every greedy; and its certificates."""


import pytest
from hypothesis import given

import optsched
from pal_oracles import bitmask_optimum, plan_cost
from pal_strategies import pal_instances
from strategies import law

ALL = {"running": True, "optional": True, "caps": True, "unavailable": True, "measured": True}


@law(2000)
@given(pal_instances(**ALL, feasible=False))
def test_exact_equals_brute_force(instance):
    optimum = bitmask_optimum(instance)
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    if optimum is None:
        assert result.status == "infeasible"
        return
    assert result.status == "optimal"
    assert result.objective == pytest.approx(optimum, rel=2e-6, abs=1e-9)
    assert plan_cost(instance, result.plan) == pytest.approx(result.objective, rel=1e-12)

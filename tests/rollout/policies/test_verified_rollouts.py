"""What exact policies say in epochs.csv: nothing of proofs that the verifier did not confirm."""

import math

import numpy as np
import pandas as pd
import pytest

import optsched.eaco.exact.solver
from optsched import solving
from optsched.registry import Method
from optsched.rollout import simulate
from optsched.rollout.engine.decision import SolveRecord
from optsched.rollout.scenario_files import read_scenario
from optsched.verification import closed, relative_gap

SMALL = {
    "pal:gap=1e-3": ("pal-64", {"trace.jobs": 20}, 1e-3),
    "eaco:gap=0.01": ("eaco-28", {"trace.jobs": 10}, 1e-2),
    "boa:gap=1e-3,rates=history": ("boa-cloud", {"trace.jobs": 10}, 1e-3),
    "sia:gap=1e-4": ("boa-cloud", {"trace.jobs": 6}, 1e-4),
}


def epochs(policy, folder):
    """Return the record, and the rows of epochs.csv that have solves."""
    name, changes, _ = SMALL[policy]
    done = simulate(read_scenario(name).changed(changes), policy, output=folder)
    table = pd.read_csv(folder / "epochs.csv", dtype={"verified": str, "status": str})
    rows = table[table["solves"] > 0]
    assert len(rows)
    return done, rows


def solves_of(done):
    """By row with solves, these."""
    return [epoch.solves for epoch in done.record.epochs if epoch.solves]


@pytest.mark.parametrize("policy", SMALL)
def test_what_is_called_optimal_was_verified(policy, tmp_path):
    done, rows = epochs(policy, tmp_path)
    assert set(rows["verified"]) == {"true"}
    assert set(rows["status"]) <= {"optimal", "feasible", "infeasible"}
    assert "optimal" in set(rows["status"])
    for solve in [solve for solves in solves_of(done) for solve in solves]:
        if solve.status == "infeasible":
            continue
        assert solve.gap == relative_gap(solve.objective, solve.bound, solve.scale) >= 0
        assert (solve.status == "optimal") == closed(solve.gap, SMALL[policy][2])
    for gap, solves in zip(rows["gap"], solves_of(done), strict=True):
        stated = [solve.gap for solve in solves if math.isfinite(solve.gap)]
        assert gap == max(stated, default=math.nan) or (math.isnan(gap) and not stated)
    timing = done.timing()
    assert 0 < timing["verification_s"] < timing["solver_s"] < timing["wall_s"]
    assert timing["verification_share"] == timing["verification_s"] / timing["wall_s"]


def lying(make):
    """Return a function that makes certificates of too high bounds."""

    def changed(*args, **options):
        made = make(*args, **options)
        if made is None or made.bound is None:
            return made
        return made.model_copy(update={"bound": np.nextafter(made.bound, math.inf) * 1.5})

    return changed


@pytest.fixture
def liars(monkeypatch):
    """Every method states more than it can prove."""
    monkeypatch.setattr(Method, "__call__", lying(Method.__call__))


@pytest.mark.parametrize("policy", SMALL)
def test_a_lie_of_a_method_reaches_no_reader(policy, tmp_path, liars):
    done, rows = epochs(policy, tmp_path)
    refused = rows[rows["verified"] == "false"]
    assert len(refused)
    assert set(refused["status"]) == {"feasible"}
    assert refused[["bound", "gap"]].isna().all().all()
    assert done.metrics["passed"] == len(done.record.trace)


@pytest.mark.parametrize("policy", SMALL)
def test_what_is_too_large_to_verify_is_called_unverified(policy, tmp_path, monkeypatch):
    monkeypatch.setattr(solving, "LIMIT", -1)
    _, rows = epochs(policy, tmp_path)
    assert "unverified" in set(rows["status"])
    assert set(rows["status"]) <= {"unverified", "error"}  # the latter: no plan, and no proof
    assert rows["verified"].isna().all()


def test_words_of_proof_of_ones_own_policy_count_as_unverified():
    said = {status: SolveRecord(status, 2.0, 1.0, 0.0).told for status in ("optimal", "feasible")}
    assert said == {"optimal": "unverified", "feasible": "feasible"}
    assert SolveRecord("infeasible", math.nan, math.nan, 0.0).told == "error"
    assert SolveRecord("optimal", 2.0, 2.0, 0.0, verified=True).told == "optimal"


def test_eaco_is_not_optimal_because_nothing_stopped_it(tmp_path, monkeypatch):
    """It said so whatever the gap, also where the search proved nothing at all."""
    for name in ("exact", "certify"):
        method = optsched.eaco.exact.solver
        monkeypatch.setattr(method, name, lambda instance, search: search.begin())
    _, rows = epochs("eaco:gap=0.01", tmp_path)
    assert set(rows["status"]) == {"feasible"}
    assert rows[["bound", "gap", "verified"]].isna().all().all()

"""What the price leaves open: enumerated in part or in whole, the bound stays honest."""

import numpy as np
import pytest

import optsched
from optsched.boa import BoaInstance, JobClass, Phase, Table
from optsched.boa.arrays import arrays
from optsched.boa.exact.gap_closing import fill
from optsched.boa.exact.lagrangian_dual import maximise, respond
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import label_setting as counterexample

HARD = [  # budgets of cbd-85 at which the price leaves most open, without and with rescaling
    ({"budget_gpus": 26, "classes.*.rescale_s": 0}, 1096.3319),
    ({"budget_gpus": 22}, 3207.4259),
]


def many_classes(count, rng):
    """Free phases with noisy Amdahl curves: a large multiple-choice knapsack."""
    widths = (1, 2, 4, 8, 16)
    classes = []
    for n in range(count):
        fraction = rng.uniform(0.6, 0.99)
        speedup = [rng.lognormal(0, 0.05) / (1 - fraction + fraction / k) for k in widths]
        phase = Phase(work_gpu_s=rng.uniform(10, 500), speedup=Table(gpus=widths, speedup=speedup))
        classes.append(
            JobClass(id=f"c{n}", arrival_rate_per_h=rng.lognormal(0, 1), phases=(phase,))
        )
    loose = BoaInstance(budget_gpus=1, classes=tuple(classes))
    return loose.model_copy(update={"budget_gpus": float(proof.least_use(loose)) * 1.4})


@pytest.mark.parametrize(("changes", "optimum"), HARD)
@pytest.mark.parametrize("effort", [1, 30, 300, 3000])
def test_too_little_effort_leaves_an_honest_bound(monkeypatch, changes, optimum, effort):
    monkeypatch.setitem(vars(SETTINGS), "most_labels", effort)
    monkeypatch.setitem(vars(SETTINGS), "beam_labels", 5)
    instance = optsched.read("boa/cbd-85").changed(changes)
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    assert result.bound <= optimum * (1 + 1e-6)
    assert result.objective >= optimum * (1 - 1e-6)
    assert result.deterministic
    if effort <= 30:
        assert result.status == "feasible"


@pytest.mark.parametrize(("changes", "optimum"), HARD)
def test_the_gap_that_is_asked_for_is_kept(changes, optimum):
    instance = optsched.read("boa/cbd-85").changed(changes)
    gaps = [optsched.solve(instance, gap=gap).gap for gap in (0.1, 1e-3, 1e-6, 0.0)]
    assert all(gap <= asked for gap, asked in zip(gaps, (0.1, 1e-3, 1e-6, 1e-9), strict=True))
    assert optsched.solve(instance, gap=0.0).objective == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("count", [20, 200, 2000])
def test_large_knapsacks_are_proven(count):
    instance = many_classes(count, np.random.default_rng(count))
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    assert result.status == "optimal"


def test_the_verifier_refuses_what_asks_for_too_much(monkeypatch):
    instance = optsched.read("boa/cbd-85").changed(HARD[0][0])
    result = optsched.solve(instance)
    monkeypatch.setattr(counterexample, "MAX_LABELS", 1000)
    with pytest.raises(optsched.Violation, match="more than 1,000 partial plans"):
        optsched.verify(instance, result)


def test_fill_spends_the_limit_and_never_exceeds_it():
    problem = arrays(many_classes(200, np.random.default_rng(3)))
    start = respond(problem, np.inf)
    filled = fill(problem, start)
    assert start.use < filled.use <= problem.limit
    assert filled.value < start.value
    dual = maximise(problem)
    assert fill(problem, dual.within).value <= dual.within.value
    # Nothing that would still fit saves anything.
    groups, rows = problem.groups, np.arange(len(filled.columns))
    if filled.use < problem.limit and len(rows) > 0:
        needed = groups.use - groups.use[rows, filled.columns][:, None]
        saved = groups.value[rows, filled.columns][:, None] - groups.value
        moves = np.count_nonzero(filled.columns != start.columns)
        assert moves >= 200 or not (saved[needed <= problem.limit - filled.use] > 1e-12).any()

"""The specification of BOA: golden LP files, figures against the verifier, plans, export."""

import math
import re
from fractions import Fraction
from pathlib import Path

import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.boa import BoaInstance, performance
from optsched.exporting import export
from optsched.models import boa
from tests.support.builders.milp_parts import solved_from_file
from tests.support.strategies.common import boa_instances, law

GOLDEN = Path(__file__).parents[1] / "golden"


def phase(work, **speedups):
    gpus = [int(name.removeprefix("at_")) for name in speedups]
    table = {"kind": "table", "gpus": gpus, "speedup": list(speedups.values())}
    return {"work_gpu_s": work, "speedup": table}


def job_class(name, *phases, rate=1800, rescale_s=0):
    return {
        "id": name,
        "arrival_rate_per_h": rate,
        "rescale_s": rescale_s,
        "phases": list(phases),
    }


def instance_of(*classes, **fields):
    return BoaInstance.from_document(
        {"schema": "optsched/boa/1", "name": "tiny", "classes": list(classes), **fields}
    )


FREE = [
    job_class("A", phase(2, at_1=1, at_2=1.6, at_4=2)),
    job_class("B", phase(2, at_1=1, at_2=1.25), phase(4, at_2=1.6, at_4=2.5)),
]
RESCALED = [
    job_class("A", phase(2, at_1=1, at_2=1.6, at_4=2)),
    job_class("B", phase(2, at_1=1, at_2=1.25), phase(4, at_2=1.6, at_4=2.5), rescale_s=0.5),
    job_class("idle", phase(1, at_1=1, at_2=1.6), rate=0),
]
TINY = {
    "boa-a2": instance_of(*FREE, budget_gpus=8, widths="mixed"),
    "boa-a3": instance_of(*FREE, budget_gpus=8, widths="integer"),
    "boa-a4": instance_of(*RESCALED, budget_gpus=8, widths="integer"),
    "boa-a5": instance_of(*RESCALED, target_mean_jct_s=4, widths="integer"),
}


# --- golden files -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", TINY)
def test_golden_lp(name):
    """Byte for byte; to renew a file after a wanted change, write `export(TINY[name])` into it."""
    assert export(TINY[name]) == (GOLDEN / f"{name}.lp").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*TINY, *(n for n in optsched.names("boa") if "epew" not in n)])
def test_every_rule_is_in_a_golden_file(name):
    instance = TINY.get(name) or optsched.read(name)
    golden = "".join(path.read_text(encoding="utf-8") for path in GOLDEN.glob("boa-*.lp"))
    rules = [rule.name for rule in boa.build(instance).component_objects(pyo.Constraint) if rule]
    assert "one_width" in rules
    assert [rule for rule in rules if not re.search(rf"^c_._{rule}[(_]", golden, re.M)] == []


# --- the model says what the verifier says -------------------------------------------------------


def follow(model, instance, plan):
    """Set w and y to what they are for a plan."""
    for variable in [*model.w.values(), *model.y.values()]:
        variable.set_value(0.0)
    for c in plan.classes:
        for sequence in c.sequences:
            before = None
            for e, k in enumerate(sequence.gpus):
                share = sequence.share
                model.w[c.id, e, k].set_value(model.w[c.id, e, k].value + share, True)
                if (c.id, e, k) in model.y and k != before:
                    model.y[c.id, e, k].set_value(model.y[c.id, e, k].value + share, True)
                before = k


@law(300)
@given(boa_instances(feasible=True))
def test_figures_are_those_of_the_verifier_and_plans_come_back(instance):
    plan = optsched.solve(instance).plan
    model = boa.build(instance)
    follow(model, instance, plan)
    figures = performance(instance, plan)
    assert pyo.value(model.mean_jct_s) == pytest.approx(figures.mean_jct_s, rel=1e-9)
    assert pyo.value(model.mean_rent) == pytest.approx(figures.mean_gpus, rel=1e-9)
    for rule in model.component_data_objects(pyo.Constraint):
        assert pyo.value(rule.body) <= (rule.ub if rule.ub is not None else math.inf) + 1e-6
        assert pyo.value(rule.body) >= (rule.lb if rule.lb is not None else -math.inf) - 1e-6
    read = performance(instance, boa.extract(model, instance))
    assert read.mean_jct_s == pytest.approx(figures.mean_jct_s, rel=1e-9)
    assert read.mean_gpus == pytest.approx(figures.mean_gpus, rel=1e-9)


def test_widths_that_stand_twice_in_a_table_count_once():
    model = boa.build(optsched.read("boa/stress"))
    assert sorted(k for i, _, k in model.w if i == "duplicates") == [1, 2, 4]


def test_classes_without_arrivals_still_get_a_width():
    model = boa.build(TINY["boa-a4"])
    assert [n for n in model.one_width if n[0] == "idle"] == [("idle", 0)]


def test_continuous_widths_are_refused():
    with pytest.raises(ValueError, match=r"boa/epew-figure1: .* need widths 'integer' or 'mixed'"):
        boa.build(optsched.read("boa/epew-figure1"))


def test_any_solver_of_pyomo_can_solve_it():
    instance = optsched.read("boa/hand")
    model = boa.build(instance)
    pyo.SolverFactory("appsi_highs").solve(model)
    plan = boa.extract(model, instance)
    optsched.check(instance, plan)
    assert performance(instance, plan).mean_jct_s == pytest.approx(1.151316, abs=1e-6)


# --- reading plans off ------------------------------------------------------------------------


def shares_set(instance, shares):
    model = boa.build(instance)
    for variable in model.w.values():
        variable.set_value(0.0)
    for node, share in shares.items():
        model.w[node].set_value(share, skip_validation=True)
    return boa.extract(model, instance)


def test_jobs_keep_their_width_where_they_can():
    widths = {"at_1": 1, "at_2": 1.5, "at_4": 2}
    c = job_class("A", phase(1, **widths), phase(1, **widths), rescale_s=1)
    instance = instance_of(c, budget_gpus=9, widths="mixed")
    shares = {
        ("A", 0, 1): 0.25, ("A", 0, 2): 0.75, ("A", 1, 2): 0.5, ("A", 1, 4): 0.5,
    }  # fmt: skip
    (plan,) = shares_set(instance, shares).classes
    assert {s.gpus: s.share for s in plan.sequences} == {(1, 4): 0.25, (2, 2): 0.5, (2, 4): 0.25}


def test_shares_sum_to_one_exactly_in_spite_of_noise():
    instance = TINY["boa-a2"]
    noisy = {
        ("A", 0, 1): 1 / 3 + 1e-9, ("A", 0, 2): 2 / 3, ("A", 0, 4): -1e-9,
        ("B", 0, 1): 0.1, ("B", 0, 2): 0.9 - 1e-10, ("B", 1, 2): 1 + 1e-12, ("B", 1, 4): 1e-17,
    }  # fmt: skip
    plan = shares_set(instance, noisy)
    for c in plan.classes:
        assert sum(Fraction(s.share) for s in c.sequences) == 1
        assert all(s.share > 0 for s in c.sequences)
    assert [s.gpus for s in plan.classes[1].sequences] == [(1, 2), (2, 2)]


def test_integer_widths_are_rounded():
    noisy = {("A", 0, 2): 0.9999999, ("A", 0, 4): 1e-7, ("B", 0, 1): 1.0, ("B", 1, 4): 1.0}
    plan = shares_set(TINY["boa-a3"], noisy)
    assert [[(s.share, s.gpus) for s in c.sequences] for c in plan.classes] == [
        [(1.0, (2,))],
        [(1.0, (1, 4))],
    ]


def test_a_model_that_was_not_solved_is_refused():
    model = boa.build(TINY["boa-a2"])
    with pytest.raises(ValueError, match="uninitialized"):
        boa.extract(model, TINY["boa-a2"])


@law(300)
@given(st.data())
def test_shares_of_phases_become_sequences_with_the_fewest_changes(data):
    """Marginals come back, and max(0, w_e - w_(e-1)) of the jobs change: why real w are exact."""
    widths = {"at_1": 1, "at_2": 1.5, "at_4": 2, "at_8": 3}
    count = data.draw(st.integers(1, 4))
    classes = job_class("A", *[phase(1, **widths)] * count, rescale_s=1)
    instance = instance_of(classes, budget_gpus=99, widths="mixed")
    units = st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any)
    shares = {}
    for e in range(count):
        drawn = data.draw(units)
        shares |= {("A", e, k): n / sum(drawn) for k, n in zip([1, 2, 4, 8], drawn, strict=True)}
    (plan,) = shares_set(instance, shares).classes
    assert sum(Fraction(s.share) for s in plan.sequences) == 1
    for (_, e, k), share in shares.items():
        planned = sum(s.share for s in plan.sequences if s.gpus[e] == k)
        assert planned == pytest.approx(share, abs=1e-10)
        coming = sum(
            s.share for s in plan.sequences if s.gpus[e] == k and (e == 0 or s.gpus[e - 1] != k)
        )
        before = shares["A", e - 1, k] if e else 0.0
        assert coming == pytest.approx(max(0.0, share - before), abs=1e-10)


# --- export -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["lp", "mps"])
@pytest.mark.parametrize("name", TINY)
def test_other_programs_read_the_files(name, file_format, tmp_path):
    path = tmp_path / f"model.{file_format}"
    text = export(TINY[name], file_format)
    path.write_text(text)
    assert solved_from_file(path) == pytest.approx(optsched.solve(TINY[name]).objective, rel=1e-6)
    assert export(TINY[name], file_format) == text


@pytest.mark.parametrize("file_format", ["lp", "mps"])
def test_awkward_ids_get_names_of_their_own(file_format, tmp_path):
    ids = {"classes.0.id": "a b", "classes.1.id": "a-b", "classes.2.id": "\u4f5c\u4e1a \u00e9"}
    instance = TINY["boa-a4"].changed(ids)
    path = tmp_path / f"model.{file_format}"
    path.write_text(export(instance, file_format), encoding="ascii")
    expected = optsched.solve(TINY["boa-a4"]).objective
    assert solved_from_file(path) == pytest.approx(expected, rel=1e-6)


def test_wrong_requests_to_export_are_refused():
    with pytest.raises(optsched.UnknownNameError, match="no format 'mpx'; did you mean 'mps'"):
        export(TINY["boa-a2"], "mpx")
    with pytest.raises(ValueError, match="need widths 'integer' or 'mixed'"):
        export(optsched.read("boa/epew-figure1"))

"""What a user types first: names, constructors, and how the objects show themselves."""

import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest

import optsched
from optsched.boa import BoaInstance, JobClass, Phase, Table
from optsched.cluster import Profile, Topology

PHASE = Phase(work_gpu_s=9, speedup=Table(gpus=[1], speedup=[1]))
ONE = JobClass(id="a", arrival_rate_per_h=1, phases=[PHASE])


@pytest.fixture(scope="module")
def hand():
    return optsched.solve("boa/hand")


# --- names --------------------------------------------------------------------------------------


def test_solve_takes_a_bundled_name_a_path_and_an_instance(hand, tmp_path):
    path = tmp_path / "own.json"
    instance = optsched.read("boa/hand")
    optsched.write(instance, path)
    for source in (instance, path, str(path)):
        assert optsched.solve(source).objective == hand.objective


def test_every_function_of_an_instance_takes_its_name(hand):
    optsched.check("boa/hand", hand)
    optsched.check("boa/hand", hand.plan)
    optsched.verify("boa/hand", hand)
    assert "w(" in optsched.export("pal/tiny") or optsched.export("pal/tiny")
    assert optsched.explain("boa/hand", hand).instance == hand.instance
    assert optsched.boa.frontier("boa/hand").mean_jct_s(2.5) > 0


@pytest.mark.parametrize("source", [3, None, {"schema": "optsched/boa/1"}])
def test_what_is_no_instance_is_named(source):
    with pytest.raises(TypeError, match=f"found {type(source).__name__}"):
        optsched.solve(source)


@pytest.mark.parametrize(("plan", "error", "text"), [
    ({}, TypeError, "expected a BoaPlan, or a result with one, found dict"),
    ("r.json", TypeError, "found str"),
    (None, ValueError, "no plan to check"),
])  # fmt: skip
def test_check_of_what_is_no_plan_says_so(plan, error, text):
    with pytest.raises(error, match=text):
        optsched.check("boa/hand", plan)


def test_a_misspelt_name_gets_the_nearest_one():
    with pytest.raises(FileNotFoundError, match="did you mean 'boa/hand'"):
        optsched.solve("boa/hnad")


def test_everything_is_there_after_a_plain_import_which_imports_little():
    code = (
        "import sys, optsched\n"
        "assert not {'numpy', 'pydantic', 'highspy', 'rich', 'logging'} & {*sys.modules}\n"
        "for name in ('boa', 'pal', 'eaco', 'sia', 'traces', 'cluster', 'rollout',\n"
        "             'report', 'explain', 'doctor', 'Progress', '__version__'):\n"
        "    assert getattr(optsched, name), name\n"
        "    assert name in dir(optsched) or name == '__version__'\n"
        "from optsched import *\n"
        "print(optsched.__version__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == version("optsched")


# --- lines --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", optsched.names())
def test_the_repr_of_an_instance_is_one_line_with_class_name_and_sizes(name):
    """It was 52,636 characters."""
    instance = optsched.read(name)
    text = repr(instance)
    assert text.startswith(f"{type(instance).__name__}('{instance.name}', ")
    assert "\n" not in text
    assert len(text) < 300
    assert any(f"=<{len(getattr(instance, part)):,}>" in text for part in ("jobs", "classes")
               if hasattr(instance, part)) or len(text) < 160  # fmt: skip


def test_results_plans_and_certificates_are_a_line_each(hand):
    assert repr(hand).startswith("Result('boa/hand', method='exact', status='optimal', objective=")
    for part in (hand, hand.plan, hand.certificate, optsched.read_scenario("philly-small")):
        assert "\n" not in repr(part)
        assert len(repr(part)) < 400
    cells = pd.DataFrame({"what": [hand.plan]}).to_string()
    assert len(cells.splitlines()) == 2


def test_the_repr_of_a_result_from_a_file_claims_nothing(hand, tmp_path):
    optsched.write(hand, tmp_path / "r.json")
    assert "status='unverified'" in repr(optsched.read_result(tmp_path / "r.json"))


# --- constructors -------------------------------------------------------------------------------


def test_a_constructor_tells_all_faults_at_once_as_a_file_does():
    with pytest.raises(optsched.InstanceError) as caught:
        BoaInstance(budgt_gpus=3, classes=[{"id": "a", "arrival_rate_per_h": -1, "phases": []}])
    assert caught.value.faults == [
        "budget_gpus: missing: give one of budget_gpus, budget_usd_per_h, target_mean_jct_s",
        "budgt_gpus: unknown key; did you mean 'budget_gpus'?",
        "classes[0].arrival_rate_per_h: must be at least 0, found -1",
        "classes[0].phases: must not be empty",
    ]


def test_faults_between_fields_of_built_parts_have_their_places():
    with pytest.raises(optsched.InstanceError) as caught:
        BoaInstance(budget_gpus=3, target_mean_jct_s=5, classes=[ONE, ONE])
    assert [fault.split(": ")[0] for fault in caught.value.faults] == [
        "classes[1].id", "target_mean_jct_s",
    ]  # fmt: skip


@pytest.mark.parametrize(("build", "text"), [
    (lambda: JobClass(id="a", arrival_rate_per_h="x", phases=[]), 'expected a number, found "x"'),
    (lambda: Table(gpus=[1], speedup="no"), "speedup: expected a list"),
    (lambda: optsched.pal.PalInstance(jobs=3), "jobs: expected a list, found 3"),
    (lambda: Topology(levels=["node"], domains=[]), "domains: must not be empty"),
    (lambda: Profile(gpus=["a", "a"], slowdown={"A": [1, 1]}, kind="single-run", source=""),
     '"a" is already'),
    (lambda: optsched.Scenario(name="x"), "trace: missing"),
    (lambda: optsched.eaco.EacoInstance(types=object()), "types: expected a list"),
])  # fmt: skip
def test_no_constructor_shows_the_text_of_a_library(build, text):
    with pytest.raises(optsched.InstanceError) as caught:
        build()
    assert text in str(caught.value)
    assert "pydantic" not in str(caught.value)
    assert "http" not in str(caught.value)


def test_constructors_take_lists_arrays_and_series_and_keep_tuples():
    for kind in (list, tuple, np.array, pd.Series):
        table = Table(gpus=kind([1, 2]), speedup=kind([1.0, 1.5]))
        assert table == Table(gpus=(1, 2), speedup=(1.0, 1.5))
        assert isinstance(table.gpus, tuple)
    assert BoaInstance(budget_gpus=9, classes=[ONE]).classes == (ONE,)

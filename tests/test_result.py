"""Results as text, as HTML for notebooks, as frames, and read again from files."""

import pickle

import pytest

import optsched
from optsched.boa import BoaInstance, JobClass, Phase, Table


@pytest.fixture(scope="module")
def hand():
    return optsched.solve(optsched.read("boa/hand"))


def test_text_has_the_headline_figures(hand):
    lines = dict(line.split(maxsplit=1) for line in str(hand).splitlines())
    assert lines["instance"] == "boa/hand"
    assert lines["status"] == "optimal"
    assert "1.151316 s" in lines["mean"]
    assert "0.6875 jobs per GPU" in str(hand)


def test_html_is_a_table_of_figures_and_one_of_decisions(hand):
    html = hand._repr_html_()
    assert html.count("<table") == 2
    assert ">1.151316 s<" in html
    assert "<th>gpus</th>" in html


def test_html_escapes_what_comes_from_files():
    phase = Phase(work_gpu_s=1, speedup=Table(gpus=(1,), speedup=(1,)))
    classes = (JobClass(id="<b>", arrival_rate_per_h=1, phases=(phase,)),)
    instance = BoaInstance(name="<script>", budget_gpus=1, classes=classes)
    for html in (instance._repr_html_(), optsched.solve(instance)._repr_html_()):
        assert "<script>" not in html
        assert "<b>" not in html
        assert "&lt;script&gt;" in html


def test_instances_in_notebooks_are_short():
    instance = optsched.read("boa/six-models")
    assert len(instance._repr_html_()) < 1500
    assert "120 GPUs" in instance._repr_html_()
    assert str(instance) == (
        "boa/six-models  limit: 120 GPUs  widths: integer  classes: 6  phases: 332"
    )


def test_frame_has_one_row_for_each_decision(hand):
    frame = hand.frame()
    assert list(frame.columns) == ["class", "phase", "share", "gpus", "speedup", "seconds"]
    assert frame["gpus"].tolist() == [2, 2]
    assert frame["seconds"].tolist() == pytest.approx([2 / 1.6, 2 / 1.9])


def test_frame_of_a_mixture_has_a_row_for_each_share():
    result = optsched.solve(optsched.read("boa/hand").changed({"widths": "mixed"}))
    frame = result.frame()
    shares = frame.groupby(["class", "phase"])["share"].sum()
    assert shares.tolist() == pytest.approx([1, 1])
    assert len(frame) == 3


def test_no_plan_has_no_frame():
    result = optsched.solve(optsched.read("boa/hand").changed({"budget_gpus": 0.1}))
    with pytest.raises(ValueError, match="no plan: infeasible"):
        result.frame()
    assert result._repr_html_().count("<table") == 1


def test_read_again(hand, tmp_path):
    path = tmp_path / "result.json"
    optsched.write(hand, path)
    again = optsched.read_result(path)
    assert again == hand
    assert again != hand.model_copy(update={"seed": 1})
    with pytest.raises(ValueError, match="attach the instance"):
        again.frame()
    assert again.of(optsched.read("boa/hand")).frame().equals(hand.frame())


def test_versions_are_recorded(hand):
    assert set(hand.versions) == {"optsched", "highspy", "numpy", "pyomo", "scipy"}
    assert all(version[0].isdigit() for version in hand.versions.values())


def test_a_start_is_of_the_same_problem_and_for_exact_methods():
    tiny = optsched.solve(optsched.read("pal/tiny"))
    with pytest.raises(
        ValueError, match="a result of 'pal' is no start for boa/hand, an instance of"
    ):
        optsched.solve(optsched.read("boa/hand"), start=tiny)
    with pytest.raises(ValueError, match="method 'pal-greedy' is greedy: it takes no start"):
        optsched.solve(optsched.read("pal/tiny"), "pal-greedy", start=tiny)


def test_what_lives_in_memory_is_neither_copied_nor_written(tmp_path):
    instance = optsched.read("pal/tiny")
    result = optsched.solve(instance).of(instance, object())
    assert result.of(instance).state is not None
    assert pickle.loads(pickle.dumps(result)).state is None
    optsched.write(result, tmp_path / "r.json")
    assert optsched.read_result(tmp_path / "r.json").state is None

"""Pictures of BOA's plans and speedups, and of co-location; how they look was checked by eye."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

import optsched
from optsched.boa import plot_speedups
from optsched.eaco import pair_rates, plot_colocation


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def hand():
    return optsched.read("boa/hand")


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_plan_has_a_line_for_each_class_and_steps_at_phases():
    instance = optsched.read("boa/cbd-85")
    result = optsched.solve(instance)
    ax = plt.subplots()[1]
    assert result.plot(ax) is ax
    drawn = lines(ax)
    assert list(drawn) == [job_class.id for job_class in instance.classes]
    for row, job_class in zip(result.plan.classes, instance.classes, strict=True):
        x, y = drawn[row.id].get_data()
        work = [phase.work_gpu_s for phase in job_class.phases]
        assert np.allclose(np.diff(x), 100 * np.array(work) / sum(work))
        assert np.allclose(np.log2(y[:-1] / row.sequences[0].gpus), 0, atol=0.06)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("work done (% of the job)",
                                                  "width (GPUs of each job)")  # fmt: skip
    assert "mean JCT" in ax.get_title()


def test_plan_of_mixed_widths_names_the_shares():
    instance = optsched.read("boa/cbd-85").changed({"widths": "mixed"})
    names = list(lines(optsched.solve(instance).plot()))
    assert len(names) == 4
    shares = [float(name.split(", ")[1].split(" %")[0]) for name in names]
    assert sum(shares) == pytest.approx(300, abs=0.2)


def test_lines_of_a_plan_do_not_hide_each_other():
    for name in ("boa/cbd-85", "boa/hand"):
        drawn = optsched.solve(optsched.read(name)).plot().get_lines()
        last = [line.get_transform().transform(line.get_xydata()[-1])[1] for line in drawn]
        assert len({round(y, 2) for y in last}) == len(last)


def test_widths_of_a_plan_are_drawn_as_they_are_and_the_axis_names_the_widest():
    result = optsched.solve(optsched.read("boa/cbd-85"))
    ax = result.plot()
    drawn = {width for line in ax.get_lines() for width in line.get_ydata()}
    assert drawn == set(result.frame()["gpus"])
    assert max(drawn) == 12
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "2", "4", "8", "12"]


def test_speedups_mark_the_vertices_of_the_hull(hand):
    ax = plt.subplots()[1]
    assert plot_speedups(hand, ax) is ax
    corners = [line for line in ax.get_lines() if line.get_label().startswith("_")]
    whole = optsched.boa.frontier(hand.changed({"widths": "mixed", "classes.*.rescale_s": 0}))
    curves = [line for line in ax.get_lines() if line.get_marker() == "o"
              and line.get_markersize() == 3]  # fmt: skip
    assert len(corners) == len(curves) == len(hand.classes)
    assert sum(len(line.get_xdata()) - 1 for line in corners) == len(whole.price)
    for line in corners:  # concave
        x, y = line.get_data()
        assert np.all(np.diff(np.diff(y) / np.diff(x)) < 0)
    assert "perfect speedup" in lines(ax)
    assert ax.get_xlabel() == "width (GPUs)"


@pytest.mark.parametrize("name", optsched.names("boa"))
def test_every_instance_of_boa_has_both_pictures(name):
    instance = optsched.read(name)
    plot_speedups(instance).get_figure().canvas.draw()
    optsched.solve(instance).plot().get_figure().canvas.draw()


@pytest.mark.parametrize("name", optsched.names("eaco"))
def test_every_instance_of_eaco_has_a_matrix(name):
    instance = optsched.read(name)
    ax = plt.subplots()[1]
    assert plot_colocation(instance, ax) is ax
    count = len(instance.types)
    assert ax.get_images()[0].get_array().shape == (count, count)
    assert [text.get_text() for text in ax.get_yticklabels()] == [t.id for t in instance.types]


def test_matrix_has_the_rates_of_the_row_beside_the_column():
    instance = optsched.read("eaco/paper-mixed")
    rates, measured = pair_rates(instance, "V100")
    names = [kind.id for kind in instance.types]
    i, j = names.index("AlexNet"), names.index("VGG-16")
    pair = instance.rates["V100"].of(["AlexNet", "VGG-16"])
    assert rates[i, j] == float(pair.by_type["AlexNet"])
    assert rates[j, i] == float(pair.by_type["VGG-16"])
    assert measured[i, j] == (pair.origin == "measured")
    ax = plot_colocation(instance)
    written = [text for text in ax.texts if text.get_text()]
    assert len(written) == np.isfinite(rates).sum()
    assert {text.get_style() for text in written} <= {"normal", "italic"}
    assert len(ax.get_lines()) == np.isnan(rates).sum()
    with pytest.raises(ValueError, match="no GPU type 'T4'; known: V100"):
        plot_colocation(instance, gpu="T4")

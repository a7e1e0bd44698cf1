"""The frontier in one sort: equal to the exact method and to SciPy's HiGHS at every budget."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.boa import BoaInstance, Table, problem
from optsched.boa.exact.budget_frontier import frontier, frontier_of_arrays
from optsched.boa.exact.hull import hull_vertices
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import certificate as proof
from tests.support.strategies.common import boa_instances, law


def free(name):
    return optsched.read(name).changed({"classes.*.rescale_s": 0, "widths": "mixed"})


@pytest.mark.parametrize(
    ("budget", "jct", "price"),
    [(24, 1336.2396, 0.531991), (30, 805.3118, 0.135039), (48, 638.1496, 0.004207)],
)
def test_golden_cbd_85(budget, jct, price):
    whole = frontier(free("boa/cbd-85"))
    assert whole.mean_jct_s(budget) == pytest.approx(jct, abs=2e-3)
    assert whole.price_at(budget) == pytest.approx(price, abs=2e-6)


def test_ends_of_cbd_85():
    whole = frontier(free("boa/cbd-85"))
    assert whole.gpus[0] == pytest.approx(19.927, abs=1e-3)
    assert whole.gpus[-1] == pytest.approx(71.558, abs=1e-3)
    assert whole.mean_jct_s(1e9) == pytest.approx(618.59, abs=1e-2)
    assert np.isnan(whole.mean_jct_s(19.9))
    assert np.isnan(whole.price_at(19.9))
    assert whole.price_at(1e9) == 0


@law(300)
@given(
    boa_instances(widths=("mixed",), rescaling=False, targets=False, feasible=True),
    st.floats(1, 2),
)
def test_equals_the_exact_method(instance, factor):
    whole = frontier(instance)
    budget = instance.budget_gpus * factor
    result = optsched.solve(instance.changed({"budget_gpus": budget}))
    assert whole.mean_jct_s(budget) == pytest.approx(result.objective, rel=1e-9)


@law(300)
@given(boa_instances(widths=("mixed",), rescaling=False, targets=False))
def test_convex_and_falling(instance):
    whole = frontier(instance)
    assert (np.diff(whole.gpus) >= 0).all()
    assert (np.diff(whole.jobs) <= 0).all()
    assert (np.diff(whole.price) <= 0).all()
    assert (whole.price > 0).all()


@law(300)
@given(st.lists(st.floats(0.05, 50), min_size=1, max_size=6), st.data())
def test_hull_vertices_equal_a_stack(speedup, data):
    """Against the textbook: walk from the origin, always along the steepest slope."""
    widths = np.array(
        sorted(data.draw(st.sets(st.integers(1, 64), min_size=len(speedup), max_size=len(speedup))))
    )
    expected, at, height = [], 0.0, 0.0
    while True:
        slopes = [
            ((s - height) / (k - at), k, s)
            for k, s in zip(widths.tolist(), speedup, strict=True)
            if k > at
        ]
        steepest = max(slopes, default=(0.0, 0, 0.0))
        if steepest[0] <= 0:
            break
        _, at, height = steepest
        expected.append(at)
    vertices = widths[hull_vertices(widths.astype(float), np.array(speedup)[:, None])[:, 0]]
    # Points on an edge, up to rounding, may or may not count as vertices.
    curve = np.interp(widths, [0, *expected], [0, *np.array(speedup)[np.isin(widths, expected)]])
    for k in set(vertices.tolist()) ^ set(expected):
        assert curve[widths == k] == pytest.approx(speedup[widths.tolist().index(k)], rel=1e-9)


@pytest.mark.parametrize("phases", [1, 100, 20_000])
def test_many_phases_equal_a_plain_sort(phases):
    """Blocks and pieces are only a way to sort: the corners equal those of one plain sort."""
    rng = np.random.default_rng(phases)
    widths = np.array([1.0, 2, 4, 8])
    fraction = rng.uniform(0.3, 0.99, phases)[:, None]
    speedup = np.round(1 / (1 - fraction + fraction / widths), 2)  # rounded: many equal rates
    load = rng.integers(1, 4, phases).astype(float)
    whole = frontier_of_arrays(load, widths, speedup)
    jobs, gpus, rates = [], [], []
    marked = hull_vertices(widths, np.ascontiguousarray(speedup.T)).T
    for rho, row, vertex in zip(load, speedup, marked, strict=True):
        time, cost = rho / row[vertex], rho * widths[vertex] / row[vertex]
        jobs += (-np.diff(time)).tolist()
        gpus += np.diff(cost).tolist()
        rates += (-np.diff(time) / np.diff(cost)).tolist()
    order = np.argsort(-np.array(rates), kind="stable")
    assert whole.price == pytest.approx(np.array(rates)[order])
    assert np.diff(whole.gpus).sum() == pytest.approx(sum(gpus))
    assert whole.jobs[0] - whole.jobs[-1] == pytest.approx(sum(jobs))
    middle = np.linspace(whole.gpus[0], whole.gpus[-1], 50)
    plain = np.interp(
        middle,
        np.r_[whole.gpus[0], whole.gpus[0] + np.cumsum(np.array(gpus)[order])],
        np.r_[whole.jobs[0], whole.jobs[0] - np.cumsum(np.array(jobs)[order])],
    )
    assert whole.jobs_at(middle) == pytest.approx(plain)


LINEAR = [
    ([1, 3, 6, 12], 0.1),  # 4 times the optimum: the step from 3 to 12 GPUs costs nothing
    ([1, 2, 3, 4, 6, 8], 0.9),
    ([1, 2, 3, 4, 6, 8], 1 / 3),
    ([1, 6, 8, 24], 0.3),
]


def linear(gpus, slope, widths="mixed", budget=20.0):
    curve = {"kind": "table", "gpus": gpus, "speedup": [slope * k for k in gpus]}
    phases = [{"work_gpu_s": 1000, "speedup": curve}]
    classes = [{"id": "a", "arrival_rate_per_h": 3.6, "phases": phases}]
    return BoaInstance.from_document(
        {"schema": "optsched/boa/1", "budget_gpus": budget, "widths": widths, "classes": classes}
    )


@pytest.mark.parametrize(("gpus", "slope"), LINEAR)
def test_steps_without_cost_are_taken_with_what_they_buy(gpus, slope):
    instance = linear(gpus, slope)
    expected = optsched.solve(instance).objective
    assert expected == pytest.approx(1000 / (slope * gpus[-1]), rel=1e-12)
    assert frontier(instance).mean_jct_s(20.0) == pytest.approx(expected, rel=1e-9)
    [point] = optsched.frontier(instance, budgets=[20.0]).points
    assert (point.status, point.objective) == ("optimal", expected)


@st.composite
def nearly_linear(draw):
    """Speedups in proportion to the width, as one writes them, up to some width; then flatter."""
    gpus = sorted(draw(st.sets(st.integers(1, 24), min_size=2, max_size=6)))
    slope = draw(st.sampled_from([0.1, 0.3, 0.9, 1.0, 1 / 3, 0.7]))
    bend = draw(st.sampled_from([*gpus, 100]))
    return Table(gpus=gpus, speedup=[slope * (min(k, bend) + max(0, k - bend) / 2) for k in gpus])


@law(200, is_costly=True)
@given(
    boa_instances(
        widths=("mixed",), rescaling=False, targets=False, feasible=True, speedups=nearly_linear()
    ),
    st.lists(st.floats(1, 2), min_size=1, max_size=4, unique=True),
)
def test_frontiers_of_linear_speedups_equal_solving_each(instance, factors):
    budgets = sorted({instance.budget_gpus * factor for factor in factors})
    whole, points = frontier(instance), optsched.frontier(instance, budgets=budgets).points
    for budget, point in zip(budgets, points, strict=True):
        result = optsched.solve(instance.changed({"budget_gpus": budget}))
        assert point.objective == pytest.approx(result.objective, rel=1e-12)
        assert whole.mean_jct_s(budget) == pytest.approx(result.objective, rel=1e-9)


@law(100, is_costly=True)
@given(boa_instances(widths=("mixed",), rescaling=False, targets=False))
def test_what_is_found_at_once_is_proven(instance):
    """No bound lies above a plan, by as little as a rounding: the verifier confirms each."""
    budgets = [instance.budget_gpus * factor for factor in (0.7, 1.0, 1.1, 1.9)]
    solved = problem.at_once(instance, "budget_gpus", budgets)
    for budget, outcome in zip(budgets, solved or (), strict=solved is not None):
        if outcome is None:
            continue
        plan, certificate = outcome
        changed = instance.changed({"budget_gpus": budget})
        assert problem.PROBLEM.violations(changed, plan) == []
        assert proof.prove(changed, certificate) == []
        assert certificate.bound <= problem.PROBLEM.objective(changed, plan)


def test_a_budget_below_the_least_by_a_rounding_is_infeasible():
    """Least is 1/480, which no float holds: the float below it was called optimal."""
    curve = {"kind": "amdahl", "parallel_fraction": 0, "max_gpus": 1}
    phases = [{"work_gpu_s": 1, "speedup": curve}]
    classes = [{"id": "a", "arrival_rate_per_h": 7.5, "phases": phases}]
    instance = BoaInstance.from_document(
        {"schema": "optsched/boa/1", "budget_gpus": 1, "widths": "mixed", "classes": classes}
    )
    budgets = [0.0020833333333333333, 0.0020833333333333337]
    points = optsched.frontier(instance, budgets=budgets).points
    assert [point.status for point in points] == ["infeasible", "optimal"]
    assert [optsched.solve(instance.changed({"budget_gpus": b})).status for b in budgets] == [
        "infeasible",
        "optimal",
    ]


def test_many_phases_times_budgets_are_left_to_be_solved_one_by_one(monkeypatch):
    instance = free("boa/hand")
    assert problem.at_once(instance, "budget_gpus", [3.0, 4.0])
    monkeypatch.setitem(vars(SETTINGS), "at_once", 3)
    assert problem.at_once(instance, "budget_gpus", [3.0, 4.0]) is None


def test_continuous_widths_are_refused():
    with pytest.raises(ValueError, match="widths that can be counted"):
        frontier(optsched.read("boa/epew-figure1"))


def test_rescaling_is_refused():
    with pytest.raises(ValueError, match="needs free rescaling"):
        frontier(optsched.read("boa/cbd-85"))


def test_frame_has_units():
    frame = frontier(free("boa/hand")).frame()
    assert list(frame.columns) == ["budget_gpus", "mean_jct_s", "price"]
    assert frame["price"].tolist() == pytest.approx([9, 1.5, 0.6875, 1 / 6, 0])


def test_the_whole_frontier_is_drawn_with_its_knee():
    whole = frontier(free("boa/cbd-85"))
    ends = whole.gpus[[0, -1]], whole.jobs[[0, -1]]
    below = np.interp(whole.gpus, *ends) - whole.jobs  # the chord; farthest below is the knee
    assert whole.knee() == whole.gpus[below.argmax()]
    ax = whole.plot()
    curve, star = ax.get_lines()
    assert len(curve.get_xdata()) == len(whole.gpus)
    assert star.get_xdata()[0] == whole.knee()
    assert "knee" in ax.get_legend().get_texts()[0].get_text()
    plt.close(ax.figure)


def test_a_frontier_of_one_corner_has_no_knee():
    whole = frontier_of_arrays([1.0], [1.0], [[1.0]])
    assert whole.knee() is None
    assert repr(whole) == "<BudgetFrontier: 1 corners from 1 to 1 GPUs>"

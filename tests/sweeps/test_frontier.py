"""Frontiers: values, points, the efficient ones, files, pictures and the command."""

import hashlib
import json
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

mpl.use("Agg")
import matplotlib.pyplot as plt

import optsched
from optsched.cli.frontier import chosen_values
from optsched.cli.main import app
from optsched.documents.faults import InstanceError
from optsched.registry import UnknownNameError
from optsched.sweeps.frontier_files import read_frontier
from optsched.sweeps.parameters import split_unit
from optsched.sweeps.points import Frontier, Point
from optsched.sweeps.slider import rows
from optsched.sweeps.verified_points import verify_frontier
from tests.support.builders.small_rollouts import POLICIES, scenario, trace
from tests.support.strategies.common import boa_instances, law

BUDGETS = [1, 2, 3, 4]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def hand():
    return optsched.frontier("boa/hand", budgets=BUDGETS, methods="all", executor=1)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(optsched.rollout.registry, "ENTRIES", POLICIES)


def made(figures, method="exact", **fields):
    """A frontier of given objectives at 1, 2, ...; None is a gap."""
    points = [
        Point(value=n, method=method, status="optimal" if f is not None else "infeasible",
              objective=f)
        for n, f in enumerate(figures, start=1)
    ]  # fmt: skip
    base = {"problem": "boa", "instance": "made", "parameter": "budget_gpus", "versions": {}}
    base |= {"objective_name": "mean JCT", "objective_unit": "s", "methods": (method,)}
    return Frontier(**base | {"points": points} | fields).confirmed()


# --- what the points are -------------------------------------------------------------------------


def test_every_point_is_what_solve_gives(hand):
    instance = optsched.read("boa/hand")
    assert len(hand.points) == len(BUDGETS) * len(hand.methods)
    for point in hand.points:
        result = optsched.solve(instance.changed({"budget_gpus": point.value}), point.method)
        assert (point.status, point.objective, point.bound, point.gap, point.reason) == (
            result.status, result.objective, result.bound, result.gap, result.message)  # fmt: skip
    assert hand.methods[0] == "exact"
    assert hand.values == (1, 2, 3, 4)


def test_an_infeasible_value_is_a_gap_with_its_reason(hand):
    gap = hand.of_method("exact")[0]
    assert (gap.status, gap.objective) == ("infeasible", None)
    assert "budget of 1.0 GPUs is below the least possible" in gap.reason


def test_an_invalid_value_is_a_gap_too_unless_all_are():
    frontier = optsched.frontier("boa/hand", budgets=[-1, 0, 3])
    assert [point.status for point in frontier.points] == ["invalid", "invalid", "optimal"]
    assert "budget_gpus: must be at least 1e-09, found -1" in frontier.points[0].reason
    with pytest.raises(ValueError, match=r"no value of budget_gpus .* must be at least"):
        optsched.frontier("boa/hand", budgets=[-2, -1])


@given(boa_instances(widths=["mixed"], rescaling=False, targets=False))
@law(200, is_costly=True)
def test_mixed_frontier_in_one_sort_equals_solving_each(instance):
    budgets = np.unique(np.clip(np.linspace(0.5, 1.5, 4) * instance.budget_gpus, 1e-9, 1e12))
    whole = optsched.frontier(instance, budgets=budgets)
    for point in whole.points:
        result = optsched.solve(instance.changed({"budget_gpus": point.value}))
        assert point.status == result.status
        if result.objective is None:
            assert (point.objective, point.reason) == (None, result.message)
        else:
            assert point.objective == pytest.approx(result.objective, rel=1e-9)
            assert point.bound <= point.objective


def test_mixed_frontier_takes_greedy_methods_beside_it():
    free = optsched.read("boa/hand").changed({"widths": "mixed", "classes.*.rescale_s": 0})
    both = optsched.frontier(free, budgets=[1, 3], methods=["same-k", "exact"])
    assert [point.method for point in both.points] == ["same-k", "exact"] * 2
    assert both.points[3].objective <= both.points[2].objective
    assert "below the least possible" in both.points[1].reason
    assert optsched.frontier(free, budgets=[-1, 3]).points[0].status == "invalid"


@pytest.mark.parametrize(
    ("name", "path", "values"),
    [
        ("pal/tiny", "locality.*.1", [1.0, 1.5, 2.0]),
        ("pal/sticky", "jobs.*.restart_s", [0, 60, 600]),
        ("eaco/paper-mixed", "jobs.*.max_slowdown", [1.0, 1.1, 1.5]),
        ("eaco/paper-four", "power_cap_w", [500, 3000, 9000]),
    ],
)
def test_sweeps_of_the_other_problems(name, path, values):
    frontier = optsched.frontier(name, path, values)
    assert frontier.parameter == path
    assert any(point.status == "optimal" for point in frontier.points)
    for point in frontier.points:
        assert (point.objective is None) == bool(point.reason)
    figures = [point.objective for point in frontier.points if point.objective is not None]
    loosens = path in ("jobs.*.max_slowdown", "power_cap_w")
    assert figures == sorted(figures, reverse=loosens)


def test_a_function_makes_the_instances():
    base = optsched.read("boa/hand")

    def twice(value):
        return base.changed({"budget_gpus": 2 * value})

    frontier = optsched.frontier(base, twice, [1, 1.5])
    same = optsched.frontier(base, budgets=[2, 3])
    assert [p.objective for p in frontier.points] == [p.objective for p in same.points]
    assert frontier.parameter == "twice"
    assert optsched.frontier(base, lambda v: twice(v), [1]).parameter == "value"


def test_options_reach_the_methods_and_are_told():
    frontier = optsched.frontier("boa/cbd-85", budgets=[24], gap=1e-5, time_limit_s=0)
    assert (frontier.points[0].status, frontier.points[0].deterministic) == ("feasible", False)
    assert frontier.points[0].reason == "stopped early: time limit"
    assert frontier.options == {"gap": 1e-5, "time_limit_s": 0}


@pytest.mark.parametrize("first", ["optsched", "optsched.sweeps.frontier", "optsched.sweeps.plot"])
def test_the_name_is_the_function_whatever_was_imported_before(first):
    code = f"import {first}, optsched; from optsched.sweeps.frontier import frontier as f; "
    code += "assert optsched.frontier is f"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


# --- rollouts ------------------------------------------------------------------------------------


def test_a_point_says_how_many_jobs_are_unfinished(registered):
    """An end that is too early leaves jobs out of the mean, which looks the better for it."""
    whole = optsched.simulate(scenario(), "first", trace=trace(20)).metrics["makespan_s"]
    ends = [whole / 2, 2 * whole]
    cut = optsched.frontier(scenario(), "end_s", ends, methods=["first"], trace=trace(20))
    assert cut.points[0].reason.endswith("of 20 jobs are unfinished")
    assert cut.points[1].reason == ""


def test_scenarios_are_rolled_out_by_value_and_policy(registered):
    frontier = optsched.frontier(
        scenario(), "epoch_s", [30, 60], methods=["first", "other"], trace=trace(20), seed=3
    )
    assert [point.method for point in frontier.points] == ["first", "other"] * 2
    where = scenario().changed({"epoch_s": 60})
    metrics = optsched.simulate(where, "other", trace=trace(20), seed=3).metrics
    told = dict(frontier.points[3].metrics)
    bounds = {key: told.pop(key) for key in list(told) if key.endswith(("_bound", "_above"))}
    assert told == {key: value for key, value in metrics.items() if value is not None}
    best = optsched.bound(where, trace=trace(20), seed=3)
    assert frontier.points[3].bound == bounds["jct_mean_s_bound"] == best.jct_mean_s
    assert frontier.of("makespan_s").points[3].bound == best.makespan_s
    assert frontier.of("utilization").points[3].bound is None
    drawn = {line.get_label(): list(line.get_ydata()) for line in frontier.plot().lines}
    assert drawn["bound"][1] == best.jct_mean_s
    assert all(
        low <= point.objective
        for low, point in zip(drawn["bound"] * 2, frontier.points[::2], strict=False)
    )
    assert frontier.points[3].objective == metrics["jct_mean_s"]
    assert (frontier.objective_name, frontier.objective_unit) == (
        "mean job completion time (JCT)",
        "s",
    )
    assert len(frontier.plot().get_lines()) >= 2
    assert frontier.summary()["pairs"].startswith("one rollout a point, seed 3; at each value")


def test_policies_are_paired_at_each_value(registered):
    """They run the same jobs there, one pair: a difference, and no interval."""
    names = ["first", "other"]
    where = scenario(locality=(1.0, 1.5))
    swept = optsched.frontier(where, "epoch_s", [30, 60], methods=names, trace=trace(20))
    table = swept.frame().set_index(["epoch_s", "method"])
    assert (table.xs("first", level="method")["difference"] == 0).all()
    for value in (30, 60):
        one, other = (table.loc[(value, name), "objective"] for name in names)
        assert table.loc[(value, "other"), "difference"] == other - one != 0
    alone = optsched.frontier(where, "epoch_s", [30], methods="first", trace=trace(20))
    assert "difference" not in alone.frame()


def test_other_metrics_of_the_same_rollouts(registered):
    frontier = optsched.frontier(scenario(), "epoch_s", [30, 60], methods="first", trace=trace(20))
    used = frontier.of("utilization")
    assert used.higher_is_better
    assert [p.objective for p in used.points] == [p.metrics["utilization"] for p in frontier.points]
    with pytest.raises(ValueError, match="no metric 'utilisation'; did you mean 'utilization'"):
        frontier.of("utilisation")
    with pytest.raises(ValueError, match="no metric 'jct'"):
        optsched.frontier(scenario(), "epoch_s", [30], methods="first", metric="jct")


def test_a_job_larger_than_the_cluster_is_a_gap(registered):
    frontier = optsched.frontier(
        scenario(), "gpus_per_node", [1, 4], methods="first", trace=trace(20)
    )
    assert [point.status for point in frontier.points] == ["invalid", "simulated"]
    assert "GPUs, but scenario" in frontier.points[0].reason


# --- efficient points and the knee ---------------------------------------------------------------

FIGURES = st.lists(st.one_of(st.none(), st.integers(0, 9).map(float)), min_size=1, max_size=8)


@given(FIGURES)
def test_pareto_is_what_no_other_point_beats(figures):
    frontier = made(figures)
    solved = [point for point in frontier.points if point.objective is not None]
    beaten = [any(q.value < p.value and q.objective <= p.objective for q in solved) for p in solved]
    expected = [p for p, is_beaten in zip(solved, beaten, strict=True) if not is_beaten]
    assert list(frontier.pareto()) == expected


@given(FIGURES)
def test_pareto_of_what_should_be_high_is_the_mirror(figures):
    low = made(figures).pareto()
    high = made([f if f is None else -f for f in figures], higher_is_better=True).pareto()
    assert [point.value for point in low] == [point.value for point in high]


def test_pareto_prefers_the_first_method_among_equals(hand):
    assert {point.method for point in hand.pareto()} == {"exact"}


def test_knee_is_farthest_below_the_chord():
    assert made([10, 4, 1, 0.5, 0]).knee().value == 3
    assert made([None, 10, 1, 0]).knee().value == 3
    assert made([10, 9, 0]).knee() is None  # bends the other way
    assert made([3, 2, 1]).knee() is None  # straight
    assert made([3, 2]).knee() is None
    assert made([None]).knee() is None
    assert made([0, 6, 9, 10], higher_is_better=True).knee().value == 2


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], "values: expected at least one, found none"),
        ([3, 2], r"values\[1\]: 2 after 3; they must ascend"),
        ([2, 3, 3.0], r"values\[2\]: 3 stands twice"),
        ([2, float("nan")], r"values\[1\]: expected a finite number, found NaN"),
        (["24"], r'values\[0\]: expected a number, found "24"'),
        ([True], r"values\[0\]: expected a number, found true"),
        ([[1, 2]], r"values\[0\]: expected a number, found a list of 2"),
    ],
)
def test_values_that_are_refused(values, text):
    with pytest.raises(ValueError, match=text):
        optsched.frontier("boa/hand", budgets=values)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"parameter": "budget_gpu", "values": [3]}, InstanceError, "did you mean 'budget_gpus'"),
        ({"parameter": "budget_gpus"}, ValueError, "give a parameter and its values"),
        ({"budgets": [3], "values": [3]}, ValueError, "give the one or the others"),
        ({"budgets": [3], "methods": ["exat"]}, UnknownNameError, "did you mean 'exact'"),
        ({"budgets": [3], "methods": ["exact"] * 2}, ValueError, "'exact' stands twice"),
        ({"budgets": [3], "gaps": 0.1}, UnknownNameError, "no option 'gaps'; did you mean 'gap'"),
        ({"budgets": [3], "gap": 2}, ValueError, "the gap must be in"),
    ],
)
def test_arguments_that_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        optsched.frontier("boa/hand", **arguments)


def test_subjects_by_name_and_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="did you mean 'boa/hand'"):
        optsched.frontier("boa/hnd", budgets=[3])
    path = tmp_path / "mine.json"
    optsched.write(optsched.read("boa/hand"), path)
    assert optsched.frontier(path, budgets=[3]).points[0].objective == pytest.approx(23 / 24)


# --- files, texts, pictures ----------------------------------------------------------------------


def test_a_frontier_is_read_as_it_was_written(hand, tmp_path):
    path = tmp_path / "frontier.json"
    optsched.write(hand, path)
    assert read_frontier(path) == hand
    document = json.loads(path.read_text())
    assert document["schema"] == "optsched/frontier/2"
    document["points"][0]["status"] = "good"
    path.write_text(json.dumps(document))
    with pytest.raises(InstanceError, match=r"points\[0\].status"):
        read_frontier(path)
    path.write_text(json.dumps(document | {"points": []}))
    with pytest.raises(InstanceError, match="points: must not be empty"):
        read_frontier(path)
    with pytest.raises(InstanceError, match="schema: not a frontier"):
        read_frontier("boa/hand")


def test_frame_has_a_row_per_point(hand):
    frame = hand.frame()
    assert list(frame.columns[:3]) == ["budget_gpus", "method", "status"]
    assert len(frame) == len(hand.points)
    assert frame["objective"].isna().sum() == len(hand.methods)


def test_texts(hand):
    assert "1 infeasible, 3 optimal" in str(hand)
    assert "4 values from 1 to 4" in hand._repr_html_()
    assert repr(hand).startswith("<Frontier of boa/hand over budget_gpus: 36 points")
    assert split_unit("jobs.*.restart_s") == ("restart", "s")
    assert split_unit("power_cap_w") == ("power cap", "W")
    assert split_unit("locality.*.1") == ("locality.*.1", "")


def test_picture_has_curve_bound_knee_points_and_gaps(hand):
    ax = plt.subplots()[1]
    assert hand.plot(ax) is ax
    lines = {line.get_label(): line for line in ax.get_lines()}
    curve = lines["exact"].get_ydata()
    assert np.isnan(curve[0])
    assert np.all(curve[1:] >= lines["bound"].get_ydata()[1:])
    assert set(hand.methods) < set(lines)
    assert any(name.startswith("knee, 3 GPUs") for name in lines)
    assert list(lines["1 value without a result"].get_xdata()) == [1]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("budget (GPUs)", "mean JCT (s)")
    made([None, None]).plot()


def test_a_flat_curve_looks_flat_and_its_figures_are_written_out():
    """Figures that differ by rounding alone were drawn from foot to top, with an offset."""
    ax = made([26.45989899, 26.45989899 + 1e-11, 26.45989899]).plot()
    low, high = ax.get_ylim()
    assert high - low > 0.1
    ax.figure.canvas.draw()
    assert ax.yaxis.get_offset_text().get_text() == ""


def test_slider_moves_the_mark_and_tells_the_point(hand):
    pytest.importorskip("ipywidgets", reason="the extra 'notebook' is not installed")
    box = hand.slider()
    knob, picture, table = box.children
    assert hand.values[knob.value] == hand.knee().value
    assert bytes(picture.value).startswith(b"\x89PNG")
    before = bytes(picture.value)
    knob.value = 0
    assert bytes(picture.value) != before
    assert "below the least possible" in table.value
    assert rows(hand, 3.0)["exact"] == "0.958333 s (optimal)"


def test_slider_without_the_extra_names_it(hand, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"pip install 'optsched\[notebook\]'"):
        hand.slider()


# --- the command ---------------------------------------------------------------------------------


def test_help_has_examples_and_fits():
    shown = run("--help", columns=80)
    assert shown.exit_code == 0
    assert "Example: optsched frontier boa/cbd-85" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def run(*arguments, columns=100):
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, ["frontier", *map(str, arguments)])


def test_command_prints_and_writes(tmp_path):
    path, table, picture = (tmp_path / f"f.{ending}" for ending in ("json", "csv", "png"))
    wanted = ("boa/hand", "--from", 1, "--to", 4, "--points", 4, "--method", "exact")
    done = run(*wanted, "--method", "same-k", "-o", path, "--plot", picture)
    assert done.exit_code == 0, done.output
    assert "0.958333" in done.stdout
    assert read_frontier(path).methods == ("exact", "same-k")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run(*wanted, "--output", table).exit_code == 0
    assert table.read_text().startswith("budget_gpus,method,status")
    shown = run("boa/hand", "--values", "2,3", "--compare", "--json")
    assert len(json.loads(shown.stdout)["points"]) == 2 * 9


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--from", 3], 2, "--from and --to: give both, or --values"),
        (["--from", 3, "--to", 2], 2, "--from below --to"),
        (["--values", "3,x"], 2, "expected numbers"),
        (["--values", "3,2"], 2, "2 after 3"),
        (["--values", "3", "-o", "f.txt"], 2, "ends in .json or .csv"),
        (["--values", "0.1,0.2"], 3, ""),
        (["--values", "3", "--parameter", "budgets"], 2, "no field 'budgets'"),
    ],
)
def test_command_refuses(arguments, code, text):
    done = run("boa/hand", *arguments)
    assert done.exit_code == code, done.output
    assert text in done.stderr


def test_command_warns_in_one_line(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = run("boa/hand", "--values", "2,3", "--cache", blocked)
    assert done.exit_code == 0
    assert done.stderr.count("warning: cache: cannot write points") == 1
    assert len(done.stderr.splitlines()) == 1


def test_values_of_the_command_end_where_they_should():
    values = chosen_values(0.1, 0.7, 7, None)
    assert len(values) == 7
    assert (values[0], values[-1]) == (0.1, 0.7)


# --- proof ---------------------------------------------------------------------------------------


def command(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


SWEEPS = [
    ("boa/hand", "budget_gpus", [1, 2, 3]),
    ("pal/tiny", "locality.*.1", [1.0, 1.5]),
    ("eaco/paper-four", "jobs.*.max_slowdown", [1.0, 1.3]),
]


@pytest.mark.parametrize(("name", "path", "values"), SWEEPS, ids=lambda value: str(value)[:10])
def test_every_point_of_a_file_is_verified(name, path, values, tmp_path):
    curve = optsched.frontier(name, path, values, methods="all", executor=1)
    assert {point.status for point in curve.points} <= {"optimal", "feasible", "infeasible"}
    file = tmp_path / "frontier.json"
    optsched.write(curve, file)
    again = read_frontier(file)
    assert {point.status for point in again.told} <= {"unverified", "error"}
    assert not any("optimal" in text for text in (str(again), again.frame().to_string()))
    assert again.frame()["bound"].isna().all()
    verify_frontier(optsched.read(name), again)
    assert again.told == curve.points
    done = command("verify", name, file)
    assert done.exit_code == 0
    assert f"proven: every bound of {len(curve.points)} points of {name}" in done.stdout


@pytest.mark.parametrize("field", ["objective", "bound", "gap", "status", "plan", "certificate"])
def test_a_frontier_whose_points_were_forged_is_refused(field, tmp_path):
    curve = optsched.frontier("boa/hand", budgets=[2.5, 3], methods=["exact", "same-k"])
    file = tmp_path / "frontier.json"
    document = json.loads(curve.to_json())
    greedy = document["points"][1]
    forged = {
        "objective": greedy["objective"] * 0.9, "bound": greedy["objective"], "gap": 0.0,
        "status": "optimal", "plan": document["points"][2]["plan"], "certificate": None,
    }  # fmt: skip
    greedy[field] = forged[field]
    file.write_text(json.dumps(document))
    done = command("verify", "boa/hand", file)
    assert done.exit_code == 1
    assert "budget_gpus 2.5, same-k" in done.stdout
    assert command("report", file, "-o", tmp_path / "p.html").exit_code == 2
    other = command("verify", "boa/hand", "--set", "budget_gpus=7", file)
    assert (other.exit_code, "digests differ" in other.stdout) == (1, True)


def test_points_of_a_function_cannot_be_verified_from_a_file(tmp_path):
    base = optsched.read("boa/hand")
    curve = optsched.frontier(base, lambda b: base.changed({"budget_gpus": b}), [2, 3])
    assert curve.is_verified
    optsched.write(curve, tmp_path / "f.json")
    with pytest.raises(optsched.Violation, match="went through a function"):
        verify_frontier(base, read_frontier(tmp_path / "f.json"))


def test_a_point_of_the_cache_that_was_forged_is_computed_anew(tmp_path):
    """The digest in a cache's file protects from damage, not from a hand."""
    before = optsched.frontier("boa/hand", budgets=[2.5], methods=["same-k"], cache=tmp_path)
    (path,) = tmp_path.iterdir()
    document = json.loads(path.read_text())
    body = document["point"]
    body |= {"bound": body["objective"], "gap": 0.0, "status": "optimal"}
    body["certificate"]["bound"] = body["objective"]
    text = json.dumps(body, sort_keys=True)
    document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(document))
    again = optsched.frontier("boa/hand", budgets=[2.5], methods=["same-k"], cache=tmp_path)
    assert (again.points[0].status, again.points[0].bound) == ("feasible", before.points[0].bound)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["boa/hand", "--from", "2", "--to", "3", "--points", "1000000000"], "more than 100,000"),
        (["pal-64", "--values", "60,300"], "'pal-64' has no budget: name the field to sweep"),
        (["pal/tiny", "--values", "1,2"], "there is no field 'budget_gpus'"),
    ],
)
def test_sweeps_that_mean_nothing_are_refused_before_they_begin(arguments, told):
    """A thousand million points took all memory, before the first one."""
    done = CliRunner().invoke(app, ["frontier", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr


# --- rollouts with several seeds, and options of policies -----------------------------------------


def of_seeds(**options):
    return optsched.frontier(
        optsched.read_scenario("philly-small").changed({"trace.jobs": 30}),
        "epoch_s",
        [30, 120],
        methods=["fifo", "las"],
        executor=1,
        **options,
    )


def test_points_of_several_seeds_are_means_with_intervals():
    curve = of_seeds(seeds=[3, 5, 8])
    alone = [of_seeds(seed=seed) for seed in (3, 5, 8)]
    for n, point in enumerate(curve.points):
        draws = [each.points[n].objective for each in alone]
        assert point.objective == pytest.approx(np.mean(draws))
        assert point.draws["jct_mean_s"] == tuple(draws)
    frame = curve.frame()
    assert (frame["objective_low"] <= frame["objective"]).all()
    assert (frame["objective"] <= frame["objective_high"]).all()
    assert (frame.loc[frame["method"] == "fifo", "difference_high"] == 0).all()
    las = frame[frame["method"] == "las"]
    assert (las["difference_low"] <= las["difference"]).all()
    assert "means over 3 seeds" in str(curve)
    read = Frontier.model_validate_json(curve.to_json()).frame()  # bounds are unproven
    assert read["objective_high"].equals(frame["objective_high"])
    assert read["difference_low"].equals(frame["difference_low"])
    assert len(curve.plot().collections) == 2


def test_an_option_of_policies_is_swept_and_drawn_against_what_it_costs():
    world = optsched.read_scenario("boa-cloud").changed({"trace.jobs": 12})
    curve = optsched.frontier(
        world, "policy.budget", [24, 40], methods=["boa", "boa:rates=history"], executor=1, seeds=2
    )
    one = optsched.simulate(world, "boa:rates=history,budget=40", seed=1).metrics["jct_mean_s"]
    last = curve.of_method("boa:rates=history")[-1]
    assert last.draws["jct_mean_s"][1] == one
    axes = curve.plot(against="cost_usd")
    assert axes.get_xlabel().endswith("(USD)")
    assert [line.get_label() for line in axes.lines[:1]] == ["boa"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"seeds": 2, "seed": 1}, "seeds: stand for seed"),
        ({"seeds": []}, "seeds: expected some"),
        ({"seeds": [1, 1]}, "each once"),
    ],
)
def test_seeds_of_scenarios_are_checked(options, text):
    with pytest.raises(ValueError, match=text):
        of_seeds(**options)


def test_several_seeds_are_for_scenarios_and_options_for_policies_that_have_them():
    with pytest.raises(ValueError, match="an instance is solved with one"):
        optsched.frontier("boa/hand", budgets=[2, 3], seeds=2)
    world = optsched.read_scenario("boa-cloud")
    with pytest.raises(ValueError, match="there is no option 'budget'"):
        optsched.frontier(world, "policy.budget", [24], methods=["fixed-width"])
    with pytest.raises(ValueError, match="its option 'budget' is swept; leave it out"):
        optsched.frontier(world, "policy.budget", [24], methods=["boa:budget=30"])

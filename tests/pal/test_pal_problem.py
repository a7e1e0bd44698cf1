"""What the rest of optsched sees of PAL: frames, figures, tables for the terminal, pictures."""

import importlib
import io
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex
from rich.console import Console

import optsched
from optsched import registry
from optsched.cli.printing import tables
from optsched.pal import PalPlan, Placement
from optsched.pal.problem import PROBLEM
from optsched.pal.verify import feasibility
from optsched.pal.view.plot import COLOURS, HATCHES, NAMED, plot
from optsched.pal.view.tables import (
    SHOWN,
    decisions,
    frame,
    headline,
    objective_name,
    objective_unit,
    summary,
)
from optsched.results.result import Result
from tests.support.strategies.pal import small_instance

NODES = {"r0": {"a": 2, "b": 2}, "c": 2}  # c stands in no rack
SLOWDOWN = {"A": [1.0, 1.2, 0.9, 1.0, 1.6, 1.0], "B": [1.0, 1.0, 1.0, 1.1, 1.0, 1.0]}
JOBS = [
    {"id": "pair", "gpus": 2, "weight": 3.0},
    {"id": "one", "gpus": 1, "application_class": "B"},
    {"id": "out", "gpus": 2},
]


def plan_of(**gpus):
    """Return a plan from the GPUs of each job, written in one text."""
    jobs = tuple(Placement(id=name, gpus=tuple(text.split())) for name, text in gpus.items())
    return PalPlan(jobs=jobs)


def result_of(instance, plan, **fields):
    """Return a result around a plan that no method made."""
    given = {
        "problem": "pal",
        "instance": instance.name,
        "instance_sha256": "",
        "method": "by hand",
        "status": "feasible",
        "objective": feasibility.objective(instance, plan) if plan else None,
        "objective_unit": objective_unit(instance),
        "seconds": 0.0,
        "plan": plan,
        "versions": {},
    }
    return Result(**given | fields).of(instance)


def shown(instance, plan):
    """Return the table of decisions as a terminal of 80 columns shows it."""
    console = Console(width=80, file=io.StringIO())
    console.print(tables.decisions(instance, result_of(instance, plan)))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(registry.PROBLEMS, "pal", "optsched.pal.problem")


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    plt.close("all")


@pytest.fixture
def placed():
    """Return an instance of three jobs, one of which is left out."""
    jobs = [job | {"reward": 4.0} for job in JOBS]
    instance = small_instance(NODES, SLOWDOWN, jobs, admission="optional")
    return instance, plan_of(pair="b/0 a/1", one="c/0", out="")


@pytest.fixture
def running():
    """Return an instance with two running jobs, the first of which is moved."""
    times = {"remaining_s": 100.0, "restart_s": 5.0}
    jobs = [
        {"id": "goes", "gpus": 2, "current": ["c/0", "c/1"], **times},
        {"id": "stays", "gpus": 1, "current": ["a/0"], **times},
        {"id": "comes", "gpus": 1, "remaining_s": 10.0},
    ]
    instance = small_instance(NODES, SLOWDOWN, jobs, unavailable=["a/1"])
    return instance, plan_of(goes="b/0 b/1", stays="a/0", comes="c/0")


# --- frames -----------------------------------------------------------------------------------


def test_frame_has_a_row_for_each_job_and_its_costs_sum_to_the_objective(placed):
    instance, plan = placed
    table = frame(instance, plan).set_index("job")
    pair = table.loc["pair"]
    assert (pair["gpus"], pair["nodes"], pair["level"], pair["domain"]) == (2, 2, "rack", "r0")
    assert (pair["slowest_gpu"], pair["gpu_ids"]) == ("a/1", ("a/1", "b/0"))
    assert pair["slowdown"] == pytest.approx(1.5 * 1.2)
    assert (pair["weight"], pair["cost"]) == (3, pytest.approx(3 * 1.8))
    assert table["cost"].sum() == pytest.approx(feasibility.objective(instance, plan))
    assert not table["moved"].any()


def test_frame_of_a_job_that_is_left_out(placed):
    row = frame(*placed).set_index("job").loc["out"]
    assert (row["gpus"], row["nodes"], row["gpu_ids"], row["cost"]) == (0, 0, (), 4)
    assert row[["level", "domain", "slowest_gpu", "slowdown"]].isna().all()


def test_frame_names_the_domain_where_a_branch_skips_a_level():
    instance = small_instance(NODES, SLOWDOWN, [{"id": "j", "gpus": 2}])
    inside = frame(instance, plan_of(j="c/0 c/1")).iloc[0]
    assert (inside["level"], inside["domain"]) == ("node", "c")
    across = frame(instance, plan_of(j="c/0 a/0")).iloc[0]
    assert (across["level"], across["domain"]) == ("cluster", "all")


def test_frame_says_who_is_moved(running):
    table = frame(*running)
    assert table["moved"].tolist() == [True, False, False]
    assert table["cost"].tolist() == pytest.approx([100 * 1.0 + 5, 100 * 1.0, 10 * 1.6])


def test_frame_keeps_the_order_of_the_jobs_and_gpus_of_the_instance(running):
    instance, plan = running
    turned = PalPlan(jobs=tuple(Placement(id=j.id, gpus=j.gpus[::-1]) for j in plan.jobs[::-1]))
    assert frame(instance, turned).equals(frame(instance, plan))


# --- figures ----------------------------------------------------------------------------------


def test_summary_of_a_batch(placed):
    rows = summary(placed[0], result_of(*placed))
    assert rows["sum of weighted slowdowns"] == "10.400000 x"
    assert rows["jobs placed"] == "2 of 3"
    assert rows["GPUs used"] == "3 of 6 free ones (50.0 %)"
    assert rows["locality"] == "1 within one node, 1 within one rack"
    assert rows["slowdown"] == "1.4000 on average, 1.8000 at most"
    assert rows["profile"] == "persistent"
    assert rows["GPUs above 1.5 x"] == "c/0 (A: 1.60)"
    assert "jobs moved" not in rows
    assert "penalties" not in rows


def test_summary_of_a_round_with_running_jobs(running):
    rows = summary(running[0], result_of(*running))
    assert rows["weighted time"] == "221.00 s"
    assert rows["jobs moved"] == "1 of 2 running"
    assert rows["GPUs used"] == "4 of 5 free ones (80.0 %)"


def test_summary_counts_jobs_across_everything():
    instance = small_instance(NODES, SLOWDOWN, [{"id": "j", "gpus": 2}])
    rows = summary(instance, result_of(instance, plan_of(j="c/0 a/0")))
    assert rows["locality"] == "1 across the cluster"


def test_summary_without_any_placed_job(placed):
    instance, _ = placed
    rows = summary(instance, result_of(instance, plan_of(pair="", one="", out="")))
    assert rows["jobs placed"] == "0 of 3"
    assert rows["sum of weighted slowdowns"] == "12.000000 x"
    assert "slowdown" not in rows


def test_summary_says_how_far_the_data_can_be_trusted(placed):
    instance, plan = placed
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["profile"]["kind"] = "single-run"
    document |= {"locality_kind": "measured", "locality": {"m": [1.0, 1.3, 1.2], "n": [1, 1, 2]}}
    rows = summary(type(instance).from_document(document), result_of(instance, plan))
    assert rows["profile"].startswith("single-run: ")
    assert rows["penalties"] == "measured; the monotone envelope raises m (cluster)"
    document["locality"] = {"m": [1.0, 1.2, 1.3]}
    rows = summary(type(instance).from_document(document), result_of(instance, plan))
    assert rows["penalties"] == "measured; the monotone envelope raises no value"


def test_slow_gpus_that_no_job_could_get_are_not_named(placed):
    instance, plan = placed
    without = instance.changed({"unavailable": ["c/0"]})
    plan = plan_of(pair="b/0 a/1", one="c/1", out="")
    assert "GPUs above 1.5 x" not in summary(without, result_of(without, plan))
    only_b = instance.changed({"jobs.*.application_class": "B"})
    assert "GPUs above 1.5 x" not in summary(only_b, result_of(only_b, plan))


def test_many_slow_gpus_are_shortened(placed):
    instance, plan = placed
    slow = instance.changed({"profile.slowdown.A": [2.0] * 6})
    rows = summary(slow, result_of(slow, plan))
    assert rows["GPUs above 1.5 x"] == "a/0 (A: 2.00), a/1 (A: 2.00), b/0 (A: 2.00) and 3 more"


def test_headline(placed):
    assert headline(placed[0]) == {
        "GPUs": "6",
        "levels": "3",
        "jobs": "3",
        "demand": "83 %",
        "profile": "persistent",
    }


def test_objective_has_a_name_and_a_unit(placed, running):
    names = {True: ("weighted time", "s"), False: ("sum of weighted slowdowns", "x")}
    for instance, _ in (placed, running):
        assert (objective_name(instance), objective_unit(instance)) == names[instance.is_timed]
    even = placed[0].changed({"jobs.*.weight": 1})
    assert objective_name(even) == "sum of slowdowns"


# --- tables for the terminal ------------------------------------------------------------------


def test_decisions_of_a_batch(placed):
    pair, one, out = decisions(*placed)
    assert pair == {
        "job": "pair",
        "GPUs": "2",
        "nodes": "a, b",
        "level": "rack",
        "slowest": "a/1",
        "slowdown": "1.8000",
    }
    assert (one["nodes"], one["slowdown"]) == ("c", "1.0000")
    assert (out["GPUs"], out["nodes"], out["slowdown"]) == ("none", "", "")


def test_decisions_say_who_is_moved_only_if_jobs_run(running):
    instance, plan = running
    assert [row["running"] for row in decisions(instance, plan)] == ["moved", "stays", "new"]
    optional = instance.changed({"admission": "optional", "jobs.*.reward": 1})
    left = plan_of(goes="", stays="a/0", comes="")
    assert [row["running"] for row in decisions(optional, left)] == ["left out", "stays", ""]


def test_many_nodes_are_shortened_and_the_table_fits_the_terminal():
    nodes = {f"node-{n}": 1 for n in range(100)}
    jobs = [{"id": "PointNet-8.151", "gpus": 60}, {"id": "of the others", "gpus": 2}]
    instance = small_instance(nodes, jobs=jobs)
    gpus = instance.free_gpus
    plan = plan_of(
        **{"PointNet-8.151": " ".join(gpus[:60]), "of the others": " ".join(gpus[60:62])}
    )
    big, small = decisions(instance, plan)
    assert big["nodes"] == "node-0, … (+59)"
    assert small["nodes"] == "node-60, node-61"
    lines = shown(instance, plan)
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80


def test_of_a_long_batch_the_costliest_jobs_are_shown():
    count = SHOWN + 25
    slowdown = [1 + n / 100 for n in range(count)]
    instance = small_instance({"a": count}, {"A": slowdown}, [1] * count)
    plan = plan_of(**{f"j{n}": f"a/{n}" for n in range(count)})
    rows = decisions(instance, plan)
    assert len(rows) == SHOWN + 1
    assert [row["job"] for row in rows[:-1]] == [f"j{n}" for n in range(count - 1, 24, -1)]
    assert (rows[-1]["job"], rows[-1]["GPUs"]) == ("... and 25 that cost less", "25")
    assert all(row.keys() == rows[0].keys() for row in rows)
    assert max(map(len, shown(instance, plan))) <= 80
    fits = instance.changed({"jobs": instance.model_dump(mode="json")["jobs"][:SHOWN]})
    assert len(decisions(fits, PalPlan(jobs=plan.jobs[:SHOWN]))) == SHOWN


# --- methods ----------------------------------------------------------------------------------


def test_methods_in_order_with_the_exact_ones_first():
    names = [method.name for method in PROBLEM.methods]
    assert names[:4] == ["exact", "milp", "decomposition", "node-classes"]
    assert len(names) == len(set(names)) == 15
    assert [m.kind for m in PROBLEM.methods] == ["exact"] * 4 + ["greedy"] * 11
    assert max(len(method.name) for method in PROBLEM.methods) <= 20


@pytest.mark.parametrize("method", PROBLEM.methods[4:], ids=lambda method: method.name)
def test_greedy_methods_exist_and_plan_the_bundled_example(method):
    module, function = method.entry.split(":")
    assert callable(getattr(importlib.import_module(module), function))
    offered = []
    instance = optsched.read("pal/tiny")
    method(instance, SimpleNamespace(offer=offered.append, seed=0))
    assert not feasibility.violations(instance, offered[0])


# --- pictures ---------------------------------------------------------------------------------


def squares(ax):
    """Return the squares of the GPUs, from left to right."""
    return list(ax.containers[-1])


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_plot_draws_where_it_is_told(placed):
    _, ax = plt.subplots()
    assert plot(*placed, ax) is ax
    assert ax.get_title() == "small, sum of weighted slowdowns 10.400000 x, 2 of 3 jobs"
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "GPUs",
        "node",
        "rack",
        "cluster",
    ]
    assert legend_of(ax) == ["pair: 2", "one: 1", "free: 3", "slow (above 1.5 x): 1"]


def test_dots_mark_the_gpus_that_are_slow_for_a_job(placed):
    instance, plan = placed
    gpus = instance.topology.gpus
    assert {job.application_class for job in instance.jobs} == {"A", "B"}
    values = {gpu: max(instance.slowdowns[name][gpu] for name in "AB") for gpu in gpus}
    dots = [line for line in plot(instance, plan).lines if line.get_marker() == "o"]
    marked = {gpus[int(dot.get_xdata()[0])] for dot in dots}
    assert marked == {gpu for gpu in gpus if values[gpu] > 1.5} != set()


def test_gpus_have_the_colours_of_their_jobs(running):
    instance, plan = running
    ax = PROBLEM.plot(instance, plan, None)
    assert instance.topology.gpus == ("a/0", "a/1", "b/0", "b/1", "c/0", "c/1")
    colours = [to_hex(square.get_facecolor()).upper() for square in squares(ax)]
    goes, stays, comes = COLOURS[:3]
    assert colours == [stays, "#FFFFFF", goes, goes, comes, to_hex("0.85").upper()]
    handles = dict(zip(legend_of(ax), ax.get_legend().legend_handles, strict=True))
    assert to_hex(handles["goes: 2"].get_facecolor()).upper() == goes
    assert "unavailable: 1" in handles


def test_gpus_that_a_moved_job_held_are_marked(running):
    ax = plot(*running)
    marks = [line for line in ax.lines if line.get_marker() == "^"]
    assert [list(mark.get_xdata()) for mark in marks] == [[4], [5]]
    assert {mark.get_color() for mark in marks} == {COLOURS[0]}
    assert legend_of(ax)[-1] == "held before the move"


def test_jobs_look_different_and_only_the_largest_are_named():
    count = len(COLOURS) * len(HATCHES)
    jobs = [*[1] * (count - 1), 3]
    instance = small_instance({"a": count + 2}, jobs=jobs)
    last = f"a/{count - 1} a/{count} a/{count + 1}"
    plan = plan_of(**{f"j{n}": f"a/{n}" for n in range(count - 1)}, **{f"j{count - 1}": last})
    ax = plot(instance, plan)
    looks = [(square.get_facecolor(), square.get_hatch()) for square in squares(ax)]
    assert len(set(looks)) == count
    assert len(set(looks[-3:])) == 1
    entries = legend_of(ax)
    assert len(entries) == NAMED
    assert entries[0] == f"j{count - 1}: 3"
    assert entries[-1] == f"+{count - NAMED + 1} more jobs"


def test_a_figure_of_its_own_has_space_for_title_and_legend():
    jobs = [{"id": f"a job with a rather long name {n}", "gpus": 1} for n in range(6)]
    instance = small_instance({"a": 3, "b": 3}, jobs=jobs)
    plan = plan_of(**{job["id"]: gpu for job, gpu in zip(jobs, instance.free_gpus, strict=True)})
    ax = plot(instance, plan)
    ax.figure.canvas.draw()
    page = ax.figure.bbox
    for artist in (ax.title, ax.get_legend()):
        box = artist.get_window_extent()
        assert page.y0 <= box.y0
        assert box.y1 <= page.y1
        assert page.x0 <= box.x0
        assert box.x1 <= page.x1


def test_results_plot_their_plan(placed):
    _, ax = plt.subplots()
    assert result_of(*placed).plot(ax) is ax
    assert result_of(*placed).plot().get_title().startswith("small, ")


def test_no_picture_is_an_error_in_words(placed):
    with pytest.raises(ValueError, match="no plan: infeasible"):
        result_of(placed[0], None, status="infeasible").plot()
    unattached = result_of(*placed).model_copy()
    unattached._instance = None
    with pytest.raises(ValueError, match="attach the instance"):
        unattached.plot()

"""What the rest of optsched sees of EaCO: frames, figures, tables for the terminal, pictures."""

import importlib
import io
import json
from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest
from hypothesis import given
from matplotlib.colors import to_hex
from rich.console import Console
from typer.testing import CliRunner

import optsched
from optsched import registry
from optsched.cli.main import app
from optsched.cli.printing import tables
from optsched.eaco import EacoPlan, Group
from optsched.eaco.greedy import methods
from optsched.eaco.plausibility import doubts
from optsched.eaco.problem import PROBLEM
from optsched.eaco.verify import feasibility
from optsched.eaco.view.figures import SHOWN
from optsched.eaco.view.plot import COLOURS, HATCHES, plot
from optsched.eaco.view.summary import headline, objective_name, objective_unit, summary
from optsched.eaco.view.tables import decisions, frame
from optsched.results.result import Result
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances, small_instance

GPUS = {"X": {"levels": [(60, 0.5, 0.6)]}}
NODES = {"x": {"gpus": 2, "count": 4, "on": 2, "power": {"base_w": 100.0, "wake_s": 36.0}}}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(registry.PROBLEMS, "eaco", "optsched.eaco.problem")


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    plt.close("all")


def result_of(instance, plan, **fields):
    """Return a result around a plan that no method made."""
    given = {
        "problem": "eaco",
        "instance": instance.name,
        "instance_sha256": instance.sha256,
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


@pytest.fixture
def shared():
    """Return four jobs: two share, one runs slowly on its own node, one waits."""
    jobs = [
        {"type": "a"},
        {"type": "b", "work_s": 7200.0},
        {"type": "a", "gpus": 2, "deadline_s": 5000.0},
        {"type": "b", "waiting_penalty_kwh": 0.5},
    ]
    instance = small_instance(jobs, measured={"a b": [0.8, 0.5]}, gpus=GPUS, nodes=NODES)
    groups = (
        Group(jobs=("j0", "j1"), nodes="x", node=0),
        Group(jobs=("j2",), nodes="x", node=2),
    )
    return instance, EacoPlan(groups=groups, waiting=("j3",))


@pytest.fixture
def running():
    """Return two jobs that run together, one of which is moved; the other is late."""
    jobs = [{"deadline_s": -1.0}, {}]
    place = {"nodes": "x", "node": 1, "jobs": ["j0", "j1"]}
    instance = small_instance(jobs, nodes=NODES, running=[place])
    groups = (
        Group(jobs=("j0",), nodes="x", node=1, location="r0"),
        Group(jobs=("j1",), nodes="x", node=0),
    )
    return instance, EacoPlan(groups=groups)


KILOWATTS = {"bare_w": 0.05, "context_w": 0.08, "peak_w": 0.4}


# --- frames -----------------------------------------------------------------------------------


def test_frame_has_a_row_for_each_job(shared):
    table = frame(*shared).set_index("job")
    assert list(table.index) == ["j0", "j1", "j2", "j3"]
    first = table.loc["j0"]
    assert (first["type"], first["gpus"], first["group"], first["gpu"]) == ("a", 1, 0, "X")
    assert (first["nodes"], first["node"], first["shares_with"]) == ("x", 0, ("j1",))
    assert first["slowdown"] == pytest.approx(1.25)
    assert table["slowdown"]["j1"] == pytest.approx(2)
    assert first["run_h"] == pytest.approx(1.25)
    # j1: 1.25 h at half speed, and the rest alone.
    assert table["run_h"]["j1"] == pytest.approx(1.25 + 2 - 0.625)
    assert table["deadline"].tolist() == ["", "", "met", ""]


def test_frame_of_a_job_that_waits(shared):
    row = frame(*shared).set_index("job").loc["j3"]
    assert (row["group"], row["node"], row["shares_with"], row["deadline"]) == (-1, -1, (), "")
    assert row[["nodes", "gpu", "level", "location", "slowdown", "energy_kwh"]].isna().all()


def test_energies_of_a_frame_sum_to_those_of_the_groups(shared):
    instance, plan = shared
    table = frame(instance, plan).set_index("job")["energy_kwh"]
    energy = [group.energy_kwh for group in optsched.eaco.performance(instance, plan).groups]
    assert table["j0"] + table["j1"] == pytest.approx(energy[0])
    assert table["j2"] == pytest.approx(energy[1])
    assert table["j1"] == pytest.approx(2 * table["j0"])  # twice the work, as busy


def test_frame_says_who_is_moved_late_or_slowed_by_a_level(running, shared):
    table = frame(*running)
    assert table["moved"].tolist() == [False, True]
    assert table["deadline"].tolist() == ["late", ""]
    assert table["location"].isna().tolist() == [False, True]
    instance, plan = shared
    slow = plan.model_copy(
        update={"groups": (plan.groups[0], plan.groups[1].model_copy(update={"level": "l0"}))}
    )
    row = frame(instance, slow).set_index("job").loc["j2"]
    assert (row["level"], row["slowdown"], row["deadline"]) == ("l0", 2, "late")


@given(eaco_instances(objectives=("run-to-completion",)))
@law(200, is_costly=True)
def test_frames_and_tables_of_any_plan(instance):
    plan = methods.quick_start(instance)
    if plan is None or feasibility.violations(instance, plan):
        return
    table = frame(instance, plan)
    assert len(table) == len(instance.jobs)
    assert (table["group"] < 0).sum() == len(plan.waiting)
    rows = decisions(instance, plan)
    assert len(rows) == len(plan.groups) + bool(plan.waiting)
    assert len({tuple(row) for row in rows}) == 1
    assert all(summary(instance, result_of(instance, plan)).values())


# --- figures ----------------------------------------------------------------------------------


def test_summary(shared):
    rows = summary(shared[0], result_of(*shared))
    assert next(iter(rows)) == "energy"
    assert rows["energy"].endswith(" kWh")
    assert rows["groups"] == "2: 1 of 1 job, 1 of 2 jobs"
    assert rows["nodes used"] == "2 of 4, 1 of them woken"
    assert rows["slowdown"] == "1.4167 on average, 2.0000 at most"
    assert rows["jobs waiting"] == "1: j3"
    assert rows["late jobs"] == "none"
    assert rows["interference"] == "1 shared group: 1 measured"
    assert "repairs" not in rows
    assert "power" not in rows


def test_saving_is_against_exclusive_gpus():
    jobs = [{"type": "a"}] * 2
    free = {"partner_slowdown": 0, "saturation_slope": 0}
    instance = small_instance(jobs, **free)
    plan = EacoPlan(groups=(Group(jobs=("j0", "j1"), nodes="x"),))
    # 120 + 25 W for an hour instead of twice 70 + 25.
    saving = summary(instance, result_of(instance, plan))["saving"]
    assert saving == "23.7 % of 0.190000 kWh on exclusive GPUs"


def test_summary_of_running_and_late_jobs(running):
    rows = summary(running[0], result_of(*running))
    assert rows["jobs moved"] == "1 of 2 running"
    assert rows["late jobs"] == "1: j0, due at the earliest end that they can have alone"
    assert rows["saving"].startswith("-")
    assert "interference" not in rows


def test_summary_reports_fallbacks_repairs_and_power(shared):
    measured = {"a b": [0.8, 0.5], "a b b": [0.9, 0.4, 0.4]}
    instance = small_instance("abab", measured=measured, power_cap_w=5000)
    groups = (
        Group(jobs=("j0", "j1"), nodes="x", node=0),
        Group(jobs=("j2", "j3"), nodes="x", node=0),
    )
    rows = summary(instance, result_of(instance, EacoPlan(groups=groups)))
    assert rows["interference"] == "2 shared groups: 2 measured"
    assert rows["repairs"] == "a + b + b: rate of a lowered from 0.9 to 0.8"
    assert rows["power"].endswith(" W at most, the cap is 5,000.00 W")
    larger = EacoPlan(groups=(Group(jobs=("j1", "j3"), nodes="x"), *_alone("j0", "j2")))
    assert summary(instance, result_of(instance, larger))["interference"].endswith(
        "1 from larger measured groups"
    )
    both_a = EacoPlan(groups=(Group(jobs=("j0", "j2"), nodes="x"), *_alone("j1", "j3")))
    assert summary(instance, result_of(instance, both_a))["interference"].endswith(
        "1 by the formula for utilisations"
    )


def _alone(*jobs):
    return [Group(jobs=(job,), nodes="x", node=1) for job in jobs]


def test_a_plan_in_which_all_wait_has_figures():
    instance = small_instance([{"waiting_penalty_kwh": 1.0}] * 5)
    plan = EacoPlan(waiting=tuple(job.id for job in instance.jobs))
    rows = summary(instance, result_of(instance, plan))
    assert rows["groups"] == "none"
    assert rows["jobs waiting"] == "5: j0, j1, j2 and 2 more"
    assert "saving" not in rows
    assert decisions(instance, plan)[0]["nodes"] == "waiting"


@pytest.mark.parametrize(
    ("fields", "name", "unit"),
    [
        ({}, "energy", "kWh"),
        ({"price_usd_per_kwh": 0.25}, "cost", "USD"),
        ({"carbon_g_per_kwh": 274.0}, "carbon", "g CO2"),
        ({"objective": "epoch", "epoch_s": 60.0}, "energy of the epoch", "kWh"),
        (
            {"objective": "eaco", "energy_weight": 0.5},
            "weighted energy and time",
            "weighted kWh and h",
        ),
    ],
)
def test_names_and_units_of_objectives(fields, name, unit):
    instance = small_instance([{"training_epoch_s": 60.0}], **fields)
    assert (objective_name(instance), objective_unit(instance)) == (name, unit)
    plan = EacoPlan(groups=(Group(jobs=("j0",), nodes="x"),))
    rows = summary(instance, result_of(instance, plan))
    assert rows[name].endswith(f" {unit}")
    assert ("energy" in rows) == (name == "energy" or bool(fields))


def test_headline(shared):
    assert headline(shared[0]) == {
        "jobs": "4",
        "nodes": "4",
        "per GPU": "4",
        "objective": "run-to-completion",
        "measured": "1 groups",
    }
    assert headline(small_instance())["measured"] == "none"


# --- tables -----------------------------------------------------------------------------------


def test_decisions_fit_a_terminal(shared):
    """j0 and j1: 1.25 h at 20 + 65 + 50 W, then 1.375 h at 20 + 50 + 50 W."""
    assert [" ".join(line.split()) for line in shown(*shared)[:1] + shown(*shared)[2:]] == [
        "jobs and slowdowns nodes GPUs kWh alone",
        "j0 1.25, j1 2 x 0 1 0.333750 0.360000",
        "j2 1 x 2 2 0.240000 0.240000",
        "j3 waiting",
    ]
    assert all(len(line) <= 80 for line in shown(*shared))


def test_decisions_name_levels_moves_and_late_jobs(running):
    instance, plan = running
    rows = decisions(instance, plan)
    assert [row["jobs and slowdowns"] for row in rows] == ["j0 1 stays late", "j1 1 moved"]
    assert "level" not in rows[0]
    leveled = small_instance("a", gpus=GPUS)
    plan = EacoPlan(groups=(Group(jobs=("j0",), nodes="x", level="l0"),))
    assert decisions(leveled, plan)[0]["level"] == "l0"


def test_a_gang_over_several_nodes_names_them():
    instance = small_instance([{"gpus": 8}], nodes={"x": {"gpus": 4, "count": 3}})
    plan = EacoPlan(groups=(Group(jobs=("j0",), nodes="x", node=1),))
    assert decisions(instance, plan)[0]["nodes"] == "x 1 to 2"


def test_of_many_groups_those_that_take_most_are_listed():
    count = SHOWN.groups + 5
    jobs = [{"work_s": 100.0 + n} for n in range(count)]
    instance = small_instance(jobs, nodes={"x": {"gpus": 8, "count": 10}})
    groups = tuple(Group(jobs=(f"j{n}",), nodes="x", node=n // 8) for n in range(count))
    rows = decisions(instance, EacoPlan(groups=groups))
    assert len(rows) == SHOWN.groups + 1
    assert rows[0]["jobs and slowdowns"] == f"j{count - 1} 1"
    assert rows[-1]["jobs and slowdowns"] == "... and 5 groups that take less"


# --- pictures ---------------------------------------------------------------------------------


def test_plot_has_a_bar_for_each_job(shared):
    ax = plot(*shared)
    bars = [patch for container in ax.containers for patch in container]
    assert sorted(bar.get_width() for bar in bars) == pytest.approx([1, 1.25, 2.625])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x 0", "x 2"]
    colours = {to_hex(bar.get_facecolor()).upper() for bar in bars}
    assert colours == set(COLOURS[:2])
    assert "1 jobs wait" in ax.get_title()
    assert "small" in ax.get_title()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["a", "b", "deadline"]
    texts = [text.get_text().strip() for text in ax.texts]
    assert "j1  x 2.000" in texts


def test_plot_takes_axes_and_draws_the_longest_of_many():
    count = SHOWN.groups + 2
    jobs = [{"work_s": 3600.0 * (n + 1), "type": f"t{n}"} for n in range(count)]
    instance = small_instance(jobs, nodes={"x": {"gpus": 8, "count": 10}})
    groups = tuple(Group(jobs=(f"j{n}",), nodes="x", node=n // 8) for n in range(count))
    _, given = plt.subplots()
    ax = plot(instance, EacoPlan(groups=groups), given)
    assert ax is given
    bars = [patch for container in ax.containers for patch in container]
    assert min(bar.get_width() for bar in bars) == pytest.approx(3)
    assert f"the longest {SHOWN.groups} of {count} groups" in ax.get_title()
    assert count > SHOWN.labelled_groups
    assert not ax.texts
    looks = {(to_hex(bar.get_facecolor()), bar.get_hatch()) for bar in bars}
    assert len(looks) == len(bars) <= len(COLOURS) * len(HATCHES)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[-1] == f"+{count - SHOWN.legend_types} more types"


def test_groups_that_were_not_measured_are_in_italics_and_told_in_the_table():
    jobs, nodes = ["a", "a", "b", "b", "b"], {"x": {"count": 1, "gpus": 3}}
    instance = small_instance(jobs, nodes=nodes, measured={"a a": [0.9, 0.9]})
    groups = [("j0", "j1"), ("j2", "j3"), ("j4",)]
    plan = EacoPlan(groups=[Group(jobs=names, nodes="x", node=0) for names in groups])
    ax = plot(instance, plan)
    assert [label.get_style() for label in ax.get_yticklabels()].count("italic") == 1
    assert "not measured" in ax.get_legend().get_texts()[-1].get_text()
    origins = list(frame(instance, plan)["rates_from"])
    assert origins[:2] + origins[4:] == ["measured", "measured", "alone"]
    assert origins[2] not in ("measured", "alone")
    column = [row["rates from"] for row in decisions(instance, plan)]
    assert column[0] == "measured"
    assert column[1] in ("pairs", "formula", "larger group")
    assert column[2] == ""
    measured = EacoPlan(groups=plan.groups[::2], waiting=("j2", "j3"))
    assert "rates from" not in decisions(instance, measured)[0]


def test_plot_of_a_plan_in_which_all_wait():
    instance = small_instance([{"waiting_penalty_kwh": 1.0}])
    ax = plot(instance, EacoPlan(waiting=("j0",)))
    assert not ax.containers
    assert ax.get_legend() is None


# --- the problem ------------------------------------------------------------------------------


def test_the_problem_has_all_methods():
    names = [method.name for method in PROBLEM.methods]
    assert names[:3] == ["exact", "columns", "milp"]
    assert names[3:] == [
        "fifo-exclusive",
        "fifo-packed",
        "random-pairs",
        "least-utilised",
        "eaco-greedy",
        "best-fit-memory",
        "best-delta-energy",
        "sharing-scores",
        "longest-first",
        "local-search",
    ]
    assert {method.kind for method in PROBLEM.methods[3:]} == {"greedy"}
    for method in PROBLEM.methods:
        assert len(method.summary) <= 60
        module, function = method.entry.split(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_greedy_methods_offer_plans(shared):
    instance, _ = shared
    for method in PROBLEM.methods[3:]:
        offered = []
        search = SimpleNamespace(seed=0, offer=offered.append, out_of_time=lambda: False)
        assert method(instance, search) is None
        assert offered, method.name


@pytest.mark.parametrize(
    ("cap", "kwh", "groups"),
    [
        (1.03, 161.67, 4),
        (1.035, 136.53, 3),
        (1.10, 111.77, 2),
        (1.25, 93.66, 1),
    ],
)
def test_golden_values_of_the_papers_jobs(cap, kwh, groups):
    instance = optsched.read("eaco/paper-four").changed({"jobs.*.max_slowdown": cap})
    result = optsched.solve(instance)
    assert (result.status, len(result.plan.groups)) == ("optimal", groups)
    assert result.objective == pytest.approx(kwh, rel=1e-12)
    assert "kWh" in str(result)
    assert result.frame()["slowdown"].max() <= cap
    optsched.verify(instance, result)


@pytest.mark.parametrize(
    ("name", "changes", "kwh"),
    [
        ("eaco/paper-mixed", {}, 223.92),
        ("eaco/paper-mixed", {"jobs.*.max_slowdown": 1.05}, 272.05),
    ],
)
def test_golden_values_of_copies(name, changes, kwh):
    result = optsched.solve(optsched.read(name).changed(changes))
    assert result.status == "optimal"
    assert result.objective == pytest.approx(kwh, rel=1e-12)


def test_golden_value_of_two_copies_from_the_shell(tmp_path):
    document = optsched.read("eaco/paper-four").model_dump(mode="json", by_alias=True)
    document["jobs"] += [job | {"id": job["id"] + "-again"} for job in document["jobs"]]
    path = tmp_path / "two-copies.json"
    path.write_text(json.dumps(document))
    arguments = ["solve", str(path), "--set", "jobs.*.max_slowdown=1.10"]
    outcome = CliRunner(env={"COLUMNS": "100"}).invoke(app, arguments)
    assert outcome.exit_code == 0
    assert "222.69" in outcome.output


# --- figures that are allowed, but probably not meant -------------------------------------------


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"energy_weight": 0.5}, "energy_weight is given in vain: the objective is 'run-to-"),
        ({"epoch_s": 60.0}, "epoch_s is given in vain"),
        ({"power_cap_w": 0.5}, "the power cap of 0.5 W is below 1 % of one node's peak"),
        ({"max_jobs_per_gpu": 1, "measured": {"a a": [1, 1]}}, "measured in vain, since at most 1"),
        ({"jobs": [{"max_slowdown": 20.0}]}, "job 'j0' bears a slowdown of 20"),
        ({"gpus": {"X": {"power": KILOWATTS}}}, "'X' draws 0.4 W at its peak: are these kW?"),
    ],
)
def test_summary_warns_of_figures_that_were_probably_not_meant(fields, told):
    instance = small_instance(**fields)
    assert [text for text in doubts(instance) if told in text]
    plan = EacoPlan(groups=(Group(jobs=("j0",), nodes="x"),))
    assert told in summary(instance, result_of(instance, plan))["warning"]


def test_nothing_is_doubtful_about_the_bundled_instances():
    for name in optsched.instance.names("eaco"):
        assert not list(doubts(optsched.read(name)))

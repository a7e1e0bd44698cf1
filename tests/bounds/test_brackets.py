"""`python -m benchmarks.brackets`: its figures against hand calculation, and small runs."""

import pytest

import optsched
from benchmarks.brackets import __main__ as command
from benchmarks.brackets import bills, energies, makespans, measure, report
from benchmarks.brackets.measure import Bracket, Row
from optsched.bounds.schedules import Schedules
from tests.support.builders.rollout_parts import scenario, trace


def rows():
    return [
        Row("slow", {0: 0.5, 1: 1.5, 2: 0.7}),
        Row("quick", {0: 0.1, 1: 0.3, 2: 0.2}),
        Row("hindsight", {0: 0.0, 1: 0.0, 2: 0.0}),
        Row("cut", {0: 0.0, 1: None, 2: 0.0}, unfinished={1: 4}),
    ]


def test_the_best_has_the_least_median_ends_all_jobs_and_is_not_hindsight():
    assert report.best(rows()).policy == "quick"
    assert report.best(rows()[2:]) is None
    assert [report.cells(row) for row in rows()] == [
        ("70.0 %", "150.0 %"),
        ("20.0 %", "30.0 %"),
        ("0.0 %", "0.0 %"),
        ("4 jobs did not end (seeds 1)", "none"),
    ]


def test_two_jobs_one_after_the_other_are_a_quarter_above_what_bounds_them():
    world, jobs = scenario(1, 1), trace((0, 1, 20), (0, 1, 10))
    row = Row("fifo")
    measure.roll_out(row, world, jobs, 3, 20.0)
    assert row == Row("fifo", {3: pytest.approx(0.25)})  # 20 and 30 s: 25 s on average
    assert measure.proven_s(world, jobs) <= 20.0


def test_a_policy_below_its_bound_is_told_whatever_else():
    world, jobs = scenario(1, 1), trace((0, 1, 20), (0, 1, 10))
    row = Row("fifo", {0: 1.0})
    measure.roll_out(row, world, jobs, 1, 25.0)
    assert row.below == []
    measure.roll_out(row, world, jobs, 2, 25.000000000000004)
    assert row.below == [2]
    assert report.cells(row)[0] == "BELOW ITS BOUND on seeds 2"


def test_policies_of_boa_cloud_are_beside_the_bound_of_schedules_that_move_no_job(monkeypatch):
    few = optsched.read_scenario("boa-cloud").changed({"trace.jobs": 12})
    monkeypatch.setattr(measure, "read_scenario", lambda name: few)
    policies = ["boa-budgeted:price=0.001", "boa:budget=160"]
    found = measure.bracket("boa-cloud", policies, [0, 1])
    fixed = optsched.bound(few, seed=1, schedules=Schedules(moves=False))
    assert found.bounds_s[1] == fixed.jct_mean_s > optsched.bound(few, seed=1).jct_mean_s
    assert all(0 < value < 1 for row in found.rows for value in row.above.values())
    moving, jobs = Row("random-non-sticky"), trace((0, 1, 95), (3, 1, 95))
    with pytest.raises(ValueError, match="'random-non-sticky' moves jobs"):
        measure.roll_out(moving, scenario(1, 8), jobs, 1, 1.0, Schedules(moves=False))


def test_jobs_that_do_not_end_are_counted_and_nothing_is_told_of_the_others():
    row = Row("fifo")
    measure.roll_out(row, scenario(1, 1, end_s=25.0), trace((0, 1, 20), (0, 1, 10)), 0, 1.0)
    assert row == Row("fifo", {0: None}, unfinished={0: 1})


def test_a_scenario_without_a_bound_says_why(monkeypatch):
    speedup = {"kind": "amdahl", "parallel_fraction": 0.9, "max_gpus": 2}
    phases = [{"work_gpu_s": 1.0, "speedup": speedup}]
    batches = {"batch_size": 8, "noise_scale": [0.0]}
    world = scenario(1, 2, models={"e": {"phases": phases, "batches": batches}})
    monkeypatch.setattr(measure, "read_scenario", lambda name: world)
    monkeypatch.setattr(measure, "jobs_of", lambda world, seed: trace((0, 1, 5)))
    found = measure.bracket("any", ["fifo"], [0])
    assert (found.bounds_s, found.rows) == ({}, [])
    assert f"| any | none | {found.reason} |  |  |" in report.markdown([found], "").splitlines()
    assert "models[e].batches" in found.reason


def test_tables_go_to_their_marks_and_equal_simulate(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    marks = [command.begin(), command.begin(orders=True), command.begin(told=True)]
    page.write_text("".join(f"{mark}\n<!-- end -->\n" for mark in marks))
    monkeypatch.setattr(command, "PAGE", page)
    monkeypatch.setitem(measure.POLICIES, "pal-64", ("fifo", "srtf"))
    few = ["--no-hindsight", "--seeds", "1", "--scenarios", "pal-64", "--to-docs"]
    assert command.main(few) == 0
    printed = capsys.readouterr().out
    jct_s = optsched.simulate("pal-64", "srtf", seed=1).metrics["jct_mean_s"]
    above = f"{100 * (jct_s / optsched.bound('pal-64', seed=1).jct_mean_s - 1):,.1f} %"
    assert f"| `srtf` | {above} | {above} |" in printed
    assert page.read_text().partition(marks[1])[0].count(printed.strip()) == 1
    monkeypatch.setattr(command, "bracket", lambda *_: Bracket("x", {0: 1.0}, [below()]))
    assert command.main(["--seeds", "0"]) == 1
    assert "BELOW ITS BOUND" in capsys.readouterr().out


def below():
    return Row("fifo", {0: -0.25}, below=[0])


def test_orders_are_rows_and_placements_columns(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measure, "PLACEMENTS", ("packed-sticky", "pm-first"))
    monkeypatch.setattr(report, "PLACEMENTS", measure.PLACEMENTS)
    assert command.main(["--seeds", "0", "--orders"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines[4:]] == [f"| {o}" for o in measure.ORDERS]
    assert all(line.count(" %") == 4 for line in lines[4:])


def test_unknown_scenarios_are_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        command.main(["--scenarios", "nonsense"])
    assert "unknown: nonsense; known: philly-small" in capsys.readouterr().err


def test_some_policies_alone_are_not_for_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "PAGE", tmp_path / "none.md")
    few = ["--seeds", "0", "--scenarios", "eaco-64", "--policies", "fifo:backfill=true,srtf"]
    assert command.main(few) == 0
    rows = capsys.readouterr().out.partition("### eaco-64")[2].splitlines()[4:]
    assert [row.split(" | ")[0] for row in rows] == ["| `fifo:backfill=true`", "| `srtf`"]
    with pytest.raises(SystemExit, match="all policies"):
        command.main([*few, "--to-docs"])


def test_hindsight_stands_beside_the_best_policy():
    found = Bracket("x", {0: 10.0, 1: 10.0, 2: 10.0}, rows()[:3])
    told = report.markdown([found], "").splitlines()[4]
    assert told == "| x | 10 | `quick` | 20.0 % | 30.0 % | 0.0 % | 0.0 % |"
    found = Bracket("x", found.bounds_s, rows()[:2])
    table = report.markdown([found], "").splitlines()[2:5]
    assert [line.count("|") for line in table] == [6, 6, 6]


def test_what_is_told_of_run_times_changes_policies_and_not_the_bound(monkeypatch, capsys):
    monkeypatch.setattr(command, "ESTIMATED", ("pal-64",))
    assert command.main(["--seeds", "0", "--told", "--policies", "srtf,las"]) == 0
    lines = capsys.readouterr().out.splitlines()[4:]
    assert [line.split(" | ")[0] for line in lines] == [f"| pal-64, {t}" for t in measure.TOLD]
    by_policy = list(zip(*(line.split(" | ")[1:] for line in lines), strict=True))
    assert len(set(by_policy[0])) == len(lines)
    assert len(set(by_policy[1])) == 1


def test_mean_jct_at_the_bill_is_beside_the_line_of_the_same_jobs(monkeypatch):
    few = optsched.read_scenario("boa-cloud").changed({"trace.jobs": 8})
    monkeypatch.setattr(bills, "read_scenario", lambda name: few)
    rows = bills.spent("boa", 30, [0, 1])
    assert not any(row.is_below for row in rows)
    assert all(0 < row.held_above < row.billed_above for row in rows)
    told = bills.bills_markdown({("boa", 30): rows}, "head").splitlines()[-1]
    assert told.startswith("| 30 | `boa` | ")
    assert told.count(" %") == 4


def test_energy_is_beside_the_bound_of_the_class_that_a_rollout_is_in(monkeypatch, capsys):
    few = optsched.read_scenario("eaco-28").changed({"trace.jobs": 12})
    monkeypatch.setattr(energies, "read_scenario", lambda name: few)
    found = energies.drawn("eaco-28", ["eaco-greedy", "random-pairs"], [0])
    assert not any(row.is_below for rows in found.values() for row in rows)
    greedy = found["eaco-greedy"][0]
    assert 0 < greedy.above_borne < greedy.above
    assert command.main(["--energy", "--seeds", "0"]) == 0
    assert "| eaco-64 | `longest-first` | " in capsys.readouterr().out
    told = energies.energies_markdown({"x": {"y": [energies.Drawn(0.5, None)]}}, "head")
    assert "slower than that" in told


def test_a_makespan_is_set_beside_its_bound(monkeypatch, capsys):
    world, jobs = scenario(1, 1), trace((0, 1, 20), (5, 1, 10))
    monkeypatch.setattr(makespans, "read_scenario", lambda name: world)
    monkeypatch.setattr(makespans, "jobs_of", lambda world, seed: jobs)
    few = ["--makespan", "--scenarios", "pal-64", "--seeds", "0,1", "--policies", "fifo,lrpt"]
    assert command.main(few) == 0
    assert "| pal-64 | `fifo` | 0.0 % | 0.0 % |\n| pal-64 | `lrpt` |" in capsys.readouterr().out

"""`python -m benchmarks`: rows in their own processes, tables and slopes; never a timing."""

import importlib
import json
import math
import platform
from dataclasses import asdict
from pathlib import Path

import pytest

import optsched
from benchmarks import __main__ as command
from benchmarks.generators import (
    classes,
    next_epoch,
    sharing,
    sharing_in_types,
    sharing_next_epoch,
    tree,
)
from benchmarks.suite import pal, pal_peers, rows, sia, tables
from benchmarks.suite.catalogue import catalogue
from benchmarks.suite.child import without_folders
from benchmarks.suite.measure import Outcome
from benchmarks.suite.rows import Row
from benchmarks.suite.run import in_process, run
from benchmarks.suite.sia_rounds import sia_rounds
from benchmarks.suite.slopes import exponent, slopes

SMALLEST = ("/ 32 GPUs / exact", "/ 24 jobs / exact", "/ 64 GPUs / choice, warm")
SMALLEST += ("/ 1,000 jobs / fifo", "/ 1,000 jobs / simpy")
FIELDS = {"work", "size", "unit", "method", "is_ours", "reason", "ratio", "objective_ratio"}
FIELDS |= set(asdict(Outcome(case="")))


def record(**changes):
    row = Row("work", 10, "GPUs", "exact", "pal:solve", is_ours=True)
    outcome = asdict(Outcome("ten", cpu_s=2.0, wall_s=3.0, memory_mib=80.0, objective=5.0))
    return tables.records([(row, outcome)])[0] | changes


def document(*records):
    document = command.document_of([], "full")
    return document | {"rows": list(records), "slopes": slopes(list(records))}


# --- the command ------------------------------------------------------------------------------


def test_smallest_rows_are_measured_and_written(tmp_path, capsys):
    only = [part for name in SMALLEST for part in ("--only", name)]
    assert command.main(["--quick", *only, "--output", str(tmp_path / "new")]) == 0
    document = json.loads((tmp_path / "new/benchmarks.json").read_text())
    about = {"schema", "set", "date", "commit", "machine", "versions"}
    assert set(document) == about | {"rows", "slopes"}
    assert document["machine"]["cores"] >= 1
    assert document["versions"]["optsched"]
    assert len(document["rows"]) == len(SMALLEST)
    for row in document["rows"]:
        assert set(row) == FIELDS
        assert row["status"] in {"optimal", "done"}, row
        assert min(row["cpu_s"], row["wall_s"]) > 0
        assert row["memory_mib"] > 10
        assert row["ratio"] == 1 or not row["is_ours"]
        if row["bound"] is not None:
            assert row["bound"] <= row["objective"]
            assert row["gap"] <= row["gap_asked"]
    printed = capsys.readouterr()
    assert printed.err.count("CPU s") == len(document["rows"])
    written = (tmp_path / "new/benchmarks.md").read_text()
    for text in (printed.out, written, json.dumps(document)):
        assert "PAL placement" in text
        assert str(Path.home()) not in text
        assert str(Path(command.__file__).parent) not in text
        assert len(platform.node()) < 4 or platform.node() not in text


def test_list_names_every_row_and_measures_none(capsys):
    assert command.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [row.name for row in catalogue()]
    assert command.main(["--list", "--quick", "--only", "simpy"]) == 0
    assert all("SimPy" in line for line in capsys.readouterr().out.splitlines())


def test_unknown_name_is_refused_with_the_known_ones(capsys):
    assert command.main(["--only", "nonsense"]) == 2
    assert "nonsense" in (text := capsys.readouterr().err)
    assert "PAL placement" in text


def test_figures_of_the_docs_are_of_all_rows(tmp_path, capsys, monkeypatch):
    assert command.main(["--to-docs", "--quick"]) == 2
    assert "--quick" in capsys.readouterr().err
    monkeypatch.setattr(command, "FIGURES", tmp_path)
    monkeypatch.setattr(command, "run", lambda chosen: [(chosen[0], asdict(Outcome("one")))])
    assert command.main(["--to-docs", "--output", str(tmp_path / "new")]) == 0
    written = (tmp_path / "benchmarks.json").read_text()
    assert written == (tmp_path / "new" / "benchmarks.json").read_text()


def test_interrupt_writes_what_there_is(tmp_path, capsys, monkeypatch):
    def broken_off(chosen):
        yield chosen[0], asdict(Outcome("one", cpu_s=1.0))
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", broken_off)
    assert command.main(["--quick", "--output", str(tmp_path)]) == 130
    assert "interrupted after 1 of" in capsys.readouterr().err
    assert len(json.loads((tmp_path / "benchmarks.json").read_text())["rows"]) == 1


def test_limits_are_lowered_never_raised():
    row = Row("work", 10, "GPUs", "exact", "pal:solve", {"limit_s": 60.0}, limit_s=60.0)
    lowered = command._limited(row, 5.0)
    assert (lowered.limit_s, lowered.options["limit_s"]) == (5.0, 5.0)
    assert command._limited(row, 90.0) is command._limited(row, None) is row


# --- the catalogue ----------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [False, True])
def test_every_size_has_one_row_of_ours_and_functions_exist(quick):
    rows = catalogue(quick=quick)
    assert len({row.name for row in rows}) == len(rows)
    for size in {(row.work, row.size) for row in rows}:
        group = [row for row in rows if (row.work, row.size) == size]
        assert [row.is_ours for row in group] == [True] + [False] * (len(group) - 1), size
    for function in {row.function for row in rows}:
        module, name = function.split(":")
        assert callable(getattr(importlib.import_module(f"benchmarks.suite.{module}"), name))


def test_full_set_has_the_sizes_that_are_claimed():
    names = "\n".join(row.name for row in catalogue())
    for size in ("16,384 GPUs", "100,000 GPUs", "10,000 jobs", "1,000,000 phases", "82,247 jobs"):
        assert size in names
    philly = [row for row in catalogue(philly="jobs.csv") if row.work.startswith("rollout")]
    assert all(row.options["file"] == "jobs.csv" for row in philly)


# --- rows that cannot be measured -------------------------------------------------------------


def test_missing_package_is_skipped_with_the_reason():
    row = Row("work", 1, "GPUs", "peer", "pal:solve", needs=("numpy", "no_such_solver"))
    ((_, outcome),) = run([row])
    assert outcome == {"status": "skipped", "reason": "no_such_solver not installed"}
    line = tables.progress(1, 2, row, outcome)
    assert line.endswith("work / 1 GPUs / peer: skipped: no_such_solver not installed")


def test_failing_row_is_skipped_with_the_reason():
    row = Row("work", 1, "GPUs", "peer", "pal:solve", {"gap": 2.0, "limit_s": 1.0, "gpus": 32})
    outcome = in_process(row)
    assert outcome["status"] == "skipped"
    assert outcome["reason"].startswith("ValueError: the gap must be in [0, 1)")


def test_row_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(rows, "GRACE_S", 0.0)
    row = Row("work", 1, "GPUs", "exact", "pal:solve", limit_s=0.01)
    assert in_process(row) == {"status": "skipped", "reason": "did not end within 0 s"}


def test_reasons_name_no_folders():
    text = without_folders("[Errno 2] No such file: '/home/somebody/data/jobs.csv'")
    assert text == "[Errno 2] No such file: 'jobs.csv'"


# --- tables and slopes ------------------------------------------------------------------------


def test_ratios_refer_to_ours_of_the_same_size():
    ours = Row("work", 10, "GPUs", "exact", "pal:solve", is_ours=True)
    peer = Row("work", 10, "GPUs", "peer", "pal:solve")
    other = Row("work", 20, "GPUs", "peer", "pal:solve")
    measured = [(ours, {"status": "optimal", "case": "ten", "cpu_s": 2.0, "objective": 5.0})]
    measured.append((peer, {"status": "feasible", "case": "ten", "cpu_s": 7.0, "objective": 6.0}))
    measured.append((other, {"status": "optimal", "case": "twenty", "cpu_s": 9.0}))
    measured.append((peer, {"status": "skipped", "reason": "absent"}))
    made = tables.records(measured)
    assert [r["ratio"] for r in made] == [1.0, 3.5, None, None]
    assert [r["objective_ratio"] for r in made] == [1.0, 1.2, None, None]
    assert [r["case"] for r in made] == ["ten", "ten", "twenty", "ten"]
    assert [tables.cells(r)[8] for r in made] == ["1", "> 3.5", "", ""]
    assert tables.cells(made[3])[-1] == "skipped: absent"


def test_slopes_of_made_up_costs():
    powers = {"square": 2.0, "line": 1.0, "root": 0.5}
    made = [
        record(method=name, size=size, cpu_s=0.003 * size**power)
        for name, power in powers.items()
        for size in (64, 256, 4096)
    ]
    by_method = {slope["method"]: slope for slope in slopes(made)}
    for name, power in powers.items():
        assert math.isclose(by_method[name]["exponent"], power, rel_tol=1e-9)
        assert by_method[name]["sizes"] == [64, 256, 4096]
    assert math.isclose(exponent({1: 1.0, 10: 10.0, 100: 10.0}), 0.5)


def test_slopes_leave_out_what_did_not_end_and_what_has_two_sizes():
    made = [record(size=size, cpu_s=1.0 * size) for size in (1, 2)]
    made += [record(size=3, status="feasible"), record(size=4, status="skipped", cpu_s=None)]
    assert slopes(made) == []
    (slope,) = slopes([*made, record(size=5, cpu_s=5.0)])
    assert slope["sizes"] == [1, 2, 5]
    assert math.isclose(slope["exponent"], 1.0)


def test_markdown_tables_have_equal_rows():
    made = [record(size=size, case="a | b", cpu_s=1.0 * size) for size in (1, 2, 3)]
    made.append(record(size=4, status="skipped", reason="absent", cpu_s=None, objective=None))
    lines = [line for line in tables.markdown(document(*made)).splitlines() if line[:1] == "|"]
    counts = [line.count("|") for line in lines]
    assert counts == [len(tables.HEADS) + 3] * 6 + [len(tables.SLOPE_HEADS) + 1] * 3
    assert "skipped: absent" in lines[5]
    assert lines[-1] == "| work | exact | 1, 2, 3 GPUs | 1.00 |"


def test_terminal_tables_are_aligned():
    made = [record(size=size, cpu_s=size**3) for size in (1, 10, 100)]
    lines = tables.text(document(*made)).splitlines()
    assert lines.count("work: ten") == 3
    ends = {line.index(" 80 ") for line in lines if line.startswith("  exact")}
    assert len(ends) == 1
    assert lines[-1].split()[-1] == "3.00"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (4e-4, "<0.001"), (0.0123, "0.012"), (1.26, "1.3"), (31.44, "31.4"), (123, "123")],
)
def test_seconds(value, text):
    assert tables.seconds(value) == text


# --- instances and peers ----------------------------------------------------------------------


@pytest.mark.parametrize("before", [tree(256), classes(256, 100)], ids=["tree", "classes"])
def test_next_epoch_replaces_a_twentieth_of_the_jobs(before):
    after = next_epoch(before)
    assert after.topology == before.topology
    stayed = {job.id for job in before.jobs} & {job.id for job in after.jobs}
    assert len(stayed) == len(before.jobs) - math.ceil(0.05 * len(before.jobs))
    assert len(after.jobs) > len(stayed)
    assert sum(job.gpus for job in after.jobs) <= sum(job.gpus for job in before.jobs)
    assert next_epoch(before) == after


def test_next_epoch_of_sharing_replaces_a_twentieth_of_the_jobs():
    before = sharing(60, 4, 0.25)
    after = sharing_next_epoch(before)
    stayed = {job.id for job in before.jobs} & {job.id for job in after.jobs}
    assert (len(stayed), len(after.jobs)) == (57, 60)
    assert after.nodes == before.nodes
    assert sharing_next_epoch(before) == after
    assert len({job.type for job in sharing_in_types(40, 5, 3, 0.25).jobs}) == 5


@pytest.mark.parametrize("parts", [2, 4])
def test_random_parts_share_out_jobs_and_nodes(parts):
    instance = tree(256, [8])
    dealt = pal.dealt(instance, parts)
    assert sorted(job.id for part in dealt for job in part.jobs) == sorted(
        job.id for job in instance.jobs
    )
    gpus = [gpu for part in dealt for gpu in part.topology.gpus]
    assert len(set(gpus)) == len(gpus)
    assert set(gpus) <= set(instance.topology.gpus)
    outcome = pal.pop(5e-2, 30.0, parts, gpus=256, fanouts=[8])
    assert outcome.bound is None
    assert outcome.objective >= optsched.solve(instance, gap=5e-2).bound


def test_jobs_too_large_for_a_part_are_named():
    with pytest.raises(ValueError, match=r"job '.*' of \d+ GPUs does not fit into a part"):
        pal.dealt(tree(256), 32)


def test_formulation_for_peers_has_the_optimum_of_ours():
    outcome = pal_peers.solve("scipy", 0.0, 30.0, gpus=24)
    ours = optsched.solve(tree(24), gap=0.0)
    assert math.isclose(outcome.objective, ours.objective, rel_tol=1e-9)
    assert math.isclose(outcome.bound, ours.objective, rel_tol=1e-6)


def test_round_for_peers_has_the_optimum_of_ours():
    peer = sia.peer(64, "scipy", 0.0, 30.0)
    ours = sia.ours(64, 1e-4, warm=False)
    assert peer.case == ours.case
    assert ours.bound <= peer.objective <= ours.objective * (1 + 1e-9)


def test_rounds_of_sia_change_and_repeat():
    first, second = sia_rounds(64, 2)
    again = sia_rounds(64, 2)
    assert (again[1].cost == second.cost).all()
    assert 0 < len(set(first.jobs) & set(second.jobs)) < len(first.jobs)
    assert first.capacity.tolist() == [24, 16, 24]
    assert len(first.jobs) == 38
    assert second.cost.min() > 0
    assert set(first.gpus[first.type == 1].tolist()) == {1, 2, 4, 8, 16}

"""The command bound, its files under verify, and how far compare says policies are above it."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import optsched
from optsched.bounds import above
from optsched.cli.bound import beside
from optsched.cli.main import app
from optsched.cli.printing.rollout_tables import comparison
from optsched.reports.report import report
from optsched.traces.json_traces import write_trace
from optsched.traces.trace import RecordedRun
from tests.support.builders.rollout_parts import scenario, trace

FEW = ("--set", "trace.jobs=30")


def run(*arguments):
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, [str(a) for a in arguments])


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "bound.json"
    done = run("bound", "philly-small", *FEW, "--seed", 2, "-o", path)
    assert done.exit_code == 0, done.output
    assert "preemptive, clairvoyant" in done.stdout
    assert "one more GPU" in done.stdout
    return path


def test_what_bound_writes_is_proven_by_verify(written):
    done = run("verify", "philly-small", written, *FEW)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("proven: no schedule of philly-small")
    assert run("verify", "philly-small", written).exit_code == 1  # of other jobs
    assert run("verify", "pal-64", written, *FEW).exit_code == 1


def test_a_bill_is_bounded_with_the_starts_of_nodes(tmp_path):
    path, few = tmp_path / "bound.json", ("--set", "trace.jobs=3")
    done = run("bound", "boa-cloud", *few, "--no-moves", "--bill", 7, "-o", path)
    assert done.exit_code == 0, done.output
    assert "with starts of nodes" in done.stdout
    assert run("verify", "boa-cloud", path, *few).exit_code == 0
    document = json.loads(path.read_text())
    document["starts"][0]["worth_us"][1] = 10**9
    path.write_text(json.dumps(document))
    done = run("verify", "boa-cloud", path, *few)
    assert done.exit_code == 1
    assert "more than what a start is billed" in done.stdout
    moving = run("bound", "boa-cloud", *few, "--bill", 7)
    assert moving.exit_code == 2
    assert "where jobs move" in moving.stderr


@pytest.mark.parametrize("key", ["jct_mean_s", "makespan_s"])
def test_a_file_that_states_more_than_it_proves_is_refused(written, key):
    document = json.loads(written.read_text())
    document[key] *= 1.001
    written.write_text(json.dumps(document))
    done = run("verify", "philly-small", written, *FEW)
    assert done.exit_code == 1
    assert f"[{key}]" in done.stdout


def test_a_file_that_is_no_bound_is_told_fault_by_fault(written):
    document = json.loads(written.read_text())
    document["jct"]["prices"][0] = -1
    written.write_text(json.dumps(document))
    done = run("verify", "philly-small", written, *FEW)
    assert done.exit_code == 2
    assert "jct.prices[0]" in done.stderr


def test_json_has_certificate_and_worth():
    found = json.loads(run("bound", "pal-64", *FEW, "--json").stdout)
    assert found["schema"] == "optsched/bound/1"
    assert len(found["jct"]["prices"]) == len(found["jct"]["widths"])
    assert {"gpu_s", "node_s", "hours", "jobs"} == {*found["worth"]}


def test_compare_ends_with_the_bound_and_leaves_it_out_where_it_takes_long(monkeypatch):
    command = ("compare", "philly-small", *FEW, "--policy", "fifo,srtf", "--seed", "0-1")
    told = run(*command).stdout
    assert "above the bound" in told
    assert "No schedule is below the bound: preemptive, clairvoyant" in told
    rows = [line.split() for line in told.partition("above the bound")[2].splitlines()]
    assert [row[0] for row in rows[2:5]] == ["fifo", "srtf", "bound"] or [
        row[0] for row in rows[1:4]
    ] == ["fifo", "srtf", "bound"]
    monkeypatch.setattr(above, "MOST_PAIRS", 1)
    assert "above the bound" not in run(*command).stdout
    assert "above the bound" in run(*command, "--bound").stdout


def test_a_world_of_unknown_physics_has_no_bound():
    """Scenarios with batch sizes are compared as before; only who asks is told why."""
    changes = ("--set", "models.cifar10.batches.batch_size=8",
               "--set", "models.cifar10.batches.noise_scale=[0]")  # fmt: skip
    done = run("bound", "boa-cloud", "--set", "trace.jobs=5", *changes)
    assert done.exit_code == 2
    assert "batches" in done.stderr


def test_a_record_below_the_bound_tells_that_the_modelled_world_is_too_slow():
    """Two jobs at once on one GPU: no schedule of the modelled world does so."""
    record = [[RecordedRun(0, 10_000_000, 1)], [RecordedRun(0, 12_000_000, 1)]]
    jobs = trace((0, 1, 10), (0, 1, 12), record=record)
    for gpus, is_below in ((1, True), (2, False)):
        compared = optsched.compare(scenario(1, gpus), ["fifo"], trace=jobs)
        bounded = compared.bounded()
        told = "\n".join(map(str, [*comparison(bounded), *beside(bounded)]))
        assert ("the modelled world is too slow" in told) == is_below
        assert "as recorded" in told


def test_comparisons_carry_bounds_by_policy_and_seed(tmp_path):
    command = ("compare", "philly-small", *FEW, "--policy", "fifo,srtf", "--seed", "0-1")
    done = run(*command, "--json", "-o", tmp_path / "c.csv", "--per-seed")
    told = json.loads(done.stdout)
    assert told == json.loads(run(*command, "--json").stdout)
    where = optsched.read_scenario("philly-small").changed({"trace.jobs": 30})
    bounds = {seed: optsched.bound(where, seed=seed) for seed in (0, 1)}
    assert [(row["policy"], row["seed"]) for row in told["bounds"]] == [
        (name, seed) for name in ("fifo", "srtf") for seed in (0, 1)
    ]
    runs = {(row["policy"], row["seed"]): row for row in told["runs"]}
    for row in told["bounds"]:
        best, measured = bounds[row["seed"]], runs[row["policy"], row["seed"]]
        assert row["schedules"] == best.class_of_schedules
        for metric in ("jct_mean_s", "makespan_s", "energy_kwh"):
            assert row[f"{metric}_bound"] == measured[f"{metric}_bound"] == getattr(best, metric)
            above = measured[metric] / getattr(best, metric) - 1
            assert row[f"{metric}_above"] == pytest.approx(above, abs=1e-12)
    for row in told["policies"]:
        seeds = [runs[row["policy"], seed]["jct_mean_s_above"] for seed in (0, 1)]
        assert row["jct_mean_s_above"] == pytest.approx(sum(seeds) / 2)
    table = pd.read_csv(tmp_path / "c.csv")
    assert table["jct_mean_s_above"].tolist() == pytest.approx(
        [row["jct_mean_s_above"] for row in told["runs"]]
    )
    bare = json.loads(run(*command, "--no-bound", "--json").stdout)
    assert "jct_mean_s_above" not in bare["policies"][0]
    assert not bare["bounds"]


def test_a_report_shows_bounds_with_a_picture(tmp_path):
    command = ("compare", "philly-small", *FEW, "--policy", "fifo,srtf")
    for name in ("c.json", "c.csv"):
        assert run(*command, "-o", tmp_path / name).exit_code == 0
        page = report([tmp_path / name])
        assert "Above the bound" in page
        assert "<td>bound</td>" in page
        assert "Mean JCT of each policy, and the bound as a line" in page
    assert run(*command, "--no-bound", "-o", tmp_path / "c.json").exit_code == 0
    assert "Above the bound" not in report([tmp_path / "c.json"])
    with pytest.raises(ValueError, match="there are no bounds"):
        optsched.compare("philly-small", ["fifo"]).plot_bounds()


def test_bars_stand_above_the_line_of_the_bound():
    where = optsched.read_scenario("philly-small").changed({"trace.jobs": 30})
    compared = optsched.compare(where, ["fifo", "srtf"], seeds=2).bounded()
    ax = compared.plot_bounds()
    least = min(row.jct_mean_s_bound for row in compared.bounds)
    assert ax.lines[0].get_xdata()[0] == least
    means = compared.frame()["jct_mean_s"]
    assert [bar.get_width() for bar in ax.patches] == means[::-1].tolist()
    shares = [f"{share:+.1%}" for share in compared.frame()["jct_mean_s_above"]]
    assert [text.get_text() for text in ax.texts] == shares[::-1]


def test_verify_takes_the_trace_that_the_bounds_were_made_with(tmp_path):
    jobs, file = tmp_path / "jobs.json", tmp_path / "bound.json"
    write_trace(trace((0, 1, 20), (0, 1, 10)), jobs)
    assert run("bound", "philly-small", "--trace", jobs, "-o", file).exit_code == 0
    done = run("verify", "philly-small", file, "--trace", jobs)
    assert done.stdout.startswith("proven: no schedule of philly-small"), done.output
    assert run("verify", "philly-small", file).exit_code == 1
    result = tmp_path / "r.json"
    optsched.write(optsched.solve("boa/hand"), result)
    refused = run("verify", "boa/hand", result, "--trace", jobs)
    assert (refused.exit_code, "of bounds" in refused.stderr) == (2, True)


def test_the_form_of_files_is_told(written):
    form = json.loads(run("schema", "bound").stdout)
    assert form["$id"] == json.loads(written.read_text())["schema"]
    assert "thresholds" in form["$defs"]["JctCertificate"]["properties"]
    shown = run("trace", "show", written)
    assert "it is bounds: `optsched verify SCENARIO FILE` takes them" in shown.output


def test_what_one_more_gpu_is_worth_is_in_table_and_json():
    command = ("bound", "pal-64", "--set", "trace.jobs=60")
    told = json.loads(run(*command, "--json").stdout)["worth"]
    shown = run(*command).stdout
    for name in ("one more GPU", "one more node", "dearest hours", "jobs kept longest"):
        assert name in shown
    assert told["node_s"] >= told["gpu_s"] > 0  # which gangs fit is no line in GPUs
    assert told["gpu_s"] > 0
    assert all(0 < share <= 1 for _, share in told["hours"])
    assert told["jobs"][0][0] in shown


def test_energy_is_bounded_and_proven_in_both_classes(tmp_path):
    path, told = tmp_path / "bound.json", {}
    for extra in ((), ("--within-slowdowns",)):
        done = run("bound", "eaco-28", *FEW, *extra, "-o", path)
        assert done.exit_code == 0, done.output
        assert "energy" in done.stdout
        told[extra] = json.loads(path.read_text())["energy_kwh"]
        proved = run("verify", "eaco-28", path, *FEW)
        assert proved.exit_code == 0, proved.output
        assert ("than its users bear" in proved.stdout) == bool(extra)
        assert " or energy below " in proved.stdout
    assert told[()] < told["--within-slowdowns",]


def test_a_bill_is_bounded_and_what_gpu_hours_can_buy(tmp_path):
    path = tmp_path / "bound.json"
    done = run("bound", "boa-cloud", "--set", "trace.jobs=10", "--no-moves", "-o", path)
    assert done.exit_code == 0, done.output
    assert "mean JCT at a bill" in done.stdout
    proved = run("verify", "boa-cloud", path, "--set", "trace.jobs=10")
    assert proved.exit_code == 0, proved.output
    assert "no moves to as many other GPUs" in proved.stdout
    assert " or cost below " in proved.stdout

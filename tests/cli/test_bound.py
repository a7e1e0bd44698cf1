"""The command bound, its files under verify, and how far compare says policies are above it."""

import json

import pytest
from typer.testing import CliRunner

import optsched
from optsched.bounds import above
from optsched.cli.bound import beside
from optsched.cli.main import app
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
    assert len(found["jct"]["thresholds"]) == 30
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
        told = "\n".join(map(str, beside(compared, wanted=True)))
        assert ("the modelled world is too slow" in told) == is_below
        assert "as recorded" in told

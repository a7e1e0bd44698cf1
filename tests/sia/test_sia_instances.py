"""Files of Sia's instances: wrong ones get every fault with its path; the commands take them."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.instances import build_sia
from optsched.registry import problem
from optsched.sia import SiaInstance
from optsched.sia.arrays import knapsack
from tests.support.strategies.common import law
from tests.support.strategies.sia import instances

HAND = optsched.read("sia/hand")
FOLDER = Path(build_sia.__file__).parent / "sia"


def command(*arguments, code=0):
    done = CliRunner(env={"COLUMNS": "100"}).invoke(app, [str(each) for each in arguments])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    return done.output


def test_the_committed_instances_are_those_that_the_script_writes():
    for name, text in build_sia.documents(Path()).items():
        assert (FOLDER / name).read_text() == text


@law(100)
@given(instances())
def test_the_digest_is_that_of_the_whole_document_though_jobs_keep_their_part(instance):
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    for _ in range(2):
        assert instance.sha256 == sha256(text.encode()).hexdigest()


@law(100)
@given(instances(), st.data())
def test_arrays_of_kinds_of_jobs_are_those_of_all_options(instance, data):
    """Jobs that are alike share the tuple of their options; a copy of it is a kind of its own."""
    copied = data.draw(st.lists(st.booleans(), min_size=len(instance.jobs)))
    own = zip(instance.options, copied, strict=False)
    instance.__dict__["options"] = tuple(tuple(list(row)) if new else row for row, new in own)
    arrays, rows = knapsack(instance), [one for own in instance.options for one in own]
    assert arrays.counts.tolist() == list(map(len, instance.options))
    assert arrays.cost.tolist() == [row.cost for row in rows]
    types = list(instance.gpus)
    use = [[row.gpus * (name == row.type) for name in types] for row in rows]
    assert arrays.use.tolist() == use


def changed(path, value):
    document = json.loads(HAND.to_json())
    place = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return document


SLOW = {"type": "slow", "gpus": 1, "goodput": 2.0}


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("gpus", "fast"), -1, "gpus.fast: must be at least 0, found -1"),
        (("gpus", "fast"), 1.5, "gpus.fast: expected a whole number, found 1.5"),
        (("gpus",), {}, "gpus: must not be empty"),
        (("power",), 0, "power: expected less than 0, found 0"),
        (("waiting_cost",), 0, "waiting_cost: must be at least 1e-09, found 0"),
        (("jobs",), [], "jobs: must not be empty"),
        (("jobs", 1, "id"), "a", 'jobs[1].id: "a" is already the id of jobs[0]'),
        (("jobs", 0, "configurations", 0, "type"), "slwo",
         "jobs[0].configurations[0].type: gpus has no type \"slwo\"; did you mean 'slow'?"),
        (("jobs", 0, "configurations", 1), SLOW,
         'jobs[0].configurations[1]: 1 GPUs of type "slow" are configurations[0] already'),
        (("jobs", 0, "configurations", 0, "goodput"), 0, "jobs[0].configurations[0].goodput: must"),
        (("jobs", 0, "current"), {"type": "fast", "gpus": 1},
         'jobs[0].current: 1 GPUs of type "fast" are none of the job\'s configurations'),
        (("jobs", 0, "preemptible"), False,
         "jobs[0].preemptible: only a job with a current configuration can keep it"),
        (("jobs", 0, "restart_factor"), 0.5,
         "jobs[0].restart_factor: only a job with a current configuration restarts"),
        (("jobs", 0, "restart_factor"), 1.5, "jobs[0].restart_factor: must be at most 1"),
        (("jobs", 0, "goodput"), 1, "jobs[0].goodput: "),
        (("jobs", 0), 7, "jobs[0]: expected an object, found 7"),
    ],
)  # fmt: skip
def test_wrong_instances_are_one_message_with_the_path(path, value, fault, tmp_path):
    document = changed(path, value)
    with pytest.raises(optsched.InstanceError) as error:
        SiaInstance.from_document(document)
    assert any(line.startswith(fault) for line in error.value.faults), error.value.faults
    (tmp_path / "wrong.json").write_text(json.dumps(document))
    told = command("solve", tmp_path / "wrong.json", code=2)
    assert fault.split(":")[0] in told


def test_several_faults_are_told_at_once():
    document = changed(("jobs", 1, "id"), "a")
    document["jobs"][2]["configurations"][0]["type"] = "fats"
    with pytest.raises(optsched.InstanceError) as error:
        SiaInstance.from_document(document)
    assert len(error.value.faults) == 2


def test_every_command_takes_sia_like_the_others(tmp_path):
    result, frontier, page = (tmp_path / name for name in ("r.json", "f.json", "page.html"))
    assert "sia/hand" in command("instances")
    methods = command("methods", "sia")
    assert all(name in methods for name in ("exact", "milp", "goodput-per-gpu", "lp-rounding"))
    assert json.loads(command("schema", "sia"))["$id"] == "optsched/sia/1"
    told = command("solve", "sia/hand", "--output", result)
    assert "1.83" in told
    assert "optimal" in told
    assert "1.83" in command("solve", "sia/hand", "--method", "milp")
    assert "1.83" in command("solve", "sia/hand", "--start", result)
    assert "feasible" in command("check", "sia/hand", result)
    assert "proven" in command("verify", "sia/hand", result)
    assert "2 of 2 GPUs of type 'fast'" in command("explain", result)
    assert "c_u_gpus(fast)_" in command("export", "sia/hand", "--format", "lp")
    values = ("--parameter", "gpus.fast", "--values", "1,2,3")
    command("frontier", "sia/hand", *values, "-o", frontier)
    assert "proven" in command("verify", "sia/hand", frontier)  # of an integer field, read again
    command("report", result, frontier, "-o", page)
    assert "gpus.fast" in page.read_text()


def test_a_forged_file_is_refused_by_the_command(tmp_path):
    path = tmp_path / "r.json"
    command("solve", "sia/hand", "--output", path)
    document = json.loads(path.read_text())
    for part, value in (("objective", 1.7), ("bound", 1.9)):
        path.write_text(json.dumps(document | {part: value}))
        assert part in command("verify", "sia/hand", path, code=1)
    taken = json.loads(json.dumps(document))
    taken["plan"]["jobs"][0] = {"id": "a", "type": "fast", "gpus": 2}
    path.write_text(json.dumps(taken))
    assert "4 GPUs of type" in command("check", "sia/hand", path, code=1)


def test_an_infeasible_round_is_told_and_explained(tmp_path):
    document = changed(("gpus",), {"fast": 0, "slow": 1})
    for job in document["jobs"]:
        job["must_run"] = True
    path, result = tmp_path / "none.json", tmp_path / "r.json"
    path.write_text(json.dumps(document))
    told = command("solve", path, "--output", result, code=3)
    assert "the GPUs do not suffice for the jobs that may not wait" in told
    assert "proven" in command("verify", path, result)


def test_estimates_of_memory_grow_with_the_options_and_refuse_before_anything_is_built():
    estimate = problem("sia").memory
    large = optsched.read("sia/cluster-64")
    for method in ("exact", "milp", "in-order"):
        assert 0 < estimate(HAND, method) < estimate(large, method) < 2**28
    with pytest.raises(optsched.TooLarge, match=r"method 'milp' needs about 0\.1 GiB"):
        optsched.solve(large, method="milp", memory_gib=0.05)

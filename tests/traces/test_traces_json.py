"""The project's own files of traces, and the commands that write and show them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from optsched.cli.main import app
from optsched.instance import InstanceError
from optsched.traces import (
    FAILED,
    FORMATS,
    STATUSES,
    Failure,
    RecordedRun,
    read_trace,
    trace_of,
    write_trace,
)
from optsched.traces.json_traces import to_json
from optsched.traces.summary import groups, headline, seen_us

ARRAYS = ("submit_us", "gpus", "run_us", "status", "utilization", "deadline_us")
PLAIN = ("name", "source", "ids", "model", "queue", "user", "failures", "record", "notes")
GOOD = {
    "schema": "optsched/trace/1",
    "name": "two",
    "jobs": {
        "id": ["a", "b"],
        "submit_us": [0, 5],
        "gpus": [1, 8],
        "run_us": [10, 20],
        "status": ["passed", "failed"],
    },
    "failures": {"job": ["b"], "reason": ["oom"], "run_us": [3]},
}


def assert_same(one, other):
    for name in ARRAYS:
        left, right = getattr(one, name), getattr(other, name)
        assert left.dtype == right.dtype
        assert not right.flags.writeable
        np.testing.assert_array_equal(left, right)
    for name in PLAIN:
        assert getattr(one, name) == getattr(other, name), name


WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=5)
NODES = st.dictionaries(WORD.filter(lambda word: "," not in word), st.integers(1, 999), max_size=3)


@st.composite
def recorded_run(draw):
    start, length = draw(st.integers(-(10**15), 10**15)), draw(st.integers(0, 10**12))
    nodes = tuple(draw(NODES).items())
    return RecordedRun(start, start + length, draw(st.integers(1, 999)), nodes)


RUNS = st.lists(recorded_run(), max_size=2)
ATTEMPTS = st.lists(st.builds(Failure, WORD, st.integers(1, 10**15)), max_size=3)


@st.composite
def traces(draw):
    ids = draw(st.lists(WORD, unique=True, max_size=6))

    def column(values):
        return draw(st.lists(values, min_size=len(ids), max_size=len(ids)))

    columns = {
        "ids": ids,
        "submit_s": column(st.floats(0, 1e9)),
        "gpus": column(st.integers(1, 10**6)),
        "run_s": column(st.floats(1e-5, 1e9)),
        "status": column(st.sampled_from(STATUSES)),
        "model": column(st.sampled_from(["", "bert"])),
        "user": column(st.sampled_from(["", "ann"])),
        "record": column(RUNS),
        "queue": column(st.text(max_size=2)),
        "utilization": column(st.floats(0, 1) | st.just(float("nan"))),
        "deadline_s": column(st.floats(1e9, 2e9) | st.just(float("nan"))),
    }
    pairs = zip(columns["status"], column(ATTEMPTS), strict=True)
    columns["failures"] = [
        attempts or [Failure("x", 1)] * (status == FAILED) for status, attempts in pairs
    ]
    return trace_of(draw(WORD), draw(st.text(max_size=3)), columns, draw(st.lists(WORD)))


@given(traces())
def test_what_is_written_is_read_again(tmp_path_factory, trace):
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    write_trace(trace, path)
    again = read_trace(path)
    assert_same(trace, again)
    assert to_json(again).encode() == path.read_bytes()


@pytest.fixture
def faults(tmp_path):
    def refused(document):
        path = tmp_path / "trace.json"
        path.write_text(json.dumps(document))
        with pytest.raises(InstanceError) as error:
            read_trace(path)
        return error.value.faults

    return refused


def changed(part, **columns):
    return GOOD | {part: GOOD[part] | columns}


def test_defaults(tmp_path):
    path = tmp_path / "trace.json"
    jobs = {key: GOOD["jobs"][key] for key in ("id", "submit_us", "gpus", "run_us")}
    path.write_text(json.dumps({"schema": "optsched/trace/1", "jobs": jobs}))
    trace = read_trace(path)
    assert trace.model == trace.queue == ("", "")
    assert trace.status.tolist() == [0, 0]
    assert trace.deadline_us.tolist() == [-1, -1]
    assert np.isnan(trace.utilization).all()
    assert not trace.failures


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (changed("jobs", gpus=[1, 0]), "jobs.gpus[1]: must be at least 1, found 0"),
        (changed("jobs", gpus=[1, 1.5]), "jobs.gpus[1]: expected a whole number, found 1.5"),
        (changed("jobs", run_us=[0, 1]), "jobs.run_us[0]: must be at least 1, found 0"),
        (changed("jobs", gpus=[1]), "jobs.gpus: has 1 entries, but jobs.id has 2"),
        (changed("jobs", gpu=[1, 1]), "jobs.gpu: unknown key; did you mean 'gpus'?"),
        (changed("jobs", submit_us=[0, -1]), "jobs.submit_us[1]: must be at least 0, found -1"),
        (changed("jobs", utilization=[1.5, None]), "jobs.utilization[0]: must be at most 1"),
        (changed("jobs", status=["passed", "ok"]), "jobs.status[1]: expected 'passed', 'killed'"),
        (changed("failures", job=["c"]), 'failures.job[0]: there is no job "c"'),
        (changed("failures", reason=[]), "failures.reason: has 0 entries, but failures.job has 1"),
        (
            changed("failures", run_us=["3"]),
            'failures.run_us[0]: expected a whole number, found "3',
        ),
        (GOOD | {"failures": {}}, 'jobs.status[1]: job "b" fails, but has no entry in failures'),
        (GOOD | {"schema": "optsched/pal/1"}, "schema: expected 'optsched/trace/1', found"),
        (GOOD | {"jobs": 3}, "jobs: expected an object, found 3"),
        ({"schema": "optsched/trace/1"}, "jobs: missing"),
        ([], "document: expected an object, found a list of 0"),
    ],
)
def test_faults_have_paths(faults, document, fault):
    assert faults(document)[0].startswith(fault)


def test_all_faults_at_once(faults):
    document = changed("jobs", id=["a", "a"], submit_us=[0, -7], gpus=[0, 1], run_us=["x", 1])
    told = faults(document | {"nam": "x"})
    assert [fault.split(":")[0] for fault in told] == [
        "failures.job[0]",
        "jobs.gpus[0]",
        "jobs.id[1]",
        "jobs.run_us[0]",
        "jobs.status[1]",
        "jobs.submit_us[1]",
        "nam",
    ]


def test_only_the_first_faults_are_shown(tmp_path):
    path = tmp_path / "trace.json"
    many = {key: [0] * 30 for key in ("submit_us", "gpus", "run_us")}
    jobs = {"id": [str(n) for n in range(30)], **many}
    path.write_text(json.dumps({"schema": "optsched/trace/1", "jobs": jobs}))
    with pytest.raises(InstanceError, match=r"60 faults[\s\S]*jobs.gpus\[19\][\s\S]*and 40 more"):
        read_trace(path)


def test_run_times_seen_in_a_log():
    """A failed job's are its attempts; another's its attempts and the work."""
    columns = {
        "submit_s": [0, 0, 0],
        "gpus": [1, 3, 16],
        "run_s": [10, 20, 30],
        "status": ["passed", "killed", "failed"],
        "failures": [(), (Failure("x", 5_000_000),), (Failure("x", 7_000_000),) * 2],
    }
    trace = trace_of("t", "s", columns)
    assert (seen_us(trace) / 1e6).tolist() == [10, 25, 14]
    rows = {row["jobs of"]: row for row in groups(trace)}
    assert rows["2 to 4 GPUs"]["run p50"] == "25 s"
    assert rows["failed"]["jobs"] == "1"
    assert rows["above 8"]["GPU-time %"] == f"{100 * 14 * 16 / (10 + 75 + 14 * 16):.1f}"
    assert rows["5 to 8 GPUs"]["run p50"] == ""
    assert headline(trace)["failing attempts"] == "3 of 2 jobs"


# --- commands -----------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, ["trace", *map(str, arguments)])


def test_import_and_show(tmp_path):
    source, target = tmp_path / "jobs.csv", tmp_path / "trace.json"
    text = "job_id,num_gpu,submit_time,duration\na,1,0,90000\nb,64,5,1000\nc,1,5,0\n"
    source.write_text(text)
    done = run("import", source, "--input-format", "muri", "-o", target)
    assert done.exit_code == 0, done.output
    assert "1 jobs ran for no time: left out" in done.output
    assert read_trace(target).ids == ("a", "b")
    shown = run("show", target)
    assert shown.output == done.output
    assert "65" not in shown.output
    assert "above 8" in shown.output


def test_options_and_workloads_reach_the_importer(tmp_path):
    source, target = tmp_path / "jobs.csv", tmp_path / "trace.json"
    header = "name,num_gpu,gpu_milli,pod_phase,creation_time,deletion_time,scheduled_time\n"
    source.write_text(header + "a,1,500,Failed,0,9,0\nb,1,1000,Failed,0,9,0\n")
    arguments = ("import", source, "--input-format", "openb", "-o", target)
    assert run(*arguments, "--set", "fractions=drop").exit_code == 0
    assert read_trace(target).ids == ("b",)
    wrong = run(*arguments, "--set", "fraction=drop")
    assert (wrong.exit_code, "did you mean 'fractions'" in wrong.stderr) == (2, True)
    assert "expected KEY=VALUE" in run(*arguments, "--set", "fractions").stderr
    assert "one workload only" in run(*arguments, "--workload", "1").stderr


def test_faults_end_the_command_and_write_nothing(tmp_path):
    source, target = tmp_path / "jobs.csv", tmp_path / "trace.json"
    source.write_text("job_id,num_gpu,submit_time,duration\na,x,0,90000\n")
    done = run("import", source, "--input-format", "muri", "-o", target)
    assert done.exit_code == 2
    assert "line 2, column num_gpu: expected a whole number of at least 1" in done.stderr
    assert not target.exists()
    assert run("show", source).exit_code == 2


def test_formats_are_listed():
    output = run("formats").output
    assert all(name in output for name in FORMATS)

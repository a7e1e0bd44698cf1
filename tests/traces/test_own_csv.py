"""A user's own table: columns of any names, units, zones; what is left out; faults."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from optsched.cli.main import app
from optsched.documents.faults import InstanceError
from optsched.registry import UnknownNameError
from optsched.rollout.trace_source import jobs_of, scenario_of
from optsched.traces import STATUSES, US, generate, import_trace, read_trace, seen_us
from optsched.traces.trace import RecordedRun


@pytest.fixture
def load(tmp_path):
    def read(text, **options):
        path = tmp_path / "jobs.csv"
        path.write_text(text)
        return import_trace(path, "csv", **options)

    return read


def test_usual_names_are_recognised(load):
    trace = load(
        "Job ID,Submit Time,GPUs Requested,Duration (min),Owner,Partition,State,Model Name,Due\n"
        "a,10,2,1.5,ann,p,COMPLETED,bert,400\n"
        "b,20,1,2,bob,q,Cancelled by 7,gpt,\n".replace("Cancelled by 7", "cancelled")
    )
    assert trace.ids == ("a", "b")
    assert trace.submit_us.tolist() == [0, 10 * US]
    assert trace.run_us.tolist() == [90 * US, 120 * US]
    assert trace.user == ("ann", "bob")
    assert trace.queue == ("p", "q")
    assert trace.model == ("bert", "gpt")
    assert [STATUSES[code] for code in trace.status] == ["passed", "killed"]
    assert trace.deadline_us.tolist() == [390 * US, -1]
    assert trace.source == "your file"
    assert not any("Philly" in line for line in trace.notes)


def test_columns_are_named_and_those_not_read_are_told(load):
    text = "when,x,hours,colour\n2024-01-01 00:00:00,4,2,red\n"
    trace = load(text, map={"submit": "when", "gpus": "x", "run": "hours"}, unit={"run": "h"})
    assert seen_us(trace).tolist() == [7200 * US]
    assert "columns not read: 'colour'" in trace.notes
    again = load(text, map="submit=when,gpus=x,run=hours", unit="run=h")
    assert again.frame().equals(trace.frame())


def test_start_and_end_give_the_run_time_and_the_record(load):
    trace = load(
        "submit,gpus,start,end,nodes,status\n"
        "0,4,30,90,n1:3;n2:1,passed\n"
        "5,2,2,50,n1 n2,failed\n"
        "6,2,,,,passed\n"
        "7,1,60,50,n1,passed\n".replace("7,1,60,50", "7,1,60,65")
    )
    assert trace.run_us[0] == 60 * US
    assert trace.record[0] == (RecordedRun(30 * US, 90 * US, 4, (("n1", 3), ("n2", 1))),)
    assert trace.record[1] == (RecordedRun(2 * US, 50 * US, 2, (("n1", 1), ("n2", 1))),)
    assert "1 jobs lack a start or an end: left out" in trace.notes
    assert "1 jobs start before their submission: recorded so" in trace.notes
    assert "1 jobs name their nodes without GPUs: taken as shared evenly" in trace.notes


def test_a_start_and_a_run_time_give_the_record(load):
    trace = load("submit,gpus,start,run_min\n0,4,30,2\n1,4,,1\n")
    assert trace.record == {0: (RecordedRun(30 * US, 150 * US, 4),)}


def test_what_has_not_ended_or_has_no_gpu_is_left_out_and_counted(load):
    trace = load("submit,gpus,run,status\n0,0,9,done\n1,1,9,running\n2,1,9,\n3,1,0,ok\n4,1,9,oom\n")
    assert len(trace) == 2
    assert set(trace.notes[:4]) == {
        "1 jobs ask for no GPU: left out",
        "1 jobs had not ended: left out",
        "1 jobs have no status: taken as passed",
        "1 jobs ran for no time: left out",
    }
    assert trace.failures[1][0].reason == "oom"


def test_an_hour_that_the_clock_repeats_keeps_submission_start_and_end_in_order(load):
    """On 27 October 2024 Berlin's clocks went from 3:00 back to 2:00."""
    text = (
        "submit,gpus,start,end\n"
        "2024-10-27 02:50:00,1,2024-10-27 02:10:00,2024-10-27 02:40:00\n"
        "2024-10-27 03:30:00,1,2024-10-27 03:31:00,2024-10-27 03:32:00\n"
    )
    trace = load(text, zone="Europe/Berlin")
    assert trace.run_us.tolist() == [30 * 60 * US, 60 * US]
    assert trace.record[0][0].start_us == 20 * 60 * US
    assert trace.submit_us.tolist() == [0, 100 * 60 * US]
    assert any("in an hour that the clock repeats" in line for line in trace.notes)


@given(st.integers(0, 10**8), st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Tokyo"]))
def test_local_dates_are_the_moments_that_they_were(tmp_path_factory, after, zone):
    """Where the clock does not repeat an hour."""
    moment = datetime(2021, 1, 1, tzinfo=UTC) + timedelta(seconds=after)
    local = [(moment + timedelta(hours=n)).astimezone(ZoneInfo(zone)) for n in (0, 30, 60)]
    naive = [time.replace(tzinfo=None) for time in local]
    if any(n.replace(tzinfo=ZoneInfo(zone), fold=0).timestamp() != t.timestamp()
           or n.replace(tzinfo=ZoneInfo(zone), fold=1).timestamp() != t.timestamp()
           for n, t in zip(naive, local, strict=True)):  # fmt: skip
        return
    path = tmp_path_factory.mktemp("own") / "t.csv"
    path.write_text("submit,gpus,run\n" + "".join(f"{n},1,9\n" for n in naive))
    trace = import_trace(path, "csv", zone=zone)
    assert trace.submit_us.tolist() == [0, 108_000 * US, 216_000 * US]


# --- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("when,gpus,run\n1,1,1\n", {}, "no column is known as submit: name it with --map"),
        ("submit,gpus\n1,1\n", {}, "no column is known as run, nor two as start and end"),
        ("submit,gpus,run\n1,1,x\n", {}, "line 2, column run: expected a time .*, found 'x'"),
        ("submit,gpus,run\n1,1,1\n,1,1\n", {}, "line 3, column submit: expected a number in s"),
        ("submit,gpus,run\n1,1.5,1\n", {}, "line 2, column gpus: expected a whole number"),
        ("submit,gpus,run\n1,1,1,4\n", {}, "line 2: expected 3 cells .*, found 4"),
        ("submit,gpus,run,state\n1,1,1,odd\n", {}, "column state: expected passed, killed or"),
        ("a,gpus,run\n1,1,1\n", {"map": "submit=b"}, "no column 'b', which submit is to come"),
        ("submit;gpus;run\n31.3.2024;1;1\n", {}, "line 2, column submit: .* found '31.3.2024'"),
    ],
)
def test_faults_are_named_with_line_and_column(load, text, options, message):
    with pytest.raises(InstanceError, match=message):
        load(text, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map": {"submitt": "submit"}}, "did you mean 'submit'"),
        ({"unit": {"run": "weeks"}}, "unit of run"),
        ({"unit": {"gpus": "s"}}, "unit of gpus"),
        ({"zoone": "UTC"}, "did you mean 'zone'"),
    ],
)
def test_options_that_mean_nothing_are_named(load, options, message):
    with pytest.raises(UnknownNameError, match=message):
        load("submit,gpus,run\n1,1,1\n", **options)


def test_zones_and_pairs_that_mean_nothing_are_named(load):
    with pytest.raises(ValueError, match="no time zone 'Mars'"):
        load("submit,gpus,run\n1,1,1\n", zone="Mars")
    with pytest.raises(ValueError, match="map: expected FIELD=NAME"):
        load("submit,gpus,run\n1,1,1\n", map="submit")


# --- round trip --------------------------------------------------------------------------------

JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "submit": st.integers(0, 10**6),
            "gpus": st.integers(1, 64),
            "run": st.integers(1, 10**6),
            "queue": st.sampled_from(["", "a", "b,c", 'd"e']),
            "user": st.sampled_from(["ann", "bob"]),
            "model": st.text("xyz ", max_size=3),
            "status": st.sampled_from(["passed", "killed"]),
            "wait": st.integers(0, 10**5),
        }
    ),
    min_size=1,
    max_size=8,
)
SIZES = {"s": 1, "min": 60, "h": 3600}


@given(JOBS, st.sampled_from([",", ";", "\t"]), st.sampled_from(sorted(SIZES)))
def test_what_a_csv_writer_wrote_is_read_again(tmp_path_factory, jobs, delimiter, unit):
    lines = io.StringIO()
    writer = csv.writer(lines, delimiter=delimiter)
    if delimiter != ",":  # no quotation marks there
        jobs = [job | {"queue": job["queue"].replace('"', "")} for job in jobs]
    writer.writerow(["id", "submit", "gpus", f"run_{unit}", "queue", "user", "model", "status",
                     "start", "end"])  # fmt: skip
    for n, job in enumerate(jobs):
        start = job["submit"] + job["wait"]
        length = job["run"] * SIZES[unit]
        writer.writerow([n, job["submit"], job["gpus"], job["run"], job["queue"], job["user"],
                         job["model"], job["status"], start, start + length])  # fmt: skip
    path = tmp_path_factory.mktemp("own") / "t.csv"
    path.write_text(lines.getvalue(), newline="")
    trace = import_trace(path, "csv")
    order = np.argsort([job["submit"] for job in jobs], kind="stable")
    first = min(job["submit"] for job in jobs)
    for n, old in enumerate(order):
        job = jobs[old]
        assert trace.ids[n] == str(old)
        assert trace.submit_us[n] == (job["submit"] - first) * US
        assert trace.gpus[n] == job["gpus"]
        assert trace.run_us[n] == job["run"] * SIZES[unit] * US
        words = (trace.queue[n], trace.user[n], trace.model[n], STATUSES[trace.status[n]])
        assert words == (job["queue"], job["user"], job["model"], job["status"])
        start = (job["submit"] - first + job["wait"]) * US
        assert trace.record[n] == (RecordedRun(start, start + trace.run_us[n], job["gpus"]),)


def test_a_frame_of_a_trace_is_read_again(tmp_path):
    """Failures have no column: of a failed job one attempt, of its run time, is read."""
    trace = generate("philly-atc19", 200, 3, early_failure=0, late_failure=0)
    path = tmp_path / "frame.csv"
    trace.frame().to_csv(path, index=False)
    again = import_trace(path, "csv")
    assert again.ids == trace.ids
    for key in ("submit_us", "gpus", "run_us", "status", "deadline_us"):
        assert (getattr(again, key) == getattr(trace, key)).all(), key
    assert again.queue == trace.queue
    assert again.utilization == pytest.approx(trace.utilization)


def test_the_command_line_takes_columns_units_and_a_zone(tmp_path):
    source, target = tmp_path / "jobs.csv", tmp_path / "trace.json"
    source.write_text("when,n,hours,who\n2024-07-01 00:00:00,4,2,ann\n2024-07-01 01:00:00,1,1,b\n")
    given = ["--map", "submit=when", "--map", "gpus=n", "--map", "run=hours", "--unit", "run=h",
             "--map", "user=who", "--zone", "Europe/Berlin"]  # fmt: skip
    command = ["trace", "import", str(source), "--format", "csv", *given, "-o", str(target)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    trace = read_trace(target)
    assert trace.user == ("ann", "b")
    assert trace.run_us.tolist() == [7200 * US, 3600 * US]
    wrong = CliRunner().invoke(app, [*command[:5], "--map", "submit", "-o", str(target)])
    assert wrong.exit_code == 2
    assert "expected FIELD=NAME" in wrong.stderr


def test_a_scenario_and_the_command_line_read_a_table_in_place(tmp_path):
    (tmp_path / "jobs.csv").write_text("when,gpus,hours\n0,1,1\n5,2,2\n")
    options = {"map": "submit=when,run=hours", "unit": "run=h"}
    source = {"file": "jobs.csv", "format": "csv", "options": options}
    document = {"schema": "optsched/scenario/1", "name": "s", "nodes": 1, "gpus_per_node": 2}
    (tmp_path / "s.json").write_text(json.dumps(document | {"trace": source}))
    jobs = jobs_of(scenario_of(tmp_path / "s.json"))
    assert jobs.run_us.tolist() == [3600 * US, 7200 * US]
    (tmp_path / "plain.csv").write_text("submit,gpus,run\n0,1,1\n5,2,2\n")
    result = CliRunner().invoke(app, [
        "compare", str(tmp_path / "s.json"), "--policy", "fifo", "--trace",
        str(tmp_path / "plain.csv"), "--input-format", "csv",
    ])  # fmt: skip
    assert result.exit_code == 0, result.output

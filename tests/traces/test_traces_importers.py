"""Traces of others: small files written here in each format, with the quirks that they have."""

import gzip
import io
import json
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.instance import InstanceError
from optsched.registry import UnknownNameError
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.traces import FORMATS, STATUSES, US, Failure, import_trace
from optsched.traces.importers.pollux_steps import APPLICATIONS
from optsched.traces.summary import seen_us

PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"


@pytest.fixture
def load(tmp_path):
    """Return a function that writes a file and imports it."""

    def write_and_import(text, file_format, workload=None, **options):
        path = tmp_path / "file.csv"
        path.write_text(text)
        return import_trace(path, file_format, workload, **options)

    return write_and_import


@pytest.fixture
def faults(load):
    def refused(*arguments, **options):
        with pytest.raises(InstanceError) as error:
            load(*arguments, **options)
        return error.value.faults

    return refused


def words(trace):
    return [STATUSES[code] for code in trace.status]


def seconds(column):
    return (np.asarray(column) / US).tolist()


# --- what all formats share ---------------------------------------------------------------------


def test_faults_name_line_and_column_all_at_once(faults):
    rows = "2017-10-09 07:01:55,66.0,x,66,a\n\nyesterday,-1,2,2,a\n2017-10-09 07:01:55,5,0,5\n"
    assert faults(PHILLY + rows, "philly-csv") == [
        "line 2, column num_gpus: expected a whole number of at least 1, found 'x'",
        "line 4, column duration: expected seconds from 0 to 1e11, found '-1'",
        "line 4, column timestamp: expected a date and time such as 2017-10-09 07:01:55, "
        "found 'yesterday'",
        "line 5: expected 5 cells as in the header, found 4",
    ]


def test_only_the_first_faults_are_shown(load):
    with pytest.raises(
        InstanceError, match=r"33 faults[\s\S]*line 21,[\s\S]*\n  and 13 more$"
    ) as e:
        load(PHILLY + "2017-10-09 07:01:55,1,,1,a\n" * 33, "philly-csv")
    assert len(e.value.faults) == 20
    assert e.value.faults[-1].startswith("line 21, column num_gpus: ")
    assert e.value.faults[0].endswith("found nothing")


@pytest.mark.parametrize("cell", ["1.5", "0", "-3", "nan", "1_0", "1e99", "２x", "inf", " "])
def test_gangs_are_whole_numbers(faults, cell):
    assert len(faults(PHILLY + f"2017-10-09 07:01:55,1,{cell},1,a\n", "philly-csv")) == 1


def test_whole_numbers_may_be_written_as_floats(load):
    assert load(PHILLY + "2017-10-09 07:01:55,1,4.0,1,a\n", "philly-csv").gpus.tolist() == [4]


def test_missing_columns_are_named_with_the_nearest(faults):
    assert faults("timestamp,durations,gpu\n", "philly-csv") == [
        "line 1: there is no column 'duration'; did you mean 'durations'?",
        "line 1: there is no column 'num_gpus'; known: timestamp, durations, gpu",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        (PHILLY, "there is no job in it"),
        (PHILLY.replace(",", ";"), "line 1: semicolons stand between the columns; expected commas"),
        (PHILLY.replace(",", "\t"), "line 1: tabs stand between the columns; expected commas"),
        ("duration,duration,timestamp,num_gpus\n", "line 1: column 'duration' stands more than"),
    ],
)
def test_files_without_jobs(faults, text, fault):
    assert faults(text, "philly-csv")[0].startswith(fault)


def test_unknown_formats_options_and_workloads(load, faults):
    with pytest.raises(UnknownNameError, match="did you mean 'philly-csv'"):
        load("", "philly-cvs")
    with pytest.raises(UnknownNameError, match="did you mean 'zone'"):
        load("", "philly-csv", zones="UTC")
    with pytest.raises(ValueError, match="no time zone 'Mars'"):
        load(PHILLY + "2017-10-09 07:01:55,1,1,1,a\n", "philly-csv", zone="Mars")
    assert "one workload only" in faults(PHILLY, "philly-csv", "3")[0]


def test_every_format_has_a_module_that_reads():
    for name, known in FORMATS.items():
        module = __import__(f"optsched.traces.importers.{known.module}", fromlist=["read"])
        assert module.read.__doc__, name
        assert module.SOURCE


def test_compressed_files_and_archives(tmp_path):
    text = (PHILLY + "2017-10-09 07:01:55,1,1,1,a\n").encode()
    zipped = tmp_path / "jobs.csv.gz"
    zipped.write_bytes(gzip.compress(text, mtime=0))
    assert import_trace(zipped, "philly-csv").name == "jobs"
    archive = tmp_path / "all.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("a/one.csv", "a/two.csv", "b/two.csv", "a/readme.txt"):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    assert import_trace(archive, "philly-csv", "one").name == "one"
    assert import_trace(archive, "philly-csv", "b/two.csv").name == "two"
    with pytest.raises(InstanceError, match=r"name one of them as workload: a/one.csv, a/two"):
        import_trace(archive, "philly-csv")
    with pytest.raises(InstanceError, match=r"several traces 'two'.*a/two.csv, b/two.csv"):
        import_trace(archive, "philly-csv", "two")
    with pytest.raises(UnknownNameError, match="three"):
        import_trace(archive, "philly-csv", "three")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (gzip.compress(b"x" * 5000, mtime=0)[:-20], "is no whole file of gzip"),
        (b"ab\ncd\xff", "line 2: byte 5 is not UTF-8 text"),
        (b"\xef\xbb\xbftimestamp,duration\n", "line 1: there is no column 'num_gpus'"),
    ],
)
def test_broken_files(tmp_path, data, fault):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(InstanceError, match=fault):
        import_trace(path, "philly-csv")
    with pytest.raises(InstanceError, match="is a folder"):
        import_trace(tmp_path, "philly-csv")


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 99))))
def test_jobs_are_sorted_and_begin_at_zero(tmp_path_factory, jobs):
    """Whatever the order of the file; jobs submitted together keep it."""
    rows = [f"{n},{gpus},{ms},{ms2}" for n, (ms, ms2, gpus) in enumerate(jobs)]
    path = tmp_path_factory.mktemp("muri") / "trace.csv"
    path.write_text("\n".join(["job_id,num_gpu,submit_time,duration", *rows]))
    if not jobs:
        with pytest.raises(InstanceError, match="no job"):
            import_trace(path, "muri")
        return
    trace = import_trace(path, "muri")
    order = sorted(range(len(jobs)), key=lambda n: jobs[n][0])
    first = min(ms for ms, _, _ in jobs)
    assert trace.ids == tuple(map(str, order))
    assert trace.submit_us.tolist() == [1000 * (jobs[n][0] - first) for n in order]
    assert trace.run_us.tolist() == [1000 * jobs[n][1] for n in order]
    assert trace.gpus.tolist() == [jobs[n][2] for n in order]


# --- philly -------------------------------------------------------------------------------------


def attempt(start, end, *gpus):
    servers = [{"ip": f"m{n}", "gpus": [f"gpu{i}" for i in range(k)]} for n, k in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": servers}


def philly_job(name, status, attempts, submitted="2017-10-07 01:00:00"):
    return {
        "status": status,
        "vc": "ee9e8c",
        "jobid": name,
        "attempts": attempts,
        "submitted_time": submitted,
        "user": "ce2f4c",
    }


def at(minute, day="2017-10-07", hour="01"):
    return f"{day} {hour}:{minute:02d}:00"


def test_philly_retries_are_failing_attempts(load):
    retried = [attempt(at(1), at(3), 8, 8), attempt(at(10), at(40), 8)]
    jobs = [
        philly_job("a", "Pass", retried),
        philly_job("b", "Failed", retried),
        philly_job("c", "Killed", [attempt(at(1), at(41), 1), attempt(at(41), at(42), 1)]),
    ]
    trace = load(json.dumps(jobs), "philly")
    assert words(trace) == ["passed", "failed", "killed"]
    assert trace.gpus.tolist() == [8, 8, 1]
    assert trace.failures[0] == (Failure("unknown", 120 * US),)
    assert trace.failures[1] == (Failure("unknown", 120 * US), Failure("unknown", 1800 * US))
    assert trace.run_us.tolist() == [1800 * US, 1920 * US + 1, 2400 * US]
    assert seconds(seen_us(trace)) == [1920, 1920, 2460]
    assert trace.user == ("ce2f4c",) * 3
    assert trace.queue == ("ee9e8c",) * 3
    assert trace.notes == (
        "2 jobs had attempts of several sizes: taken as the last",
        "1 jobs failed after a longer run than their last: these two change places",
    )


MINUTES = st.lists(st.integers(1, 50), min_size=1, max_size=4)


@given(st.lists(st.tuples(st.sampled_from(["Pass", "Killed", "Failed"]), MINUTES), min_size=1))
def test_philly_jobs_end_in_a_replay_as_in_the_log(tmp_path_factory, jobs):
    """Same ends, failures and run times, whichever attempt is the longest, if nothing is kept."""
    log = [
        philly_job(str(n), status, [attempt(at(0), at(m), 1, 1) for m in lengths])
        for n, (status, lengths) in enumerate(jobs)
    ]
    path = tmp_path_factory.mktemp("philly") / "cluster_job_log"
    path.write_text(json.dumps(log))
    trace = import_trace(path, "philly")
    cluster = {"name": "x", "nodes": 20, "gpus_per_node": 8, "trace": {"file": "x"}}
    scenario = Scenario.from_document({"schema": "optsched/scenario/1", **cluster})
    record = Engine(scenario, trace, make("fifo", scenario), 0).run()
    assert record.jobs.outcome.tolist() == trace.status.tolist()
    assert record.jobs.failures.sum() == sum(map(len, trace.failures.values()))
    seen = [60 * sum(lengths) for _, lengths in jobs]
    np.testing.assert_allclose(record.jobs.running_us / US, seen, atol=1e-5)


@pytest.mark.parametrize("nothing", [None, "", "None"])
def test_philly_counts_what_is_left_out(load, nothing):
    good = attempt(at(1), at(3), 1)
    jobs = [
        philly_job("good", "Pass", [attempt(nothing, at(1), 1), attempt(at(9), at(8), 1), good]),
        philly_job("none", "Pass", []),
        philly_job("running", "Pass", [good, attempt(at(1), nothing, 1)]),
        philly_job("lost", "Killed", [attempt(nothing, nothing, 1)]),
        philly_job("cpu", "Pass", [attempt(at(1), at(3))]),
        philly_job("short", "Pass", [attempt(at(1), at(1), 1)]),
    ]
    trace = load(json.dumps(jobs), "philly")
    assert trace.ids == ("good",)
    assert not trace.failures
    assert set(trace.notes) == {
        "2 attempts lack a start or an end: left out",
        "1 attempts end before they start: left out",
        "1 jobs have no attempt: left out",
        "1 jobs were still running: left out",
        "1 jobs have no attempt with a start and an end: left out",
        "1 jobs hold no GPU: left out",
        "1 jobs ran for no time: left out",
    }


def test_philly_clocks_go_back_an_hour_in_november(load):
    """The night of 2017-11-05: 00:30 to 02:30 takes three hours, and 01:50 to 01:10 is possible."""
    night = "2017-11-05"
    jobs = [
        philly_job("a", "Pass", [attempt(f"{night} 00:30:00", f"{night} 02:30:00", 1)]),
        philly_job("b", "Pass", [attempt(at(50, night), at(10, night), 1)]),
    ]
    text = json.dumps(jobs)
    assert seconds(load(text, "philly").run_us) == [3 * 3600, 20 * 60]
    assert seconds(load(text, "philly", zone="UTC").run_us) == [2 * 3600]


def test_philly_faults_have_paths(faults):
    job = philly_job("a", "Pass", [attempt("soon", at(3), 1)], submitted="2017-13-01")
    moment = "expected a date and time such as 2017-10-09 07:01:55"
    assert faults(json.dumps([job, philly_job("a", "Pass", [])]), "philly") == [
        f'[0].attempts[0].start_time: {moment}, found "soon"',
        f'[0].submitted_time: {moment}, found "2017-13-01"',
        '[1].jobid: "a" stands more than once, first in [0]',
    ]
    assert len(faults(json.dumps([philly_job("a", "Passed", 3), 7]), "philly")) == 3
    assert faults('[\n{"a": 1,]', "philly")[0].startswith("line 2, column 9: ")


# --- logs of Slurm's states ---------------------------------------------------------------------

HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
)
ACME = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
    "queue,gpu_time\n"
)


def helios_row(name, gpus, state, start="2020-06-09 18:41:01", end="2020-06-09 18:45:01"):
    return f"{name},u,vcA,{gpus},1,1,{state},2020-06-09 18:41:00,{start},{end},240,1\n"


def test_helios(load):
    rows = [
        helios_row(1, 1, "COMPLETED"),
        helios_row(2, 8, "CANCELLED"),
        helios_row(3, 8, "NODE_FAIL"),
        helios_row(4, 8, "TIMEOUT"),
        helios_row(5, 0, "COMPLETED"),
        helios_row(6, 1, "SUSPENDED"),
        helios_row(7, 1, "CANCELLED", start=""),
        helios_row(8, 1, "COMPLETED", end="2020-06-09 18:41:01"),
    ]
    trace = load(HELIOS + "".join(rows), "helios")
    assert trace.ids == ("1", "2", "3", "4")
    assert words(trace) == ["passed", "killed", "failed", "failed"]
    assert trace.failures == {
        2: (Failure("node_fail", 240 * US),),
        3: (Failure("timeout", 240 * US),),
    }
    assert trace.run_us.tolist() == [240 * US, 240 * US, 240 * US + 1, 240 * US + 1]
    assert seconds(seen_us(trace)) == [240] * 4
    assert set(trace.notes) == {
        "1 jobs ask for no GPU: left out",
        "1 jobs had not ended: left out",
        "1 jobs never started or lack an end: left out",
        "1 jobs ran for no time: left out",
    }


def test_helios_faults(faults):
    told = faults(HELIOS + helios_row(1, "a", "DONE") + helios_row(2, 2, "DONE", end="x"), "helios")
    assert told[0].startswith("line 2, column gpu_num: expected a whole number of at least 0")
    assert told[1].startswith("line 3, column state: expected one of COMPLETED, CANCELLED, ")
    assert len(told) == 2
    twice = helios_row(1, 1, "FAILED") + helios_row(2, 1, "FAILED") + helios_row(1, 1, "FAILED")
    assert faults(HELIOS + twice, "helios") == [
        'line 4, column job_id: "1" stands more than once, first in line 2'
    ]


def test_acme_runs_from_start_to_end(load):
    """In Kalos the column duration holds the wait as well."""
    row = (
        "dlc,uf794,8,64.0,960,Pretrain,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
        "2023-05-17 11:01:16+00:00,18,10.0,1152.0\n"
    )
    trace = load(ACME + row, "acme")
    assert (trace.model, trace.queue) == (("Pretrain",), ("uf794",))
    assert trace.gpus.tolist() == [64]
    assert trace.failures == {0: (Failure("failed", 8 * US),)}


SACCT = "JobID|JobName|Partition|Account|State|Submit|Start|Elapsed|AllocTRES\n"


def sacct_row(name, state, elapsed, tres="cpu=8,gres/gpu=2", submit="10:00:00", start="T10:01:00"):
    start = f"2024-01-01{start}" if start.startswith("T") else start
    return f"{name}|train|gpu|lab|{state}|2024-01-01T{submit}|{start}|{elapsed}|{tres}\n"


def test_slurm(load):
    rows = [
        sacct_row("1", "COMPLETED", "1-02:03:04", "billing=8,gres/gpu:a100=4,gres/gpu=4"),
        sacct_row("1.batch", "COMPLETED", "1-02:03:04"),
        sacct_row("2_7", "CANCELLED by 1000", "00:10:00", "gres/gpu:a100=3,gres/gpu:h100=2"),
        sacct_row("3", "OUT_OF_MEMORY", "05:00.250"),
        sacct_row("4", "RUNNING", "00:01:00"),
        sacct_row("5", "COMPLETED", "00:01:00", "cpu=8"),
        sacct_row("6", "CANCELLED by 0", "00:00:00", "", start="Unknown"),
        sacct_row("7", "CANCELLED", "00:00:00"),
    ]
    trace = load(SACCT + "".join(rows), "slurm")
    assert trace.ids == ("1", "2_7", "3")
    assert trace.gpus.tolist() == [4, 5, 2]
    assert words(trace) == ["passed", "killed", "failed"]
    assert seconds(seen_us(trace)) == [93784, 600, 300]
    assert trace.failures == {2: (Failure("out_of_memory", 300 * US),)}
    assert (trace.model[0], trace.queue[0]) == ("train", "gpu")
    assert load(SACCT + rows[0], "slurm", queue="Account").queue == ("lab",)
    assert set(trace.notes) == {
        "1 rows are steps of jobs: left out",
        "1 jobs had not ended: left out",
        "1 jobs had no GPU: left out",
        "1 jobs never started, or not again after a requeue: left out",
        "1 jobs ran for no time: left out",
    }


def test_slurm_requeued_jobs_have_failing_attempts(load):
    rows = [
        sacct_row("1", "NODE_FAIL", "00:10:00"),
        sacct_row("1", "PREEMPTED", "00:20:00", submit="11:00:00"),
        sacct_row("1", "COMPLETED", "01:00:00", submit="12:00:00"),
        sacct_row("2", "REQUEUED", "00:10:00", submit="10:30:00"),
        sacct_row("2", "FAILED", "00:05:00", submit="11:30:00"),
        sacct_row("3", "REQUEUED", "00:10:00"),
        sacct_row("3", "CANCELLED by 5", "00:00:00", "", start="None"),
    ]
    trace = load(SACCT + "".join(rows), "slurm")
    assert trace.ids == ("1", "2")
    assert seconds(trace.submit_us) == [0, 1800]
    assert trace.failures[0] == (Failure("node_fail", 600 * US), Failure("preempted", 1200 * US))
    assert trace.failures[1] == (Failure("requeued", 600 * US), Failure("failed", 300 * US))
    assert trace.run_us.tolist() == [3600 * US, 900 * US + 1]


def test_slurm_faults(faults):
    assert faults("JobID|State|Submit|Elapsed\n", "slurm") == [
        "line 1: there is no column 'AllocTRES' or 'ReqTRES', which name the GPUs"
    ]
    assert (
        "no column 'Acount'; did you mean 'Account'?" in faults(SACCT, "slurm", queue="Acount")[0]
    )
    assert faults(SACCT + sacct_row("1", "COMPLETED", "soon"), "slurm") == [
        "line 2, column Elapsed: expected a time such as 1-02:30:00, found 'soon'"
    ]


def test_slurm_rows_keep_their_order_in_the_night_in_which_the_clock_is_put_back(load):
    """The clock of New York repeats the hour from 1 on 3 November 2024, and skips one in March."""
    times = [
        "2024-11-03T00:30:00",
        "2024-11-03T01:50:00",
        "2024-11-03T01:10:00",
        "2024-11-03T02:05:00",
    ]
    rows = [
        f"{n}|t|gpu|lab|COMPLETED|{time}|{time}|00:10:00|gres/gpu=2\n"
        for n, time in enumerate(times)
    ]
    trace = load(SACCT + "".join(rows), "slurm", zone="America/New_York")
    assert trace.ids == ("0", "1", "2", "3")
    assert seconds(trace.submit_us) == [0, 80 * 60, 100 * 60, 155 * 60]
    text = "submissions in an hour that the clock repeats or skips: taken in the order of the rows"
    assert f"2 {text}" in trace.notes
    skipped = ["2024-03-10T01:50:00", "2024-03-10T02:30:00", "2024-03-10T03:10:00"]
    rows = [
        f"{n}|t|gpu|lab|COMPLETED|{time}|{time}|00:10:00|gres/gpu=2\n"
        for n, time in enumerate(skipped)
    ]
    trace = load(SACCT + "".join(rows), "slurm", zone="America/New_York")
    assert f"1 {text}" in trace.notes


# --- openb --------------------------------------------------------------------------------------

OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
)
PODS = OPENB + (
    "p0,1,1,1,1000,,LS,Running,10,1000,20\n"
    "p1,1,1,1,460,,BE,Succeeded,30,1000,40\n"
    "p2,1,1,8,1000,V100M32,LS,Failed,50,60,50\n"
    "p3,1,1,2,1000,,LS,Pending,60,1000,\n"
    "p4,1,1,0,0,,LS,Running,60,1000,60\n"
)


def test_openb(load):
    trace = load(PODS, "openb")
    assert trace.ids == ("p0", "p1", "p2")
    assert words(trace) == ["killed", "passed", "failed"]
    assert seconds(trace.submit_us) == [0, 20, 40]
    assert seconds(seen_us(trace)) == [980, 960, 10]
    assert trace.queue == ("LS", "BE", "LS")
    assert set(trace.notes) == {
        "1 pods are Running, though deleted: taken as killed then",
        "1 pods ask for types of GPU (gpu_spec): not read",
        "1 pods ask for part of a GPU: given a whole one",
        "1 pods ask for no GPU: left out",
        "1 pods were never scheduled (Pending): left out",
    }


def test_openb_options(load):
    assert load(PODS, "openb", fractions="drop").ids == ("p0", "p2")
    assert load(PODS, "openb", running="drop").ids == ("p1", "p2")
    with pytest.raises(ValueError, match="fractions must be one of whole, drop, found 'half'"):
        load(PODS, "openb", fractions="half")


# --- models with steps --------------------------------------------------------------------------

PAL = "workload,job_id,num_gpus,submit_time,iterations,model,pal_class,iter_time_s\n"


def test_pal(load, faults):
    text = PAL + "1,0,4,98,1481.0,vgg19,C,0.5\n1,1,12,90,10,DCGAN,B,2\n2,0,1,5,10,BERT,B,1\n"
    trace = load(text, "pal", 1)
    assert (trace.ids, trace.name) == (("1", "0"), "file-1")
    assert seconds(trace.run_us) == [20, 740.5]
    assert trace.model == ("DCGAN", "vgg19")
    assert load(text, "pal", "2").ids == ("0",)
    assert faults(text, "pal") == ["holds 2 workloads: name one of them: 1, 2"]
    with pytest.raises(UnknownNameError, match="'3'"):
        load(text, "pal", 3)


def test_pal_as_its_authors_write_it(load, faults):
    text = "job_id,num_gpus,submit_time,duration,model\n0,1,98,1000,vgg19\n1,1,98,10,GPT2\n"
    trace = load(text, "pal")
    assert seconds(trace.run_us) == [300.61, 35.714]
    assert trace.notes == ("2 jobs: seconds of an iteration are those of PAL's simulator",)
    assert "no workload '1' to choose" in faults(text, "pal", 1)[0]
    assert faults(text.replace("GPT2", "GPT9"), "pal")[0].startswith("line 3, column model: ")


def test_elasticflow_deadlines_are_on_the_clock_of_submissions(load):
    text = (
        "job_id,submit_time,real_iteration,model_name,ddl,batch_size,num_gpu,real_duration,"
        "duration,iteration\n0,100,9,vgg16,771320,256,2,976570,976570,9\n"
    )
    trace = load(text, "elasticflow")
    assert (seconds(trace.deadline_us), trace.model) == ([771220], ("vgg16",))


def gavel_row(model, steps, gpus, arrival=0):
    return f'{model}\tpython3 x.py "a\t.\t--n\t1\t{steps}\t{gpus}\t1\t-1.000000\t{arrival}\n'


def test_gavel(load, faults, tmp_path):
    path = tmp_path / "throughputs.json"
    rates = {"('LM', 1)": 4.0, "('LM', 2)": 8.0, "('A3C', 1)": 0.0}
    path.write_text(json.dumps({"v100": {key: {"null": rate} for key, rate in rates.items()}}))
    rows = gavel_row("LM", 100, 1, 7) + gavel_row("LM", 100, 2, 9) + gavel_row("A3C", 1, 1)
    trace = load(rows + gavel_row("LM", 5, 4), "gavel", throughputs=str(path))
    assert (seconds(trace.run_us), seconds(trace.submit_us)) == ([25, 12.5], [0, 2])
    assert "2 jobs have no speed on as many v100: left out" in trace.notes
    assert "give the option throughputs" in faults(rows, "gavel")[0]
    unknown = faults(rows + gavel_row("LN", 5, 4), "gavel", throughputs=str(path))
    assert unknown == ["line 4, column job_type: 'LN' is not in the throughputs; known: A3C, LM"]
    with pytest.raises(UnknownNameError, match="type of GPU"):
        load(rows, "gavel", throughputs=str(path), gpu_type="a100")


POLLUX = "name,time,application,num_replicas,batch_size\n"


def test_pollux(load, faults):
    trace = load(POLLUX + "bert-0,110,bert,1,12\ncifar10-1,100,cifar10,2,2048\n", "pollux")
    assert trace.ids == ("cifar10-1", "bert-0")
    bert = 14774 * (0.1719 + 0.05867 * 12)
    assert seconds(trace.run_us)[1] == pytest.approx(bert, abs=1e-6)
    bad = POLLUX + "a,1,bert,1,6\nb,1,gpt,1,12\n"
    assert faults(bad, "pollux") == [
        "line 2, column batch_size: expected a batch size from 12 to 384, found '6'",
        "line 3, column application: expected one of bert, cifar10, deepspeech2, imagenet, ncf, "
        "yolov3, found 'gpt'",
    ]


@given(st.sampled_from(sorted(APPLICATIONS)), st.data())
def test_pollux_iterations_lie_between_the_measured(name, data):
    model = APPLICATIONS[name]
    sizes = sorted(model.iterations)
    batch = data.draw(st.integers(sizes[0], sizes[-1]))
    below = max(size for size in sizes if size <= batch)
    above = min(size for size in sizes if size >= batch)
    value = model.iterations_at(batch)
    assert model.iterations[above] - 1e-6 <= value <= model.iterations[below] + 1e-6
    if batch == above:
        assert value == pytest.approx(model.iterations[batch])


# --- whatever the file holds --------------------------------------------------------------------

SAMPLES = {
    "philly": json.dumps([philly_job("a", "Pass", [attempt(at(1), at(3), 8, 8)])], indent=1),
    "philly-csv": PHILLY + "2017-10-09 07:01:55,66.0,1,66,a\n2017-10-10 07:01:55,5,8,40,b\n",
    "elasticflow": "job_id,submit_time,num_gpu,duration,model_name,ddl\na,0,1,9,vgg,5\n",
    "muri": "job_id,num_gpu,submit_time,duration,model_name\na,1,0,90000,vgg\n",
    "helios": HELIOS + helios_row(1, 1, "COMPLETED") + helios_row(2, 8, "FAILED"),
    "acme": ACME + "a,u,1,8,9,T,FAILED," + "2023-05-17 11:01:08+00:00," * 2 + "2023-05-18,1,1,1\n",
    "openb": PODS,
    "pal": PAL + "1,0,4,98,1481.0,vgg19,C,0.5\n1,1,12,90,10,DCGAN,B,2\n",
    "pollux": POLLUX + "bert-0,110,bert,1,12\ncifar10-1,100,cifar10,2,2048\n",
    "slurm": SACCT
    + sacct_row("1", "NODE_FAIL", "00:10:00")
    + sacct_row("1", "FAILED", "1-00:00:00"),
}
PIECES = st.text(max_size=3) | st.sampled_from(
    [
        ",",
        "|",
        "\n",
        '"',
        "\0",
        "1e308",
        "-1",
        "9" * 400,
        "0",
        "[]",
        "null",
        "9999-12-31",
        "0001-01-01",
    ]
)


@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_every_fault_is_an_instance_error(tmp_path_factory, file_format, data):
    """Text of a good file, a piece of it replaced by anything."""
    text = SAMPLES[file_format]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 25)))
    path = tmp_path_factory.mktemp("broken") / "file"
    changed = text[:start] + data.draw(PIECES) + text[end:]
    path.write_bytes(changed.encode("utf-8", "surrogatepass"))
    try:
        trace = import_trace(path, file_format)
    except InstanceError:
        return
    assert (trace.run_us > 0).all()
    assert (trace.gpus > 0).all()
    assert (np.diff(trace.submit_us) >= 0).all()
    failed = trace.status == STATUSES.index("failed")
    assert set(np.flatnonzero(failed)) <= set(trace.failures)

"""What importers keep of a log's own schedule, and what they say they leave out."""

import json

import pytest

from optsched.documents.faults import InstanceError
from optsched.traces import US, RecordedRun, import_trace, read_trace, seen_us


@pytest.fixture
def load(tmp_path):
    def read(text, file_format, **options):
        path = tmp_path / "jobs.txt"
        path.write_text(text)
        return import_trace(path, file_format, **options)

    return read


def philly(attempts, status="Pass", submitted="2017-10-07 01:00:00"):
    job = {"status": status, "vc": "v", "jobid": "a", "user": "u", "submitted_time": submitted}
    return json.dumps([job | {"attempts": attempts}])


def attempt(start, end, **gpus):
    servers = [{"ip": ip, "gpus": [f"gpu{n}" for n in range(k)]} for ip, k in gpus.items()]
    day = "2017-10-07 "
    return {"start_time": day + start, "end_time": day + end, "detail": servers}


def test_gpu_time_of_a_job_whose_earlier_attempt_was_longer_is_that_of_the_log(load):
    """Attempts of 36,000 and 3,600 s were 72,000 s of GPU time; they are 39,600."""
    attempts = [attempt("02:00:00", "12:00:00", m1=1), attempt("12:10:00", "13:10:00", m2=1)]
    for status in ("Killed", "Pass", "Failed"):
        trace = load(philly(attempts, status), "philly")
        assert seen_us(trace).tolist() == [39_600 * US]
        assert sum(run.end_us - run.start_us for run in trace.record[0]) == 39_600 * US
    equal = [attempt("02:00:00", "03:00:00", m1=1), attempt("03:00:00", "04:00:00", m1=1)]
    trace = load(philly(equal), "philly")
    assert seen_us(trace).tolist() == [7_200 * US + 1]  # an attempt fails before its work is done


def test_philly_keeps_attempts_servers_and_users(load):
    attempts = [attempt("02:00:00", "02:10:00", m1=8, m2=4), attempt("03:00:00", "04:00:00", m3=8)]
    trace = load(philly(attempts), "philly")
    assert trace.user == ("u",)
    assert trace.record[0] == (
        RecordedRun(3600 * US, 4200 * US, 12, (("m1", 8), ("m2", 4))),
        RecordedRun(7200 * US, 10_800 * US, 8, (("m3", 8),)),
    )


def test_philly_jobs_that_start_before_their_submission_are_told(load):
    attempts = [attempt("02:00:00", "03:00:00", m1=1)]
    trace = load(philly(attempts, submitted="2017-10-07 02:30:00"), "philly")
    assert trace.record[0][0].start_us == -1800 * US
    assert "1 jobs start before their submission: recorded so" in trace.notes


SACCT = "JobID|JobName|User|Partition|State|Submit|Start|Elapsed|AllocTRES|NodeList\n"


def test_slurm_keeps_all_runs_of_a_requeued_job_with_their_nodes(load):
    rows = (
        "1|x|ann|p|NODE_FAIL|2024-01-01T10:00:00|2024-01-01T10:05:00|00:10:00|gres/gpu=8|n[1-2]\n"
        "1|x|ann|p|COMPLETED|2024-01-01T10:00:00|2024-01-01T11:00:00|01:00:00|gres/gpu=8|n7\n"
    )
    trace = load(SACCT + rows, "slurm")
    assert trace.user == ("ann",)
    assert trace.record[0] == (
        RecordedRun(300 * US, 900 * US, 8, (("n1", 4), ("n2", 4))),
        RecordedRun(3600 * US, 7200 * US, 8, (("n7", 8),)),
    )
    with pytest.raises(InstanceError, match=r"line 2, column NodeList: expected nodes such as"):
        load(SACCT + rows.replace("n[1-2]", "n[1-"), "slurm")


def test_helios_and_acme_keep_start_end_and_user(load):
    helios = (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration\n"
        "1,u7,vc,2,1,1,COMPLETED,2020-06-09 18:00:00,2020-06-09 18:01:00,2020-06-09 18:05:00,1\n"
    )
    acme = (
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration\n"
        "d,u7,1,2,9,Eval,COMPLETED,2023-05-17 11:00:00+00:00,2023-05-17 11:01:00+00:00,"
        "2023-05-17 11:05:00+00:00,1\n"
    )
    for text, file_format in ((helios, "helios"), (acme, "acme")):
        trace = load(text, file_format)
        assert trace.user == ("u7",)
        assert trace.record[0] == (RecordedRun(60 * US, 300 * US, 2),)


# --- what is left out --------------------------------------------------------------------------


def test_gavel_says_that_weights_and_slos_are_left_out(load, tmp_path):
    path = tmp_path / "throughputs.json"
    path.write_text(json.dumps({"v100": {"('LM', 1)": {"null": 4.0}}}))
    row = "LM\tx\t.\t--n\t1\t100\t1\t{}\t{}\t0\n"
    text = row.format(1, -1) + row.format(2, -1) + row.format(5, 1.2)
    notes = load(text, "gavel", throughputs=str(path)).notes
    assert "2 jobs have a priority weight other than 1: not read" in notes
    assert "1 jobs have an SLO: not read, and no deadline" in notes


def test_muri_says_that_priorities_and_resource_times_are_left_out(load):
    text = (
        "job_id,num_gpu,submit_time,duration,resource_time_0,priority\n0,8,0,5,0.6,0\n1,8,1,5,8,1\n"
    )
    notes = load(text, "muri").notes
    assert "1 jobs have a priority other than 0: not read" in notes
    assert "2 jobs have times by resource (resource_time_0 to 2): not read" in notes


def test_deadlines_that_the_width_asked_for_cannot_meet_are_counted(load):
    text = "job_id,submit_time,num_gpu,duration,ddl\n0,100,2,50,149\n1,100,2,50,150\n"
    trace = load(text, "elasticflow")
    text = "deadlines are before submission + run time: only on more GPUs could they be met"
    assert trace.notes == (f"1 {text}",)


# --- files -------------------------------------------------------------------------------------

DOCUMENT = {
    "schema": "optsched/trace/1",
    "jobs": {"id": ["a"], "submit_us": [0], "gpus": [2], "run_us": [5]},
}


def test_files_without_a_record_are_read_as_before(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(DOCUMENT))
    trace = read_trace(path)
    assert (trace.record, trace.user) == ({}, ("",))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"job": ["b"]}, 'there is no job "b"'),
        ({"end_us": [-9]}, "is before its start: -9 after 1"),
        ({"gpus": [1, 2]}, "has 2 entries, but record.job has 1"),
        ({"nodes": ["n1"]}, "record.nodes"),
        ({"gpus": [0]}, "record.gpus"),
    ],
)
def test_faults_of_a_record_are_named(tmp_path, record, message):
    path = tmp_path / "t.json"
    good = {"job": ["a"], "start_us": [1], "end_us": [7], "gpus": [2], "nodes": ["n1:2"]}
    path.write_text(json.dumps(DOCUMENT | {"record": good | record}))
    with pytest.raises(InstanceError, match=message):
        read_trace(path)

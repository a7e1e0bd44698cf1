"""The importers on the files that others published: counts that their notes state."""

import csv
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from optsched.instance import InstanceError
from optsched.traces import STATUSES, US, import_trace
from optsched.traces.generators.step_time import STEP_TIMES
from optsched.traces.importers.pollux_steps import APPLICATIONS
from optsched.traces.summary import seen_us

DATA = Path(__file__).parents[3] / "shared" / "data"
TRACES = DATA / "traces"
pytestmark = pytest.mark.skipif(
    not TRACES.is_dir(), reason="others' traces are not part of the project: ../shared/data/traces"
)


def gpu_hours(trace):
    return float((seen_us(trace) / US * trace.gpus).sum() / 3600)


def test_philly_csv():
    """Counts of the published file, which is not sorted."""
    trace = import_trace(TRACES / "philly" / "philly_jobs_pollux.csv.gz", "philly-csv")
    run_s = trace.run_us / US
    assert len(trace) == 82_247
    assert gpu_hours(trace) == pytest.approx(978_078, abs=1)
    assert trace.gpus.mean() == pytest.approx(1.30, abs=0.005)
    assert np.median(run_s[trace.gpus == 1]) / 60 == pytest.approx(18.6, abs=0.05)
    middle = (trace.gpus >= 2) & (trace.gpus <= 4)
    assert np.median(run_s[middle]) / 60 == pytest.approx(6.1, abs=0.05)
    gaps = np.diff(trace.submit_us) / US
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(114.4, abs=0.1)
    assert int((run_s > 7 * 86400).sum()) == 236
    assert len(set(trace.queue)) == 15
    assert trace.notes == ()


def test_elasticflow():
    path = TRACES / "philly" / "elasticflow_philly_103959.csv.gz"
    trace = import_trace(path, "elasticflow")
    slack = (trace.deadline_us - trace.submit_us) / trace.run_us
    assert len(trace) == 876
    assert len(trace.notes) == 1
    assert trace.notes[0].startswith("466 deadlines are before submission + run time")
    assert 0.5 <= slack.min() < 0.51
    assert 1.49 < slack.max() < 1.5


def test_muri():
    """Milliseconds: one of its traces has the jobs of traces.md's README, 992 to 5,755."""
    path = TRACES / "philly" / "muri_traces.tar.gz"
    with pytest.raises(InstanceError, match="holds 13 traces"):
        import_trace(path, "muri")
    counts = [len(import_trace(path, "muri", f"trace{n}")) for n in (1, 2, 3, 4)]
    assert (min(counts), max(counts)) == (992, 5755)
    together = import_trace(path, "muri", "trace1_pr")
    assert together.submit_us.max() == 0


def test_openb():
    """8,152 pods: 5,193 Running, 1,870 Failed, 897 Pending, 192 Succeeded (counted in the file)."""
    path = TRACES / "alibaba" / "openb_pod_list_default.csv.gz"
    trace = import_trace(path, "openb")
    assert len(trace) == 8152 - 1088 - 861
    assert np.bincount(trace.status).tolist() == [185, 4149, 1869]
    assert STATUSES == ("passed", "killed", "failed")
    assert "861 pods were never scheduled (Pending): left out" in trace.notes
    assert len(trace.record) == len(trace)
    whole = import_trace(path, "openb", fractions="drop")
    assert len(trace) - len(whole) == 2573


def test_pollux():
    path = TRACES / "pollux" / "pollux_workloads_and_profiles.tar.gz"
    with pytest.raises(InstanceError, match="holds several traces 'workload-6'"):
        import_trace(path, "pollux", "workload-6")
    trace = import_trace(path, "pollux", "workloads/workload-6.csv")
    assert len(trace) == 160
    assert len(set(trace.model)) == 6
    ncf = [n for n, model in enumerate(trace.model) if model == "ncf"]
    assert trace.run_us[ncf].max() / US < 60


def test_pollux_steps_are_those_of_the_profiles():
    """The fit of a step is within 13 % (root mean square) of what was measured on 1 to 64 GPUs."""
    path = TRACES / "pollux" / "pollux_workloads_and_profiles.tar.gz"
    for name, application in APPLICATIONS.items():
        with tarfile.open(path) as archive:
            text = archive.extractfile(f"traces/{name}/scalability.csv").read().decode()
        errors = [
            np.log(step_of(application, row) / float(row["step_time"]))
            for row in csv.DictReader(io.StringIO(text))
            if int(row["num_nodes"]) == -(-int(row["num_replicas"]) // 4)
        ]
        assert np.sqrt(np.mean(np.square(errors))) < 0.2, name


def step_of(application, row):
    gpus, batch = int(row["num_replicas"]), int(row["num_replicas"]) * int(row["local_bsz"])
    step = STEP_TIMES[application.name].seconds(np.array([float(batch)]), gpus, 4)
    return step[0]


def test_every_pollux_workload_can_be_read():
    path = TRACES / "pollux" / "pollux_workloads_and_profiles.tar.gz"
    for folder, jobs in (
        ("-0.5", 80),
        ("", 160),
        ("-1.5", 240),
        ("-2.0", 320),
        ("-realistic", 160),
    ):
        trace = import_trace(path, "pollux", f"workloads{folder}/workload-1.csv")
        assert len(trace) == jobs


def test_pal():
    """Eight workloads of 160 jobs, 1,421 to 7,227 GPU-hours (docs/math/pal.md, Iteration times)."""
    path = DATA / "pal" / "sia_philly_pal_traces.csv"
    with pytest.raises(InstanceError, match="name one of them: 1, 2, 3, 4, 5, 6, 7, 8"):
        import_trace(path, "pal")
    workloads = [import_trace(path, "pal", n) for n in range(1, 9)]
    assert [len(trace) for trace in workloads] == [160] * 8
    hours = sorted(map(gpu_hours, workloads))
    assert (hours[0], hours[-1]) == pytest.approx((1421, 7227), abs=1)
    gpus = np.concatenate([trace.gpus for trace in workloads])
    assert gpus.mean() == pytest.approx(6.5, abs=0.05)
    first = workloads[0]
    assert first.model[0] == "vgg19"
    assert first.run_us[0] == round(1481 * 0.300610341 * US)


@pytest.mark.parametrize(("name", "jobs"), [("max_min_fairness", 96), ("minimize_makespan", 100)])
def test_gavel(name, jobs):
    folder = TRACES / "gavel"
    throughputs = str(folder / "simulation_throughputs.json.gz")
    archive = folder / "gavel_physical_traces.tar.gz"
    trace = import_trace(archive, "gavel", name, throughputs=throughputs)
    assert len(trace) == jobs
    assert set(trace.gpus.tolist()) <= {1, 2, 4}
    with pytest.raises(InstanceError, match="give the option throughputs"):
        import_trace(archive, "gavel", name)

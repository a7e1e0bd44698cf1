"""The bundled instances hold the measured figures that they cite."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest

import optsched

DATA = Path(__file__).parents[3] / "shared" / "data" / "boa"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the measured files are not part of the project: ../shared/data/boa"
)


def rows(name):
    with (DATA / name).open() as file:
        return list(csv.DictReader(file))


@needs_data
@pytest.mark.parametrize("name", ["boa/cbd-85", "boa/six-models"])
def test_speedups_are_the_measured_epoch_times(name):
    seconds = defaultdict(dict)
    for row in rows("epoch_time_aws.csv"):
        seconds[row["app"], int(row["epoch"])][int(row["k"])] = float(row["best_epoch_time_s"])
    instance = optsched.read(name)
    for job_class in instance.classes:
        assert len(job_class.phases) == sum(app == job_class.id for app, _ in seconds)
        for epoch, phase in enumerate(job_class.phases):
            measured = seconds[job_class.id, epoch]
            assert phase.speedup.widths == tuple(sorted(measured))
            for k, speedup in phase.speedup.measured.items():
                assert phase.work_gpu_s / speedup == pytest.approx(measured[k], rel=1e-7)


@needs_data
@pytest.mark.parametrize(
    ("name", "trace", "file"),
    [
        ("boa/cbd-85", "boa-authors", "workload-1-cbd.csv"),
        ("boa/six-models", "pollux-osdi21", "workload-1.csv"),
    ],
)
def test_arrival_rates_are_those_of_the_trace(name, trace, file):
    expected = {
        row["app"]: float(row["rate_per_hour"])
        for row in rows("workload_arrival_rates.csv")
        if (row["trace"], row["file"]) == (trace, file)
    }
    rates = {c.id: c.arrival_rate_per_h for c in optsched.read(name).classes}
    assert rates == pytest.approx(expected, abs=1e-4)


@needs_data
def test_speedups_by_type_are_the_measured_times_of_whole_jobs():
    seconds = {
        (row["gpu_type"], row["app"], int(row["k"])): float(row["best_time_s"])
        for row in rows("job_speedup_by_gpu_type.csv")
    }
    names = {"t4": "aws", "rtx-2080ti": "rtx", "a100": "dgx-ext"}
    for job_class in optsched.read("boa/three-types").classes:
        [phase] = job_class.phases
        assert {curve.gpu_type for curve in phase.speedup.curves} == set(names)
        for curve in phase.speedup.curves:
            for k, speedup in curve.speedup.measured.items():
                measured = seconds[names[curve.gpu_type], job_class.id, k]
                assert phase.work_gpu_s / speedup == pytest.approx(measured, rel=1e-3)


@needs_data
def test_every_row_of_the_oracle_table():
    """All budgets of the table, the infeasible ones too; MILP values are known to 1e-6."""
    base = optsched.read("boa/cbd-85")
    for row in rows("oracle_frontier_aws_cbd.csv"):
        instance = base.changed({"budget_gpus": float(row["budget_gpus"])})
        free = instance.changed({"classes.*.rescale_s": 0})
        mixed = optsched.solve(free.changed({"widths": "mixed"}))
        assert mixed.objective == pytest.approx(float(row["jct_lp_s"]), rel=1e-6)
        assert optsched.solve(free).objective == pytest.approx(float(row["jct_mckp_s"]), rel=2e-6)
        result = optsched.solve(instance)
        if row["rescale_milp_s"]:
            assert result.objective == pytest.approx(float(row["rescale_milp_s"]), rel=2e-6)
            same_k = optsched.solve(instance, "same-k")
            assert same_k.objective == pytest.approx(float(row["same_k_all_s"]), rel=1e-6)
        else:
            assert result.status == "infeasible"

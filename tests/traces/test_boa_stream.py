"""Streams for checks against theory: BOA's classes, equal gangs, Sia-Philly; Pollux's step time."""

import csv
from pathlib import Path

import numpy as np
import pytest

import optsched
from optsched.documents.faults import InstanceError
from optsched.traces import STEP_TIMES, US, generate, pollux_speedups
from optsched.traces.generators.theory_streams import by_the_hour

DATA = Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="the measured files are not part of the project: ../shared/data"
)


def rows(name):
    with (DATA / name).open() as file:
        return list(csv.DictReader(file))


# --- boa --------------------------------------------------------------------------------------


def test_rates_and_means_are_those_of_the_instance():
    instance = optsched.read("boa/cbd-85")
    trace = generate("boa", 200_000, 1)
    hours = trace.submit_us[-1] / US / 3600
    model = np.array(trace.model)
    for job_class in instance.classes:
        mine = model == job_class.id
        assert mine.sum() / hours == pytest.approx(job_class.arrival_rate_per_h, rel=0.02)
        work = sum(phase.work_gpu_s for phase in job_class.phases)
        assert trace.run_us[mine].mean() / US == pytest.approx(work, rel=0.03)
    assert (trace.gpus == 1).all()


def test_work_on_one_gpu_uses_the_speedup_measured_there(tmp_path):
    speedup = {"kind": "table", "gpus": [1, 2], "speedup": [0.5, 0.8]}
    phases = [{"work_gpu_s": 100, "speedup": speedup}, {"work_gpu_s": 10, "speedup": {
        "kind": "power", "exponent": 0.5, "max_gpus": 4}}]  # fmt: skip
    document = {"schema": "optsched/boa/1", "budget_gpus": 2, "classes": [
        {"id": "a", "arrival_rate_per_h": 1, "phases": phases}]}  # fmt: skip
    path = tmp_path / "one.json"
    path.write_text(optsched.boa.BoaInstance.from_document(document).to_json())
    trace = generate("boa", 3, 0, instance=str(path), sizes="deterministic")
    assert trace.run_us.tolist() == [210 * US] * 3


def test_another_distribution_leaves_arrivals_and_classes():
    first, second = generate("boa", 500, 3), generate("boa", 500, 3, sizes="pareto")
    assert (first.submit_us == second.submit_us).all()
    assert first.model == second.model
    assert (first.run_us != second.run_us).all()


def test_diurnal_streams_are_steady_ones_in_other_time():
    """Expected arrivals until t: t + A (1 - cos(2 pi t / day)); more by noon, and as many a day."""
    turn, steady = 86_400 / (2 * np.pi), np.linspace(0, 10 * 86_400, 20_001)
    moments = by_the_hour(steady, 0.8)
    assert moments + 0.8 * turn * (1 - np.cos(moments / turn)) == pytest.approx(steady, abs=1e-6)
    assert moments[::2000] == pytest.approx(steady[::2000], abs=1e-4)  # at midnight
    by_half = np.bincount((moments % 86_400 >= 43_200).astype(int))
    assert by_half[0] / by_half[1] == pytest.approx((np.pi + 1.6) / (np.pi - 1.6), rel=0.01)
    assert by_the_hour(steady, 0.0) is steady
    one, other = generate("boa", 500, 3), generate("boa", 500, 3, diurnal=0.8)
    assert one.model == other.model
    assert (one.run_us == other.run_us).all()
    assert (one.submit_us != other.submit_us).any()


def test_rate_scales_arrivals():
    first, second = generate("boa", 500, 3), generate("boa", 500, 3, rate=2.0)
    assert second.submit_us == pytest.approx(first.submit_us / 2, abs=2)


def test_an_instance_of_another_problem_is_refused():
    with pytest.raises(InstanceError, match="expected an instance of BOA, found one of PAL"):
        generate("boa", 5, 0, instance="pal/sia-64")


# --- poisson ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "cv"),
    [
        ({}, 1.0),
        ({"sizes": "deterministic"}, 0.0),
        ({"sizes": "pareto", "pareto_shape": 4.5}, (4.5 * 2.5) ** -0.5),
    ],
)
def test_run_times_have_their_mean_and_variation(options, cv):
    """Pareto: variance over mean squared is 1 / (shape (shape - 2))."""
    trace = generate("poisson", 100_000, 2, rate_per_h=60, mean_run_s=100, gpus=4, **options)
    run_s = trace.run_us / US
    assert run_s.mean() == pytest.approx(100, rel=0.02)
    assert run_s.std() / run_s.mean() == pytest.approx(cv, rel=0.1, abs=1e-9)
    assert (trace.gpus == 4).all()


def test_arrivals_are_poisson_unless_asked_otherwise():
    gaps = np.diff(generate("poisson", 100_000, 2, rate_per_h=60).submit_us) / US
    assert gaps.mean() == pytest.approx(60, rel=0.02)
    above = [(gaps > 60 * t).mean() for t in (0.1, 1, 3)]
    assert above == pytest.approx(np.exp([-0.1, -1, -3]), abs=0.005)
    gaps = np.diff(generate("poisson", 100_000, 2, rate_per_h=60, cv=4).submit_us) / US
    assert gaps.mean() == pytest.approx(60, rel=0.1)
    assert gaps.std() / gaps.mean() == pytest.approx(4, rel=0.1)


# --- sia-like ---------------------------------------------------------------------------------


def test_sia_like_has_the_cited_shares():
    trace = generate("sia-like", 1280, 1)
    assert trace.gpus.mean() == pytest.approx(6.5, abs=0.1)
    shares = {model: trace.model.count(model) / 1280 for model in set(trace.model)}
    assert shares == pytest.approx(
        {"vgg19": 0.408, "PointNet": 0.391, "resnet50": 0.086, "DCGAN": 0.066, "BERT": 0.027,
         "GPT2": 0.023}, abs=0.003)  # fmt: skip
    assert trace.submit_us[-1] == 8 * 5 * 3600 * US


def test_sia_like_without_large_gangs():
    trace = generate("sia-like", 160, 1, max_gpus=4, hours=2)
    assert set(trace.gpus.tolist()) == {1, 4}
    assert trace.submit_us[-1] == 2 * 3600 * US


@needs_data
def test_sia_like_is_like_the_workloads():
    real = rows("pal/sia_philly_pal_traces.csv")
    jobs = [(row["model"], int(row["num_gpus"])) for row in real]
    run_s = np.array([float(row["iterations"]) * float(row["iter_time_s"]) for row in real])
    trace = generate("sia-like", 1280, 1)
    mine = list(zip(trace.model, trace.gpus.tolist(), strict=True))
    for cell in set(jobs):
        assert mine.count(cell) == pytest.approx(jobs.count(cell), abs=1)
    seen_s = trace.run_us / US
    for model in {model for model, _ in jobs}:
        theirs = np.array([name == model for name, _ in jobs])
        ours = np.array([name == model for name in trace.model])
        if model != "resnet50":  # two kinds
            wanted = np.quantile(run_s[theirs], [0.25, 0.5, 0.75])
            assert np.quantile(seen_s[ours], [0.25, 0.5, 0.75]) == pytest.approx(wanted, rel=0.1)
    hours = seen_s @ trace.gpus / 3600 / 8
    assert hours == pytest.approx(run_s @ np.array([gpus for _, gpus in jobs]) / 3600 / 8, rel=0.15)


# --- Pollux -----------------------------------------------------------------------------------


@needs_data
def test_constants_are_the_fit():
    for row in rows("boa/step_time_model_fit_aws.csv"):
        computed = STEP_TIMES[row["app"]]
        for name in ("alpha_c", "beta_c", "alpha_n", "beta_n", "alpha_r", "beta_r", "gamma"):
            assert getattr(computed, name) == pytest.approx(float(row[name]), rel=6e-3), name


@needs_data
@pytest.mark.parametrize(
    ("name", "error"),
    [("cifar10", 0.1), ("imagenet", 0.15), ("ncf", 0.2), ("yolov3", 0.2), ("deepspeech2", 0.25)],
)
def test_speedups_are_near_the_measured_ones(name, error):
    measured = {
        int(row["k"]): float(row["speedup_vs_1gpu"])
        for row in rows("boa/job_speedup_by_gpu_type.csv")
        if (row["gpu_type"], row["app"]) == ("aws", name)
    }
    computed = np.array(pollux_speedups(STEP_TIMES[name], list(measured)))
    logs = np.log(computed / np.array(list(measured.values())))
    assert np.sqrt((logs**2).mean()) < error


def test_one_gpu_has_no_network_and_speedup_one():
    for parameters in STEP_TIMES.values():
        assert pollux_speedups(parameters, [1])[0] == 1


def test_speedup_by_hand():
    """gamma = 1 and one batch: computing 1 + 8 / k, exchanging 1 + (k - 2) / 2 within the node."""
    parameters = STEP_TIMES["ncf"]._replace(
        alpha_c=1.0, beta_c=1.0, alpha_r=1.0, beta_r=0.5, alpha_n=7.0, beta_n=0.0, gamma=1.0,
        smallest_batch=8, largest_batch=8, noise_scale=10.0)  # fmt: skip
    computed = pollux_speedups(parameters, [1, 2, 4, 8], gpus_per_node=4)
    assert computed == pytest.approx([1, 9 / (5 + 1), 9 / (3 + 2), 9 / (2 + 7)])
    accumulated = pollux_speedups(parameters, [1, 2], gpus_per_node=4, local_batch=4)
    one = 8 / (5 + 5)
    assert accumulated == pytest.approx([1, 8 / (5 + 1) / one])


def test_larger_noise_scale_never_scales_worse():
    parameters = STEP_TIMES["bert"]
    widths = [1, 2, 4, 8, 16]
    small, large = (
        pollux_speedups(parameters._replace(noise_scale=noise), widths) for noise in (10, 1e4)
    )
    assert all(a <= b * (1 + 1e-9) for a, b in zip(small, large, strict=True))


def test_a_width_below_one_is_refused():
    with pytest.raises(ValueError, match="width 0: expected at least 1 GPU"):
        pollux_speedups(STEP_TIMES["bert"], [1, 0])

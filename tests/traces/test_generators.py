"""The registry of generators: options, errors, command line; and the draws that they share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from optsched.cli.main import app
from optsched.documents.faults import InstanceError
from optsched.registry import UnknownNameError
from optsched.traces import KILLED, STATUSES, US, generate, read_trace, seen_us
from optsched.traces.generators import random_draws
from optsched.traces.generators.arrivals import WeeklyProfile, arrival_moments
from optsched.traces.generators.other_clusters import HELIOS, SEREN
from optsched.traces.generators.philly_statistics import REASONS
from optsched.traces.generators.registry import GENERATORS


def same(first, second, *columns):
    return all(np.array_equal(getattr(first, c), getattr(second, c)) for c in columns)


# --- options ----------------------------------------------------------------------------------


def small(**options):
    return generate("philly-atc19", 3000, 5, **options)


@pytest.mark.parametrize(
    ("options", "unchanged"),
    [
        ({"days": 3}, "gpus run_us model queue status utilization"),
        ({"load": 0.8, "gpus": 500}, "gpus run_us model queue status utilization"),
        ({"seasonal": False}, "gpus run_us model queue status utilization"),
        ({"cv": 1}, "gpus run_us model queue status utilization"),
        ({"models": "a,b:3"}, "submit_us gpus run_us queue status utilization"),
        ({"kills": 0}, "submit_us gpus run_us model queue"),
    ],
)
def test_an_option_leaves_the_draws_of_others_as_they_are(options, unchanged):
    first, second = small(), small(**options)
    assert same(first, second, *unchanged.split())
    assert first.failures == second.failures


def test_load_is_offered_gpu_time():
    trace = small(load=0.8, gpus=500)
    offered = float(trace.gpus @ seen_us(trace)) / (500 * int(trace.submit_us[-1]))
    assert offered == pytest.approx(0.8, rel=1e-4)


def test_larger_gangs_draw_anew_and_others_stay():
    first, second = small(), small(max_gpus=8)
    fits = first.gpus <= 8
    assert second.gpus.max() == 8
    assert (first.gpus > 8).sum() > 30
    assert same(first, second, "submit_us")
    assert (second.gpus[fits] == first.gpus[fits]).all()


def test_without_failures_and_kills_all_jobs_pass():
    trace = small(early_failure=0, late_failure=0, kills=0)
    assert trace.failures == {}
    assert not trace.status.any()


def test_factors_on_failures_and_kills():
    late = {reason.name for reason in REASONS if reason.p50 > 20}
    trace = small(early_failure=0, kills=2)
    drawn = {failure.reason for failures in trace.failures.values() for failure in failures}
    assert drawn
    assert drawn <= late
    killed = (trace.status == STATUSES.index(KILLED)).mean()
    assert killed == pytest.approx(2 * 0.135 / 0.83, abs=0.04)


def test_models_by_weight():
    names, counts = np.unique(small(models="a,b:3").model, return_counts=True)
    assert names.tolist() == ["a", "b"]
    assert counts.tolist() == [750, 2250]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lod": 0.9}, "lod: unknown key; did you mean 'load'"),
        ({"load": "x", "gpus": 3}, "load: expected a number"),
        ({"load": 1.0}, "gpus: missing: load needs it"),
        ({"load": 1.0, "gpus": 2, "days": 1.0}, "load: cannot stand beside days"),
        ({"gpus": 2}, "gpus: means nothing without load"),
        ({"models": "a:-1,:2"}, "models: 'a:-1': expected name:weight .*; ':2'"),
        ({"early_failure": 4}, "early_failure: .* of the jobs on 5-8 GPUs would fail"),
        ({"max_gpus": 0}, "max_gpus: must be at least 1"),
        ({"cv": 0.5, "kills": -1}, r"2 faults(.|\n)*cv(.|\n)*kills"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InstanceError, match=message):
        small(**options)


def test_bad_names_and_counts():
    with pytest.raises(UnknownNameError, match="did you mean 'philly-atc19'"):
        generate("philly", 10)
    with pytest.raises(InstanceError, match=r"2 faults(.|\n)*jobs(.|\n)*seed"):
        generate("poisson", 0, -1)


# --- all generators ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("jobs", [1, 2, 3, 400])
def test_same_arguments_give_the_same_trace(name, jobs):
    first, again, other = (generate(name, jobs, seed) for seed in (7, 7, 8))
    assert first.frame().equals(again.frame())
    assert first.failures == again.failures
    assert not first.frame().equals(other.frame())
    assert len(first) == jobs
    assert first.submit_us[0] == 0
    assert (np.diff(first.submit_us) >= 0).all()
    assert (first.run_us > 0).all()
    assert (first.gpus >= 1).all()


@pytest.mark.parametrize(
    ("name", "cluster", "shares"),
    [("helios-like", HELIOS, (62.4, 22.1, 15.5)), ("acme-like", SEREN, (49.7, 7.5, 42.9))],
)
def test_presets_have_the_main_figures(name, cluster, shares):
    trace = generate(name, 50_000, 1)
    seen_s = seen_us(trace) / US
    assert trace.gpus.mean() == pytest.approx(cluster.mean_gpus, rel=0.01)
    assert seen_s.mean() == pytest.approx(cluster.mean_run_s, rel=0.03)
    assert np.median(seen_s) == pytest.approx(cluster.median_run_s, rel=0.03)
    drawn = 100 * np.bincount(trace.status, minlength=3) / len(trace)
    assert drawn == pytest.approx(shares, abs=0.5)


@pytest.mark.parametrize(("name", "cluster"), [("helios-like", HELIOS), ("acme-like", SEREN)])
def test_presets_have_the_gpu_time_of_each_status(name, cluster):
    """It was wrong by a factor of up to 6: acme-like .62 / .11 / .27 for .212 / .664 / .124."""
    trace = generate(name, 50_000, 2)
    time = trace.gpus * seen_us(trace) / US / 3600
    assert time.mean() == pytest.approx(cluster.gpu_hours, rel=0.1)
    shares = 100 * np.bincount(trace.status, time, 3) / time.sum()
    assert shares == pytest.approx(cluster.gpu_time, abs=3)


# --- draws ------------------------------------------------------------------------------------


def test_stratified_draws_fall_one_into_each_part():
    groups = np.array([0, 1, 0, 0, 1, 0])
    drawn = random_draws.stratified(np.random.default_rng(0), groups)
    for group, count in ((0, 4), (1, 2)):
        parts = np.sort(np.floor(drawn[groups == group] * count))
        assert parts.tolist() == list(range(count))


def test_ranked_draws_keep_the_order_of_the_keys():
    keys = np.array([3.0, 1.0, 2.0, 9.0])
    drawn = random_draws.ranked(np.random.default_rng(0), keys, np.array([0, 0, 0, 1]))
    assert np.argsort(drawn[:3]).tolist() == [1, 2, 0]


def test_paired_draws_are_uniform_and_balance_the_heavy():
    weights = np.array([100.0, 99.0, 1.0, 1.0])
    sums = []
    first = []
    for seed in range(400):
        drawn = random_draws.paired(np.random.default_rng(seed), weights, np.zeros(4, dtype=int))
        sums.append(drawn[0] + drawn[1])
        first.append(drawn[0])
    assert sums == pytest.approx([1.0] * 400)
    assert np.quantile(first, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9], abs=0.08)


def test_quantiles_are_interpolated_in_the_logarithm():
    drawn = random_draws.log_quantiles(
        np.array([0.5, 0.25]), [0, 0.5, 1], [[1, 4, 8], [1, 16, 32]], np.array([0, 1])
    )
    assert drawn == pytest.approx([4, 4])


@given(st.lists(st.floats(1, 20), min_size=2, max_size=2), st.integers(0, 99))
def test_bends_leave_the_quantiles_and_lower_the_mean(bend, seed):
    levels, table, row = [0, 0.5, 1], [[1, 4, 32]], np.zeros(999, dtype=np.int64)
    uniform = np.sort(np.random.default_rng(seed).random(999))
    drawn = random_draws.log_quantiles(uniform, levels, table, row, [bend])
    assert (np.diff(drawn) >= 0).all()
    assert drawn.mean() <= random_draws.log_quantiles(uniform, levels, table, row).mean() + 1e-9
    at = random_draws.log_quantiles(np.array(levels, dtype=float), levels, table, row[:3], [bend])
    assert at == pytest.approx(table[0])


PROFILE = WeeklyProfile(tuple(range(1, 25)), (1, 2, 3, 4, 5, 6, 7))


@given(st.integers(1, 300), st.floats(1, 30), st.floats(1, 1e7), st.sampled_from([None, PROFILE]))
def test_arrivals_ascend_from_0_to_the_end(count, cv, span, profile):
    rng = np.random.default_rng(count)
    gaps = random_draws.gap_mixture(0.07, cv)
    moments = arrival_moments(rng, count, span, gaps, profile)
    assert len(moments) == count
    assert (np.diff(moments) >= 0).all()
    assert moments[0] == 0
    assert count == 1 or moments[-1] == span
    assert (moments <= span).all()


def test_arrivals_follow_the_profile():
    rng, day = np.random.default_rng(0), 86_400
    gaps = random_draws.gap_mixture(0.07, 1)
    moments = arrival_moments(rng, 200_000, 21 * day, gaps, PROFILE)
    hours = np.bincount((moments // 3600 % 24).astype(int), minlength=24)
    assert 300 * hours / len(moments) == pytest.approx(PROFILE.hours, rel=0.1)
    days = np.bincount((moments // day % 7).astype(int), minlength=7)[:7]
    assert 28 * days / len(moments) == pytest.approx(PROFILE.days, rel=0.05)


@pytest.mark.parametrize("cv", [1, 2, 15])
def test_gaps_have_mean_one_and_the_variation_asked_for(cv):
    gaps = random_draws.bursty_gaps(np.random.default_rng(1), 1_000_000, 0.07, cv)
    assert gaps.mean() == pytest.approx(1, rel=0.05)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.05)


# --- command line -----------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, ["trace", *arguments])


def test_a_generated_trace_is_written_and_read(tmp_path):
    path = tmp_path / "trace.json"
    arguments = ("generate", "philly-atc19", "--jobs", "200", "--seed", "1")
    result = run(*arguments, "--set", "max_gpus=8", "--set", "models=a:1,b", "-o", str(path))
    assert result.exit_code == 0, result.output
    wanted = generate("philly-atc19", 200, 1, max_gpus=8, models="a:1,b")
    again = read_trace(path)
    assert again.frame().equals(wanted.frame())
    assert again.failures == wanted.failures


def test_generators_and_their_options_are_listed():
    assert all(name in run("generators").output for name in GENERATORS)
    assert "max_gpus" in run("generators", "philly-atc19").output
    result = run("generators", "sia-lik")
    assert result.exit_code == 2
    assert "did you mean 'sia-like'" in result.stderr


def test_bad_options_end_with_a_message(tmp_path):
    result = run("generate", "boa", "--set", "size=pareto", "-o", str(tmp_path / "t.json"))
    assert result.exit_code == 2
    assert "size: unknown key; did you mean 'sizes'?" in result.stderr
    assert not list(tmp_path.iterdir())

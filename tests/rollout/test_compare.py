"""compare(): ratios, intervals over seeds, and what is refused."""

import dataclasses
import math
import os
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import numpy as np
import pytest

import optsched
from optsched.cli.printing.rollout_tables import comparison as comparison_table
from optsched.registry import UnknownNameError
from optsched.rollout import registry, run
from optsched.rollout.resampling import resampled
from optsched.rollout.results.outputs import trace_sha256
from optsched.rollout.results.policy_comparison import RATIOS, Comparison
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from optsched.traces.json_traces import write_trace
from optsched.traces.trace import trace_of
from tests.support.builders import records
from tests.support.builders.small_rollouts import POLICIES, scenario, trace


@pytest.fixture
def registered(monkeypatch):
    """Register policies of the tests: `first`, and `other`, which draws other GPUs."""
    monkeypatch.setattr(registry, "ENTRIES", (*registry.ENTRIES, *POLICIES))


def test_compare_by_hand(registered):
    where = scenario(locality=(1.0, 1.5))  # so that it matters which GPUs are drawn
    comparison = optsched.compare(where, ["first", "other"], trace=trace(), seeds=4)
    frame = comparison.frame()
    runs = {name: [optsched.simulate(where, name, trace=trace(), seed=seed).metrics
                   for seed in range(4)] for name in ("first", "other")}  # fmt: skip
    for name in runs:
        values = [told["jct_mean_s"] for told in runs[name]]
        base = [told["jct_mean_s"] for told in runs["first"]]
        row = frame.loc[name]
        assert row["jct_mean_s"] == pytest.approx(np.mean(values))
        logs = [math.log(a / b) for a, b in zip(values, base, strict=True)]
        assert row["jct_mean_s_ratio"] == pytest.approx(math.exp(np.mean(logs)))
        for key in ("jct_mean_s", "jct_mean_s_ratio"):
            assert row[f"{key}_low"] <= row[key] * (1 + 1e-9)
            assert row[key] <= row[f"{key}_high"] * (1 + 1e-9)
        assert min(values) * (1 - 1e-9) <= row["jct_mean_s_low"]
    assert frame.loc["first", "jct_mean_s_ratio_low"] == 1.0
    assert comparison.frame().equals(comparison.frame())
    assert "first" in str(comparison)
    assert repr(comparison) == "<Comparison on by hand: first, other; seeds: 4>"
    assert "jct_mean_s_ratio" in comparison._repr_html_()


def test_compare_draws_a_trace_for_each_seed_and_reads_a_file_once(registered, monkeypatch):
    comparison = optsched.compare("philly-small", ["first"], seeds=2)
    drawn = [run.record.trace for run in comparison.rollouts["first"]]
    assert (drawn[0].submit_us != drawn[1].submit_us).any()
    one = optsched.simulate("philly-small", "first", seed=1)
    assert comparison.rollouts["first"][1].metrics == one.metrics
    same = optsched.compare(scenario(), ["first"], trace=trace(), seeds=2).rollouts["first"]
    assert same[0].record.trace is same[1].record.trace
    assert same[0].record.seed != same[1].record.seed


def test_compare_of_one_seed_has_no_intervals(registered):
    frame = optsched.compare(scenario(), ["first"], trace=trace()).frame()
    assert not [name for name in frame if name.endswith(("_low", "_high"))]
    assert (frame[[f"{key}_ratio" for key in RATIOS]].iloc[0] == 1).all()


def test_an_executor_gives_the_same(registered):
    names = ["first", "other"]
    alone, shares = optsched.compare(scenario(), names, trace=trace(), seeds=2), []
    with ThreadPoolExecutor(2) as pool:
        together = optsched.compare(
            scenario(), names, trace=trace(), seeds=2, executor=pool, progress=shares.append
        )
    assert alone.frame().equals(together.frame())
    assert shares == [0.25, 0.5, 0.75, 1.0]


class Dying(Executor):
    """Its only worker is killed at the third rollout; Dask gives up the second one besides."""

    def __init__(self, error):
        self.error, self.count = error, 0

    def submit(self, function, /, *arguments, **named):
        self.count += 1
        if self.count > 3:
            raise BrokenProcessPool
        future = Future()
        if self.count == 3:
            future.set_exception(BrokenProcessPool())
        elif self.count == 2:
            future.set_exception(self.error)
        else:
            future.set_result(function(*arguments, **named))
        return future


class KilledWorker(Exception):
    __module__ = "distributed.scheduler"


def test_what_a_killed_worker_leaves_is_done_again_and_the_finished_is_kept(registered):
    names, made = ["first", "other"], []
    alone = optsched.compare(scenario(), names, trace=trace(), seeds=2)
    with pytest.warns(RuntimeWarning, match="a worker died; 3 of 4 tasks are computed") as told:
        together = optsched.compare(
            scenario(), names, trace=trace(), seeds=2, executor=Dying(KilledWorker()),
            progress=made.append,
        )  # fmt: skip
    assert alone.frame().equals(together.frame())
    assert (len(told), made) == (1, [0.25, 0.5, 0.75, 1.0])
    with pytest.raises(ZeroDivisionError):
        optsched.compare(scenario(), names, trace=trace(), executor=Dying(ZeroDivisionError()))


def test_a_worker_that_is_killed_costs_compare_nothing(registered):
    alone = optsched.compare(scenario(), ["fifo", "las"], trace=trace())
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        with pytest.raises(BrokenProcessPool):
            pool.submit(_die).result()
        with pytest.warns(RuntimeWarning, match="a worker died"):
            together = optsched.compare(scenario(), ["fifo", "las"], trace=trace(), executor=pool)
    assert alone.frame().equals(together.frame())


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_metrics_that_are_missing_have_no_ratio(registered):
    made = [run.Rollout(records.record(energy_j=0.0, end_us=end), 0.0) for end in (260, 270)]
    comparison = Comparison({"a": tuple(made), "b": tuple(made)})
    row = comparison.frame().loc["b"]
    assert np.isnan(row["energy_kwh"])
    assert row[["energy_kwh_ratio", "energy_kwh_ratio_low"]].isna().all()
    assert row["jct_mean_s_ratio_high"] == 1


@pytest.mark.parametrize(
    ("policies", "seeds", "text"),
    [
        (["first"], 0, "seeds: must be at least 1, found 0"),
        (["first"], [], "seeds: expected some, 0 or more, each once, found none"),
        (["first"], [3, 3], "each once, found 3, 3"),
        (["first"], [-1], "0 or more, each once, found -1"),
        ([], 1, "policies: expected some, each once, found none"),
        (["first", "first"], 1, "each once, found first, first"),
    ],
)
def test_compare_refuses(policies, seeds, text, registered):
    with pytest.raises(ValueError, match=text):
        optsched.compare(scenario(), policies, trace=trace(), seeds=seeds)


def test_misspelt_policies_are_found_before_anything_runs(registered, monkeypatch):
    monkeypatch.setattr("optsched.rollout.rollout_tasks.rolled_out", lambda *a, **k: 1 / 0)
    with pytest.raises(UnknownNameError, match="there is no policy 'othr'"):
        optsched.compare(scenario(), ["first", "othr"], trace=trace())


def test_plots(registered, monkeypatch):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    comparison = optsched.compare(scenario(), ["first", "other"], trace=trace())
    assert len(comparison.plot().axes) == 4
    assert len(comparison.rollouts["first"][0].plot().axes) == 4
    plt.close("all")


# --- one trace ------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    """A trace in a file, as `optsched trace` writes it."""
    path = tmp_path / "jobs.json"
    write_trace(trace(40), path)
    return path


def intervals(frame):
    return [name for name in frame if name.endswith(("_low", "_high"))]


def test_a_file_and_policies_that_draw_nothing_have_no_intervals(file, monkeypatch):
    """Three seeds were the same rollout three times, with intervals of no width around it."""
    calls = []
    monkeypatch.setattr(
        "optsched.rollout.rollout_tasks.rolled_out",
        lambda *a, **k: calls.append(a[1]) or run.rolled_out(*a, **k),
    )
    comparison = optsched.compare(scenario(), ["fifo", "las"], trace=file, seeds=3)
    assert calls == ["fifo", "las"]
    frame = comparison.frame()
    assert not intervals(frame)
    one = optsched.simulate(scenario(), "las", trace=file).metrics
    assert frame.loc["las", "jct_mean_s"] == one["jct_mean_s"]
    assert "One trace" in comparison.basis
    assert "resample" in comparison.basis
    assert "Means over" not in "".join(map(str, comparison_table(comparison)))


def test_where_one_policy_draws_the_others_have_no_intervals(registered, file):
    where = scenario(locality=(1.0, 1.5))
    comparison = optsched.compare(where, ["fifo", "first"], trace=file, seeds=3)
    frame = comparison.frame()
    assert frame.loc["fifo", ["jct_mean_s_low", "jct_mean_s_ratio_high"]].isna().all()
    low, high = frame.loc["first", ["jct_mean_s_ratio_low", "jct_mean_s_ratio_high"]]
    assert low < frame.loc["first", "jct_mean_s_ratio"] < high
    assert len({r.metrics["jct_mean_s"] for r in comparison.rollouts["first"]}) > 1
    assert comparison.rollouts["fifo"][0] is comparison.rollouts["fifo"][2]
    assert "of what policies and physics draw, not of other jobs" in comparison.basis


def test_passing_trouble_and_noisy_estimates_are_drawn(file):
    for changes in (
        {"estimates": {"kind": "noisy", "sigma": 2.0}},
        {"events": {"mean_between_s": 500, "mean_length_s": 300}},
    ):
        comparison = optsched.compare(scenario(**changes), ["srtf"], trace=file, seeds=3)
        assert len({r.metrics["jct_mean_s"] for r in comparison.rollouts["srtf"]}) > 1
        assert intervals(comparison.frame())


def test_resampling_gives_all_policies_the_same_traces(file):
    comparison = optsched.compare(scenario(), ["fifo", "srtf"], trace=file, seeds=8, resample=5)
    fifo, srtf = (
        [r.record.trace.submit_us.tolist() for r in comparison.rollouts[name]]
        for name in ("fifo", "srtf")
    )
    assert fifo == srtf
    assert len(set(map(tuple, fifo))) == 8
    row = comparison.frame().loc["srtf"]
    assert row["jct_mean_s_ratio_low"] < row["jct_mean_s_ratio"] < row["jct_mean_s_ratio_high"]
    values = [r.metrics["jct_mean_s"] for r in comparison.rollouts["srtf"]]
    ends = np.percentile(values, [2.5, 97.5])
    assert row[["jct_mean_s_low", "jct_mean_s_high"]].tolist() == pytest.approx(ends.tolist())
    assert "8 traces, drawn from one in blocks of 5 jobs" in comparison.basis
    again = optsched.compare(scenario(), ["fifo", "srtf"], trace=file, seeds=8, resample=5)
    assert again.frame().equals(comparison.frame())


@pytest.mark.parametrize("block", [1, 3, 40])
def test_blocks_keep_jobs_gaps_and_deadlines(block):
    whole = dataclasses.replace(
        trace(40), deadline_us=np.where(np.arange(40) % 2, trace(40).submit_us + 7, -1)
    )
    gaps = np.diff(whole.submit_us).tolist()
    mean = round(sum(gaps) / len(gaps))
    number = {name: n for n, name in enumerate(whole.ids)}
    for seed in range(5):
        drawn = resampled(whole, block, seed)
        assert len(drawn) == len(set(drawn.ids)) == len(whole)
        assert drawn.submit_us[0] == whole.submit_us[0]
        source = [number[name.split("#")[0]] for name in drawn.ids]
        for n, job in enumerate(source):
            if n % block:
                assert job == (source[n - 1] + 1) % 40
            if n:
                gap = gaps[job - 1] if job else mean
                assert drawn.submit_us[n] - drawn.submit_us[n - 1] == gap
            assert drawn.run_us[n] == whole.run_us[job]
            assert drawn.queue[n] == whole.queue[job]
            assert drawn.failures.get(n) == whole.failures.get(job)
            due = drawn.deadline_us[n] - drawn.submit_us[n] if job % 2 else drawn.deadline_us[n]
            assert due == (7 if job % 2 else -1)
    assert trace_sha256(drawn) == trace_sha256(resampled(whole, block, 4))


def test_ids_that_look_drawn_stay_apart():
    columns = {"submit_s": [0, 1, 2], "gpus": [1] * 3, "run_s": [1] * 3, "id": ["a", "a#2", "b"]}
    whole = trace_of("named", "tests", columns)
    for seed in range(20):
        assert len(set(resampled(whole, 1, seed).ids)) == 3


def test_resampling_refuses(file):
    for options, text in (
        ({"trace": file, "seeds": 1, "resample": 5}, "give several seeds"),
        ({"trace": file, "seeds": 2, "resample": 0}, "blocks must be of 1 to 40 jobs"),
        ({"trace": file, "seeds": 2, "resample": 41}, "as many as there are, found 41"),
        ({"seeds": 2, "resample": 5}, "each seed draws a trace of its own"),
    ):
        with pytest.raises(ValueError, match=text):
            optsched.compare(scenario(), ["fifo"], **options)


@pytest.mark.parametrize("entry", registry.ENTRIES, ids=lambda entry: entry.name)
def test_policies_that_say_so_draw_nothing(entry):
    """Of one trace these are run once, so another seed must not change a thing."""
    changes = {"trace.jobs": 10, "trace.options.rate_per_h": 20, "epoch_s": 7200}
    world = read_scenario("eaco-28").changed(changes)
    if entry.maker().draws:
        return
    jobs = jobs_of(world)
    one, two = (optsched.simulate(world, entry.name, trace=jobs, seed=seed) for seed in (0, 7))
    assert one.jobs().equals(two.jobs())


def test_seeds_may_be_named_one_by_one():
    where = read_scenario("philly-small").changed({"trace.jobs": 20})
    chosen = optsched.compare(where, ["fifo"], seeds=[4, 1])
    alone = [optsched.simulate(where, "fifo", seed=seed).metrics for seed in (4, 1)]
    assert chosen.seeds == (4, 1)
    assert [run.metrics for run in chosen.rollouts["fifo"]] == alone
    assert optsched.compare(where, ["fifo"], seeds=2).seeds == (0, 1)

"""Metrics of a rollout: by hand, from the files alone, and laws."""

import io
import json
import math
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.results.fairness import contention
from optsched.rollout.results.metrics import METRICS, metrics, metrics_by
from optsched.rollout.results.outputs import (
    epochs_frame,
    jobs_frame,
    summary,
    timing,
    trace_sha256,
    write_outputs,
)
from optsched.rollout.results.parts_of_held_time import PARTS
from optsched.rollout.results.record import ACTIVE, JobsRecord
from optsched.rollout.results.size_classes import size_class
from optsched.traces.trace import trace_of
from tests.support.builders import records
from tests.support.builders.small_rollouts import POWER

HOUR = 3600


@pytest.fixture(scope="module")
def figures():
    return metrics(records.record())


def test_every_figure_is_described(figures):
    assert figures.keys() == METRICS.keys()


def test_times_by_hand(figures):
    jct = [110, 150, 30]
    assert figures["jct_mean_s"] == pytest.approx(290 / 3)
    assert figures["jct_median_s"] == 110
    assert figures["jct_p95_s"] == pytest.approx(110 + 0.9 * 40)
    assert figures["jct_p99_s"] == pytest.approx(110 + 0.98 * 40)
    assert figures["jct_geomean_s"] == pytest.approx(math.prod(jct) ** (1 / 3))
    assert figures["makespan_s"] == 160
    assert figures["bounded_slowdown_mean"] == pytest.approx((1.1 + 2.5 + 1) / 3)
    assert figures["queueing_delay_mean_s"] == pytest.approx(100 / 3)
    assert figures["first_start_delay_mean_s"] == pytest.approx(100 / 3)
    assert figures["fair_share_delay_mean_s"] == pytest.approx(70 / 3)
    assert figures["fragmentation_delay_mean_s"] == pytest.approx(25 / 3)
    assert figures["order_delay_mean_s"] == pytest.approx(5 / 3)
    assert (figures["back_off_delay_mean_s"], figures["capacity_delay_mean_s"]) == (0, 0)
    assert (figures["delayed_starts"], figures["fragmentation_share"]) == (1, 0)


def test_gpu_hours_by_hand(figures):
    assert figures["utilization"] == 450 / 640
    assert figures["utilization_effective"] == (85 + 28 + 152) / 640
    assert figures["gpu_hours"] == 450 / HOUR
    assert figures["goodput_gpu_h"] == 350 / HOUR
    losses = {"width": 0, "slow_gpu": 10, "distance": 14, "neighbour": 16, "sharing": 10}
    for cause, seconds in losses.items():
        assert figures[f"{cause}_loss_gpu_h"] == seconds / HOUR, cause
    assert (figures["redone_gpu_h"], figures["pre_run_gpu_h"]) == (28 / HOUR, 2 / HOUR)
    assert figures["overhead_gpu_h"] == 20 / HOUR
    assert figures["rented_gpu_hours"] == 640 / HOUR
    assert figures["rented_gpus_mean"] == 4
    assert figures["cost_usd"] == pytest.approx(0.64)
    assert figures["energy_kwh"] is None
    assert figures["jain_index"] == pytest.approx(450**2 / (2 * (250**2 + 200**2)))


def test_the_steady_part_by_hand(figures):
    assert (figures["steady_s"], figures["drain_s"]) == (100, 60)
    assert figures["steady_utilization"] == 230 / 400
    assert figures["drain_utilization"] == 220 / 240
    assert figures["steady_utilization_effective"] == 153 / 400
    assert figures["steady_waiting_jobs_mean"] == 0.9
    assert figures["steady_rented_gpus_mean"] == 4
    assert figures["steady_cost_usd"] == pytest.approx(0.4)
    assert figures["steady_energy_kwh"] is None


def test_counts_by_hand(figures):
    for key, value in {
        "attempts": 3,
        "preemptions": 0,
        "migrations": 2,
        "rescales": 1,
        "failures": 1,
        "outages": 0,
        "retries": 0,
        "deadline_misses": 2,
        "jobs": 4,
        "passed": 2,
        "killed": 0,
        "failed": 1,
        "unfinished": 1,
        "decisions": 5,
        "solver_calls": 3,
        "solver_fallbacks": 1,
        "solver_gap_max": 0.25,
    }.items():
        assert figures[key] == value, key


def test_fairness_by_hand():
    """Present: a alone for 10 s, with b for 10, with b and c for 30, with b for 50, b and d for 10.

    b: a until 110, c from 20 to 50, d from 100 to 160. c: always with a and b.
    """
    mean_a = (10 * 1 + 10 * 2 + 30 * 3 + 50 * 2 + 10 * 3) / 110
    mean_b = (150 + 100 + 30 + 60) / 150
    a = 110 / (100 * max(1, 2 * mean_a / 4))
    b = 150 / (50 * max(1, 4 * mean_b / 4))
    c = 30 / 30
    figures = metrics(records.record())
    assert figures["finish_time_fairness_max"] == pytest.approx(max(a, b, c))
    assert figures["finish_time_fairness_p95"] == pytest.approx(np.percentile([a, b, c], 95))
    assert figures["finish_time_fairness_share"] == pytest.approx(
        sum(rho > 1 for rho in (a, b, c)) / 3
    )


def test_energy_is_that_of_the_site_and_is_paid():
    figures = metrics(records.record(scenario=records.scenario(power=POWER)))
    kwh = 1.5 * (160_000 + 45_000) / 3.6e6
    assert figures["energy_kwh"] == pytest.approx(kwh)
    assert figures["cost_usd"] == pytest.approx(0.64 + 0.2 * kwh)
    assert figures["steady_energy_kwh"] == pytest.approx(1.5 * 123_000 / 3.6e6)


def test_window_drops_warm_up_and_drain():
    figures = metrics(records.record(), (1, 3))
    assert figures["jobs"] == 2
    assert figures["jct_mean_s"] == 90
    assert figures["makespan_s"] == 150
    assert figures["gpu_hours"] == 230 / HOUR
    assert figures["utilization"] == 450 / 640  # of the whole rollout
    with pytest.raises(ValueError, match="window 7 to 9 holds none of the 4 jobs"):
        metrics(records.record(), (7, 9))


def test_nothing_to_measure_is_none_not_nan():
    jobs = records.record().jobs
    waiting = {key: np.zeros(4, np.int64) for key in vars(jobs)}
    waiting |= {key: np.full(4, -1) for key in ("first_start_us", "end_us", "outcome")}
    made = records.record(
        jobs=JobsRecord(**waiting), epochs=(), end_us=0, busy_gpu_us=0, available_gpu_us=0,
        spent_gpu_us=0, energy_j=0.0,
    )  # fmt: skip
    figures = metrics(made)
    assert figures["unfinished"] == figures["jobs"] == 4
    for key in ("jct_mean_s", "jct_p99_s", "jct_geomean_s", "makespan_s", "utilization"):
        assert figures[key] is None
    json.dumps(figures, allow_nan=False)
    empty = trace_of("none", "", {"submit_s": [], "gpus": [], "run_s": []})
    none = {key: np.zeros(0, np.int64) for key in vars(jobs)}
    assert metrics(records.record(trace=empty, jobs=JobsRecord(**none)))["jobs"] == 0


def test_groups_add_up():
    table = metrics_by(records.record())
    whole = metrics(records.record())
    for by in ("size", "status"):
        rows = table.loc[by]
        for key in ("jobs", "gpu_hours", "goodput_gpu_h", "migrations", "unfinished"):
            assert rows[key].sum() == pytest.approx(whole[key])
    assert list(table.loc["size"].index) == ["1 GPU", "2 to 4 GPUs"]
    assert table.loc[("status", "failed"), "jct_mean_s"] == 30
    assert [size_class(n) for n in (1, 2, 4, 5, 8, 9)] == [
        "1 GPU", "2 to 4 GPUs", "2 to 4 GPUs", "5 to 8 GPUs", "5 to 8 GPUs", "more than 8 GPUs",
    ]  # fmt: skip


# --- from the files alone ---------------------------------------------------------------------


class Files(NamedTuple):
    """What a rollout wrote: its jobs, epochs and scenario; and when each job ended, or time did."""

    jobs: pd.DataFrame
    epochs: pd.DataFrame
    scenario: dict
    until: pd.Series
    window: list

    @property
    def ended(self):
        return self.jobs[self.jobs.outcome != "unfinished"]

    @property
    def alone(self):
        return self.jobs.failing_s + self.jobs.run_alone_s.where(self.jobs.status != "failed", 0)

    @property
    def last(self):
        return self.epochs.iloc[-1]


def files(folder):
    jobs = pd.read_csv(folder / "jobs.csv", keep_default_na=True)
    jobs["queue"] = jobs["queue"].fillna("")
    epochs = pd.read_csv(folder / "epochs.csv")
    summary = json.loads((folder / "summary.json").read_text())
    until = jobs.end_s.fillna(epochs.iloc[-1].now_s)
    return Files(jobs, epochs, summary["scenario"], until, summary["window"])


def times(written):
    """Yield completion times, what they are relative to running alone, and their makespan."""
    ended, jobs = written.ended, written.jobs
    jct = ended.end_s - ended.submit_s
    yield "jct_mean_s", jct.mean()
    yield "jct_median_s", jct.median()
    yield "jct_p95_s", jct.quantile(0.95)
    yield "jct_p99_s", jct.quantile(0.99)
    yield "jct_geomean_s", math.exp(np.log(jct).mean())
    yield "makespan_s", ended.end_s.max() - jobs.submit_s.min()
    slowdown = jct / written.alone[ended.index].clip(lower=60)
    yield "bounded_slowdown_mean", slowdown.clip(lower=1).mean()


def delays(written):
    ended, jobs = written.ended, written.jobs
    yield "queueing_delay_mean_s", ended.waiting_s.mean()
    yield "first_start_delay_mean_s", (jobs.first_start_s - jobs.submit_s).mean()
    kinds = ("back_off", "fair_share", "capacity", "fragmentation", "order")
    for kind in kinds:
        yield f"{kind}_delay_mean_s", ended[f"{kind}_s"].mean()
    yield "delayed_starts", sum(jobs[f"{kind}_delays"].sum() for kind in kinds)
    near, fair = jobs.fragmentation_delays.sum(), jobs.fair_share_delays.sum()
    yield "fragmentation_share", near / (near + fair) if near + fair else None
    late = jobs.deadline_s.notna() & (written.until > jobs.deadline_s)
    yield "deadline_misses", late.sum()


def use(written):
    jobs, last = written.jobs, written.last
    yield "utilization", last.busy_gpu_s / last.available_gpu_s
    yield "utilization_effective", jobs.effective_gpu_s.sum() / last.available_gpu_s
    yield "gpu_hours", jobs.allocated_gpu_s.sum() / HOUR
    yield "goodput_gpu_h", jobs.useful_gpu_s.sum() / HOUR
    for key in PARTS[1:]:
        yield f"{key}_gpu_h", jobs[f"{key}_gpu_s"].sum() / HOUR


def paid(scenario, spent_gpu_s, joules):
    energy, cost = None, spent_gpu_s / HOUR * scenario["price_usd_per_gpu_h"]
    if "power" in scenario:
        energy = joules / 3.6e6 * scenario["power"]["pue"]
        cost += energy * scenario["power"]["price_usd_per_kwh"]
    return cost, energy


def steady(written):
    begin, end = written.window
    took = {key: end[key] - begin[key] for key in end}
    yield "steady_s", took["now_s"]
    yield "steady_utilization", took["busy_gpu_s"] / took["available_gpu_s"]
    yield "steady_utilization_effective", took["effective_gpu_s"] / took["available_gpu_s"]
    yield "steady_waiting_jobs_mean", took["waiting_s"] / took["now_s"]
    yield "steady_rented_gpus_mean", took["spent_gpu_s"] / took["now_s"]
    cost, energy = paid(written.scenario, took["spent_gpu_s"], took["energy_j"])
    yield "steady_cost_usd", cost
    yield "steady_energy_kwh", energy
    last = written.last
    yield "drain_s", last.now_s - end["now_s"]
    ready = last.available_gpu_s - end["available_gpu_s"]
    yield "drain_utilization", (last.busy_gpu_s - end["busy_gpu_s"]) / ready


def costs(written):
    last = written.last
    rented = last.spent_gpu_s / HOUR
    cost, energy = paid(written.scenario, last.spent_gpu_s, last.energy_j)
    yield "rented_gpu_hours", rented
    yield "idle_gpu_h", (last.available_gpu_s - last.busy_gpu_s) / HOUR
    yield "unready_gpu_h", (last.spent_gpu_s - last.available_gpu_s) / HOUR
    yield "over_budget_gpu_h", None  # the scenario has no budget: see results/test_budgets.py
    yield "least_budget_gpus", None
    yield "rented_gpus_mean", last.spent_gpu_s / last.now_s
    yield "cost_usd", cost
    yield "energy_kwh", energy


def fairness(written):
    rho = list(finish_times_over_fair_ones(written))
    yield "finish_time_fairness_max", max(rho)
    yield "finish_time_fairness_p95", np.percentile(rho, 95)
    yield "finish_time_fairness_share", np.mean([value > 1 for value in rho])
    by_queue = written.jobs.groupby("queue").allocated_gpu_s.sum()
    yield "jain_index", by_queue.sum() ** 2 / len(by_queue) / (by_queue**2).sum()


def finish_times_over_fair_ones(written):
    jobs, until, alone = written.jobs, written.until, written.alone
    gpus = written.scenario["nodes"] * written.scenario["gpus_per_node"]
    for n in written.ended.index:
        start, end = jobs.submit_s[n], until[n]
        shared = (until.clip(upper=end) - jobs.submit_s.clip(lower=start)).clip(lower=0).sum()
        share = alone[n] * max(1, jobs.gpus[n] * shared / (end - start) / gpus)
        yield (end - start) / share


def counts(written):
    jobs, epochs = written.jobs, written.epochs
    for key in ("attempts", "preemptions", "migrations", "rescales", "failures", "outages"):
        yield key, jobs[key].sum()
    yield "retries", jobs.failures.sum() - (jobs.outcome == "failed").sum()
    yield "given_up", jobs.given_up.sum()
    yield "false_stops", ((jobs.given_up == 1) & (jobs.status == "passed")).sum()
    yield "jobs", len(jobs)
    for key in ("passed", "killed", "failed", "unfinished"):
        yield key, (jobs.outcome == key).sum()
    yield "decisions", len(epochs) - 1
    yield "solver_calls", epochs.solves.sum()
    yield "solver_fallbacks", epochs.fallbacks.sum()
    yield "solver_gap_max", epochs.gap.max() if epochs.gap.notna().any() else None


def recomputed(folder):
    """Compute the metrics again, with pandas and loops, from what was written."""
    written = files(folder)
    groups = (times, delays, use, steady, costs, fairness, counts)
    return dict(chain.from_iterable(group(written) for group in groups))


def assert_recomputable(folder):
    told = json.loads((folder / "summary.json").read_text())["metrics"]
    figures = recomputed(folder)
    assert list(told) != []
    assert set(figures) == set(told)
    for key, value in told.items():
        if value is None or figures[key] is None:
            assert value == figures[key], key
        else:
            assert value == pytest.approx(figures[key], rel=1e-9), key


def test_metrics_can_be_computed_again_from_the_files(tmp_path):
    write_outputs(records.record(scenario=records.scenario(power=POWER)), tmp_path, 1.5)
    assert_recomputable(tmp_path)


def test_files_hold_every_figure_exactly(tmp_path):
    made = records.record()
    write_outputs(made, tmp_path, 1.5)
    jobs = pd.read_csv(tmp_path / "jobs.csv")
    for key in ("running", "waiting", "fair_share", "capacity", "fragmentation", "order"):
        assert (np.rint(jobs[f"{key}_s"] * 1e6) == getattr(made.jobs, f"{key}_us")).all()
    assert list(jobs.job) == ["a", "b", "c", "d"]
    assert list(jobs.outcome) == ["passed", "passed", "failed", "unfinished"]
    assert jobs.end_s.isna().tolist() == [False, False, False, True]
    epochs = pd.read_csv(tmp_path / "epochs.csv")
    assert list(epochs.status.fillna("")) == ["optimal", "", "optimal error", "", "", "end"]
    assert epochs.verified.tolist()[0]
    assert epochs.verified.isna().tolist() == [False, True, True, True, True, True]
    assert epochs.gap.max() == 0.25
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "epochs.csv", "intervals.csv", "jobs.csv", "summary.json", "timing.json",
    ]  # fmt: skip
    held = pd.read_csv(tmp_path / "intervals.csv")
    assert held.gpus.iloc[-1] == "0 1 2 3"


def test_seconds_of_solvers_stand_in_timing_only(tmp_path):
    quick, slow = records.record(), records.record()
    for epoch in slow.epochs:
        object.__setattr__(epoch, "solves", tuple(
            replace(call, seconds=9 * call.seconds, verification_s=9 * call.verification_s)
            for call in epoch.solves))  # fmt: skip
    for name, made in (("quick", quick), ("slow", slow)):
        (tmp_path / name).mkdir()
        write_outputs(made, tmp_path / name, 1.5)
    for path in (tmp_path / "quick").iterdir():
        same = path.read_bytes() == (tmp_path / "slow" / path.name).read_bytes()
        assert same == (path.name != "timing.json")
    assert timing(quick, 1.5) == {
        "wall_s": 1.5, "solver_s": 1.0, "solver_calls": 3, "solver_p50_s": 0.25,
        "solver_p95_s": pytest.approx(0.475), "solver_max_s": 0.5,
        "verification_s": pytest.approx(0.1), "verification_share": pytest.approx(0.1 / 1.5),
    }  # fmt: skip


def test_summary_names_what_it_depends_on():
    told = summary(records.record())
    assert told["schema"] == "optsched/rollout/1"
    assert (told["policy"], told["seed"]) == ("fifo", 0)
    assert told["trace"]["sha256"] == trace_sha256(records.trace())
    assert {"optsched", "highspy", "numpy"} <= told["versions"].keys()
    assert told["scenario"]["name"] == "by hand"
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("submit_s", [0, 20, 10, 101]),
        ("gpus", [2, 1, 4, 2]),
        ("status", ["passed", "failed", "passed", "killed"]),
        ("failures", [(), (), (), ()]),
        ("ids", ["a", "c", "b", "D"]),
        ("queue", ["x", "x", "y", "z"]),
        ("utilization", [0.1, 0.2, 0.3, 0.4]),
    ],
)
def test_hash_of_a_trace_tells_every_column_apart(key, value, monkeypatch):
    before = trace_sha256(records.trace())
    assert before == trace_sha256(records.trace())

    def changed(name, source, columns):
        return trace_of(name, source, columns | {key: value})

    monkeypatch.setattr(records, "trace_of", changed)
    assert trace_sha256(records.trace()) != before


# --- laws -------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=8),
)
def test_contention_is_the_time_average_of_jobs_present(pairs):
    submit = np.array([start for start, _ in pairs])
    end = np.array([start + length for start, length in pairs])
    figures = contention(submit, end)
    for n, (start, length) in enumerate(pairs):
        present = [sum(a <= t < b for a, b in zip(submit, end, strict=True))
                   for t in range(start, start + length)]  # fmt: skip
        assert figures[n] == pytest.approx(np.mean(present) if length else 1.0)


@given(st.data())
def test_parts_add_up_and_shares_are_shares(data):
    whole = st.integers(0, 10**12)
    columns = {key: np.array(data.draw(st.lists(whole, min_size=4, max_size=4)))
               for key in vars(records.record().jobs)}  # fmt: skip
    trace = records.trace()
    columns["outcome"] = np.array(
        data.draw(st.lists(st.integers(ACTIVE, 2), min_size=4, max_size=4))
    )
    columns["end_us"] = trace.submit_us + columns["running_us"] + columns["waiting_us"]
    columns["allocated_gpu_us"] = sum(columns[f"{key}_gpu_us"] for key in PARTS)
    end = int(columns["end_us"].max())
    made = records.record(jobs=JobsRecord(**columns), end_us=end)
    figures = metrics(made)
    added = figures["goodput_gpu_h"] + sum(figures[f"{key}_gpu_h"] for key in PARTS[1:])
    assert figures["gpu_hours"] == pytest.approx(added)
    assert figures["passed"] + figures["killed"] + figures["failed"] + figures["unfinished"] == 4
    if figures["jain_index"] is not None:
        assert 0.5 - 1e-9 <= figures["jain_index"] <= 1 + 1e-9
    json.dumps(summary(made), allow_nan=False)
    assert pd.read_csv(io.StringIO(jobs_frame(made).to_csv())).shape[0] == 4
    assert len(epochs_frame(made)) == 6

"""The row `as recorded`: a log's own schedule beside the policies, measured here from scratch."""

import json
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.rollout.results.as_recorded import NAME, recorded_schedule
from optsched.rollout.results.bounds.rows import BELOW
from optsched.rollout.results.metrics import METRICS
from optsched.rollout.scenario import Scenario
from optsched.traces import US, RecordedRun, trace_of, write_trace

PLAIN = {
    "schema": "optsched/scenario/1", "name": "two nodes", "nodes": 2, "gpus_per_node": 4,
    "trace": {"file": "t.json"},
}  # fmt: skip
RACK = PLAIN | {
    "nodes": None,
    "gpus_per_node": None,
    "topology": {
        "levels": ["node", "cluster"],
        "domains": [
            {"id": "all", "level": "cluster"},
            {"id": "n1", "level": "node", "parent": "all", "gpus": ["a", "b", "c", "d"]},
            {"id": "n2", "level": "node", "parent": "all", "gpus": ["e", "f"]},
        ],
    },
}


def world(document=PLAIN):
    given = {key: value for key, value in document.items() if value is not None}
    return Scenario.from_document(given, "test")


def run(start, end, gpus, *nodes):
    return RecordedRun(start * US, end * US, gpus, nodes)


def trace(rows, **columns):
    """Return a trace of (submission, GPUs, run time, recorded runs), in seconds from 0."""
    submit, gpus, length, record = zip(*rows, strict=True)
    given = {"submit_s": submit, "gpus": gpus, "run_s": length, "record": record}
    return trace_of("t", "", given | columns, start_s=0.0)


JOBS = st.lists(
    st.tuples(
        st.integers(0, 50),
        st.integers(1, 4),
        st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=6,
)


@given(JOBS)
def test_its_figures_are_those_of_the_log_second_by_second(jobs):
    rows, held, ends, jct, wait = [], np.zeros(2000, int), [], [], []
    for submit, gpus, spans in jobs:
        now, runs = submit, []
        for gap, length in spans:
            runs.append(run(now + gap, now + gap + length, gpus))
            held[now + gap : now + gap + length] += gpus
            now += gap + length
        rows.append((submit, gpus, 1, tuple(runs)))
        ends.append(now)
        jct.append(now - submit)
        wait.append(sum(gap for gap, _ in spans))
    schedule = recorded_schedule(trace(rows), world())
    told = schedule.metrics
    span = max(ends) - min(submit for submit, _, _ in jobs)
    assert set(told) == set(METRICS)
    assert told["jct_mean_s"] == pytest.approx(np.mean(jct))
    assert told["queueing_delay_mean_s"] == pytest.approx(np.mean(wait))
    assert told["first_start_delay_mean_s"] == pytest.approx(np.mean([s[0][0] for *_, s in jobs]))
    assert told["makespan_s"] == pytest.approx(span)
    assert told["gpu_hours"] == pytest.approx(held.sum() / 3600)
    assert told["utilization"] == pytest.approx(held.sum() / (8 * span))
    above = int((held > 8).sum())
    first, last = min(submit for submit, _, _ in jobs), max(submit for submit, _, _ in jobs)
    queue = np.zeros(2000, int)
    for submit, _, spans in jobs:
        now = submit
        for gap, length in spans:
            queue[now : now + gap] += 1
            now += gap + length
    assert told["steady_s"] == last - first
    assert told["drain_s"] == max(ends) - last
    assert told["drain_utilization"] == pytest.approx(held[last:].sum() / (8 * (max(ends) - last)))
    if last > first:
        assert told["steady_utilization"] == pytest.approx(
            held[first:last].sum() / 8 / (last - first)
        )
        assert told["steady_waiting_jobs_mean"] == pytest.approx(queue[first:last].mean())
    said = [line for line in schedule.warnings if "held at once" in line]
    assert bool(said) == bool(above)
    if above:
        assert f"{held.max()} GPUs held at once, but the scenario has 8" in said[0]
        assert f"for {above} s" in said[0] or "min" in said[0]


def test_the_row_stands_beside_the_policies():
    jobs = trace([(0, 4, 60, (run(10, 70, 4),)), (5, 4, 60, (run(80, 140, 4),))])
    compared = optsched.compare(world(), ["fifo", "las"], trace=jobs)
    frame = compared.frame()
    assert frame.index.tolist() == ["fifo", "las", NAME]
    assert frame.loc[NAME, "jct_mean_s"] == pytest.approx((70 + 135) / 2)
    assert frame.loc[NAME, "jct_mean_s_ratio"] == pytest.approx(102.5 / 60)
    assert compared.warnings == ()
    assert NAME in str(compared)
    assert NAME in compared._repr_html_()


def test_several_seeds_in_processes_have_it_too():
    jobs = trace([(0, 4, 60, (run(10, 70, 4),)), (5, 4, 60, (run(80, 140, 4),))])
    with ProcessPoolExecutor(1) as executor:
        compared = optsched.compare(world(), ["fifo"], trace=jobs, seeds=2, executor=executor)
    assert compared.frame().index.tolist() == ["fifo", NAME]
    assert "no intervals" in compared.basis


def test_traces_drawn_from_it_have_none():
    jobs = trace([(n, 1, 60, (run(n, n + 60, 1),)) for n in range(6)])
    compared = optsched.compare(world(), ["fifo"], trace=jobs, seeds=2, resample=2)
    assert compared.frame().index.tolist() == ["fifo"]
    plain = trace([(0, 1, 60, ())])
    assert optsched.compare(world(), ["fifo"], trace=plain).recorded is None


@pytest.mark.parametrize(
    ("document", "rows", "warning"),
    [
        (PLAIN, [(0, 4, 60, ()), (0, 1, 60, (run(0, 60, 1),))], "1 of 2 jobs have no record"),
        (PLAIN, [(9, 4, 60, (run(5, 65, 4),))], "1 jobs started before their submission"),
        (PLAIN, [(0, 4, 60, (run(0, 50, 4),))], "1 jobs ran for less than the trace says"),
        (PLAIN, [(0, 6, 60, (run(0, 60, 6, ("a", 6)),))], "1 nodes held more GPUs at once"),
        (
            PLAIN,
            [(0, 3, 60, (run(0, 60, 3, ("a", 1), ("b", 1), ("c", 1)),))],
            "3 nodes were used, but the scenario has 2",
        ),
        (RACK, [(0, 2, 60, (run(0, 60, 2, ("n3", 2)),))], "lacks, such as 'n3'"),
        (RACK, [(0, 4, 60, (run(0, 60, 4, ("n2", 4)),))], "than they have, such as 'n2'"),
        (RACK, [(0, 4, 60, (run(0, 60, 4, ("n1", 4)),))], None),
        (PLAIN, [(0, 4, 60, (run(0, 59, 4),))], None),  # whole seconds of a log
        (PLAIN, [(0, 8, 9, (run(0, 9, 8),)), (0, 8, 9, (run(9, 18, 8),))], None),
    ],
)
def test_it_warns_where_the_record_breaks_the_modelled_world(document, rows, warning):
    told = recorded_schedule(trace(rows), world(document)).warnings
    if warning is None:
        assert told == ()
    else:
        assert len(told) == 1
        assert told[0].startswith(f"{NAME}: ")
        assert warning in told[0]


def test_the_command_line_shows_it_with_its_warnings(tmp_path):
    write_trace(trace([(9, 4, 60, (run(5, 65, 4),))]), tmp_path / "t.json")
    (tmp_path / "s.json").write_text(json.dumps(PLAIN))
    command = ["compare", str(tmp_path / "s.json"), "--policy", "fifo"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert NAME in shown.stdout
    assert "1 jobs started before their submission" in shown.stdout
    told = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert [row["policy"] for row in told["policies"]] == ["fifo", NAME]
    early = f"{NAME}: 1 jobs started before their submission"
    assert told["warnings"] == [early, f"{NAME}: {BELOW}"]  # it ends sooner than it could

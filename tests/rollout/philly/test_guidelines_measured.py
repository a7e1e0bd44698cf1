"""`python -m benchmarks.guidelines`: effects against hand calculation, and a run of few jobs."""

import numpy as np
import pytest

from benchmarks.guidelines import __main__ as command
from benchmarks.guidelines import measure, report
from optsched.reproduction.philly import guidelines
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.traces.trace import trace_of


def test_effects_are_of_pairs():
    base, more = np.array([10.0, 20.0, 30.0]), np.array([11.0, 22.0, 33.0])
    found = report.effect(more, base, relative=True)
    assert found.change == pytest.approx(10)
    assert (found.low, found.high) == (pytest.approx(10), pytest.approx(10))
    found = report.effect(more, base, relative=False)
    assert found.change == pytest.approx(2)
    assert 1 <= found.low <= 2 <= found.high <= 3
    assert report.effect(base, base, relative=True) == (0, None, None)
    assert report.effect(more, 0 * base, relative=True).change == 0


def test_servers_of_gangs_are_counted_against_the_fewest():
    """A gang of 8 on one server, and one of 2 on two: 1 and 2 times the fewest."""
    columns = {"submit_s": [0, 0, 0, 10], "gpus": [8, 7, 313 - 8, 2], "run_s": [50, 900, 900, 9]}
    trace = trace_of("few jobs", "by hand", columns)
    world = guidelines.world()
    policy = make("philly:relax_after=0", world)
    record = Engine(world, trace, policy, 0, keep_intervals=True).run()
    by_job = {job: len({gpu // 8 for gpu in gpus}) for job, _, _, gpus in record.intervals}
    expected = [by_job[0] / 1, by_job[1] / 1, by_job[2] / 39, by_job[3] / 1]
    assert guidelines.servers_of_gangs(record) == pytest.approx(np.mean(expected))


def test_few_jobs_are_measured_once_and_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measure, "KEPT", tmp_path / "kept")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{command.BEGIN}\n<!-- end -->\nafter\n")
    monkeypatch.setattr(command, "PAGE", page)
    few = ["--loads", "0.9", "--seeds", "0-1", "--jobs", "40"]
    assert command.main([*few, "--to-docs"]) == 0
    printed = capsys.readouterr().out
    for name in (*guidelines.GUIDELINES, "Load 0.9", "40 jobs on 320 GPUs, 2 seeds"):
        assert name in printed
    assert printed.strip() in page.read_text()
    monkeypatch.setattr(guidelines, "Engine", None)  # nothing is rolled out again
    assert command.main(few) == 0
    assert capsys.readouterr().out == printed

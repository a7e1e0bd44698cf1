"""`python -m benchmarks.policies`: small rollouts, what is skipped, and the tables; no timing."""

import pytest

from benchmarks.policies import __main__ as command
from benchmarks.policies import measure, report
from benchmarks.policies.measure import KIND_OF, Measured, expected_s, in_turn
from benchmarks.policies.rollout import under
from benchmarks.policies.worlds import KINDS, Size, made
from optsched.rollout.declarations.names import became_of


def ended(cpu_s, jobs, **changes):
    found = {"status": "done", "cpu_s": cpu_s, "jobs": jobs, "decisions": 2 * jobs, "ended": 1.0}
    found |= {"memory_mib": 100.0, "gap_median": None, "gap_worst": None, "unverified": 0}
    return Measured("fifo", Size(jobs, 311), found | changes)


def skipped(jobs, seconds):
    return Measured("fifo", Size(jobs, 311), {"status": "skipped", "expected_s": seconds})


@pytest.mark.parametrize("kind", KINDS)
def test_each_scenario_has_what_its_policies_are_about(kind):
    world, trace = made(kind, Size(30, 8))
    assert len(trace) == 30
    assert set(trace.model) <= {*world.models, ""}
    for policy in measure.POLICIES[kind]:
        assert became_of(world, policy) == ""


@pytest.mark.parametrize("policy", ["tiresias", "pal", "eaco-greedy", "equi"])
def test_a_rollout_tells_what_it_took(policy):
    found = under(policy, KIND_OF[policy], vars(Size(20, 40)), 60.0)
    assert (found.status, found.jobs, found.ended) == ("done", 20, 1.0)
    assert found.decisions >= 20
    assert (found.gap_worst is not None) == (policy == "pal")
    assert found.unverified == 0


@pytest.mark.parametrize("policy", measure.EXACT)
def test_exact_policies_are_called_in_rounds_alone_and_tell_what_one_takes(policy):
    size = vars(Size(20, 40, 0.8))
    found = under(policy, KIND_OF[policy], size, 60.0, in_rounds=True)
    at_events = under(policy, KIND_OF[policy], size, 60.0)
    assert (found.status, found.unverified) == ("done", 0)
    assert found.decisions < at_events.decisions
    assert 0 < found.round_median_s <= found.round_worst_s <= found.cpu_s
    assert at_events.round_worst_s is None


def test_a_rollout_ends_at_its_limit():
    found = under("fifo", "gangs", vars(Size(20, 40)), 0.0)
    assert found.status == "stopped"
    assert found.ended < 1


@pytest.mark.parametrize(
    ("smaller", "seconds"),
    [
        ((), None),
        ((ended(1, 100),), 10.0),  # as the jobs
        ((ended(1, 10), ended(100, 100)), 10_000.0),  # as their square, as before
        ((ended(1, 10), ended(2, 100)), 20.0),  # at least as the jobs
        ((ended(1, 10), skipped(100, 50.0)), 500.0),
        ((ended(1, 10, status="stopped"),), None),
    ],
)
def test_what_a_larger_size_should_take(smaller, seconds):
    found = expected_s(smaller, Size(1000, 311))
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_sizes_that_would_take_too_long_are_skipped(monkeypatch):
    monkeypatch.setattr(measure, "measured", lambda name, size, *_, **__: ended(9, size.jobs))
    rows = in_turn("fifo", [Size(n, 311) for n in (10, 100, 1000)], 50.0)
    assert [row.is_done for row in rows] == [True, False, False]
    assert [row.found.get("reason") for row in rows] == [
        *(None, "would take 90 s", "would take 900 s"),
    ]


def test_exact_policies_are_measured_at_larger_sizes_as_others_are(monkeypatch):
    monkeypatch.setattr(measure, "measured", lambda name, size, *_, **__: ended(9, size.jobs))
    for limit_s, last in ((1e9, "done"), (50.0, "skipped")):
        rows = in_turn("pal", [Size(10, 311), Size(100, 311)], limit_s)
        assert [row.found["status"] for row in rows] == ["done", last]


def test_rows_with_numba_are_of_policies_that_are_compiled_and_others_do_without(monkeypatch):
    rows = []
    monkeypatch.setattr(measure, "in_process", lambda row: rows.append(row) or measure.skipped(""))
    for name in ("pal-greedy", "pal-greedy+numba"):
        measure.measured(name, Size(20, 40), 60.0, again=True)
    assert [row.options["policy"] for row in rows] == ["pal-greedy", "pal-greedy"]
    assert [row.environment for row in rows] == [{"OPTSCHED_COMPILED": told} for told in "01"]
    assert [row.needs for row in rows] == [(), ("numba",)]
    assert {row.removesuffix("+numba") for row in KIND_OF} == {*sum(measure.POLICIES.values(), ())}


def test_rows_tell_rates_and_gaps_and_growth():
    assert report.line(ended(2, 100)) == "| `fifo` | 2.00 | 50 | 100 | 100 |  |"
    half = report.line(ended(2, 100, status="stopped", ended=0.5))
    assert half == "| `fifo` | 2.00 | 25 | 100 | 100 | stopped with 50% of the jobs ended |"
    gaps = {"gap_median": 0.001, "gap_worst": 0.25, "unverified": 3}
    assert "0.10% in the median, 25.00% at worst; 3 rounds" in report.line(ended(2, 100, **gaps))
    rounds = gaps | {"round_median_s": 0.312, "round_worst_s": 4.0}
    assert "0.31 s a round in the median, 4.0 s at worst" in report.line(ended(2, 100, **rounds))
    table = report.growth([[ended(1, 10), ended(100, 100)]], [[ended(1, 10), skipped(10, 9.0)]])
    assert table.endswith("| `fifo` | 2.00 | stopped |")


def test_the_command_prints_and_keeps_what_it_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    absent = ["--csv", str(tmp_path / "none.csv")]
    assert command.main(["--policies", "fifo", "--jobs", "20", *absent]) == 0
    first = capsys.readouterr().out
    assert "20 generated jobs, 311 nodes of 8 GPUs:" in first
    assert "| `fifo` | | | | | the file is not there |" in first
    assert len(list(tmp_path.iterdir())) == 1
    assert command.main(["--policies", "fifo", "--jobs", "20", *absent]) == 0
    assert capsys.readouterr().out == first

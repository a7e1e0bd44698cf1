"""`python -m benchmarks.philly_tables`: its figures against hand calculation; table 4."""

import json
from functools import cache

import numpy as np
import pytest

from benchmarks.philly_tables import __main__ as command
from benchmarks.philly_tables import report, rollouts
from optsched import read_scenario
from optsched.reproduction.philly import places, targets
from optsched.reproduction.philly.jobs import of_jobs
from optsched.reproduction.philly.side_by_side import PLACES, InPlaces, busy, of_pairs
from optsched.reproduction.philly.waiting import of_waiting
from optsched.rollout.engine.engine import Engine
from optsched.traces.trace import Failure, trace_of
from tests.support.builders.rollout_parts import scenario

PAPER = 96_260
GANG_ON_FOUR = [node * 8 + gpu for node in range(4, 8) for gpu in range(4)]
WHERE = ([0], range(8, 12), range(16, 32), GANG_ON_FOUR, range(64, 72))
"""One GPU, 4 on a server, 16 on two and on four servers, 8 that fail twice; no neighbours."""


@cache
def record():
    """Five jobs, each at once in its place; four servers are 3/4 as fast as two."""
    world = scenario(
        nodes=9,
        gpus_per_node=8,
        spread={"servers": {"counts": [1, 2, 4], "speed": [1.0, 0.8, 0.6]}},
        retries={"delay_s": 60},
    )
    columns = {
        "submit_s": [0.0] * 5,
        "gpus": [1, 4, 16, 16, 8],
        "run_s": [600, 1000, 3600, 3600, 500],
        "status": ["passed", "killed", "passed", "passed", "failed"],
        "utilization": [0.5, 0.4, 0.6, 0.6, 0.5],
        "failures": [
            *[()] * 4,
            (Failure("Core dump", 60_000_000), Failure("Syntax error", 120_000_000)),
        ],
    }
    where = [tuple(gpus) for gpus in WHERE]
    made = trace_of("five", "", columns)
    return Engine(world, made, InPlaces(where), 0, keep_intervals=True).run()


def cells(found, table):
    return {name.removeprefix(f"{table}, "): n for name, n in found.items() if table in name}


def test_table_3_by_hand():
    """Means over GPU time; the gang on four servers takes 4,800 s and computes 3/4 of 60 %."""
    both = (60 * 3600 + 45 * 4800) / 8400
    found = cells(of_jobs(record()), "table 3")
    assert found["1 GPUs, passed"] == pytest.approx(50)
    assert found["4 GPUs, killed"] == found["4 GPUs, all"] == pytest.approx(40)
    assert found["8 GPUs, failed"] == pytest.approx(50)
    assert found["16 GPUs, passed"] == found["16 GPUs, all"] == pytest.approx(both)
    gpu_s = {50: 600 + 8 * 180, 40: 4000, both: 16 * 8400}
    whole = sum(share * time for share, time in gpu_s.items()) / sum(gpu_s.values())
    assert found["all sizes, all"] == pytest.approx(whole)
    assert "16 GPUs, failed" not in found


def test_table_5_by_hand():
    found = cells(places.of_places(record()), "table 5")
    assert found["2 servers, mean"] == found["2 servers, p90"] == pytest.approx(60)
    assert found["4 servers, mean"] == pytest.approx(45)
    assert not any(name.startswith("8 servers") for name in found)


def test_table_6_and_figure_2_by_hand():
    found = of_jobs(record())
    assert found["table 6, % of jobs, passed"] == pytest.approx(60)
    held = {"passed": 600 + 16 * 8400, "killed": 4000, "failed": 8 * 180}
    for status, gpu_s in held.items():
        share = 100 * gpu_s / sum(held.values())
        assert found[f"table 6, % of GPU time, {status}"] == pytest.approx(share)
    assert found["figure 2, 1 GPUs, p50, minutes"] == pytest.approx(10)
    assert found["figure 2, >8 GPUs, p50, minutes"] == pytest.approx((60 + 80) / 2)
    assert found["figure 2, >8 GPUs, p90, minutes"] == pytest.approx(60 + 0.9 * 20)
    assert found["figure 2, 5-8 GPUs, p50, minutes"] == pytest.approx(3)
    assert found["GPU-hours per job, held"] == pytest.approx(sum(held.values()) / 3600 / 5)
    assert found["median run time, s"] == pytest.approx(1000)


def test_table_7_by_hand():
    """Two trials of one job, of 1 and 2 minutes; numbers are scaled to the paper's jobs."""
    found = cells(of_jobs(record()), "table 7, Core dump")
    assert found["trials"] == found["jobs"] == found["trials, more than 4"] == PAPER / 5
    assert found["p50, minutes"] == found["p95, minutes"] == pytest.approx(1)
    assert found["time, %"] == found["time x GPUs, %"] == pytest.approx(100 / 3)
    assert found["trials, 1 GPU"] == 0


def test_figure_4_is_the_first_wait_by_the_servers_of_the_first_start(monkeypatch):
    monkeypatch.setattr(places, "FEWEST", 1)
    found = cells(places.of_places(record()), "figure 4")
    assert set(found) == {
        f"{size} GPUs on {servers}, {level}, minutes"
        for size, servers in (("5 to 8", 1), ("more than 8", 2), ("more than 8", 4))
        for level in ("p50", "p90")
    }
    assert set(found.values()) == {0.0}


def test_where_the_gpu_time_went_adds_up():
    found = cells(of_waiting(record()), "GPU time held")
    assert sum(found.values()) == pytest.approx(100, abs=1e-6)
    lost = 16 * 1200 / (600 + 4000 + 16 * 8400 + 8 * 180)
    assert found["% distance"] == pytest.approx(100 * lost)


def test_quantiles_are_of_weights():
    assert places.quantile(np.array([30.0, 10.0, 20.0]), np.array([1, 1, 2]), 0.5) == 20.0


# --- table 4 ----------------------------------------------------------------------------------


def test_table_4_comes_out_of_the_physics_within_three_points():
    found = of_pairs()
    for name, share in targets.TABLE_4.items():
        assert found[f"table 4, {name}"] == pytest.approx(share, abs=3)


def test_table_4_is_not_written_down_anywhere():
    """Without a ladder and without interference, all four are the job alone."""
    flat = read_scenario("philly-atc19").changed(
        {"nodes": 2, "gpus_per_node": 8, "quotas": {}, "costs": {}, "spread": None,
         "recorded_speed": None, "neighbours.shared_server": 1.0}
    )  # fmt: skip
    assert {round(busy(flat, where), 6) for where in PLACES.values()} == {57.7}


def test_table_5s_ratios_are_those_of_the_scenario_with_neighbours_on_four_and_eight_servers():
    """Gangs of 16: alone on two servers, since they are full; beside two GPUs on four and eight."""
    world = read_scenario("philly-atc19").changed(
        {"nodes": 8, "gpus_per_node": 8, "quotas": {}, "costs": {}, "recorded_speed": None}
    )
    found = []
    for servers in (2, 4, 8):
        own = [8 * node + gpu for node in range(servers) for gpu in range(16 // servers)]
        found.append(busy(world, [own] if servers == 2 else [own, (6, 7)]))
    assert [share / found[0] for share in found] == pytest.approx(
        [1, 40.94 / 43.66, 28.56 / 43.66], abs=2e-3
    )


# --- the scenario, and the command -------------------------------------------------------------


def test_the_scenario_is_of_the_papers_shape():
    world = read_scenario("philly-atc19")
    assert len(world.quotas) == 11
    assert world.lends_quotas
    assert sum(world.quotas.values()) == pytest.approx(world.gpus, rel=0.01)
    assert {group.gpus for group in world.nodes} == {2, 8}
    assert all(group.domain for group in world.nodes)
    assert world.trace.options["queues_by"] == "size"


def test_every_target_gets_a_row_with_a_verdict_where_something_is_asked():
    figures = {name: target.low for name, target in targets.targets().items()}
    rows = report.rows_of([figures, figures])
    assert [row.name for row in rows] == list(figures)
    assert {row.verdict for row in rows} == {"", "within"}
    assert all(met == number for _, met, number in report.summary(rows))
    far = report.rows_of([{name: 10 * value + 500 for name, value in figures.items()}])
    assert {row.verdict for row in far} == {"", "misses"}


def test_what_is_within_is_as_asked():
    cell = targets.targets()
    assert cell["table 3, 16 GPUs, killed"].is_met(36.98 + 3.69)
    assert not cell["table 3, 16 GPUs, killed"].is_met(36.98 + 3.71)
    assert cell["table 6, % of jobs, killed"].is_met(13.5 + 2.99)
    assert cell["table 2, 5 to 8 GPUs"].is_met(74.2 - 7.9)
    assert cell["figure 3, 5 to 8 GPUs, p90, minutes"].is_met(27 / 2)
    assert cell["table 5, 2 servers, p50"].is_met(0) is None


def test_intervals_are_students():
    (row,) = report.rows_of([{"x": 1.0}, {"x": 3.0}])
    assert (row.mean, row.low, row.high) == pytest.approx((2, 2 - 12.7062, 2 + 12.7062), abs=1e-3)


def test_figures_of_a_seed_are_kept_and_the_page_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rollouts, "RESULTS", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    monkeypatch.setattr(command, "PAGE", page)
    line = ["--jobs", "150", "--days", "0.12", "--seeds", "0-1", "--to-docs"]
    assert command.main(line) == 0
    first = capsys.readouterr().out
    kept = sorted(tmp_path.glob("*.json"))
    assert len(kept) == 2
    assert "CPU s" in json.loads(kept[0].read_text())
    monkeypatch.setattr(rollouts, "rolled", None)
    assert command.main(line) == 0
    assert capsys.readouterr().out == first
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| table 4, DiffServer | 49.6 |" in text


def test_seeds_are_ranges_and_lists():
    assert command.seeds_of("0-4") == [0, 1, 2, 3, 4]
    assert command.seeds_of("1,3") == [1, 3]

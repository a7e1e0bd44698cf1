"""Rounds of the exact placement in which nothing is new are not solved again: nothing changes."""

import pytest

from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of


def rolled(policy, seed, *, skips):
    """A rollout, and how many of its rounds were solved."""
    scenario = read_scenario("pal-64").changed({"trace.jobs": 30})
    rounds = make(policy, scenario, seed)
    rounds.placement.settled = skips
    solved, place = [], rounds.placement.place
    rounds.placement.place = lambda batch: solved.append(1) or place(batch)
    record = Engine(scenario, jobs_of(scenario, None, seed), rounds, seed).run()
    return record, len(solved)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("policy", ["pal", "pal:order=srtf,backfill=true"])
def test_that_settled_rounds_are_skipped_changes_no_job(policy, seed):
    skipping, few = rolled(policy, seed, skips=True)
    solving, many = rolled(policy, seed, skips=False)
    for column in ("first_start_us", "end_us", "running_us", "attempts", "migrations"):
        found, expected = (getattr(each.jobs, column) for each in (skipping, solving))
        assert found.tolist() == expected.tolist(), column
    assert skipping.busy_gpu_us == solving.busy_gpu_us
    assert few < many if "srtf" in policy else few <= many

"""The limit of seconds of an exact policy bounds each of its calls, by a clock that work moves."""

from collections import Counter
from types import SimpleNamespace

import pytest

from optsched import search
from optsched.mip import highs
from optsched.rollout import simulate
from optsched.rollout.policies import pal_adapter
from optsched.rollout.policies.sharing import exact_groups
from optsched.rollout.scenario_files import read_scenario
from optsched.search import Search

LIMIT_S = 16.0
RUN_S = 5.0
SPARE_RUNS = 5
HARD = {
    "eaco:gap=0,programs=1000": ("eaco-28", {"trace.jobs": 14, "trace.options.rate_per_h": 4.0}),
    "pal:gap=0,programs=1000": ("pal-64", {"trace.jobs": 30}),
}
"""Policies that would go on, and where."""


class WorkClock:
    """A second for each look at the clock, and some for each run of HiGHS.

    Attributes
    ----------
    searches
        Those with a limit, in the order in which they began.
    runs
        Of each run of HiGHS: its search, the seconds that it was given, and those that were left.
    """

    def __init__(self, monkeypatch):
        self.now, self.searches, self.runs = 0.0, [], []
        self._begin, self._run = Search.__init__, highs._run
        monkeypatch.setattr(
            Search, "__init__", lambda *given, **named: self._begun(*given, **named)
        )
        monkeypatch.setattr(highs, "_run", self._ran)
        monkeypatch.setattr(search, "time", SimpleNamespace(perf_counter=self.read))
        monkeypatch.setattr(exact_groups, "perf_counter", self.read)

    def read(self):
        self.now += 1.0
        return self.now

    def _begun(self, found, *given, **named):
        self._begin(found, *given, **named)
        if found.deadline is not None:
            self.searches.append(found)

    def _ran(self, solver, *given, **named):
        granted = solver.getOptionValue("time_limit")[1] - solver.getRunTime()
        mine = self.searches[-1]
        self.runs.append((mine, granted, max(0.0, mine.deadline - self.now)))
        if granted > 0:
            solver.setOptionValue("time_limit", float("inf"))  # this clock decides, no other
        self.now += RUN_S
        return self._run(solver, *given, **named)


@pytest.mark.parametrize("policy", HARD)
def test_no_program_gets_more_seconds_than_its_call_has_left(policy, monkeypatch):
    clock = WorkClock(monkeypatch)
    name, changes = HARD[policy]
    world = read_scenario(name).changed(changes)
    done = simulate(world, f"{policy},time_limit_s={LIMIT_S}")
    spans = [found.deadline - found.started for found in clock.searches]
    assert all(LIMIT_S / 2 <= span <= LIMIT_S for span in spans)  # less what the last proof took
    assert all(granted == pytest.approx(left, abs=1e-6) for _, granted, left in clock.runs)
    late = Counter(id(found) for found, _, left in clock.runs if left == 0)
    assert late, "no call came to its limit"
    assert max(late.values()) <= SPARE_RUNS  # of no seconds each: what was begun is wound up
    assert {found.stopped for found in clock.searches} == {"", "time limit"}
    assert done.metrics["passed"] == len(done.record.trace)


def test_no_further_greedy_plan_is_begun_past_the_limit(monkeypatch):
    """PAL's bins of slowdowns took seconds in the first call, whatever its limit."""
    WorkClock(monkeypatch)
    begun = []
    rule = pal_adapter.pal_rules.pal
    monkeypatch.setattr(pal_adapter.pal_rules, "pal", lambda *of: begun.append(1) or rule(*of))
    world = read_scenario("pal-64").changed({"trace.jobs": 8})
    for limit_s, is_begun in ((1.0, False), (1e6, True)):
        begun.clear()
        done = simulate(world, f"pal:time_limit_s={limit_s}")
        assert bool(begun) == is_begun
        assert done.metrics["passed"] == len(done.record.trace)
        assert {solve.verified for epoch in done.record.epochs for solve in epoch.solves} == {True}

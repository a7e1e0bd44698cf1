"""Policies that keep groups from call to call decide as those that part all jobs again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.policies.eaco import GroupingPolicy
from optsched.traces.trace import Failure
from tests.rollout.policies.rounds.test_kept_rounds import busy_traces, rolled_out, still_scenarios
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

POLICIES = (
    *("eaco-greedy", "fifo-exclusive", "fifo-packed", "random-pairs", "least-utilised"),
    *("best-fit-memory", "best-delta-energy", "sharing-scores", "longest-first", "lucid-ordered"),
)


@law(300)
@given(st.data(), st.sampled_from(POLICIES), st.integers(1, 3))
def test_groups_that_stay_are_those_that_the_rule_forms_again(data, policy, most):
    world = data.draw(still_scenarios())
    sharing = world.sharing.model_copy(update={"max_jobs_per_gpu": most})
    world = world.model_copy(update={"sharing": sharing})
    jobs = data.draw(busy_traces(world))
    kept = rolled_out(world, jobs, policy)
    cut = rolled_out(world, jobs, policy, data.draw(st.integers(0, 30)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(GroupingPolicy, "_all_stay", lambda *_: False)
        patched.setattr(GroupingPolicy, "keeps_groups", False)
        anew = rolled_out(world, jobs, policy)
    assert kept == anew == cut


@pytest.mark.parametrize(
    ("size", "rows"),
    [
        pytest.param(3, [(0, 1, 20), (1, 5, 9), (2, 1, 5)], id="of-one-that-runs-behind-it"),
        pytest.param(4, [(0, 2, 20), (1, 6, 30), (3, 2, 20)], id="that-a-gang-left-in-part"),
    ],
)
def test_a_job_that_comes_back_may_take_a_place(monkeypatch, size, rows):
    """It failed; jobs alone on their GPUs stay only where those that wait come after them."""
    oom = [[Failure("CPU out of memory", 2_000_000)], [], []]
    sharing, retries = {"max_jobs_per_gpu": 2}, {"delay_s": 3.0, "limits": {}}
    world = scenario(3, size, sharing=sharing, retries=retries)
    jobs = trace(*rows, failures=oom)
    kept = rolled_out(world, jobs, "fifo-packed")
    monkeypatch.setattr(GroupingPolicy, "keeps_groups", False)
    assert kept == rolled_out(world, jobs, "fifo-packed")


@pytest.mark.parametrize("deadline", [-1.0, 1000.0])
def test_with_deadlines_groups_are_judged_again_though_nobody_waits(deadline, monkeypatch):
    """One job ends while the other runs and none waits; without deadlines no instance is made."""
    formed = []
    before = GroupingPolicy._of_rule

    def counted(self, *arguments):
        formed.append(arguments)
        return before(self, *arguments)

    monkeypatch.setattr(GroupingPolicy, "_of_rule", counted)
    world = scenario(1, 2, sharing={"max_jobs_per_gpu": 2})
    jobs = trace((0, 1, 10), (0, 1, 20), deadline_s=[deadline, deadline])
    rolled_out(world, jobs, "eaco-greedy")
    assert len(formed) == (0 if deadline < 0 else 2)

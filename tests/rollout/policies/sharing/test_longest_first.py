"""Groups that "longest-first" keeps from call to call are those that it forms of all jobs anew."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from optsched.rollout.policies.sharing.kept.first_fit import FirstFit
from optsched.rollout.policies.sharing.kept.groups import Member
from optsched.rollout.policies.sharing.kept.longest_first import LongestFirst
from optsched.rollout.policies.sharing.kept.mixes import Mixes
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import Failure
from tests.rollout.policies.rounds.test_kept_rounds import rolled_out
from tests.support.builders.any_shared_rollouts import NAMES, any_world
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

TYPES = "abc"
POWER = {
    "gpu": {"bare_w": 20, "context_w": 45, "peak_w": 300},
    "node": {"base_w": 350, "sleep_w": 30},
    "idle_nodes": "sleep",
}
MAY_SHARE = {tuple("aa"), tuple("ab"), tuple("bc"), tuple("aab"), tuple("abc")}


class _Mixes(Mixes):
    """Those of `MAY_SHARE` may be a group."""

    def __init__(self):
        self.memory_gb = dict.fromkeys(TYPES, 0.0)
        self._wider, self._followers = {}, {}

    def allows(self, types):
        return len(types) == 1 or types in MAY_SHARE


def groups_of(jobs, members):
    """Groups as the rule forms them: each takes all those that may join it before the next."""
    left, found, mixes = list(jobs), [], _Mixes()
    while left:
        inside = [left.pop(0)]
        types = (members[inside[0]].type,)
        for job in list(left):
            wider = mixes.wider(types, members[job].type)
            if wider is not None:
                types = wider
                inside.append(job)
                left.remove(job)
        found.append((types, tuple(inside)))
    return found


@law(300)
@given(st.data(), st.lists(st.sampled_from(TYPES), min_size=1, max_size=24))
def test_groups_follow_from_those_of_the_line_before(data, types):
    members = {n: Member(0.0, n, name, 1, (name,)) for n, name in enumerate(types)}
    line, before = FirstFit(_Mixes()), set()
    order = [*members]
    for _ in range(data.draw(st.integers(1, 6))):
        jobs = list(order)
        for _ in range(data.draw(st.integers(0, 3))):
            jobs.insert(data.draw(st.integers(0, len(jobs))), jobs.pop())
        order = jobs
        there = data.draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order)))
        jobs = [job for job, is_there in zip(order, there, strict=True) if is_there]
        new = line.arrange(jobs, members)
        after = set(groups_of(jobs, members))
        assert new is not None
        assert set(line.groups()) == after
        assert set(new) == after - before
        assert len(new) == len(after - before)
        before = after


def roomy(seed):
    """A cluster with room, and jobs of unlike lengths on it, whose rates are unlike, too."""
    draw = random.Random(seed)
    world, nodes = any_world(draw), draw.randint(12, 40)
    parts = {"nodes": nodes, "gpus_per_node": 4, "priorities": {}, "downtime": []}
    if draw.random() < 0.4:
        closed = list(range(draw.randint(1, 6)))
        kind = draw.choice(("drain", "outage"))
        parts["downtime"] = [{"nodes": closed, "from_s": 40.0, "to_s": 160.0, "kind": kind}]
    if draw.random() < 0.7:
        parts |= {"costs": {}, "power": POWER}
    world = Scenario(**(world.model_dump(exclude_unset=True) | parts))
    gangs = (1, 1, 1, 2, 4, 8, *draw.choice(((), (), (6,))))
    rows = sorted(
        (draw.uniform(0, 200), draw.choice(gangs), draw.choice((0.5, 10.0, draw.uniform(1, 300))))
        for _ in range(draw.randint(5, 60))
    )
    failures = [[Failure("CPU out of memory", 5_000_000)] * (draw.random() < 0.1) for _ in rows]
    return world, trace(*rows, model=[draw.choice(NAMES) for _ in rows], failures=failures)


@law(400, is_costly=True)
@given(st.integers(0, 1 << 40), st.integers(0, 30))
@example(51, 0)
def test_groups_that_are_kept_are_those_of_all_jobs_anew(seed, steps):
    """Whole and cut short; nodes may be closed, jobs may fail, move, and stand across nodes."""
    world, jobs = roomy(seed)
    kept = rolled_out(world, jobs, "longest-first")
    cut = rolled_out(world, jobs, "longest-first", steps)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LongestFirst, "regrouped", lambda *_: None)
        anew = rolled_out(world, jobs, "longest-first")
    assert kept == cut == anew


def test_only_groups_that_change_are_formed(monkeypatch):
    """Twenty pairs run, and at every second a job comes that is shorter than all that are there."""
    formed, before = [], LongestFirst._formed

    def counted(self, groups):
        formed.append(len(groups))
        return before(self, groups)

    monkeypatch.setattr(LongestFirst, "_formed", counted)
    sharing = {"max_jobs_per_gpu": 2}
    model = {"utilisation": 0.3, "memory_gb": 0.0}
    world = scenario(30, 2, sharing=sharing, models={"a": model}, power=POWER)
    rows = [(0, 1, 1000 + n) for n in range(40)] + [(n, 1, 900 - 10 * n) for n in range(1, 21)]
    rolled_out(world, trace(*rows, model=["a"] * len(rows)), "longest-first")
    assert formed[:21] == [20, *[1] * 20]

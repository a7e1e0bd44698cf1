"""Pairs that "fifo-packed" keeps and "random-pairs" draws are those that their rules form anew."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from optsched.rollout.policies.eaco import GroupingPolicy
from optsched.rollout.policies.sharing.kept.gang_sizes import GangSize, Pairing
from optsched.rollout.policies.sharing.kept.groups import KeptGroup, Member
from optsched.rollout.policies.sharing.kept.packed_pairs import PackedPairs
from optsched.rollout.policies.sharing.kept.regrouping_rules import two_of
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import Failure
from tests.rollout.policies.rounds.test_kept_rounds import rolled_out
from tests.support.builders.any_shared_rollouts import NAMES, any_world
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law


def crowded(seed):
    """A few nodes, and more jobs of a few sizes than they hold; some fail and come back."""
    draw = random.Random(seed)
    parts = {"nodes": draw.randint(1, 5), "gpus_per_node": 4, "priorities": {}, "downtime": []}
    parts["sharing"] = {"max_jobs_per_gpu": draw.choice((2, 2, 3))}
    if draw.random() < 0.3:
        kind = draw.choice(("drain", "outage"))
        parts["downtime"] = [{"nodes": [0], "from_s": 40.0, "to_s": 160.0, "kind": kind}]
    world = Scenario(**(any_world(draw).model_dump(exclude_unset=True) | parts))
    sizes = [size for size in draw.choice(((1,), (1, 1, 2), (1, 1, 2, 3, 4, 6, 8)))]
    rows = sorted(
        (draw.uniform(0, 60), min(draw.choice(sizes), world.gpus), draw.uniform(1, 90))
        for _ in range(draw.randint(10, 70))
    )
    failures = [[Failure("CPU out of memory", 5_000_000)] * (draw.random() < 0.1) for _ in rows]
    return world, trace(*rows, model=[draw.choice(NAMES) for _ in rows], failures=failures)


@law(300, is_costly=True)
@given(
    st.integers(0, 1 << 40), st.sampled_from(("fifo-packed", "random-pairs")), st.integers(0, 60)
)
def test_pairs_that_are_kept_are_those_of_all_jobs_anew(seed, policy, steps):
    """Whole and cut short; nodes may be closed, jobs may fail, and stand across nodes."""
    world, jobs = crowded(seed)
    kept = rolled_out(world, jobs, policy)
    cut = rolled_out(world, jobs, policy, steps)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(GroupingPolicy, "keeps_groups", False)
        anew = rolled_out(world, jobs, policy)
    assert kept == cut == anew


def test_only_sizes_that_change_are_paired(monkeypatch):
    """Pairs of two sizes take all GPUs; every second a job comes, finds nothing, and waits."""
    paired, before = [], PackedPairs._pairing

    def counted(self, size, *rest):
        paired.append(size)
        return before(self, size, *rest)

    monkeypatch.setattr(PackedPairs, "_pairing", counted)
    rows = [(0, 1, 300)] * 8 + [(0, 4, 300)] * 2 + [(0, 1, 300)] * 8
    rows += [(n, 1, 9) for n in range(1, 40)]
    world = scenario(3, 4, models={"a": {"utilisation": 0.2}}, sharing={"max_jobs_per_gpu": 2})
    rolled_out(world, trace(*rows, model=["a"] * len(rows)), "fifo-packed")
    assert 0 < len(paired) < 20


def test_pairs_of_a_size_are_forgotten_when_its_groups_change():
    group = KeptGroup([Member(0.0, n, "a", 1, ("a",)) for n in range(2)], (0,), (0.0, 0))
    size = GangSize()
    for change in (size.add, size.remove):
        size.is_in_force = True
        size.known[(), (), ()] = Pairing([], None, {})
        change(group)
        assert not size.is_in_force
        assert not size.known
    assert size.firsts == {"a": []}
    assert not size.others


@law(400)
@given(st.integers(0, 1 << 32), st.integers(2, 300))
@example(0, 2)
@example(0, 21)
@example(0, 22)
def test_two_jobs_are_drawn_as_a_sample_draws_them(seed, count):
    drawn, sampled = random.Random(seed), random.Random(seed)
    for _ in range(20):
        assert [*two_of(drawn.getrandbits, count)] == sampled.sample(range(count), 2)
    assert drawn.getstate() == sampled.getstate()

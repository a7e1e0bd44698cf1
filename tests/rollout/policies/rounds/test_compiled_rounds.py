"""Rounds that are compiled decide as those on sets of GPUs, which tests hold against the rules."""

import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.job_orders import Fifo
from optsched.rollout.policies.rounds import moving_rules
from optsched.rollout.policies.rounds.fresh_rounds import FreshRounds
from optsched.rollout.registry import make
from tests.rollout.policies.rounds.test_binned_places import PENALTIES, clusters, rule_on_sets
from tests.rollout.test_invariants import fingerprint
from tests.support.builders.any_rollouts import any_scenario, any_trace
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

pytest.importorskip(
    "numba", reason="numba, the extra 'compiled', is not installed", exc_type=ImportError
)

from optsched.rollout.policies.rounds import compiled_places, round_arrays
from optsched.rollout.policies.rounds.compiled_rounds import CompiledRounds
from optsched.rollout.policies.rounds.round_arrays import RoundArrays

RULES = {
    "pm-first": compiled_places.PM_FIRST,
    "pal": compiled_places.PAL,
    "multilevel": compiled_places.MULTILEVEL,
}
MODELS = {f"{key} {name}": penalty for key in "AB" for name, penalty in PENALTIES.items()}
POLICIES = ("pm-first", "pal-greedy", "pal-multilevel")


def options():
    orders = st.sampled_from(["fifo", "fifo", "las", "srtf", "tiresias"])
    bins = st.sampled_from(["", "", ",bins=exact", ",bins=released", ",bins=silhouette"])
    return st.builds(
        "{}:order={},backfill={}{}".format,
        st.sampled_from(POLICIES),
        orders,
        st.sampled_from(["true", "false"]),
        bins,
    )


# --- rounds -----------------------------------------------------------------------------------


class ByRank(Fifo):
    """An order that is told from outside."""

    rank = ()

    def sort(self, view, jobs):
        return sorted(jobs, key=lambda job: self.rank[job])


def beside(cluster, scores, name, view, order, backfill):
    """Rounds on sets and compiled ones, of the same jobs."""
    node_of = np.array(cluster.node_of)
    world = SimpleNamespace(classes=("A", "B"), node_of=node_of, class_of=lambda model: model[0])
    places = rule_on_sets(cluster, scores, name)
    penalties = None if name == "pm-first" else MODELS
    if penalties is not None:
        places.penalties = MODELS
    arrays = RoundArrays.of(cluster, scores, RULES[name])
    return (
        FreshRounds(view, world, places, order, backfill, by_class=True),
        CompiledRounds(view, world, arrays, penalties, order, backfill),
    )


@pytest.mark.parametrize("name", RULES)
@law(500)
@given(st.data(), st.booleans())
def test_jobs_that_come_and_go_are_placed_alike(name, data, backfill):
    """In clusters of unlike nodes; jobs may fail and come again, and change their order."""
    cluster, scores = data.draw(clusters())
    draw = random.Random(data.draw(st.integers(0, 2**32)))
    size = [draw.choice((1, 1, 1, 2, 2, 3, 4, draw.randint(1, 9))) for _ in range(24)]
    model = [draw.choice(sorted(MODELS)) for _ in size]
    view = SimpleNamespace(demand=size.__getitem__, model=model.__getitem__)
    view.running, view.pending = np.zeros(0, dtype=int), np.arange(draw.randint(0, 6))
    order = ByRank() if draw.random() < 0.3 else Fifo()
    on_sets, on_arrays = beside(cluster, scores, name, view, order, backfill)
    there = set(view.pending.tolist())
    for _ in range(draw.randint(1, 12)):
        some = [job for job in sorted(there) if draw.random() < 0.2]
        cut = draw.randint(0, len(some))
        view.ended, view.failed = some[:cut], some[cut:]
        there -= set(view.ended)
        new = [job for job in range(len(size)) if job not in there and draw.random() < 0.2]
        view.arrived = [*new, *(job for job in view.failed if draw.random() < 0.7)]
        there = there - set(view.failed) | set(view.arrived)
        order.rank = [draw.random() for _ in size]
        decided = []
        for rounds in (on_sets, on_arrays):
            rounds.note(view)
            decided.append(rounds.decide(view))
        assert list(decided[0].place.items()) == list(decided[1].place.items())
        assert decided[0].stop == decided[1].stop
        assert on_sets.held == on_arrays.held


# --- rollouts ---------------------------------------------------------------------------------


def rolled_out(monkeypatch, told, world, jobs, policy, cut=None):
    """A rollout's bytes; one that is cut goes on from what was saved, told the other way."""
    monkeypatch.setenv(moving_rules.COMPILED, told)
    engine = Engine(world, jobs, make(policy, world), 0, keep_intervals=True)
    if cut is not None:
        for _ in range(cut):
            engine.step()
        saved = engine.saved()
        monkeypatch.setenv(moving_rules.COMPILED, "1" if told == "0" else "0")
        engine = Engine(world, jobs, make(policy, world), 0, keep_intervals=True)
        engine.go_on_from(saved)
    return fingerprint(engine.run())


@law(300, is_costly=True)
@given(st.integers(0, 2**32), options(), st.integers(0, 40))
def test_rollouts_have_the_same_bytes_and_go_on_with_numba_or_without(seed, policy, cut):
    draw = random.Random(seed)
    world = any_scenario(draw)
    jobs = any_trace(draw, world)
    with pytest.MonkeyPatch.context() as patch:
        whole = rolled_out(patch, "1", world, jobs, policy)
        assert whole == rolled_out(patch, "0", world, jobs, policy)
        assert whole == rolled_out(patch, "1", world, jobs, policy, cut)
        assert whole == rolled_out(patch, "0", world, jobs, policy, cut)


# --- when they are ----------------------------------------------------------------------------


def kept_after_a_step(monkeypatch, told, nodes=2, policy="pal-multilevel"):
    """What rounds a policy keeps, in a cluster of two levels."""
    if told is None:
        monkeypatch.delenv(moving_rules.COMPILED, raising=False)
    else:
        monkeypatch.setenv(moving_rules.COMPILED, told)
    world = scenario(nodes, 8)
    engine = Engine(world, trace((0, 3, 5.0)), make(policy, world), 0)
    engine.step()
    return type(engine.policy._kept)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("told", "nodes", "kept"),
    [
        (None, 63, FreshRounds),
        (None, 64, CompiledRounds),
        ("0", 64, FreshRounds),
        ("1", 1, CompiledRounds),
    ],
)
def test_they_are_in_large_clusters_unless_told_otherwise(monkeypatch, policy, told, nodes, kept):
    assert kept_after_a_step(monkeypatch, told, nodes, policy) is kept


def test_they_are_not_where_numba_cannot_be_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert kept_after_a_step(monkeypatch, "1") is FreshRounds


def test_they_are_not_where_tables_would_be_too_large(monkeypatch):
    monkeypatch.setattr(round_arrays, "MOST_COUNTS", 1)
    assert kept_after_a_step(monkeypatch, "1") is FreshRounds


def test_rules_that_are_not_on_bins_never_are(monkeypatch):
    assert kept_after_a_step(monkeypatch, "1", policy="packed-non-sticky") is FreshRounds


def test_what_is_compiled_need_not_be_kept(monkeypatch):
    """Where there is no folder that can be written to, numba refuses to keep it."""

    def njit(function=None, *, cache=False):
        if function is None:
            raise RuntimeError("cannot cache function: no locator available")
        return function

    monkeypatch.setattr(compiled_places, "njit", njit)
    assert compiled_places.compiled(len) is len

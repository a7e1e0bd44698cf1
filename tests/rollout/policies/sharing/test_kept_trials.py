"""Trials over what is kept: GPUs by what is on them, rates that stay, who must be looked at."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco.interference import GroupRates, Interference, MeasuredGroup
from optsched.rollout.engine.engine import Engine
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.sharing.learnt_rates import LearntRates
from optsched.rollout.policies.sharing.shared_gpus import SharedGpus, Thresholds
from optsched.rollout.policies.sharing.watched_groups import WatchedGroups
from optsched.rollout.registry import make
from optsched.rollout.scenario import Model
from optsched.rollout.scenario_parts import Sharing
from tests.rollout.policies.rounds.test_kept_rounds import busy_traces, rolled_out, still_scenarios
from tests.support.builders.rollout_parts import scenario
from tests.support.strategies.common import law

NAMES = "abc"
RATES = st.sampled_from([0.3, 0.55, 0.7, 0.95, 1.0])


@st.composite
def worlds(draw, utilisations):
    """Two models with tolerances, all pairs of which are measured."""
    world = draw(still_scenarios())
    bears = st.sampled_from([None, 1.0, 1.5, 2.0])
    models = {
        name: (world.models.get(name) or Model()).model_copy(
            update={"utilisation": draw(utilisations), "max_slowdown": draw(bears)}
        )
        for name in ("a", "b")
    }
    groups = [
        MeasuredGroup(types=pair, rates=[rate, rate if pair[0] == pair[1] else draw(RATES)])
        for pair in (("a", "a"), ("a", "b"), ("b", "b"))
        for rate in [draw(RATES)]
    ]
    most = draw(st.integers(1, 3))
    sharing = Sharing(max_jobs_per_gpu=most, interference=Interference(groups=groups))
    return world.model_copy(update={"sharing": sharing, "models": models})


def trials_of(world, jobs, policy):
    """Who was watched since when, after each decision."""
    chosen = make(policy, world)
    engine, seen = Engine(world, jobs, chosen, 0), []
    while engine.step():
        seen.append(dict(chosen.trials.of))
    return seen


@law(150)
@given(st.data())
def test_trials_with_what_is_kept_are_those_with_all_looked_at_again(data):
    world = data.draw(worlds(st.just(0.3)))
    jobs = data.draw(busy_traces(world))
    policy = f"eaco-trials:training_epoch_s={data.draw(st.sampled_from([2, 20]))}"
    kept = rolled_out(world, jobs, policy), trials_of(world, jobs, policy)
    cut = rolled_out(world, jobs, policy, data.draw(st.integers(0, 30)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WatchedGroups, "keeps_gpus", False)
        patched.setattr(SharedGpus, "_bears", lambda *_: True)
        anew = rolled_out(world, jobs, policy), trials_of(world, jobs, policy)
    assert kept == anew
    assert kept[0] == cut


def every_set(gpus, view, job):
    """All sets of GPUs that a job may have, formed of all GPUs one by one."""
    size, name, cluster = view.demand(job), view.model(job), view.cluster
    nodes = [
        range(cluster.first[n], cluster.first[n] + cluster.size[n]) for n in range(len(view.ready))
    ]
    nodes = [node for node, ready in zip(nodes, view.ready, strict=True) if ready]
    found = []
    for pool in nodes if size <= cluster.largest else [[gpu for node in nodes for gpu in node]]:
        is_idle = not any(gpus.types(gpu) for gpu in pool)
        busy = {gpu: gpus.rates.busy(gpus.types(gpu)) for gpu in pool}
        takers = [gpu for gpu in pool if gpus._takes(gpus.types(gpu), name)]
        order = sorted((-busy[gpu], gpu) for gpu in takers if not gpus.locked >> gpu & 1)
        for first in range(len(order) - size + 1):
            chosen = [gpu for _, gpu in order[first : first + size]]
            if all(gpus._bears(gpus.types(gpu), name) for gpu in chosen):
                total = -sum(busy[gpu] for gpu in chosen)
                found.append((total, is_idle, tuple(sorted(chosen))))
    return [chosen for *_, chosen in sorted(found)]


@law(300)
@given(st.data())
def test_sets_of_gpus_are_those_of_all_gpus_in_order(data):
    """While jobs of any size come to any GPUs and leave them again."""
    used = st.sampled_from([0.0, 0.1, 0.3, 0.7])
    bears = st.sampled_from([None, 1.0, 1.1, 2.0])
    models = {
        name: {"utilisation": data.draw(used), "max_slowdown": data.draw(bears)} for name in NAMES
    }
    where = scenario(
        data.draw(st.integers(1, 5)), 4, models=models, sharing={"max_jobs_per_gpu": 3}
    )
    job = st.tuples(st.sampled_from(NAMES), st.sampled_from([1, 2, 2, 3, 4, 5, 8]))
    jobs = data.draw(st.lists(job, min_size=1, max_size=20))
    view = SimpleNamespace(
        cluster=Cluster(where),
        scenario=where,
        ready=[data.draw(st.sampled_from([True, True, True, False])) for _ in range(where.nodes)],
        running=np.array([], int),
        model=lambda job: jobs[job][0],
        demand=lambda job: jobs[job][1],
    )
    gpus = SharedGpus(view, LearntRates(where, "formula"), Thresholds(1.0, 1.0))
    for job in range(len(jobs)):
        expected = every_set(gpus, view, job)
        assert list(gpus.candidates(job)) == expected
        if expected:
            gpus.attach(job, expected[data.draw(st.integers(0, min(3, len(expected) - 1)))])
        if gpus.of and data.draw(st.integers(0, 3)) == 0:
            gpus.detach(data.draw(st.sampled_from(sorted(gpus.of))))
        gpus.lock(data.draw(st.sampled_from([0, 0, 1, 0b110000, 0b1000001])))


TYPES = st.lists(st.sampled_from(NAMES), min_size=2, max_size=4).map(sorted).map(tuple)


@law(300)
@given(st.data(), st.sampled_from(["formula", "told"]))
def test_rates_that_stay_known_are_those_of_all_that_was_seen(data, begins_with):
    used = {name: data.draw(st.sampled_from([0.1, 0.4, 0.8])) for name in NAMES}
    told = data.draw(st.lists(TYPES, max_size=3, unique=True))
    groups = [
        {"types": types, "rates": [rates[name] for name in types], "utilisation": 0.5}
        for types in told
        for rates in [{name: data.draw(RATES) for name in NAMES}]
    ]
    where = scenario(
        models={name: {"utilisation": value} for name, value in used.items()},
        sharing={"max_jobs_per_gpu": 4, "interference": {"groups": groups}},
    )
    rates = LearntRates(where, begins_with)
    for _ in range(data.draw(st.integers(1, 6))):
        for _ in range(data.draw(st.integers(0, 2))):
            types = data.draw(TYPES)
            rates.note(types, data.draw(st.sampled_from(types)), data.draw(RATES))
        anew = GroupRates(rates.table, "", used)
        for types in data.draw(st.lists(TYPES, max_size=8)):
            by_type = {name: float(rate) for name, rate in anew.of(types).by_type.items()}
            assert rates.of(types) == by_type
            assert rates.busy(types) == float(anew.busy(types))

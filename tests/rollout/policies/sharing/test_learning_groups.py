"""Policy eaco with learnt rates: what is seen, undone, not tried again; it learns the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco.interference import GroupRates
from optsched.rollout.checkpoints.plain_data import of_json, to_json
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from tests.support.builders import shared_gpu_worlds
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.builders.shared_gpu_worlds import held, world
from tests.support.strategies.common import law

POLICY = "eaco:rates=learnt,training_epoch_s=20,programs=5"
PAIR = trace((0, 1, 100), (0, 1, 100), model=["a", "b"])


def rolled(where, jobs, policy=POLICY):
    return shared_gpu_worlds.rolled(where, jobs, policy)


def together(record):
    """For how many seconds the first two jobs were on the same GPU."""
    return sum(
        max(0.0, min(end, other_end) - max(begin, other))
        for begin, end, gpus in held(record, 0)
        for other, other_end, theirs in held(record, 1)
        if gpus == theirs
    )


def test_a_pair_that_breaks_a_tolerance_is_parted_when_it_has_been_seen():
    """Watched from 10 s on, at 0.4 an epoch of 20 s takes 50 s; with true rates they never meet."""
    assert together(rolled(world(0.4), PAIR)) == pytest.approx(60)
    assert together(rolled(world(0.4), PAIR, "eaco:programs=5")) == 0


def test_a_pair_that_holds_stays():
    record = rolled(world(0.8), PAIR)
    assert [held(record, job) for job in (0, 1)] == [[(0.0, 125.0, (0,))]] * 2


def test_what_was_seen_is_not_tried_again():
    jobs = trace((0, 1, 100), (0, 1, 100), (300, 1, 50), (300, 1, 50), model=["a", "b", "a", "b"])
    record = rolled(world(0.4), jobs)
    (begin, end, _), (other, other_end, _) = held(record, 2)[-1], held(record, 3)[-1]
    assert end <= other or other_end <= begin
    assert len(held(record, 2)) == len(held(record, 3)) == 1


def test_overhead_of_a_start_is_not_taken_for_interference():
    record = rolled(world(0.8, costs={"start_s": 30.0}), PAIR)
    assert sum(map(int, record.jobs.preemptions)) == 0


def test_a_deadline_in_danger_parts_them():
    jobs = trace((0, 1, 100), (0, 1, 100), model=["a", "b"], deadline_s=[170.0, np.nan])
    record = rolled(world(0.4, tolerance=None, gpus=2), jobs)
    assert held(record, 0)[-1][1] <= 170


def test_rates_of_all_groups_must_be_predictable():
    where = world(0.4)
    rules = where.sharing.interference.model_copy(update={"fallback": "pairs"})
    strict = where.model_copy(
        update={"sharing": where.sharing.model_copy(update={"interference": rules})}
    )
    make("eaco", strict, 0)
    with pytest.raises(ValueError, match="fallback, 'pairs', forbids some"):
        make(POLICY, strict, 0)


RATES = st.sampled_from([0.3, 0.55, 0.7, 0.95, 1.0])
MODELS = ["a", "b", "c"]


@law(30)
@given(st.data())
def test_what_is_learnt_is_the_truth(data):
    """By groups and types, rounded up at most: so what holds by the truth holds when seen."""
    names = st.sampled_from(MODELS)
    keys = data.draw(st.sets(st.lists(names, min_size=2, max_size=3).map(sorted).map(tuple)))
    groups = []
    for key in sorted(keys):
        rate = {name: data.draw(RATES) for name in sorted(set(key))}
        groups.append({"types": key, "rates": [rate[name] for name in key]})
    tolerances = st.sampled_from([None, 1.5, 2.0])
    where = scenario(
        gpus_per_node=data.draw(st.integers(1, 2)),
        models={
            name: {"utilisation": 0.3, "max_slowdown": data.draw(tolerances)} for name in MODELS
        },
        sharing={"max_jobs_per_gpu": 3, "interference": {"groups": groups}},
    )
    row = st.tuples(st.integers(0, 90), st.just(1), st.sampled_from([15, 100, 300]))
    rows = data.draw(st.lists(row, min_size=2, max_size=7))
    chosen = [data.draw(names) for _ in rows]
    policy = make(POLICY, where, 0)
    record = Engine(where, trace(*rows, model=chosen), policy, 0).run()
    assert (record.jobs.end_us >= 0).all()
    truth = GroupRates(where.sharing.interference, "", dict.fromkeys(MODELS, 0.3))
    for key, seen in policy.history.seen.items():
        true = truth.of(key).by_type
        assert seen.keys() == set(key)
        for name, (_, rate) in seen.items():
            assert float(true[name]) <= rate <= float(true[name]) * (1 + 1e-5) or rate == 1.0


def test_what_was_learnt_is_plain_data_and_a_rollout_goes_on_from_it():
    where, jobs = world(0.4), trace((0, 1, 100), (0, 1, 100), (300, 1, 50), model=["a", "b", "b"])
    whole = Engine(where, jobs, make(POLICY, where, 0), 0)
    states = []
    while whole.step():
        states.append(to_json(whole.policy.state()))
    assert whole.policy.history.seen
    other = make(POLICY, where, 0)
    for state in states:
        other.restore(of_json(state))
        assert to_json(other.state()) == state

"""What is told of a job beside a group by the types of both, against what all of them cost."""

from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.eaco_adapter import EacoInstanceParts
from optsched.rollout.policies.sharing.kept.energy import Energy
from optsched.rollout.policies.sharing.kept.mixes import Mixes
from optsched.rollout.scenario_files import read_scenario
from tests.support.strategies.common import law

WORLD = read_scenario("eaco-64")
PARTS = EacoInstanceParts(WORLD, Cluster(WORLD))
ENERGY = Energy(Mixes(PARTS), PARTS)
NAMES = sorted(WORLD.models)
SECONDS = st.floats(1e-3, 1e7) | st.sampled_from([100.0, 100.00001, 1e300])


@law(500)
@given(st.data())
def test_a_job_that_is_certain_to_pay_beside_others_costs_less_there(data):
    group = data.draw(st.lists(st.tuples(st.sampled_from(NAMES), SECONDS), min_size=1, max_size=3))
    name, beside_s = data.draw(st.sampled_from(NAMES)), data.draw(SECONDS)
    apart_s = beside_s + data.draw(st.sampled_from([0.0, 60.0]))
    here, apart = data.draw(st.sampled_from([4, 8])), data.draw(st.sampled_from([4, 8]))
    joining = ENERGY.joining(tuple(sorted(kind for kind, _ in group)), name, here, apart)
    lefts = [work for _, work in group]
    told = joining and joining.is_cheaper(beside_s, apart_s, min(lefts), max(lefts))
    if told is not None:
        alone = ENERGY.kwh([*group], 1, here) + ENERGY.kwh([(name, apart_s)], 1, apart)
        assert told == (ENERGY.kwh([*group, (name, beside_s)], 1, here) < alone)


def test_most_jobs_are_certain_to_pay_or_not():
    told = [
        ENERGY.joining((kind,), name, 8, 8).is_cheaper(work, work, 1000.0, 1000.0)
        for kind in NAMES
        for name in NAMES
        for work in (10.0, 500.0, 900.0)
    ]
    assert told.count(None) < len(told) / 2

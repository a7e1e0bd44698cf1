"""Rounds that remember where jobs were place them as rounds that start from an empty cluster."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.policies.placement_round import GangJob
from optsched.rollout.policies.rounds.fresh_rounds import FreshRounds
from tests.rollout.policies.rounds.test_binned_places import (
    PENALTIES,
    RULES,
    clusters,
    rule_on_sets,
)
from tests.support.strategies.common import law

NOBODY = SimpleNamespace(tolist=list)


def rounds_of(places):
    """Rounds without jobs, which are told of them by hand."""
    view = SimpleNamespace(running=NOBODY, pending=NOBODY)
    return FreshRounds(view, None, places, None, backfill=False, by_class=False)


def placed_from_nothing(places, gangs):
    """Where a rule places gangs one after the other in an empty cluster."""
    choose, free, placed = places.begin(), places.everything, {}
    for job, gang in gangs.items():
        place = choose(gang, free)
        placed[job], free = place.gpus, free ^ place.taken
    return placed


@pytest.mark.parametrize("name", RULES)
@law(500)
@given(st.data())
def test_a_round_after_others_is_as_one_from_nothing(name, data):
    """Jobs come, end, lose their GPUs, are stopped and change their order."""
    cluster, scores = data.draw(clusters())
    rounds = rounds_of(rule_on_sets(cluster, scores, name))
    places = rule_on_sets(cluster, scores, name)
    for _ in range(data.draw(st.integers(1, 10))):
        number = len(rounds.active)
        size, key, model = st.integers(1, 9), st.sampled_from("AB"), st.sampled_from([*PENALTIES])
        for gang in data.draw(st.lists(st.builds(GangJob, size, key, model), max_size=4)):
            rounds.active[number] = gang
            number += 1
        for job in data.draw(st.lists(st.sampled_from([*rounds.active, None]), max_size=2)):
            rounds.release(job)  # it may be placed again at once, as one that fails and restarts
        order = sorted(rounds.active)
        if data.draw(st.integers(0, 2)) == 0:
            order = data.draw(st.permutations(order))
        room, admitted = cluster.gpus, []
        for job in order:
            if rounds.active[job].gpus <= room and data.draw(st.integers(0, 4)):
                admitted.append(job)
                room -= rounds.active[job].gpus
        held = dict(rounds.held)
        moved = rounds.placed_anew(admitted)
        rounds.held.update(moved)
        for job in rounds.held.keys() - admitted:
            rounds.release(job)
        expected = placed_from_nothing(places, {job: rounds.active[job] for job in admitted})
        assert rounds.held == expected
        assert moved == {job: gpus for job, gpus in expected.items() if gpus != held.get(job)}

"""Who is admitted, and in which order, follows from the jobs there are, whoever came and went."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.policies.job_orders import order
from optsched.rollout.policies.rounds.admitted_jobs import AdmittedJobs
from tests.support.strategies.common import law

ROOM, CLASSES = 12, ("B", "A", "C")


class Listed(AdmittedJobs):
    """Rounds that tell who is admitted."""

    def placed_anew(self, chosen):
        self.chosen = chosen
        return {job: (job,) for job in chosen if job not in self.held}


def admitted_from_nothing(sizes, classes, backfill, by_class):
    """Jobs of the first numbers as long as there is room, by class if they choose so."""
    room, admitted = ROOM, []
    for job in sorted(sizes):
        if sizes[job] <= room:
            room -= sizes[job]
            admitted.append(job)
        elif not backfill:
            break
    return sorted(admitted, key=lambda job: CLASSES.index(classes[job])) if by_class else admitted


@law(1000)
@given(st.data(), st.booleans(), st.booleans())
def test_rounds_that_know_who_comes_and_goes_admit_as_if_they_asked_all(data, backfill, by_class):
    """Jobs may fail and come again, at once or later, so numbers come in any order."""
    size, model = st.integers(1, ROOM), st.sampled_from(CLASSES)
    sizes = data.draw(st.lists(st.sampled_from([1, 1, 1, 2, 3, ROOM]) | size, max_size=14))
    classes = [data.draw(model) for _ in sizes]
    world = SimpleNamespace(classes=CLASSES, node_of=np.zeros(ROOM), class_of=lambda name: name)
    view = SimpleNamespace(demand=sizes.__getitem__, model=classes.__getitem__)
    there = data.draw(st.sets(st.sampled_from(range(len(sizes))))) if sizes else set()
    view.running, view.pending = np.zeros(0, dtype=int), np.array(sorted(there), dtype=int)
    rounds = Listed(view, world, order("fifo"), backfill, by_class)
    for _ in range(data.draw(st.integers(1, 8))):
        some = st.sets(st.sampled_from(sorted(there))) if there else st.just(set())
        view.ended, view.failed = data.draw(some), data.draw(some)
        there -= view.ended | view.failed
        away = sorted(set(range(len(sizes))) - there)
        view.arrived = data.draw(st.permutations(away)) if away else []
        view.arrived = view.arrived[: data.draw(st.integers(0, len(view.arrived)))]
        there |= set(view.arrived)
        rounds.note(view)
        rounds.decide(view)
        expected = {job: sizes[job] for job in there}
        assert rounds.chosen == admitted_from_nothing(expected, classes, backfill, by_class)

"""Small instances of Sia's round, made to reach the awkward corners, and all of their plans."""

import itertools
from fractions import Fraction

from hypothesis import strategies as st

from optsched.sia import SiaInstance, SiaPlan

GOODPUTS = st.one_of(st.integers(1, 12).map(float), st.floats(1e-3, 1e3), st.just(1.0))


@st.composite
def jobs(draw, number, types):
    """A job: it may run or wait, be kept where it is, or have to run; restarts cost or do not."""
    groups = draw(
        st.lists(
            st.tuples(st.sampled_from(types), st.integers(1, 5)),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    rows = [{"type": t, "gpus": n, "goodput": draw(GOODPUTS)} for t, n in groups]
    job = {"id": f"j{number}", "configurations": rows, "must_run": draw(st.integers(0, 4)) == 0}
    if draw(st.booleans()):
        name, gpus = draw(st.sampled_from(groups))
        job["current"] = {"type": name, "gpus": gpus}
        job["restart_factor"] = draw(st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
        job["preemptible"] = draw(st.integers(0, 3)) > 0
    return job


@st.composite
def instances(draw, most_jobs=4):
    """A round of few jobs, with or without a plan."""
    types = ["a", "b", "c"][: draw(st.integers(1, 3))]
    count = draw(st.integers(1, most_jobs))
    document = {
        "schema": "optsched/sia/1",
        "name": "drawn",
        "gpus": {name: draw(st.integers(0, 8)) for name in types},
        "power": draw(st.sampled_from([-0.5, -1.0, -0.1, -3.0])),
        "waiting_cost": draw(st.sampled_from([1.1, 0.3, 1.0, 5.0, 1e6])),
        "jobs": [draw(jobs(n, types)) for n in range(count)],
    }
    return SiaInstance.from_document(document)


def plans(instance):
    """Every plan that keeps the GPUs of each type, with its exact cost."""
    for numbers in itertools.product(*(range(len(own)) for own in instance.options)):
        taken = [own[n] for own, n in zip(instance.options, numbers, strict=True)]
        used = {name: sum(o.gpus for o in taken if o.type == name) for name in instance.gpus}
        if all(used[name] <= gpus for name, gpus in instance.gpus.items()):
            yield SiaPlan.of(instance, numbers), sum(Fraction(o.cost) for o in taken)


def least(instance):
    """The least cost of all plans, in fractions; None if there is none."""
    return min((cost for _, cost in plans(instance)), default=None)

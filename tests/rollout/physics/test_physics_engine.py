"""Physics inside the engine: rollouts against figures worked out without it."""

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from optsched.eaco.plan import Group
from optsched.eaco.verify.group_energy import ExactFigures
from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.engine.engine import Engine
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.physics.physics import Physics
from optsched.traces.trace import US
from tests.support.builders.physics_parts import jobs, scenario
from tests.support.strategies.common import law

PAPER = optsched.read("eaco/paper-four")
SETS = [group.types for group in PAPER.interference.groups]


class Given:
    """Places each job, when it arrives, on the GPUs given for it."""

    name = "given"

    def __init__(self, *places):
        self.places = places

    def decide(self, view):
        arrived = view.arrived
        return Decision(place={job: self.places[job] for job in arrived}) if arrived else NOTHING


def rolled(world, trace, *places, seed=0):
    return Engine(world, trace, Given(*map(tuple, places)), seed).run()


@law(200)
@given(st.sampled_from(SETS), st.lists(st.integers(10, 10**6), min_size=4, max_size=4))
def test_energy_of_a_group_of_the_eaco_paper(kinds, work_s):
    """To the joule what EaCO's judge says, and the node's sleeping watts besides."""
    node = {"base_w": 500, "sleep_w": 20}
    document = PAPER.model_dump(mode="json", by_alias=True, exclude_none=True)
    names = [f"j{n}" for n in range(len(kinds))]
    document["jobs"] = [
        {"id": name, "type": kind, "gpus": 8, "work_s": work}
        for name, kind, work in zip(names, kinds, work_s, strict=False)
    ]
    gpu = document["gpu_types"][0]
    document["nodes"] = [{"id": "n", "gpu": gpu["id"], "gpus": 8, "count": 1, "power": node}]
    book = ExactFigures(type(PAPER).from_document(document))
    world = scenario(
        1,
        8,
        models={t.id: {"utilisation": t.utilisation} for t in PAPER.types},
        sharing={"max_jobs_per_gpu": 4, "interference": document["interference"]},
        power={"gpu": gpu["power"], "node": node},
    )
    trace = jobs([8] * len(kinds), list(kinds), work_s[: len(kinds)])
    record = rolled(world, trace, *[range(8)] * len(kinds))
    phases = book.phases(Group(jobs=tuple(names), nodes="n"))
    seconds = sum(phase.seconds for phase in phases)
    assert record.end_us / US == pytest.approx(float(seconds), rel=1e-6)
    expected = book.energy_j(Group(jobs=tuple(names), nodes="n"), phases) + 20 * seconds
    assert record.energy_j == pytest.approx(float(expected), rel=1e-6)


@law(200)
@given(st.integers(0, 10**6), st.integers(1, 10_000), st.sampled_from([(2.0, 2.0), (1.7, 3.6)]))
def test_trouble_delays_a_job_by_the_time_that_it_takes_from_it(seed, run_s, factor):
    events = {"mean_between_s": 300, "mean_length_s": 100, "factor": factor}
    world, trace = scenario(1, 1, events=events), jobs([1], run_s=run_s)
    left, now = Fraction(run_s * US), 0
    trouble = Physics(world, Cluster(world), trace, seed).transients
    while left > 0:
        until, slow = trouble.until_us[0], Fraction(trouble.factor[0])
        step = min(Fraction(until - now), left * slow)
        left, now = left - step / slow, now + step
        if left > 0:
            trouble.change(0)
    record = rolled(world, trace, [0], seed=seed)
    assert record.end_us == pytest.approx(float(now), rel=1e-8, abs=2)


@law(200)
@given(
    st.lists(st.tuples(st.floats(1, 100), st.sampled_from([0.0, 0.5, 0.9, 1.0])), min_size=1),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_a_job_at_a_constant_width_takes_what_boa_says(parts, demand, width):
    """Run time x (sum of work / s(width)) / (sum of work / s(demand)), with Amdahl's law."""
    assume(len(parts) <= 6)

    def hours(gpus):
        return math.fsum(work * (1 - share + share / gpus) for work, share in parts)

    phases = [
        {"work_gpu_s": w, "speedup": {"kind": "amdahl", "parallel_fraction": f, "max_gpus": 8}}
        for w, f in parts
    ]
    world = scenario(2, 4, models={"m": {"phases": phases}})
    record = rolled(world, jobs([demand], "m", 5000), range(width))
    assert record.end_us / US == pytest.approx(5000 * hours(width) / hours(demand), rel=1e-6)
    assert int(record.jobs.useful_gpu_us[0]) == demand * 5000 * US
    lost = width * record.end_us - demand * 5000 * US
    # A phase ends with the microsecond in which its work does: up to so much more in each.
    rounded = max(width, demand) * len(parts) + 1
    assert int(record.jobs.width_loss_gpu_us[0]) == pytest.approx(lost, abs=rounded)


def test_history_is_told_of_the_jobs_that_ended():
    """The third job arrives when the first has ended: its estimate is what that one took."""
    told = []

    class Curious(Given):
        def decide(self, view):
            told.extend((job, view.remaining_us([job])[0] / US) for job in view.arrived)
            return super().decide(view)

    trace = jobs([1, 1, 1], run_s=[30, 1000, 70], submit_s=[0, 0, 40])
    world = scenario(1, 4, estimates={"kind": "history"}, epoch_s=1)
    Engine(world, trace, Curious((0,), (1,), (2,)), 0).run()
    assert [job for job, _ in told] == [0, 1, 2]
    assert math.isnan(told[0][1])
    assert told[2][1] == 30


def test_neighbours_come_and_go():
    """Two gangs on one server at 0.8: the first ends at 100 / 0.8, the other then speeds up."""
    world = scenario(1, 4, neighbours={"shared_server": 0.8})
    record = rolled(world, jobs([2, 2], run_s=[100, 300]), [0, 1], [2, 3])
    assert (record.jobs.end_us / US).tolist() == [125, 125 + 200]

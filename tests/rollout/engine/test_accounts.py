"""Where the GPU time that jobs hold goes: by hand, and laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.engine.engine import Engine
from optsched.rollout.engine.state import PPB
from optsched.rollout.physics.regimes import LOSSES, Factors, regime_of
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from optsched.rollout.results.parts_of_held_time import PARTS
from optsched.traces.trace import US, Failure
from tests.support.builders.any_rollouts import any_rollout
from tests.support.builders.physics_parts import jobs
from tests.support.builders.rollout_parts import Fifo, Script, scenario, trace
from tests.support.strategies.common import law

OOM = "CPU out of memory"


class Given:
    """Places each job, when it comes or comes back, on the GPUs given for it."""

    name = "given"

    def __init__(self, *places):
        self.places = places

    def decide(self, view):
        arrived = view.arrived
        return Decision(place={job: self.places[job] for job in arrived}) if arrived else NOTHING


def rolled(world, trace, *places):
    return Engine(world, trace, Given(*map(tuple, places)), 0).run()


def parts(record, job=0):
    """The parts of a job that are not 0, in GPU-seconds."""
    told = {part: int(getattr(record.jobs, f"{part}_gpu_us")[job]) / US for part in PARTS}
    return {part: seconds for part, seconds in told.items() if seconds}


# --- by hand ----------------------------------------------------------------------------------


def test_goodput_does_not_rise_as_distance_gets_worse():
    """Two GPUs on two servers: at factor 2 the job holds them for twice as long, for equal work."""
    for factor in (1.0, 2.0):
        world = scenario(2, 2, locality=(1.0, factor))
        record = rolled(world, jobs([2], run_s=1000), [0, 2])
        lost = {"distance_loss": 2000.0 * (factor - 1)} if factor > 1 else {}
        assert parts(record) == {"useful": 2000.0} | lost


def test_each_cause_has_its_part():
    """At 1/2 by its slowest GPU, 1/2 by distance, 1/2 by a neighbour: 1/2 + 1/4 + 1/8 are lost."""
    profile = {"gpus": list("abcd"), "slowdown": {"A": [1, 1, 2, 1]}, "kind": "persistent"}
    world = scenario(
        2, 2, locality=(1.0, 2.0), neighbours={"shared_server": 0.5}, profile=profile,
        models={"m": {"application_class": "A"}},
    )  # fmt: skip
    record = rolled(world, jobs([2, 2], ["m", ""], [100, 10_000]), [0, 2], [1, 3])
    spent = {"slow_gpu_loss": 800.0, "distance_loss": 400.0, "neighbour_loss": 200.0}
    assert parts(record) == {"useful": 200.0} | spent
    assert int(record.jobs.effective_gpu_us[0]) == 1600 * US / 4  # a slow GPU is busy


def test_other_widths_are_lost_or_gained():
    """s(1), s(2), s(4) = 1, 1.5, 2: of four GPUs half is lost, one GPU does with half of two."""
    curve = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1.0, 1.5, 2.0]}
    world = scenario(1, 4, models={"m": {"phases": [{"work_gpu_s": 1, "speedup": curve}]}})
    wide = rolled(world, jobs([1], "m", run_s=100), range(4))
    assert parts(wide) == {"useful": 100.0, "width_loss": 100.0}
    narrow = rolled(world, jobs([4], "m", run_s=100), range(1))
    assert parts(narrow) == {"useful": 400.0, "width_loss": -200.0}


def test_what_is_undone_takes_its_losses_along():
    """A failure after 9 s at half speed: 4 s since the checkpoint, 2 of work and 2 of distance."""
    world = scenario(2, 2, locality=(1.0, 2.0), costs={"checkpoint_every_s": 5.0, "start_s": 1.0})
    failing = trace((0, 2, 20), failures=[[Failure(OOM, 9 * US)]])
    record = rolled(world, failing, [0, 2])
    held = {"useful": 40.0, "distance_loss": 40.0, "redone": 8.0, "overhead": 2.0}
    assert parts(record) == held
    assert int(record.jobs.effective_gpu_us[0]) == (40 + 4) * US  # it computed what it did in vain


def test_a_checkpoint_at_full_speed_saves_what_was_lost_before_it():
    """A gang of two is beside another for 3 s, then alone for 4, with a checkpoint in between."""
    world = scenario(
        1, 4, neighbours={"shared_server": 0.5}, costs={"checkpoint_every_s": 5.0}
    )  # fmt: skip
    failing = trace((0, 2, 20), (0, 2, 1.5), failures=[[Failure(OOM, 7 * US)], []])
    record = rolled(world, failing, [0, 1], [2, 3])
    assert parts(record) == {"useful": 40.0, "neighbour_loss": 3.0, "redone": 4.0}


def test_trials_are_pre_runs_and_not_overhead():
    tried = Script(
        {0: Decision(pre_run={0: (0,)}, pre_run_us=5 * US), 5: Decision(place={0: (0,)})}
    )
    record = Engine(scenario(1, 1), trace((0, 1, 10)), tried, 0).run()
    assert parts(record) == {"useful": 10.0, "pre_run": 5.0}
    assert int(record.jobs.effective_gpu_us[0]) == 10 * US


def test_jobs_on_one_gpu_do_not_use_more_than_all_of_it():
    """Three jobs, each busy for half of the time and at full speed: the GPU has no third half."""
    models = {"m": {"utilisation": 0.5}}
    alone = {"groups": [{"types": ["m"] * n, "rates": [1.0] * n} for n in (2, 3)]}
    sharing = {"max_jobs_per_gpu": 3, "interference": alone}
    world = scenario(1, 1, models=models, sharing=sharing)
    record = rolled(world, jobs([1] * 3, "m", 90), [0], [0], [0])
    assert record.jobs.effective_gpu_us.sum() <= record.busy_gpu_us
    figures = metrics(record)
    assert figures["utilization_effective"] <= figures["utilization"]


# --- laws -------------------------------------------------------------------------------------

FACTOR = st.sampled_from([1.0, 1.1, 1.7, 3.0])
SPEED = st.sampled_from([1.0, 0.9, 0.771, 0.3])


@law(500)
@given(
    st.integers(1, 64), st.integers(1, 64), st.floats(0.1, 8), st.floats(0.5, 4), st.floats(1, 9),
    st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0, 1),
)  # fmt: skip
def test_losses_and_work_add_up_to_what_is_held(width, demand, speedup, slow, far, near, share, at):
    factors = Factors(width, demand, speedup, slow, far, near, share, at * width)
    regime = regime_of(factors)
    assert demand * regime.rate + sum(regime.losses) == width * PPB
    of = dict(zip(LOSSES, regime.losses, strict=True))
    assert min(of["distance"], of["neighbour"], of["sharing"]) >= 0
    assert (of["slow_gpu"] >= 0) or slow < 1
    assert 0 <= regime.unused <= width * PPB
    for worse in (factors._replace(distance=far + 1), factors._replace(neighbour=near / 2)):
        assert regime_of(worse).rate <= regime.rate
        assert regime_of(worse).unused >= regime.unused


@st.composite
def worsened(draw):
    """Two worlds, the second with some factors worse, and gangs with GPUs of their own."""
    nodes, each = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    near, nearer = sorted([draw(SPEED), draw(SPEED)])
    far, farther = sorted([draw(FACTOR), draw(FACTOR)])
    costs = {"start_s": draw(st.sampled_from([0.0, 3.0]))}
    better, worse = (
        scenario(nodes, each, locality=(1.0, by), neighbours={"shared_server": at}, costs=costs)
        for by, at in ((far, nearer), (farther, near))
    )
    gpus, places = draw(st.permutations(range(nodes * each))), []
    while gpus:
        size = draw(st.integers(1, len(gpus)))
        places.append(sorted(gpus[:size]))
        gpus = gpus[size:]
    rows = [(draw(st.integers(0, 50)), len(place), draw(st.integers(1, 100))) for place in places]
    order = sorted(range(len(rows)), key=lambda n: rows[n][0])
    share = draw(st.lists(st.floats(0, 1), min_size=len(rows), max_size=len(rows)))
    made = trace(*(rows[n] for n in order), utilization=share)
    return better, worse, made, [places[n] for n in order]


@law(300)
@given(worsened())
def test_worse_physics_raises_neither_goodput_nor_effective_utilisation_of_a_plan(drawn):
    better, worse, made, places = drawn
    one, other = rolled(better, made, *places), rolled(worse, made, *places)
    work = made.gpus * made.run_us
    assert np.array_equal(one.jobs.useful_gpu_us, work)
    assert np.array_equal(other.jobs.useful_gpu_us, work)
    assert np.all(other.jobs.allocated_gpu_us >= one.jobs.allocated_gpu_us)
    good, bad = metrics(one), metrics(other)
    slack = len(made) * made.gpus.sum() * 1e-6 / (one.available_gpu_us / US)
    assert bad["utilization_effective"] <= good["utilization_effective"] + slack
    for figures in (good, bad):
        assert figures["utilization_effective"] <= figures["utilization"] + 1e-12


@law(200)
@given(worsened())
def test_goodput_of_jobs_that_all_end_is_their_work_whatever_the_policy_makes_of_it(drawn):
    better, worse, made, _ = drawn
    for world in (better, worse):
        record = Engine(world, made, Fifo(), 0).run()
        assert record.jobs.useful_gpu_us.sum() == (made.gpus * made.run_us).sum()
        if world.nodes == 1:
            assert not record.jobs.distance_loss_gpu_us.any()


def test_a_job_that_has_not_ended_has_done_what_it_has_done():
    world = scenario(2, 2, locality=(1.0, 2.0), end_s=30.0)
    record = rolled(world, jobs([2], run_s=100), [0, 2])
    assert parts(record) == {"useful": 30.0, "distance_loss": 30.0}
    assert metrics(record)["goodput_gpu_h"] == pytest.approx(30 / 3600)


@pytest.mark.parametrize("seed", range(12))
def test_shares_that_are_done_are_those_of_the_work_that_remains(seed):
    """All at once they are what is told of each job alone, at every moment, whatever it does."""
    world, drawn, policy = any_rollout(seed)
    engine, shares = Engine(world, drawn, make(policy, world, seed), seed), set()
    while engine.step():
        accounts, total, now = engine.world.accounts, engine.world.state.total, engine.now_us
        told = range(engine.world.state.submitted)
        alone = [
            1 - accounts.remaining(job, now) / total[job] if total[job] else 1.0 for job in told
        ]
        assert accounts.done_shares(told, now) == alone
        shares.update(alone)
    assert len(shares) > 2

"""Goodput of models with batch sizes: by hand, against all batches, and in rollouts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.boa.instance import Amdahl, Table
from optsched.documents.faults import InstanceError
from optsched.rollout import simulate
from optsched.rollout.batch_sizes import BatchSizes
from optsched.rollout.declarations.names import known_as
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import US, trace_of
from tests.support.strategies.common import law

ROOT = Table(gpus=(1, 4), speedup=(1.0, 2.0))


def goodput(speedup=ROOT, phase=0, **fields):
    table = BatchSizes(**{"batch_size": 100, **fields}).goodput(speedup, phase)
    return dict(zip(table.gpus, table.speedup, strict=True))


def test_goodput_by_hand():
    """Four GPUs: a step of 400 examples takes 200, 100 of them for communication.

    A noise scale of 100 asks for sqrt(4 x 100 x 100) = 200 examples: 200 / (50 + 100) of
    throughput at (100 + 100) / (100 + 200) of efficiency, 8/9: slower than one GPU. With 10,000 it
    asks for 2,000, and may have 400, at 10,100 / 10,400.
    """
    assert goodput(noise_scale=[100]) == pytest.approx({1: 1, 4: 8 / 9})
    assert goodput(noise_scale=[10_000]) == pytest.approx({1: 1, 4: 2 * 10_100 / 10_400})
    assert goodput(noise_scale=[10_000], max_batch_size=300) == pytest.approx(
        {1: 1, 4: 300 / 175 * 10_100 / 10_300}
    )


def test_the_ends_of_the_noise_scale():
    """Where no example beyond the first batch helps, or all do."""
    assert goodput(noise_scale=[0]) == pytest.approx({1: 1, 4: 100 / 125})
    assert goodput(noise_scale=[1e12]) == pytest.approx({1: 1, 4: 2})
    assert goodput(noise_scale=[0], phase=0) != goodput(noise_scale=[0, 50], phase=1)
    assert goodput(noise_scale=[0], phase=1) == goodput(noise_scale=[0, 50], phase=0)


NOISE = st.one_of(st.just(0.0), st.floats(1e-9, 1e5))
CURVES = st.one_of(
    st.builds(
        Table,
        gpus=st.just((1, 2, 4, 8)),
        speedup=st.tuples(st.just(1.0), *[st.floats(0.2, 12.0)] * 3),
    ),
    st.builds(Amdahl, parallel_fraction=st.floats(0, 1), max_gpus=st.integers(1, 8)),
)


@law(500)
@given(CURVES, st.integers(1, 60), NOISE, st.integers(1, 9))
def test_no_batch_has_more_goodput(curve, one, noise, times):
    speeds = dict(zip(curve.widths, _speeds(curve), strict=True))
    found = goodput(curve, batch_size=one, noise_scale=[noise], max_batch_size=one * times)
    for gpus, speed in speeds.items():
        faster, most = max(gpus, speed), one * min(gpus, times)
        lost = one * gpus / speed - one * gpus / faster
        every = [
            batch / (batch / faster + lost) * (noise + one) / (noise + batch)
            for batch in range(one, most + 1)
        ]
        assert found[gpus] >= max(every) * (1 - 1e-12)
        assert found[gpus] <= speed * (1 + 1e-12)
        if times >= gpus:
            assert every[-1] <= found[gpus] * (1 + 1e-12)


def _speeds(curve):
    if isinstance(curve, Table):
        return curve.speedup
    f = curve.parallel_fraction
    return [1 / (1 - f + f / k) for k in curve.widths]


@law(300)
@given(CURVES, st.integers(1, 500), NOISE, st.floats(1, 100))
def test_a_smaller_noise_scale_never_helps(curve, one, noise, times):
    less = goodput(curve, batch_size=one, noise_scale=[noise])
    more = goodput(curve, batch_size=one, noise_scale=[noise * times])
    assert all(less[k] <= more[k] * (1 + 1e-12) for k in less)


# --- in rollouts ------------------------------------------------------------------------------


def world(batches=None, **fields):
    phase = {"work_gpu_s": 1, "speedup": {"kind": "table", "gpus": [1, 4], "speedup": [1.0, 2.0]}}
    model = {"phases": [phase]} | ({"batches": batches} if batches else {})
    document = {
        "name": "batches", "nodes": 1, "gpus_per_node": 4, "epoch_s": 60.0,
        "models": {"m": model}, "trace": {"generator": "none", "jobs": 1}, **fields,
    }  # fmt: skip
    return Scenario.from_document(document, "batches")


ONE = trace_of("t", "", {"submit_s": [0.0], "gpus": [1], "run_s": [1000.0], "model": ["m"]})


@pytest.mark.parametrize(("noise", "seconds"), [(100, 1125), (10_000, 500 * 104 / 101)])
def test_jobs_get_on_at_their_goodput_under_every_policy(noise, seconds):
    batches = {"batch_size": 100, "noise_scale": [noise]}
    record = simulate(world(batches), "fixed-width:k=4", trace=ONE).record
    assert record.jobs.end_us[0] / US == pytest.approx(seconds)
    plain = simulate(world(), "fixed-width:k=4", trace=ONE).record
    assert plain.jobs.end_us[0] / US == 500


@pytest.mark.parametrize("policy", ["pollux:growth=null", "sia:growth=null", "marginal-greedy"])
def test_nobody_gives_gpus_that_make_a_job_slower(policy):
    """At a noise scale of 100 four GPUs get on at 8/9 of one."""
    batches = {"batch_size": 100, "noise_scale": [100]}
    slow = simulate(world(batches), policy, trace=ONE, keep_intervals=True).record
    assert {len(gpus) for *_, gpus in slow.intervals} == {1}
    fast = simulate(world(), policy, trace=ONE, keep_intervals=True).record
    assert {len(gpus) for *_, gpus in fast.intervals} == {4}


def test_the_first_line_says_where_there_are_no_batch_sizes():
    with_batches = world({"batch_size": 8, "noise_scale": [3]})
    assert known_as(with_batches, "pollux:growth=3") == "pollux:growth=3"
    told = known_as(world(), "pollux")
    assert told == "pollux (no batch sizes here: speedups are taken as they are given)"
    assert known_as(world(), "equi") == "equi"


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ({"batch_size": 8, "noise_scale": [1, 2]}, "has 2 values for 1 phases: give one, or 1"),
        ({"batch_size": 8, "noise_scale": []}, "noise_scale"),
        ({"batch_size": 8, "noise_scale": [-1]}, "noise_scale"),
        ({"batch_size": 8, "max_batch_size": 7, "noise_scale": [1]}, "at least batch_size .8."),
        ({"batch_size": 0, "noise_scale": [1]}, "batch_size"),
    ],
)
def test_faults_of_batch_sizes_are_named(batches, words):
    with pytest.raises(InstanceError, match=words):
        world(batches)


def test_batch_sizes_need_phases():
    batches = {"batch_size": 8, "noise_scale": [math.pi]}
    with pytest.raises(InstanceError, match="belongs to phases"):
        world(models={"m": {"batches": batches}})

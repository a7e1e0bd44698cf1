"""GPUs step by step to the largest gain: one sort gives what a heap gives, step for step."""

from heapq import heapify, heappop, heappush

from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.policies.capacity.steepest_steps import Steepest, steepest
from optsched.rollout.policies.width_curves import Curve
from tests.support.strategies.common import law


@st.composite
def curves(draw):
    """Widths with faster and faster speeds, by no means concave, and often equal gains."""
    wider = draw(st.lists(st.sampled_from([1, 1, 1, 2, 3, 8]), max_size=6))
    faster = draw(st.lists(st.sampled_from([0.25, 0.5, 0.5, 1.0, 4.0]), min_size=6, max_size=6))
    gpus, speed = [draw(st.integers(1, 3))], [1.0]
    for more, gain in zip(wider, faster, strict=False):
        gpus.append(gpus[-1] + more)
        speed.append(speed[-1] + gain)
    return Curve(tuple(gpus), tuple(speed))


def by_heap(curves, seconds, gpus):
    """The specification: the job whose next step gains most takes it, or drops out."""

    def gain(n):
        own, step = curves[n], at[n]
        drop = seconds[n] / own.speed[step] - seconds[n] / own.speed[step + 1]
        return drop / (own.gpus[step + 1] - own.gpus[step])

    at = [0] * len(curves)
    heap = [(-gain(n), n) for n, curve in enumerate(curves) if len(curve.gpus) > 1]
    heapify(heap)
    while heap:
        _, n = heappop(heap)
        more = curves[n].gpus[at[n] + 1] - curves[n].gpus[at[n]]
        if more > gpus:
            continue
        gpus -= more
        at[n] += 1
        if at[n] + 1 < len(curves[n].gpus):
            heappush(heap, (-gain(n), n))
    return at


@law(2000)
@given(st.data())
def test_one_sort_gives_what_a_heap_gives(data):
    kinds = data.draw(st.lists(curves(), min_size=1, max_size=3))
    jobs = data.draw(st.lists(st.sampled_from(kinds), max_size=9))
    work = st.sampled_from([1.0, 1.0, 3.0, 1e-6, 7e5])
    seconds = data.draw(st.lists(work, min_size=len(jobs), max_size=len(jobs)))
    gpus = data.draw(st.integers(1, 40))
    assert steepest(jobs, seconds, gpus) == by_heap(jobs, seconds, gpus)


def amdahl(fraction, most):
    """A curve on which each GPU surely adds less than the one before."""
    gpus = tuple(range(1, most + 1))
    return Curve(gpus, tuple(1 / (1 - fraction + fraction / k) for k in gpus))


@law(300)
@given(st.data())
def test_from_call_to_call_steps_out_of_reach_are_not_missed(data):
    kinds = [amdahl(0.99, 12), amdahl(0.9, 5), Curve((2,), (1.0,)), *data.draw(st.lists(curves()))]
    concave, kept = data.draw(st.booleans()), Steepest()
    jobs = data.draw(st.lists(st.sampled_from(kinds[:3] if concave else kinds), min_size=1))
    for _ in range(4):
        seconds = [data.draw(st.sampled_from([1.0, 1.01, 3.0, 1e-6, 7e5, 1e9])) for _ in jobs]
        gpus = data.draw(st.integers(1, 40))
        assert kept.steps(jobs, seconds, gpus) == by_heap(jobs, seconds, gpus)
        jobs = jobs[data.draw(st.integers(0, 1)) :] or jobs


def test_of_concave_curves_few_steps_are_looked_at(monkeypatch):
    """As long as there are far more steps than GPUs, and the last gain is near that of before."""
    jobs, seconds = [amdahl(0.99, 64)] * 50, [float(n) for n in range(100, 150)]
    kept, looked = Steepest(), []
    kept.steps(jobs, seconds, 200)
    within = kept._within_reach
    monkeypatch.setattr(kept, "_within_reach", lambda *of: looked.append(within(*of)) or looked[-1])
    later = [left - 0.5 for left in seconds]
    assert kept.steps(jobs, later, 200) == steepest(jobs, later, 200)
    assert len(looked) == 1
    assert len(looked[0]) == 200

"""Shares become whole widths: the method of largest remainders, and its laws."""

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.policies.capacity.width_table import WidthTable
from optsched.rollout.policies.malleable.whole_gpus import (
    GainLevels,
    Rounding,
    envelope,
    filled_in_order,
    in_rounds,
    rounded,
)
from optsched.rollout.policies.width_curves import Curve
from tests.support.strategies.common import law


@st.composite
def curves(draw):
    """Useful widths of a job: each faster than the one before."""
    gpus = sorted(draw(st.sets(st.integers(1, 12), min_size=1, max_size=6)))
    steps = draw(st.lists(st.floats(0.01, 3), min_size=len(gpus), max_size=len(gpus)))
    return Curve(tuple(gpus), tuple(sum(steps[: n + 1]) for n in range(len(gpus))))


@st.composite
def rounds(draw):
    """Curves, GPUs, and shares that add up to at most these."""
    gpus = draw(st.integers(0, 20))
    rows = draw(st.lists(curves(), min_size=1, max_size=6))
    parts = [draw(st.floats(0, 1)) for _ in rows]
    scale = gpus * draw(st.sampled_from([0.5, 1.0])) / max(sum(parts), 1.0)
    return rows, [scale * part for part in parts], gpus


def test_rounding_by_hand():
    every = Curve(tuple(range(1, 9)), tuple(map(float, range(1, 9))))
    assert rounded([every] * 3, [1.4, 1.5, 5.1], 8) == [1, 2, 5]
    assert rounded([every] * 3, [8 / 3] * 3, 8) == [3, 3, 2]
    fours = Curve((4, 8), (3.0, 4.0))
    assert rounded([every, fours], [2.5, 5.5], 8) == [4, 4]  # no 4 are left for the second one
    assert rounded([fours, fours], [3.0, 3.0], 6) == [4, 0]
    assert rounded([], [], 6) == []


@law(1000)
@given(rounds())
def test_widths_are_those_of_jobs_and_no_gpu_is_idle_that_one_could_use(drawn):
    rows, shares, gpus = drawn
    widths = rounded(rows, shares, gpus)
    assert sum(widths) <= gpus
    left = gpus - sum(widths)
    for row, width in zip(rows, widths, strict=True):
        assert width in (0, *row.gpus)
        wider = [k for k in row.gpus if k > width]
        assert not wider or wider[0] - width > left


@law(300)
@given(st.lists(rounds(), min_size=2, max_size=4))
def test_rounding_from_call_to_call_is_that_of_each_call_alone(drawn):
    table = WidthTable()
    for rows, shares, gpus in [*drawn, *drawn]:
        widths = Rounding(table).rounded(table.kinds(rows), np.array(shares), gpus)
        assert widths.tolist() == rounded(rows, shares, gpus)


@law(1000)
@given(rounds())
def test_gpus_that_rounding_leaves_go_one_by_one_to_the_job_furthest_below_its_share(drawn):
    rows, shares, gpus = drawn
    widths = [
        max((k for k in row.gpus if k <= s + 1e-9), default=0)
        for row, s in zip(*drawn[:2], strict=True)
    ]
    left, going = gpus - sum(widths), dict.fromkeys(range(len(rows)))
    while going and left:
        job = min(going, key=lambda job: (widths[job] - shares[job], job))
        wider = [k for k in rows[job].gpus if k > widths[job]]
        if not wider or wider[0] - widths[job] > left:
            del going[job]
            continue
        left -= wider[0] - widths[job]
        widths[job] = wider[0]
    assert rounded(rows, shares, gpus) == widths


@law(500)
@given(st.integers(0, 1 << 30), st.sampled_from([1, 9]), st.booleans())
def test_steps_of_one_gpu_in_rounds_are_those_that_are_taken_one_by_one(seed, power, are_round):
    """Also where a job that wants far more than it can use has all of it, and where shares tie."""
    draw = np.random.default_rng(seed)
    rows = [Curve(tuple(range(1, n + 1)), tuple(np.sqrt(range(1, n + 1)))) for n in range(1, 13)]
    kept = Rounding(table := WidthTable())
    kinds = table.kinds(rows)
    for _ in range(10):
        which, gpus = draw.choice(kinds, draw.integers(1, 31)), int(draw.integers(1, 201))
        parts = draw.random(len(which)) ** power
        shares = gpus * parts / parts.sum()
        if are_round:
            shares = np.floor(4 * shares) / 4
        table.is_unit = True
        widths = kept.rounded(which, shares, gpus).tolist()
        table.is_unit = False
        assert widths == kept.rounded(which, shares, gpus).tolist()


def test_jobs_too_far_apart_take_no_steps_in_rounds():
    shares, widths, many = np.array([2.0, 1.5]), np.array([1, 1]), np.array([3, 3])
    assert in_rounds(shares, widths, many, 3).tolist() == [2, 1]
    assert in_rounds(shares - [0, 0.5], widths, many, 3) is None


@law(500)
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8), st.integers(1, 40))
def test_with_all_widths_a_job_is_less_than_one_gpu_off_its_share(parts, gpus):
    every = Curve(tuple(range(1, 41)), tuple(map(float, range(1, 41))))
    shares = [gpus * part / sum(parts) for part in parts]
    widths = rounded([every] * len(parts), shares, gpus)
    assert sum(widths) == gpus
    assert all(abs(k - share) < 1 + 1e-6 for k, share in zip(widths, shares, strict=True))


@law(500)
@given(curves(), st.integers(1, 14))
def test_envelopes_are_concave_and_above_the_curve(curve, gpus):
    speeds = envelope(curve, gpus)
    inside = [(k, s) for k, s in zip(*curve, strict=True) if k <= gpus]
    if not inside:
        assert speeds.tolist() == [0.0]
        return
    assert len(speeds) == inside[-1][0] + 1
    steps = [b - a for a, b in pairwise(speeds)]
    assert all(b <= a + 1e-9 for a, b in pairwise(steps))
    assert min(steps) > 0
    assert all(speeds[k] >= s - 1e-9 for k, s in inside)
    touched = [k for k, s in inside if math.isclose(speeds[k], s)]
    assert touched[-1] == inside[-1][0]


def test_gpus_go_to_the_largest_gain():
    levels = GainLevels([np.array([3.0, 1.0]), np.array([2.0, 2.0, 0.0]), np.array([])])
    assert levels.filled(np.array([0, 1, 2]), 3).tolist() == [1, 2, 0]
    assert levels.filled(np.array([0, 1, 2]), 9).tolist() == [2, 2, 0]
    assert GainLevels([np.array([np.inf])]).filled(np.array([0, 0]), 1).tolist() == [1, 0]
    assert GainLevels([np.zeros(0)]).filled(np.array([0]), 3).tolist() == [0]


@law(300)
@given(st.data())
def test_jobs_of_few_kinds_get_what_they_would_one_by_one(data):
    gain = st.sampled_from([np.inf, 3.0, 2.0, 1.0, 0.5, 0.0, -1.0])
    kinds = data.draw(st.lists(st.lists(gain, max_size=4), min_size=1, max_size=3))
    jobs = data.draw(st.lists(st.integers(0, len(kinds) - 1), min_size=1, max_size=6))
    gpus = data.draw(st.integers(1, 20))
    steps = [(-more, n) for n, kind in enumerate(jobs) for more in kinds[kind] if more > 0]
    expected = [0] * len(jobs)
    for _, n in sorted(steps)[:gpus]:
        expected[n] += 1
    gains = [np.array(kind, dtype=float) for kind in kinds]
    assert GainLevels(gains).filled(np.array(jobs), gpus).tolist() == expected
    every = [gains[kind] for kind in jobs]
    found = filled_in_order(np.concatenate(every), list(map(len, every)), gpus)
    assert found.tolist() == expected

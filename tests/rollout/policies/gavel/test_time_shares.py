"""Gavel's programs: by hand, against least attained shares, and the laws of their optima."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from optsched.rollout.policies.gavel.time_shares import (
    WaitingGangs,
    fair_shares,
    shares_of_least_makespan,
)
from tests.support.strategies.common import law

NEAR = 1e-5


@st.composite
def gangs(draw, most_types=3):
    """Jobs of gangs and speeds, some of which cannot run on some types, or are too large."""
    types, jobs = draw(st.integers(1, most_types)), draw(st.integers(1, 6))
    speeds = st.sampled_from([0.0, 0.2, 1.0, 1.0, 3.7])
    rows = [[draw(speeds) for _ in range(types)] for _ in range(jobs)]
    gpus = [draw(st.sampled_from([1, 1, 2, 4, 8])) for _ in range(jobs)]
    capacity = [draw(st.integers(0, 8)) for _ in range(types)]
    return WaitingGangs(np.array(gpus, float), np.array(rows), np.array(capacity, float))


def told(gpus, speed, capacity):
    return WaitingGangs(np.array(gpus, float), np.array(speed, float), np.array(capacity, float))


def test_fair_shares_by_hand():
    # one type: GPU time is equal, so a gang of 4 has a quarter of the time of a gang of 1
    shares = fair_shares(told([1, 1, 4], [[1.0]] * 3, [2]))
    assert shares[:, 0] == pytest.approx([1, 1, 0], abs=NEAR)  # a gang of 4 does not fit on 2
    shares = fair_shares(told([2, 2, 2, 2], [[1.0]] * 4, [4]))
    assert shares[:, 0] == pytest.approx([0.5] * 4, abs=NEAR)
    shares = fair_shares(told([1, 2], [[1.0]] * 2, [2]))
    assert shares[:, 0] == pytest.approx([1, 0.5], abs=NEAR)
    # two types: whoever gains most from the fast one has it
    shares = fair_shares(told([1, 1], [[4.0, 1.0], [1.0, 1.0]], [1, 1]))
    assert shares == pytest.approx(np.eye(2), abs=NEAR)
    assert fair_shares(told([], np.zeros((0, 2)), [1, 1])).shape == (0, 2)


def test_makespan_shares_by_hand():
    # 300 s and 100 s of work on one GPU: both end together after 400 s
    shares = shares_of_least_makespan(told([1, 1], [[1.0]] * 2, [1]), np.array([300.0, 100.0]))
    assert shares[:, 0] == pytest.approx([0.75, 0.25], abs=NEAR)
    # a fast GPU of 3 and a slow one of 1: the long job needs the fast one all the time
    fast = told([1, 1], [[3.0, 1.0]] * 2, [1, 1])
    shares = shares_of_least_makespan(fast, np.array([300.0, 100.0]))
    assert shares == pytest.approx(np.eye(2), abs=NEAR)


@law(300)
@given(gangs(), st.booleans())
def test_shares_are_feasible(drawn, is_fair):
    work = np.linspace(1, 100, len(drawn.gpus))
    shares = fair_shares(drawn) if is_fair else shares_of_least_makespan(drawn, work)
    assert shares.shape == drawn.speed.shape
    assert (shares >= 0).all()
    assert (shares.sum(axis=1) <= 1 + NEAR).all()
    assert (drawn.gpus @ shares <= drawn.capacity + NEAR).all()
    assert not shares[drawn.fits == 0].any()
    runs = drawn.fits.any(axis=1)
    assert (shares[runs].sum(axis=1) > 0).all()  # nobody starves who can run


@law(200)
@given(gangs(most_types=1))
def test_on_one_type_fairness_is_the_least_attained_share(drawn):
    """All have the same GPU time, but for those that have all of theirs: nobody is below C / n."""
    runs = drawn.fits.any(axis=1)
    if not runs.any():
        return
    gpus, capacity = drawn.gpus[runs], drawn.capacity[0]
    time = gpus * fair_shares(drawn)[runs, 0]
    least = min(capacity / runs.sum(), gpus.min())
    assert time.min() == pytest.approx(least, abs=10 * NEAR)
    assert time.sum() == pytest.approx(min(capacity, gpus.sum()), abs=10 * NEAR)


@law(200)
@given(gangs())
def test_the_least_gain_is_that_of_another_solver(drawn):
    """The same program, written with dense rows, by scipy; and units of speed do not matter."""
    fits, capacity = drawn.fits, drawn.capacity
    runs = fits.any(axis=1)
    if not runs.any():
        return
    fits, gpus = fits[runs], drawn.gpus[runs]
    gains = fits * (gpus / (fits @ capacity / capacity.sum()))[:, None]
    jobs, types = fits.shape
    rows, bounds = [], []
    for j in range(jobs):
        own = np.zeros((jobs, types))
        own[j] = gains[j]
        rows.append(np.append(-own.ravel(), 1.0))
        own = np.zeros((jobs, types))
        own[j] = 1
        rows.append(np.append(own.ravel(), 0.0))
        bounds += [0.0, 1.0]
    for t in range(types):
        own = np.zeros((jobs, types))
        own[:, t] = gpus
        rows.append(np.append(own.ravel(), 0.0))
        bounds.append(capacity[t])
    cost = np.append(np.zeros(jobs * types), -1.0)
    least = -linprog(cost, A_ub=np.array(rows), b_ub=bounds, bounds=(0, None)).fun
    shares = fair_shares(drawn)[runs]
    assert (gains * shares).sum(axis=1).min() == pytest.approx(least, rel=1e-4)
    scaled = fair_shares(drawn._replace(speed=drawn.speed * 8))[runs]
    assert (gains * scaled).sum(axis=1).min() == pytest.approx(least, rel=1e-4)

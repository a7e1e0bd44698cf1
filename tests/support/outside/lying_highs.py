"""A HiGHS that lies: what `optsched.mip.highs` reads off a run of HiGHS is changed at random
moments.

The lies stand in one table; each takes an outcome and a source of chance.
"""

from __future__ import annotations

import random
from contextlib import contextmanager

import numpy as np
import pytest

from optsched.mip import highs


def _x(change):
    return lambda o, rng: o if o.x is None else o._replace(x=change(o.x.copy(), rng))


def _duals(change):
    def lie(o, rng):
        return o if o.row_duals is None else o._replace(row_duals=change(o.row_duals.copy(), rng))

    return lie


def _bound(change):
    return lambda o, rng: o._replace(bound=float(change(o.bound)))


def _objective(change):
    return lambda o, rng: o if o.objective is None else o._replace(objective=change(o.objective))


def _shuffled(array, rng):
    return array[np.array(rng.sample(range(len(array)), len(array)), dtype=np.intp)]


def _noise(array, rng, size):
    return array + size * np.array([rng.uniform(-1, 1) for _ in array])


def _raises(o, rng):
    raise RuntimeError("HiGHS fell over")


def _without(o, **figures):
    return o._replace(x=None, objective=None, row_duals=None, **figures)


LIES = {
    "objective too low": _objective(lambda v: v - 0.01 * abs(v) - 1e-3),
    "objective too high": _objective(lambda v: v + 0.01 * abs(v) + 1e-3),
    "objective is nan": _objective(lambda v: float("nan")),
    "objective is minus infinity": _objective(lambda v: -float("inf")),
    "bound a little too high": _bound(lambda v: v + 1e-4 * abs(v)),
    "bound far too high": _bound(lambda v: v + abs(v) + 1.0),
    "bound is infinite": _bound(lambda v: np.inf),
    "bound is nan": _bound(lambda v: np.nan),
    "bound and objective too high": lambda o, rng: (
        o
        if o.objective is None
        else o._replace(bound=o.objective * 1.1, objective=o.objective * 1.1)
    ),
    "point off by 1e-3": _x(lambda x, rng: _noise(x, rng, 1e-3)),
    "point off by 0.4": _x(lambda x, rng: _noise(x, rng, 0.4)),
    "point is nan": _x(lambda x, rng: np.full_like(x, np.nan)),
    "point is zero": _x(lambda x, rng: np.zeros_like(x)),
    "point is ones": _x(lambda x, rng: np.ones_like(x)),
    "point is shuffled": _x(_shuffled),
    "point is beyond all bounds": _x(lambda x, rng: x + 1e3),
    "no point, and yet optimal": lambda o, rng: _without(o),
    "duals negated": _duals(lambda y, rng: -y),
    "duals doubled": _duals(lambda y, rng: 2 * y),
    "duals off by 1e-3": _duals(lambda y, rng: _noise(y, rng, 1e-3)),
    "duals are nan": _duals(lambda y, rng: np.full_like(y, np.nan)),
    "duals are huge": _duals(lambda y, rng: np.sign(y + 1e-30) * 1e300),
    "duals are zero": _duals(lambda y, rng: np.zeros_like(y)),
    "duals are shuffled": _duals(_shuffled),
    "infeasible": lambda o, rng: _without(o, status="infeasible", bound=np.inf),
    "infeasible, with a point": lambda o, rng: o._replace(status="infeasible"),
    "unbounded": lambda o, rng: _without(o, status="unbounded", bound=-np.inf),
    "limit for optimal": lambda o, rng: o._replace(status="limit", row_duals=None),
    "optimal for anything": lambda o, rng: o._replace(status="optimal"),
    "error": lambda o, rng: _without(o, status="error", bound=-np.inf, message="Not Set"),
    "raises": _raises,
}


@contextmanager
def lying(lie, share, seed=0):
    """Let HiGHS tell a lie in a share of its runs; gives the list of the runs in which it did."""
    rng, told, honest = random.Random(seed), [], highs._outcome

    def dishonest(*args, **options):
        outcome = honest(*args, **options)
        told.append(rng.random() < share)
        return LIES[lie](outcome, rng) if told[-1] else outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(highs, "_outcome", dishonest)
        yield told

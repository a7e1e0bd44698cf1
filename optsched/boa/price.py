"""The dual of BOA: the price of the limited resource at which the limit is just used up.

At a price each class decides for itself: a free phase takes the width of least value + price * use
(boa.md 1.4 item 2), a class with rescaling the shortest path over phases x widths (item 8). The
Lagrangian value is piecewise linear and concave in the price, so a cutting-plane search on the two
plans beside its maximum ends after finitely many prices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.arrays import Arrays, Chain, Choice, Path, choice

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Two floats that differ by less than this, relatively, are taken for equal in the search; whether
# a plan keeps within its limit is decided exactly, elsewhere.
ROUNDING = 1e-13
HAIR = 1e-12  # plans closer than this to the limit, relatively, are taken for beyond it when mixed


class Dual(NamedTuple):
    """The best price and the two plans that meet at it.

    Attributes
    ----------
    price
        Maximiser of the Lagrangian value.
    bound
        Lagrangian value: a lower bound on the value of every choice, mixed ones too.
    within
        The better plan of those within the limit.
    beyond
        A plan of the same priced value beyond the limit; `within` itself where the limit is loose.
    """

    price: float
    bound: float
    within: Choice
    beyond: Choice


def respond(arrays: Arrays, price: float) -> Choice:
    """Return what every class decides at a price; an infinite one asks for the least use."""
    columns = np.argmin(arrays.groups.priced(price), axis=1)
    return choice(arrays, columns, tuple(shortest_path(chain, price) for chain in arrays.chains))


def maximise(arrays: Arrays) -> Dual | None:
    """Find the best price; None if not even the least use keeps within the limit."""
    limit = arrays.limit * (1 + ROUNDING)
    beyond = respond(arrays, 0.0)
    if beyond.use <= limit:
        return Dual(0.0, beyond.value, beyond, beyond)
    within = respond(arrays, np.inf)
    if within.use > limit:
        return None
    price, bound = 0.0, beyond.value
    while True:
        trial = max(within.value - beyond.value, 0.0) / (beyond.use - within.use)
        answer = respond(arrays, trial)
        value = answer.value + trial * (answer.use - arrays.limit)
        if value > bound:
            price, bound = trial, value
        least = within.value + trial * within.use
        if answer.value + trial * answer.use >= least - ROUNDING * abs(least):
            return Dual(price, bound, within, beyond)
        if answer.use <= limit:
            within = answer
        else:
            beyond = answer


def completions(chain: Chain, price: float) -> NDArray[np.float64]:
    """Return the least priced value from after each node to the end, shape (phases, columns)."""
    nodes, rescaling = chain.priced(price)
    after = np.zeros_like(nodes)
    for e in range(len(nodes) - 2, -1, -1):
        following = nodes[e + 1] + after[e + 1]
        np.minimum(following, (following + rescaling).min(), out=after[e])
    return after


def shortest_path(chain: Chain, price: float) -> Path:
    """Return the way through a chain of least priced value: V_e(k) of boa.md 1.4 item 8."""
    nodes, rescaling = chain.priced(price)
    totals = nodes + completions(chain, price)
    switched = totals + rescaling
    best = switched.argmin(axis=1)
    least = switched[np.arange(len(best)), best]
    columns = np.empty(len(best), np.intp)
    column = columns[0] = best[0]
    for e in range(1, len(best)):
        if totals[e, column] > least[e]:
            column = best[e]
        columns[e] = column
    return chain.path(columns)

"""Lagrangian dual by cutting planes (Kelley, SIAM 1960): the price at which the limit is used up.

At a price each class decides for itself: a free phase takes the width of least value + price * use
(docs/math/boa.md, Lagrangian dual), a class with rescaling the shortest path over phases x widths.
The Lagrangian value is piecewise linear and concave in the price, so a cutting-plane search on the
two plans beside its maximum ends after finitely many prices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.arrays import BoaArrays, WidthChoice, choice
from optsched.boa.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.boa.exact.phase_graphs import ChainStack, Path
    from optsched.documents.arrays import Floats


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
    within: WidthChoice
    beyond: WidthChoice


def respond(arrays: BoaArrays, price: float) -> WidthChoice:
    """Return what every class decides at a price; an infinite one asks for the least use."""
    columns = np.argmin(arrays.groups.priced(price), axis=1)
    paths: dict[int, Path] = {}
    for stack in arrays.stacks:
        paths |= zip(stack.owners, shortest_paths(stack, price), strict=True)
    return choice(arrays, columns, tuple([paths[chain.owner] for chain in arrays.chains]))


def maximise(arrays: BoaArrays, stop: Callable[[], bool] = lambda: False) -> Dual | None:
    """Find the best price; None if not even the least use keeps within the limit.

    When `stop` tells that time is up, the best price so far, with a true bound and a plan within
    the limit; the plan beyond it then has another priced value.
    """
    limit = arrays.limit * (1 + SETTINGS.rounding)
    beyond = respond(arrays, 0.0)
    if beyond.use <= limit:
        return Dual(0.0, beyond.value, beyond, beyond)
    within = respond(arrays, np.inf)
    if within.use > limit:
        return None
    price, bound = 0.0, beyond.value
    while not stop():
        trial = max(within.value - beyond.value, 0.0) / (beyond.use - within.use)
        answer = respond(arrays, trial)
        value = answer.value + trial * (answer.use - arrays.limit)
        if value > bound:
            price, bound = trial, value
        least = within.value + trial * within.use
        if answer.value + trial * answer.use >= least - SETTINGS.rounding * abs(least):
            return Dual(price, bound, within, beyond)
        if answer.use <= limit:
            within = answer
        else:
            beyond = answer
    return Dual(price, bound, within, beyond)


def completions(nodes: Floats, rescaling: Floats) -> Floats:
    """Return the least priced value from after each node to the end.

    Parameters
    ----------
    nodes, rescaling
        Priced, of a chain or of a stack; shapes (..., phases, columns) and (..., columns).
    """
    after = np.zeros_like(nodes)
    for e in range(nodes.shape[-2] - 2, -1, -1):
        following = nodes[..., e + 1, :] + after[..., e + 1, :]
        switched = (following + rescaling).min(axis=-1, keepdims=True)
        np.minimum(following, switched, out=after[..., e, :])
    return after


def shortest_paths(stack: ChainStack, price: float) -> list[Path]:
    """Return the path of least priced value through each chain (docs/math/boa.md, Rescaling)."""
    nodes, rescaling = stack.priced(price)
    totals = nodes + completions(nodes, rescaling)
    switched = totals + rescaling[:, None, :]
    columns = switched.argmin(axis=2)
    rows, least = np.arange(len(columns)), switched.min(axis=2)
    for e in range(1, columns.shape[1]):
        keeps = totals[rows, e, columns[:, e - 1]] <= least[:, e]
        columns[:, e] = np.where(keeps, columns[:, e - 1], columns[:, e])
    return stack.paths(columns)


def least_priced(arrays: BoaArrays, price: float) -> list[float]:
    """Return the least priced value of the paths through each chain."""
    least: dict[int, float] = {}
    for stack in arrays.stacks:
        nodes, rescaling = stack.priced(price)
        first = nodes[:, 0] + rescaling + completions(nodes, rescaling)[:, 0]
        least |= zip(stack.owners, first.min(axis=1).tolist(), strict=True)
    return [least[chain.owner] for chain in arrays.chains]


def priced_rounding(phases: int, priced: float) -> float:
    """Return by what sums of floats over phases, of about a priced value, are off at most."""
    return SETTINGS.label_rounding * (phases + 10) * priced

"""Column generation (Dantzig & Wolfe, Operations Research 8, 1960), with or without smoothing.

A linear program of many columns is solved over some of them, the restricted master. The pricing
problem looks for columns that cost less than its duals pay, and what it answers is the Lagrangian
value of these duals: a lower bound on the whole program. Such columns are added until there is
none, or the bound is near enough. Duals of a small master swing; between them and those that proved
most lie better ones (smoothing: Wentges, Int. Trans. in Operational Research 4, 1997).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S")  # an optimum of the master
D = TypeVar("D")  # its duals
C = TypeVar("C")  # columns
C_contra = TypeVar("C_contra", contravariant=True)
D_co = TypeVar("D_co", covariant=True)

LEAST_SMOOTHING = 0.1  # below it, duals are those of the master, nearly


class RestrictedMaster(Protocol[S, D_co, C_contra]):
    """The program over the columns that it has so far."""

    def optimum(self) -> S | None:
        """Return an optimum; None if there is none in time."""

    def duals(self, solved: S, /) -> D_co:
        """Return the duals of an optimum."""

    def add(self, columns: C_contra, /) -> int:
        """Add columns; return how many of them are new."""


@dataclass(frozen=True)
class Priced(Generic[D, C]):
    """What the pricing problem answers.

    Attributes
    ----------
    columns, count
        Those that cost less than the duals pay, or the best of them; and how many they are.
    value, duals
        A lower bound on the whole program, minus infinity if none is known, and duals that prove
        it: those that were asked about, or lower ones.
    """

    columns: C
    count: int
    duals: D
    value: float = -np.inf


@dataclass
class DualBound(Generic[D]):
    """The greatest Lagrangian value so far, and the duals that prove it."""

    duals: D
    value: float = -np.inf

    def offer(self, priced: Priced[D, C]) -> bool:
        """Keep what is better; return whether it is."""
        if priced.value <= self.value:
            return False
        self.value, self.duals = priced.value, priced.duals
        return True


@dataclass
class Smoothing(Generic[D]):
    """Duals between those of the master and those that prove most.

    Attributes
    ----------
    mix
        (duals of the master, those that prove most, share of the latter) -> duals.
    share
        It is halved where few columns are priced, and quartered where none of them is new.
    scarce
        So many columns are few.
    """

    mix: Callable[[D, D, float], D]
    share: float
    scarce: int = 0

    def sharpen(self) -> bool:
        """Go nearer to the master's duals; return False if they are near enough."""
        if self.share <= LEAST_SMOOTHING:
            return False
        self.share /= 4
        return True


@dataclass(frozen=True)
class Generated(Generic[S]):
    """How column generation ended.

    Attributes
    ----------
    solved
        The last optimum of the master, if any.
    reason
        "converged": the bound is near enough, or the pricing problem has no further column;
        "rounds": there were as many as there may be; "unsolved": the master had no optimum in time.
    """

    solved: S | None
    reason: Literal["converged", "rounds", "unsolved"]


def _never() -> bool:
    return False


def _unless_priced_out(solved: object, bound: float) -> bool:
    return False


def generate(
    master: RestrictedMaster[S, D, C],
    price: Callable[[D], Priced[D, C]],
    stop: Callable[[S, float], bool] = _unless_priced_out,
    bound: DualBound[D] | None = None,
    *,
    rounds: int | None = None,
    smoothing: Smoothing[D] | None = None,
    widen: Callable[[], bool] = _never,
    keeps_last: bool = False,
) -> Generated[S]:
    """Add columns to a master until its optimum is near enough to that over all columns.

    Parameters
    ----------
    price
        Solves the pricing problem at some duals.
    stop
        (optimum of the master, greatest lower bound) -> whether they are near enough; by default
        only the pricing problem ends it.
    bound
        What is proven so far; what is proven here is put there. Smoothing needs its duals.
    rounds
        At most; None for as many as it takes.
    widen
        Lets a pricing problem that leaves columns out look at more; False if it leaves none out.
    keeps_last
        Whether the columns of the last round are added, and the master solved with them, although
        the bound is near enough: for heuristics that begin with its optimum.
    """
    last: S | None = None
    for _ in count() if rounds is None else range(rounds):
        solved = master.optimum()
        if solved is None:
            return Generated(last, "unsolved")
        last = solved
        if keeps_last and stop(solved, _value(bound)):
            return Generated(last, "converged")
        duals = master.duals(solved)
        if smoothing is not None and bound is not None:
            duals = smoothing.mix(duals, bound.duals, smoothing.share)
        priced = price(duals)
        rises = bound is not None and bound.offer(priced)
        if not keeps_last and stop(solved, _value(bound)):
            return Generated(last, "converged")
        new = master.add(priced.columns)
        if smoothing is not None and priced.count < smoothing.scarce:
            smoothing.share /= 2
        if rises and (new or smoothing is not None):
            continue
        if not new and smoothing is not None and smoothing.sharpen():
            continue
        if not widen() and not new:
            return Generated(last, "converged")
    return Generated(last, "rounds")


def _value(bound: DualBound[D] | None) -> float:
    return -np.inf if bound is None else bound.value

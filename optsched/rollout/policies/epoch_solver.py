"""Exact policies: `optsched.solve` epoch after epoch, and what may be said of its results.

That is what the verifier confirmed, and no more. What it refuses, or a plan refutes, states no
bound; the rollout goes on, for the plan keeps the rules all the same.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from optsched import solving
from optsched.registry import problem
from optsched.results.result_files import result_of
from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.decision import NOT_STATED, SolveRecord
from optsched.search import SolverDisagreement
from optsched.verification import closed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optsched.instance import Instance
    from optsched.results.result import Result

MOST_TO_VERIFY = 0.5
"""The share of a call's time that is left to verification, at most."""


class EpochSolver(Restorable):
    """Solves the instances of a rollout, each from what the one before left.

    Parameters
    ----------
    time_limit_s
        Of each call, verification included: as much is left to it as it took in the call before,
        up to `MOST_TO_VERIFY` of the limit.
    options
        Of `optsched.solve`: a gap, limits, a seed.
    """

    def __init__(self, *, time_limit_s: float | None = None, **options: Any) -> None:
        self._options, self._time_limit_s = options, time_limit_s
        self._last: tuple[Result, Instance | None, Any] | None = None  # with what files leave out

    def snapshot(self) -> dict[str, Any]:
        """Return the last result, and what its method left in memory."""
        if self._last is None:
            return {"last": None}
        result, _, left = self._last
        return {"last": (result.to_json(), left)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        if state["last"] is None:
            self._last = None
            return
        document, left = state["last"]
        self._last = (result_of(json.loads(document), "checkpoint"), None, left)

    @property
    def is_begun(self) -> bool:
        """Whether there is a last result to begin with."""
        return self._last is not None

    def forget(self) -> None:
        """Begin the next solve from nothing."""
        self._last = None

    def solve(self, instance: Instance, **options: Any) -> Result:
        """Solve an instance from the last one's result on, unless the verifier refused that."""
        start = None
        if self._last is not None:
            last, its_instance, state = self._last
            start = last.attached(its_instance, state)
        options |= self._options | {"time_limit_s": self._search_s()}
        result = solved(instance, start=start, **options)
        self._last = None if result.ending.is_refused else (result, instance, result.state)
        return result

    def _search_s(self) -> float | None:
        """Return for how long may be searched, before what was found is verified."""
        if self._time_limit_s is None or self._last is None:
            return self._time_limit_s
        before = self._last[0].verification_s
        return max(self._time_limit_s - before, (1 - MOST_TO_VERIFY) * self._time_limit_s)


def solved(instance: Instance, method: str | None = None, **options: Any) -> Result:
    """Solve an instance; if plan and bound contradict each other, return the plan alone.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C ended the solve: so does the rollout.
    """
    try:
        result = solving.solve(instance, method, **options)
    except SolverDisagreement as contradiction:
        if contradiction.result is None:
            raise
        result = contradiction.result
    if result.ending.is_interrupted:
        raise KeyboardInterrupt
    return result


def recorded(instance: Instance, result: Result) -> SolveRecord:
    """Return the record of a solve."""
    is_closed = closed(result.gap, result.gap_limit)
    is_fallback = result.objective is None or (result.ending.is_greedy and not is_closed)
    return SolveRecord(
        status=str(result.status),
        objective=NOT_STATED if result.objective is None else result.objective,
        bound=NOT_STATED if result.bound is None else result.bound,
        seconds=result.seconds,
        fallback=is_fallback,
        is_warm=result.ending.is_warm,
        verified=True if result.is_verified else False if result.ending.is_refused else None,
        verification_s=result.verification_s,
        scale=problem(instance.problem).gap_scale(instance),
    )

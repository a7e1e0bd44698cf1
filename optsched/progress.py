"""Progress: how far a solve is, for the caller who asked for it and for the log "optsched"."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.registry import problem
from optsched.results.result import figure
from optsched.verification import relative_gap

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.instance import Instance

LOGGER = logging.getLogger("optsched")
LOGGER.addHandler(logging.NullHandler())  # a library prints nothing that nobody asked for

LEAST_S, LEAST_LOGGED_S = 0.1, 1.0
"""Seconds between two calls for better figures of one phase, and between two lines at INFO."""


@dataclass(frozen=True)
class Progress:
    """How far a solve is.

    Attributes
    ----------
    elapsed_s
        Seconds since the solve began.
    phase
        What is done now, in a few words, such as ``"column generation"``.
    objective
        Of the best plan so far; None while there is none.
    bound
        That the method believes to have proven, at most the objective; None while there is none.
        The verifier has not seen it yet: only the bound of the result is proven.
    gap
        Between the two, relative as in results; None if one is missing.

    Examples
    --------
    >>> import optsched
    >>> phases = []
    >>> result = optsched.solve("pal/tiny", progress=lambda progress: phases.append(progress.phase))
    >>> len(phases) > 0
    True
    """

    elapsed_s: float
    phase: str
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None

    @property
    def text(self) -> str:
        """The phase, the best plan, the bound, which is not verified yet, and the gap."""
        parts = [self.phase]
        parts += [
            f"{name} {figure(value)}"
            for name, value in (("plan", self.objective), ("bound", self.bound))
            if value is not None
        ]
        if self.gap is not None:
            parts.append(f"gap {100 * self.gap:.2g} %")
        return ", ".join(parts)

    def __str__(self) -> str:
        return f"{self.text}, {self.elapsed_s:.1f} s"


class Reporter:
    """Tells a caller and the log of better plans, better bounds and new phases, not too often.

    Parameters
    ----------
    listener
        Called with each `Progress`; if it raises, it is not called again, and the solve goes on.
        A `KeyboardInterrupt` passes, as if Ctrl-C had come.

    Attributes
    ----------
    fault
        What the listener raised; empty if nothing.
    """

    def __init__(
        self, instance: Instance, listener: Callable[[Progress], object] | None = None
    ) -> None:
        self.fault = ""
        self._name, self._listener = instance.name, listener
        self._scale = problem(instance.problem).gap_scale(instance)
        self._begun = time.perf_counter()
        self._phase = "beginning"
        self._objective: float | None = None
        self._bound: float | None = None
        self._told = self._logged = -math.inf
        self._is_waiting = False

    def enter(self, phase: str) -> None:
        """Tell of a new phase, at once."""
        if phase != self._phase:
            self._phase = phase
            self._tell(self._elapsed_s(), is_new=True)

    def improved(self, *, objective: float | None = None, bound: float | None = None) -> None:
        """Take a plan's objective or a bound; tell of it if it is better, or soon."""
        is_better = False
        if objective is not None and (self._objective is None or objective < self._objective):
            self._objective, is_better = objective, True
        if bound is not None and bound > (-math.inf if self._bound is None else self._bound):
            self._bound, is_better = float(bound), True
        if is_better:
            self._is_waiting = True
            LOGGER.debug("%s: %s", self._name, self._progress(self._elapsed_s()))
            self.flush()

    def flush(self) -> None:
        """Tell of what was better too soon after the last call, once it is time."""
        elapsed_s = self._elapsed_s() if self._is_waiting else 0.0
        if self._is_waiting and elapsed_s - self._told >= LEAST_S:
            self._tell(elapsed_s)

    def _elapsed_s(self) -> float:
        return time.perf_counter() - self._begun

    def _progress(self, elapsed_s: float) -> Progress:
        objective, bound = self._objective, self._bound
        if bound is not None and objective is not None:
            bound = min(bound, objective)  # an empty tree proves what it was asked to
        if bound is not None and math.isinf(bound):
            bound = None
        gap = relative_gap(objective, bound, self._scale)
        return Progress(elapsed_s, self._phase, objective, bound, gap)

    def _tell(self, elapsed_s: float, *, is_new: bool = False) -> None:
        self._is_waiting, self._told = False, elapsed_s
        progress = self._progress(elapsed_s)
        if is_new or elapsed_s - self._logged >= LEAST_LOGGED_S:
            self._logged = elapsed_s
            LOGGER.info("%s: %s", self._name, progress)
        if self._listener is None:
            return
        try:
            self._listener(progress)
        except KeyboardInterrupt:
            self._listener = None
            raise
        except Exception as error:
            self._listener = None
            self.fault = f"progress was not told to the end: {type(error).__name__}: {error}"
            LOGGER.warning("%s: %s", self._name, self.fault, exc_info=True)

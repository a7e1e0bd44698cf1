"""Search: what a method is given besides the instance, and where it puts its plans."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from optsched.registry import problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor

    from optsched.instance import Document, Instance
    from optsched.progress import Reporter
    from optsched.registry import Method
    from optsched.results.result import Result


class Infeasible(Exception):
    """Raised by a method when it can prove that no plan exists."""

    def __init__(self, message: str, certificate: Document) -> None:
        self.certificate = certificate
        super().__init__(message)


class SolverDisagreement(RuntimeError):
    """A bound above an objective: one of the two is wrong, so neither is reported.

    Attributes
    ----------
    result
        The plan alone, which keeps the rules, without a bound.
    """

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message)
        self.result = result


class WarmStart(Protocol):
    """What a method leaves in memory for the next epoch, one class for each solver.

    A method makes it by `of` from what it solved, and puts it into `Search.state`; the next solve
    gets it by `Search.previous`, and takes over by `resumed` what is still there.
    """

    @classmethod
    def of(cls, *solved: Any) -> Self:
        """Return what is left of what was solved."""
        ...

    def resumed(self, *present: Any) -> Any:
        """Return what is left for the jobs and GPUs of now; None if that is too little."""
        ...


Left = TypeVar("Left", bound=WarmStart)
LEAST_GAP = 1e-10
"""Relative, below which floats do not tell a bound from an objective."""
PROGRAM_LIMIT = "limit of linear programs"
"""The one reason to stop early that is the same wherever a solve runs."""


class Search:
    """What a method is given besides the instance, and where it puts its plans.

    Parameters
    ----------
    time_limit_s
        Seconds from now after which methods stop with the best plan so far; None for no limit.
    gap
        Relative gap at which to stop.
    seed
        Seed of everything that is drawn.
    threads
        Threads for HiGHS.
    start
        The result of the previous epoch.
    executor
        Takes work that methods part into pieces.
    program_limit
        Linear programs after which methods that count them stop; None for no limit.
    plans
        Plans to begin with; None for the quick ones of the method.

    Attributes
    ----------
    state
        What a method leaves for the next epoch, in memory only.
    programs
        Linear programs that were asked for, of methods that count them.
    begun_with
        Objective of the best plan to begin with, if it was the best so far.
    is_warm
        Whether what the previous epoch left proved the plan, so that no program was solved.
    is_interrupted
        Whether Ctrl-C ended the solve.
    """

    def __init__(
        self,
        instance: Instance,
        time_limit_s: float | None = None,
        gap: float = 1e-6,
        seed: int = 0,
        threads: int = 1,
        start: Result | None = None,
        executor: Executor | None = None,
        program_limit: int | None = None,
        plans: Iterable[Document] | None = None,
    ) -> None:
        self.instance = instance
        self.gap = gap
        self.seed = seed
        self.threads = threads
        self.start = start
        self.executor = executor
        self.program_limit = program_limit
        self.plans = plans
        self.state: WarmStart | None = None
        self.programs = 0
        self.begun_with: float | None = None
        self.is_warm = False
        self.started = time.perf_counter()
        self.deadline = None if time_limit_s is None else self.started + time_limit_s
        self.plan: Document | None = None
        self.objective: float | None = None
        self.reporter: Reporter | None = None  # tells the caller how far this is; not of parts
        self._certificate: Document | None = None
        self.is_interrupted = False
        self.stopped = ""  # why the solve ended early
        self.gave_up = ""  # why a method ended with an open gap, though no clock cut it short
        self.disbelieved = ""  # what a solver states, and what is proven to the contrary
        self.failures: list[str] = []  # of runs of HiGHS that came to nothing
        self.skipped: tuple[str, ...] = ()  # greedy methods that were not tried, for want of time
        self._entry = problem(instance.problem)

    def offer(self, plan: Document) -> bool:
        """Take a plan if it breaks no rule; keep it if it is the best so far."""
        if self._entry.violations(self.instance, plan):
            return False
        objective = self._entry.objective(self.instance, plan)
        if self.objective is None or objective < self.objective:
            self.plan, self.objective = plan, objective
            if self.reporter is not None:
                self.reporter.improved(objective=objective)
        return True

    @property
    def certificate(self) -> Document | None:
        """What is proven if the method is stopped now."""
        return self._certificate

    @certificate.setter
    def certificate(self, certificate: Document | None) -> None:
        self._certificate = certificate
        self.bounded(getattr(certificate, "bound", None))

    def bounded(self, bound: float | None) -> None:
        """Tell the caller of a bound; no plan depends on it."""
        if self.reporter is not None:
            self.reporter.improved(bound=bound)

    def enter(self, phase: str) -> None:
        """Tell the caller what is done now, in a few words."""
        if self.reporter is not None:
            self.reporter.enter(phase)

    @property
    def listener_fault(self) -> str:
        """What was wrong with the caller's `progress`; empty if nothing."""
        return "" if self.reporter is None else self.reporter.fault

    def begin(self, quick: Callable[[Any], Document | None] | None = None) -> None:
        """Offer the plans to begin with: those that were given, else a quick one of the method.

        Past the deadline no further one is made.
        """
        before, plans = self.objective, self.plans
        if plans is None:
            plan = None if quick is None else quick(self.instance)
            plans = () if plan is None else (plan,)
        for plan in plans:
            self.offer(plan)
            if self.objective is not None and self.seconds_left() == 0:
                break
        if self.objective != before:
            self.begun_with = self.objective

    def previous(self, left: type[Left]) -> Left | None:
        """Return what a method of this kind left in the previous epoch; None of another one."""
        state = None if self.start is None else self.start.state
        return state if isinstance(state, left) else None

    def goal(self, share: float = 1.0, *, slack: float = 0.0) -> float:
        """Return the bound that closes the gap to the best plan so far; infinite without a plan.

        Parameters
        ----------
        share
            Of the gap that may be left open, so that rounding cannot miss it.
        slack
            What may be left open besides, in the unit of the objective.
        """
        if self.objective is None:
            return math.inf
        return self.objective - max(share * self.gap, LEAST_GAP) * abs(self.objective) - slack

    def is_closed(self, bound: float, share: float = 1.0) -> bool:
        """Tell whether a bound closes a share of the gap that was asked for."""
        if self.objective is None:
            return False
        return self.objective - bound <= share * self.gap * abs(self.objective)

    def solver_faults(self, status: str) -> str:
        """Return what a solver did wrong: a false claim; or that it failed, if a gap is left."""
        told, failures = self.disbelieved, self.failures
        if not told and failures and status != "optimal" and not self.stopped:
            times = f"{len(failures)} times, first" if len(failures) > 1 else "once,"
            told = f"HiGHS failed {times} with '{failures[0]}'"
        return told and f"{told}; what is stated was proven without it"

    def interrupt(self) -> None:
        """Remember that Ctrl-C ended the solve."""
        self.is_interrupted, self.stopped = True, "interrupted"

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, at least 0; None if there is none."""
        if self.reporter is not None:
            self.reporter.flush()
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - time.perf_counter())

    def seconds_for_program(self) -> float | None:
        """Count a linear program; return the seconds that it may take, 0 beyond the limit."""
        self.programs += 1
        return 0.0 if self._has_used_up_programs() else self.seconds_left()

    def _has_used_up_programs(self) -> bool:
        if self.program_limit is None or self.programs <= self.program_limit:
            return False
        self.stopped = self.stopped or PROGRAM_LIMIT
        return True

    def out_of_time(self) -> bool:
        """Tell whether time or programs are used up, and remember that it cut the solve short."""
        if self.reporter is not None:
            self.reporter.flush()
        if self._has_used_up_programs():
            return True
        if self.deadline is None or time.perf_counter() < self.deadline:
            return False
        self.stopped = self.stopped or "time limit"
        return True


def check_options(
    time_limit_s: float | None,
    gap: float,
    seed: int,
    threads: int,
    memory_gib: float | None,
    program_limit: int | None,
) -> None:
    """Raise a `ValueError` for an option of `solve` that is out of range."""
    if time_limit_s is not None and not time_limit_s >= 0:
        raise ValueError(f"the time limit must be at least 0 s, not {time_limit_s!r}")
    if not 0 <= gap < 1:
        raise ValueError(
            f"the gap must be in [0, 1), for example 0.01 for one per cent, not {gap!r}"
        )
    if not 0 <= seed < 2**31:
        raise ValueError(f"the seed must be in [0, 2**31), not {seed!r}")
    if not 1 <= threads <= 1024:
        raise ValueError(f"the number of threads must be in [1, 1024], not {threads!r}")
    if memory_gib is not None and not memory_gib > 0:
        raise ValueError(f"the memory must be more than 0 GiB, not {memory_gib!r}")
    if program_limit is not None and not program_limit >= 1:
        raise ValueError(f"the limit of linear programs must be at least 1, not {program_limit!r}")


def check_begin(search: Search, method: Method) -> None:
    """Raise a `ValueError` if a method cannot begin, or stop, as it is asked to."""
    start, instance = search.start, search.instance
    if start is not None and start.problem != instance.problem:
        raise ValueError(
            f"a result of '{start.problem}' is no start for {instance.name}, "
            f"an instance of '{instance.problem}'"
        )
    if method.kind != "exact" and (start is not None or search.plans is not None):
        raise ValueError(f"method '{method.name}' is greedy: it takes no start")
    if search.program_limit is not None and not method.counts_programs:
        raise ValueError(
            f"method '{method.name}' does not count linear programs: it takes no limit of them"
        )

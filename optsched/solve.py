"""solve(): look the method up, time it, recompute the objective, check plan and bound."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from optsched.check import closed, relative_gap
from optsched.memory import must_fit
from optsched.problems import problem
from optsched.result import Result, Status, versions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from optsched.instance import Document, Instance
    from optsched.problems import Method, Problem


NEW_OBJECTS = 50_000
"""After how many new objects the garbage collector looks at them during a solve."""


class SolverDisagreement(RuntimeError):
    """A bound above an objective: one of the two is wrong, so neither is reported."""


class Infeasible(Exception):
    """Raised by a method when it can prove that no plan exists."""

    def __init__(self, message: str, certificate: Document) -> None:
        self.certificate = certificate
        super().__init__(message)


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
        What was found in the epoch before.
    executor
        Takes work that methods part into pieces.

    Attributes
    ----------
    state
        What a method leaves for the next epoch, in memory only: columns, a basis.
    past
        What the epoch before left as its `state`; None if nothing, or if it was read from a file.
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
    ) -> None:
        self.instance = instance
        self.gap = gap
        self.seed = seed
        self.threads = threads
        self.start = start
        self.executor = executor
        self.state: Any = None
        self.past: Any = None if start is None else start.state
        self.started = time.perf_counter()
        self.deadline = None if time_limit_s is None else self.started + time_limit_s
        self.plan: Document | None = None
        self.objective: float | None = None
        self.certificate: Document | None = None  # what is proven if the method is stopped now
        self.stopped = ""  # why the solve ended early
        self.has_floor = True  # whether every greedy method is run if the gap is not closed
        self._room = problem(instance.problem)

    def offer(self, plan: Document) -> bool:
        """Take a plan if it breaks no rule; keep it if it is the best so far."""
        if self._room.violations(self.instance, plan):
            return False
        objective = self._room.objective(self.instance, plan)
        if self.objective is None or objective < self.objective:
            self.plan, self.objective = plan, objective
        return True

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, at least 0; None if there is none."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - time.perf_counter())

    def out_of_time(self) -> bool:
        """Tell whether the deadline has passed, and remember that it cut the solve short."""
        if self.deadline is None or time.perf_counter() < self.deadline:
            return False
        self.stopped = self.stopped or "time limit"
        return True


def solve(
    instance: Instance,
    method: str | None = None,
    *,
    time_limit_s: float | None = None,
    gap: float = 1e-6,
    seed: int = 0,
    threads: int = 1,
    start: Result | None = None,
    executor: Executor | None = None,
    memory_gib: float | None = None,
) -> Result:
    """Solve an instance.

    Parameters
    ----------
    method
        Name of a method; `optsched methods PROBLEM` lists them. The default is the exact one.
    time_limit_s
        Seconds after which the best plan so far is returned, with an honest bound.
    gap
        Relative gap at which to stop.
    seed
        Seed of everything that is drawn: the same seed gives the same bytes.
    threads
        Threads for HiGHS.
    start
        The result of the epoch before, of an instance with many of the same jobs: the exact methods
        of PAL and EaCO begin with its plan and prices, and with what it still has in memory. BOA,
        `milp`, and EaCO's listing of all groups after a result from a file, begin anew.
    executor
        Takes the pieces of a method that parts its work, such as `pods` of PAL; by default they
        are worked one after the other.
    memory_gib
        GiB that may be taken; by default what the machine, or the process' control group, has free.

    Returns
    -------
    Result
        With `status` optimal, feasible, infeasible or error. Ctrl-C gives the best plan so far.

    Raises
    ------
    UnknownNameError
        If there is no such method.
    ValueError
        If an option is out of range, or the method cannot treat such an instance.
    TooLarge
        If the method needs more memory than that, before it begins; with one that fits.
    SolverDisagreement
        If a bound contradicts a plan.
    """
    _check_options(time_limit_s, gap, seed, threads, memory_gib)
    room = problem(instance.problem)
    chosen = room.methods[0] if method is None else room.method(method)
    _check_start(start, instance, chosen)
    must_fit(instance, chosen, memory_gib)
    search = Search(instance, time_limit_s, gap, seed, threads, start, executor)
    message, infeasible = "", False
    try:
        with _spared_collections():
            certificate = _run(room, chosen, search)
    except Infeasible as proof:
        certificate, message, infeasible = proof.certificate, str(proof), True
    bound = getattr(certificate, "bound", None)
    if bound is not None and search.objective is not None and bound > search.objective:
        raise SolverDisagreement(
            f"{instance.name}: method '{chosen.name}' has a plan of {search.objective!r}, "
            f"but the bound {bound!r} lies above it"
        )
    difference = relative_gap(search.objective, bound, room.gap_scale(instance))
    status = _status(infeasible, search, difference)
    return Result(
        problem=instance.problem,
        instance=instance.name,
        method=chosen.name,
        status=status,
        message=message or _message(status, search, chosen.name),
        objective=search.objective,
        objective_unit=room.objective_unit(instance),
        bound=bound,
        gap=difference,
        gap_limit=gap,
        seconds=round(time.perf_counter() - search.started, 6),
        deterministic=not search.stopped,
        seed=seed,
        plan=search.plan,
        certificate=certificate,
        versions=versions(),
    ).of(instance, search.state)


@contextmanager
def _spared_collections() -> Iterator[None]:
    """Keep the garbage collector off what is there already: instances have many small parts.

    Visiting them again and again is half of the time of a solve with a hundred thousand phases.
    Plans have many parts, too, so that new ones are looked at less often.
    """
    if gc.get_freeze_count():
        yield  # somebody else does so
        return
    gc.collect(1)  # what the last solve left: once frozen it would never be young again
    gc.freeze()
    thresholds = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _run(room: Problem, chosen: Method, search: Search) -> Document | None:
    """Run a method and return a certificate; what an exact one leaves unproven is floored.

    The certificate is None only if Ctrl-C comes while it is made.
    """
    certificate = None
    try:
        certificate = chosen(search.instance, search)
    except KeyboardInterrupt:
        search.stopped = "interrupted"
        certificate = search.certificate
    try:
        if certificate is None:
            # A certificate may come with a plan; a greedy method is judged by its own ones.
            taker = search if chosen.kind == "exact" else Search(search.instance)
            certificate = room.certify(search.instance, taker)
        bound = getattr(certificate, "bound", None)
        gap = relative_gap(search.objective, bound, room.gap_scale(search.instance))
        wanting = chosen.kind == "exact" and not closed(gap, search.gap)
        if wanting and search.has_floor and search.stopped != "interrupted":
            for method in room.methods:
                if method.kind == "greedy":
                    method(search.instance, search)
    except KeyboardInterrupt:
        search.stopped = "interrupted"
    return certificate


def _check_options(
    time_limit_s: float | None, gap: float, seed: int, threads: int, memory_gib: float | None
) -> None:
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


def _check_start(start: Result | None, instance: Instance, method: Method) -> None:
    if start is None:
        return
    if start.problem != instance.problem:
        raise ValueError(
            f"a result of '{start.problem}' is no start for {instance.name}, "
            f"an instance of '{instance.problem}'"
        )
    if method.kind != "exact":
        raise ValueError(f"method '{method.name}' is greedy: it takes no start")


def _status(infeasible: bool, search: Search, difference: float | None) -> Status:
    if infeasible:
        return Status.INFEASIBLE
    if search.plan is None:
        return Status.ERROR
    return Status.OPTIMAL if closed(difference, search.gap) else Status.FEASIBLE


def _message(status: Status, search: Search, method: str) -> str:
    if search.stopped:
        return f"stopped early: {search.stopped}"
    if status is Status.ERROR:
        return f"method '{method}' found no plan within the limit"
    return ""

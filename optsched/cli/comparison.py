"""The greedy methods beside a result: their plans, measured by the bound that is known already.

A bound holds for every plan, so none is proven anew; what is left is what the rules themselves
take. Together they get as much CPU time as the result took, or a moment if that was less.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from optsched.cli import console
from optsched.cli.printing import output
from optsched.memory import TooLarge, must_fit
from optsched.registry import problem
from optsched.results.result import Status
from optsched.search import Infeasible, Search, SolverDisagreement
from optsched.verification import closed, relative_gap

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.cli.printing.sheets import Sheet
    from optsched.instance import Instance
    from optsched.registry import Method
    from optsched.results.result import Result

LEAST_S = 1.0
"""CPU seconds for all rules together, however quickly the result was there."""
AT_FIRST = 10.0
"""A rule counts for at most so many times what its sizes say: the first loads what it needs."""


class Compared(NamedTuple):
    """What a method came to: its objective, None without a plan, and the seconds that it took."""

    method: str
    objective: float | None
    status: Status
    seconds: float


class Comparison(NamedTuple):
    """The methods that were tried, as the problem lists them; and those left out, for want of time.

    Attributes
    ----------
    refused
        Why the next one was not begun, if it needs more memory than there is.
    """

    tried: list[Compared]
    left_out: tuple[str, ...]
    refused: str = ""


class Options(NamedTuple):
    """What `solve` was given, as far as greedy methods heed it."""

    time_limit_s: float | None = None
    seed: int = 0
    threads: int = 1
    memory_gib: float | None = None


def compared(
    instance: Instance,
    result: Result,
    options: Options,
    solved_s: float,
    say: Callable[[str], None] = lambda text: None,
) -> Comparison:
    """Run the greedy methods of a problem, the cheap ones first.

    Parameters
    ----------
    solved_s
        CPU seconds that the result took.
    say
        Is told which one is run.

    Raises
    ------
    SolverDisagreement
        If a plan is better than the result's bound.
    """
    entry = problem(instance.problem)
    listed = [m for m in entry.methods if m.kind == "greedy" and m.name != result.method]
    tried: dict[str, Compared] = {}
    left_s, unit = max(LEAST_S, solved_s), entry.greedy_s(instance)
    left_out: tuple[str, ...] = ()
    refused = ""
    for number, method in enumerate(sorted(listed, key=lambda m: m.effort), start=1):
        if unit * method.effort > left_s:
            left_out = tuple(m.name for m in listed if m.name not in tried)
            break
        say(f"comparing {method.name}, {number} of {len(listed)}")
        begun = time.process_time()
        search = Search(instance, options.time_limit_s, seed=options.seed, threads=options.threads)
        try:
            must_fit(instance, method, options.memory_gib)
            _run(method, search)
        except TooLarge as error:
            refused = str(error)
            break
        tried[method.name] = _row(method, search, result)
        took = time.process_time() - begun
        left_s -= min(took, AT_FIRST * unit * method.effort)
        unit = min(unit, took / method.effort)
        if search.is_interrupted:
            break
    return Comparison([tried[m.name] for m in listed if m.name in tried], left_out, refused)


def _run(method: Method, search: Search) -> None:
    """Let a method offer its plan; what it proves of its own is not asked for."""
    try:
        method(search.instance, search)
    except Infeasible:
        return
    except KeyboardInterrupt:
        search.interrupt()


def _row(method: Method, search: Search, result: Result) -> Compared:
    """Return what a method came to, by the bound of the result."""
    objective, seconds = search.objective, time.perf_counter() - search.started
    if objective is None:
        return Compared(method.name, None, Status.ERROR, seconds)
    if result.bound is not None and objective < result.bound:
        raise SolverDisagreement(
            f"{result.instance}: method '{method.name}' has a plan of {objective!r}, but "
            f"'{result.method}' states the bound {result.bound!r}, which lies above it"
        )
    scale = problem(result.problem).gap_scale(search.instance)
    is_closed = closed(relative_gap(objective, result.bound, scale), result.gap_limit)
    status = Status.OPTIMAL if is_closed else Status.FEASIBLE
    if result.status is Status.UNVERIFIED:
        status = Status.UNVERIFIED
    return Compared(method.name, objective, status, seconds)


def show(instance: Instance, result: Result, options: Options, solved_s: float) -> None:
    """Print how the greedy methods compare with a result, and which were left out."""
    from optsched.cli.printing import tables

    with console.spinner("comparing") as say:
        made = compared(instance, result, options, solved_s, say)
    if made.refused:
        output.say(f"compared only so far: {made.refused}", err=True)
    parts: list[Sheet | str] = ["", tables.comparison(instance, result, made.tried)]
    if made.left_out:
        names = ", ".join(made.left_out)
        parts.append(f"not compared, to take no longer than the solve: {names}")
    output.show(*parts)

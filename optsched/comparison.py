"""The greedy methods beside a result: their plans, measured by the bound that is known already.

A bound holds for every plan, so none is proven anew; what is left is what the rules themselves
take. Together they get as much CPU time as the result took, or a moment if that was less.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from optsched.instance import as_instance
from optsched.memory import TooLarge, must_fit
from optsched.registry import problem
from optsched.results.result import Status
from optsched.search import Infeasible, Search, SolverDisagreement
from optsched.solving import solve
from optsched.verification import closed, relative_gap

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes

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


class MethodComparison(NamedTuple):
    """A result, and the greedy methods beside it, as the problem lists them.

    Attributes
    ----------
    result
        What the others are compared with.
    left_out
        Methods that were not tried, for want of time.
    refused
        Why the next one was not begun, if it needs more memory than there is.

    Examples
    --------
    >>> import optsched
    >>> comparison = optsched.compare_methods("sia/hand")
    >>> comparison.result.status.value, len(comparison.tried)
    ('optimal', 5)
    """

    result: Result
    tried: list[Compared]
    left_out: tuple[str, ...]
    refused: str = ""

    def frame(self) -> pd.DataFrame:
        """Return a row for each method: its objective, and how far it is above the first one."""
        import pandas as pd

        first = self.result
        rows = [Compared(first.method, first.objective, first.status, first.seconds), *self.tried]
        frame = pd.DataFrame(rows, columns=Compared._fields)
        frame["objective"] = frame["objective"].astype(float)  # without a plan it is not a number
        frame["status"] = frame["status"].astype(str)
        best = float("nan") if not first.objective else first.objective
        frame.insert(2, "above", frame["objective"] / best - 1)
        return frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a bar for each method that has a plan, and the bound; return the axes."""
        from matplotlib import pyplot as plt

        ax = plt.subplots(layout="constrained")[1] if ax is None else ax
        frame = self.frame().dropna(subset=["objective"]).iloc[::-1]
        ax.barh(frame["method"], frame["objective"], color="#0072b2")
        if self.result.bound is not None:
            ax.axvline(self.result.bound, color="black", linestyle="--", label="bound")
            ax.legend(loc="lower right")
        ax.set_xlabel(f"objective [{self.result.objective_unit}]")
        ax.set_title(self.result.instance)
        return ax


class Options(NamedTuple):
    """What `solve` was given, as far as greedy methods heed it."""

    time_limit_s: float | None = None
    seed: int = 0
    threads: int = 1
    memory_gib: float | None = None


def compare_methods(
    instance: Instance | str | Path,
    method: str | None = None,
    *,
    time_limit_s: float | None = None,
    gap: float = 1e-6,
    seed: int = 0,
    threads: int = 1,
    memory_gib: float | None = None,
) -> MethodComparison:
    """Solve an instance, and run the greedy methods beside it, for as long as the solve took.

    Parameters
    ----------
    instance, method, time_limit_s, gap, seed, threads, memory_gib
        As of `solve`.

    Returns
    -------
    MethodComparison
        With `frame` and `plot`.

    Raises
    ------
    SolverDisagreement
        If a plan is better than the bound of the result.

    Examples
    --------
    >>> import optsched
    >>> compared = optsched.compare_methods("sia/hand").frame()
    >>> compared[["method", "objective", "status"]].head(3)
                   method  objective    status
    0               exact       1.83   optimal
    1            in-order       2.09  feasible
    2  largest-gain-first       1.93  feasible
    """
    instance, begun = as_instance(instance), time.process_time()
    options = Options(time_limit_s, seed, threads, memory_gib)
    result = solve(instance, method, gap=gap, **options._asdict())
    return compared(instance, result, options, time.process_time() - begun)


def compared(
    instance: Instance,
    result: Result,
    options: Options,
    solved_s: float,
    say: Callable[[str], None] = lambda text: None,
    *,
    is_timed: bool = True,
) -> MethodComparison:
    """Run the greedy methods of a problem, the cheap ones first.

    Parameters
    ----------
    solved_s
        CPU seconds that the result took.
    say
        Is told which one is run.
    is_timed
        Whether what rules really take counts, too, and not only what their sizes say, which is the
        same on every machine.

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
        took = time.process_time() - begun if is_timed else unit * method.effort
        left_s -= min(took, AT_FIRST * unit * method.effort)
        unit = min(unit, took / method.effort)
        if search.is_interrupted:
            break
    return MethodComparison(
        result, [tried[m.name] for m in listed if m.name in tried], left_out, refused
    )


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

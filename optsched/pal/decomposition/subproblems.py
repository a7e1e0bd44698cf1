"""The subproblem of one block (POP, SOSP 2021): what "decomposition" hands to an executor."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np

from optsched.executors.calls import is_lost, submitted
from optsched.mip.failures import note_failure, noted_failures
from optsched.mip.incremental_lp import LinearProgram
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.relaxation import all_options, relaxation
from optsched.pal.exact.solver import PlacementSolver, start
from optsched.pal.plan import PalPlan
from optsched.pal.settings import SETTINGS
from optsched.search import Infeasible, Search

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

    from highspy import HighsBasis

    from optsched.documents.arrays import Floats
    from optsched.pal.instance import PalInstance


Done = TypeVar("Done", covariant=True)


class PricingTask(NamedTuple):
    """GPUs of a block to be priced, as if it ran a share of the jobs that do not run there now.

    Attributes
    ----------
    share
        1 if all jobs are the block's own.
    penalty
        The most that leaving out a job costs.
    """

    part: PalInstance
    share: float
    penalty: float
    seed: int

    def run(self, seconds: float | None) -> Floats | None:
        """Return the duals of the GPUs; None if there is no time."""
        return None if seconds == 0 else self.duals_and_basis(seconds)[0]

    def duals_and_basis(self, seconds: float | None) -> tuple[Floats | None, HighsBasis | None]:
        """Return the duals, and the basis of the relaxation."""
        problem = arrays(self.part)
        reward = np.array([min(jobs.reward, self.penalty) for jobs in problem.types])
        options = all_options(problem)
        if not len(options.type):
            return np.zeros(len(problem.gpus)), None
        program = relaxation(problem, options, reward)
        count = len(problem.types)
        row_lower, row_upper = program.row_lower.copy(), program.row_upper.copy()
        keeping = np.bincount([keep.type for keep in problem.keeps], minlength=count)
        row_lower[:count] = keeping + (row_lower[:count] - keeping) * self.share
        row_upper[:count] = row_lower[:count]
        linear = LinearProgram(
            replace(program, row_lower=row_lower, row_upper=row_upper), self.seed
        )
        solved = linear.solve(seconds)
        if solved is None:
            return None, None
        duals = np.maximum(-solved.row_duals[count : count + len(problem.gpus)], 0.0)
        return duals, linear.basis()


class PlacedJobs(NamedTuple):
    """The GPUs of each job of a block, by number; and duals of all, if there are jobs and time."""

    places: list[tuple[int, ...]]
    duals: Floats | None


class PlacementTask(NamedTuple):
    """Jobs to be placed on the GPUs of a block, to a relative gap; and its GPUs to be priced."""

    part: PalInstance
    pricing: PricingTask
    gap: float

    def run(self, seconds: float | None) -> PlacedJobs | None:
        """Return where the jobs are placed; None if they find no place."""
        inner = Search(self.part, seconds, self.gap, self.pricing.seed)
        try:
            start(self.part, inner)
        except Infeasible:
            return None
        if inner.plan is None or inner.objective is None:
            return None
        duals = None
        if self.part.jobs and seconds != 0:
            penalty = min(
                self.pricing.penalty, SETTINGS.penalty * inner.objective / len(self.part.jobs)
            )
            pricing = self.pricing._replace(penalty=penalty)
            duals, basis = pricing.duals_and_basis(inner.seconds_left())
            solver = PlacementSolver(self.part, inner, basis=basis)
            if len(solver.options.type):  # else no job fits in here
                solver.root()
        assert isinstance(inner.plan, PalPlan)
        number = {gpu: n for n, gpu in enumerate(self.part.free_gpus)}
        places = [tuple(number[gpu] for gpu in placed.gpus) for placed in inner.plan.jobs]
        return PlacedJobs(places, duals)


class BlockTask(Protocol[Done]):
    """Something that is done within some seconds."""

    def run(self, seconds: float | None) -> Done:
        """Do it; with no seconds left, as much of it as takes none."""
        ...


def run(task: BlockTask[Done], seconds: float | None) -> tuple[Done, list[str]]:
    """Do a task, in whatever process or thread this is; return the failures of HiGHS there, too."""
    with noted_failures() as failures:
        return task.run(seconds), failures


def results(tasks: Sequence[BlockTask[Done]], search: Search) -> Iterator[Done]:
    """Yield what tasks come to, in their order; an executor works on all of them at once.

    When time runs out, or Ctrl-C comes, or nobody asks any more, those that are not begun are
    cancelled. What a dead worker leaves is done here.
    """
    if search.executor is None:
        yield from (task.run(search.seconds_left()) for task in tasks)
        return
    left = search.seconds_left()
    futures = [submitted(search.executor, run, task, left) for task in tasks]
    try:
        for task, future in zip(tasks, futures, strict=True):
            yield _result(task, future, search)
    finally:
        for future in futures:
            future.cancel()


def _result(task: BlockTask[Done], future: Future[tuple[Done, list[str]]], search: Search) -> Done:
    try:
        done, failures = future.result(search.seconds_left())
    except TimeoutError:
        return task.run(0.0)
    except Exception as error:
        if not is_lost(error):
            raise
        text = "a worker died; its part of the work is done in this process"
        warnings.warn(text, RuntimeWarning, stacklevel=4)
        return task.run(search.seconds_left())
    for failure in failures:
        note_failure(failure)
    return done

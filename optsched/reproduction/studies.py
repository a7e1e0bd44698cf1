"""Studies: rollouts that claims are read off, each cell of each seed a task of its own."""

from __future__ import annotations

import hashlib
import time
import warnings
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from optsched.executors import is_lost, submitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from optsched.reproduction.estimates import Draw, Figures
    from optsched.reproduction.verdicts import Basis

    Progress = Callable[[float], None] | None


class Level(StrEnum):
    """How much is measured."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"


class Task(NamedTuple):
    """A cell of a study with one seed.

    Attributes
    ----------
    data
        The path of the authors' file, if it takes the place of what is generated.
    """

    study: str
    cell: str
    seed: int
    level: Level
    data: str | None = None


@dataclass(frozen=True)
class Study:
    """Rollouts in one world.

    Attributes
    ----------
    world
        What is rolled out, in a sentence.
    cells
        By level what is measured with each seed: policies as a rule.
    measure
        Returns the figures of a task; what it hangs on is all in the task.
    seeds
        By level how many.
    workloads_of
        Returns how many workloads a file of the authors holds; None: the study takes no file. Each
        takes the place of a seed.
    """

    name: str
    basis: Basis
    world: str
    cells: Callable[[Level], Sequence[str]]
    measure: Callable[[Task], Figures]
    seeds: Mapping[Level, int]
    workloads_of: Callable[[str], int] | None = None

    def tasks(self, level: Level, first: int, data: str | None) -> Iterator[Task]:
        """Yield all that is to be measured."""
        seeds = range(first, first + self.seeds[level])
        if data is not None and self.workloads_of is not None:
            most = self.seeds[level] if level is Level.QUICK else None
            seeds = range(self.workloads_of(data))[:most]
        else:
            data = None
        for seed in seeds:
            for cell in self.cells(level):
                yield Task(self.name, cell, seed, level, data)


class Measured(NamedTuple):
    """What tasks found: by study and seed the figures of each cell, and CPU seconds by task."""

    draws: dict[str, dict[int, dict[str, Figures]]]
    seconds: dict[str, float]

    def of(self, study: str) -> list[Draw]:
        """Return what each seed of a study found."""
        return list(self.draws.get(study, {}).values())


def measured(task: Task) -> tuple[Figures, float]:
    """Return the figures of a task, and the CPU seconds that it took; processes call it."""
    from optsched.reproduction.registry import STUDIES

    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of policies that starve jobs: figures say
        figures = STUDIES[task.study].measure(task)
    return figures, time.process_time() - begun


def measure_all(tasks: Sequence[Task], executor: Executor | None, progress: Progress) -> Measured:
    """Run tasks, and put together what they found; the order of their ends changes nothing."""
    found = Measured({}, {})
    for number, (task, (figures, seconds)) in enumerate(_run(tasks, executor), start=1):
        found.draws.setdefault(task.study, {}).setdefault(task.seed, {})[task.cell] = figures
        name = f"{task.study}: {task.cell}"
        found.seconds[name] = found.seconds.get(name, 0.0) + seconds
        if progress is not None:
            progress(number / len(tasks))
    return found


def _run(
    tasks: Iterable[Task], executor: Executor | None
) -> Iterator[tuple[Task, tuple[Figures, float]]]:
    if executor is None:
        for task in tasks:
            yield task, measured(task)
        return
    futures = [(task, submitted(executor, measured, task)) for task in tasks]
    for task, future in futures:
        try:
            outcome = future.result()
        except Exception as error:
            if not is_lost(error):
                raise
            outcome = measured(task)  # its worker died
        yield task, outcome


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

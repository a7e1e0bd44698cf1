"""Tasks of studies, computed here, in processes, or by an executor."""

from __future__ import annotations

import hashlib
import time
import warnings
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from optsched.executors.tasks import computed
from optsched.reproduction.registry import STUDIES
from optsched.reproduction.studies import Measured, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from optsched.executors.tasks import Tell
    from optsched.executors.under_way import Listener
    from optsched.reproduction.estimates import Figures

    Progress = Callable[[float], None] | None


class Measurement(NamedTuple):
    """A task, as any process can take it."""

    task: Task

    @property
    def called(self) -> str:
        """Its cell and seed."""
        return f"{self.task.cell}, seed {self.task.seed}"

    @property
    def method(self) -> str:
        """Its study."""
        return self.task.study

    def compute(self, tell: Tell | None = None) -> tuple[Figures, float]:
        """Return its figures, and the CPU seconds that they took."""
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of starving jobs: figures say it
            figures = STUDIES[self.task.study].measure(self.task)
        return figures, time.process_time() - begun


def measure_all(
    tasks: Sequence[Task],
    executor: Executor | int | None,
    progress: Progress,
    under_way: Listener | None,
) -> Measured:
    """Compute tasks, and put together what they found; the order of their ends changes nothing."""
    outcomes: dict[int, tuple[Figures, float]] = {}
    left = dict(enumerate(map(Measurement, tasks)))
    with closing(computed(left, executor, under_way)) as ending:
        for number, outcome in ending:
            outcomes[number] = outcome
            if progress is not None:
                progress(len(outcomes) / len(tasks))
    found = Measured({}, {}, {})
    for number, task in enumerate(tasks):
        figures, seconds = outcomes[number]
        if STUDIES[task.study].is_timed:
            found.timings.setdefault(task.study, {}).setdefault(task.cell, figures)
        else:
            found.draws.setdefault(task.study, {}).setdefault(task.seed, {})[task.cell] = figures
        name = f"{task.study}: {task.cell}"
        found.seconds[name] = found.seconds.get(name, 0.0) + seconds
    return found


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

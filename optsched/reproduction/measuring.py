"""Tasks of studies, run here or by an executor."""

from __future__ import annotations

import hashlib
import time
import warnings
from typing import TYPE_CHECKING

from optsched.executors.calls import is_lost, submitted
from optsched.reproduction.registry import STUDIES
from optsched.reproduction.studies import Measured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from optsched.reproduction.estimates import Figures
    from optsched.reproduction.studies import Task

    Progress = Callable[[float], None] | None


def measured(task: Task) -> tuple[Figures, float]:
    """Return the figures of a task, and the CPU seconds that it took; processes call it."""
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

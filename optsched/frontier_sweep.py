"""Points one by one: what one depends on, how it is computed, and by which process."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import time
import warnings
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import to_json

from optsched.faults import InstanceError
from optsched.frontier_points import Point
from optsched.problems import problem
from optsched.result import versions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from optsched.result import Result

    Points = Iterator[tuple[int, Point]]

ROLLOUT = "rollout"
WORTH_S = 8.0  # work for this process alone from which on starting others saves time


class Task(NamedTuple):
    """A point to compute, as plain data that any process can take.

    Attributes
    ----------
    problem
        Name of the problem, or ``"rollout"``.
    document
        The instance or scenario with the value in it, not validated yet.
    options
        Keywords of `optsched.solve` or `optsched.rollout`.
    """

    problem: str
    document: dict[str, Any]
    value: float
    method: str
    options: dict[str, Any]

    def key(self) -> str:
        """Return the hash of all that the point depends on."""
        options = {name: _plain(value) for name, value in self.options.items()}
        parts = [self.problem, self.method, self.value, self.document, options, versions()]
        file = self.document.get("trace", {}).get("file") if self.problem == ROLLOUT else None
        if file and Path(file).is_file():
            parts.append(hashlib.sha256(Path(file).read_bytes()).hexdigest())
        return hashlib.sha256(to_json(parts)).hexdigest()


def _plain(value: Any) -> Any:
    """Return an option as JSON knows it: a trace by its hash."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    from optsched.rollout.outputs import trace_sha256

    return trace_sha256(value)


def compute(task: Task) -> Point:
    """Compute a point; a value that gives no valid instance becomes a point too."""
    return _simulated(task) if task.problem == ROLLOUT else _solved(task)


def _solved(task: Task) -> Point:
    from optsched.solve import solve

    try:
        instance = problem(task.problem).instance.from_document(task.document)
    except InstanceError as error:
        return _invalid(task, "; ".join(error.faults))
    result = solve(instance, task.method, **task.options)
    if result.message.endswith("interrupted"):
        raise KeyboardInterrupt
    return point_of(task.value, result)


def point_of(value: float, result: Result) -> Point:
    """Return the point of a result."""
    return Point(
        value=value,
        method=result.method,
        status=result.status.value,
        objective=result.objective,
        bound=result.bound,
        gap=result.gap,
        seconds=result.seconds,
        deterministic=result.deterministic,
        reason=result.message,
    )


def _simulated(task: Task) -> Point:
    from optsched.rollout.run import rollout
    from optsched.rollout.scenario import Scenario

    try:
        scenario = Scenario.from_document(task.document)
        done = rollout(scenario, task.method, **task.options)
    except InstanceError as error:
        return _invalid(task, "; ".join(error.faults))
    except ValueError as error:  # a job that asks for more GPUs than there are, say
        return _invalid(task, str(error))
    metrics = {name: float(value) for name, value in done.metrics.items() if value is not None}
    return Point(
        value=task.value,
        method=task.method,
        status="simulated",
        seconds=round(done.wall_s, 6),
        metrics=metrics,
    )


def _invalid(task: Task, reason: str) -> Point:
    return Point(value=task.value, method=task.method, status="invalid", reason=reason)


def sweep(tasks: dict[int, Task], executor: Executor | int | None) -> Points:
    """Yield points with the numbers of their tasks, as they are done.

    Parameters
    ----------
    executor
        Where to compute them; or how many processes, 1 for this one alone; None for as many as
        there are CPUs, if the work is worth starting them.
    """
    if executor is None:
        yield from _here_or_in_processes(tasks)
    elif executor == 1:
        yield from ((number, compute(task)) for number, task in tasks.items())
    elif isinstance(executor, int):
        yield from _in_processes(tasks, executor)
    else:
        yield from _on(executor, tasks, _submitted(executor, tasks))


def _here_or_in_processes(tasks: dict[int, Task]) -> Points:
    """Begin in this process; start others once it is known that the rest is worth it."""
    processes, begun = min(_cpus(), len(tasks)), time.monotonic()
    for done, number in enumerate(tasks):
        left = len(tasks) - done
        if processes > 1 and done and (time.monotonic() - begun) / done * left > WORTH_S:
            yield from _in_processes(dict(list(tasks.items())[done:]), min(processes, left))
            return
        yield number, compute(tasks[number])


def _in_processes(tasks: dict[int, Task], processes: int) -> Points:
    # Spawned, not forked: a thread may draw a bar of progress meanwhile.
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_end_at_ctrl_c) as pool:
        with _without_main():
            futures = _submitted(pool, tasks)
        yield from _on(pool, tasks, futures)


def _end_at_ctrl_c() -> None:
    """Let Ctrl-C end a worker without a word: the process that started it says what happened."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _submitted(executor: Executor, tasks: dict[int, Task]) -> dict[Any, int]:
    return {executor.submit(compute, task): number for number, task in tasks.items()}


def _on(executor: Executor, tasks: dict[int, Task], futures: dict[Any, int]) -> Points:
    """Yield all that is done, even if something fails; what a dead worker leaves is done here."""
    failure: Exception | None = None
    left = dict(tasks)
    try:
        for future in as_completed(futures):
            try:
                point = future.result()
            except (CancelledError, BrokenExecutor):
                continue
            except Exception as error:
                failure = failure or error
                _cancel(futures)
                continue
            del left[futures[future]]
            yield futures[future], point
    finally:
        _cancel(futures)
    if failure is not None:
        raise failure
    if left:
        text = f"a worker died; {len(left)} of {len(tasks)} points are computed in this process"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        yield from ((number, compute(task)) for number, task in left.items())


def _cancel(futures: dict[Any, int]) -> None:
    for future in futures:
        future.cancel()


def _cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Let processes start that do not run the caller's script again, which needs no guard then."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main

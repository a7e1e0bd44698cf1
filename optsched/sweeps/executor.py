"""Points one by one: what one depends on, how it is computed, and by which process."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, as_completed, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import to_json

from optsched.documents.faults import InstanceError
from optsched.documents.files import read_bytes
from optsched.executors import is_lost, submitted
from optsched.instance import Instance
from optsched.results.result import versions
from optsched.sweeps.parameters import ROLLOUT
from optsched.sweeps.points import Point
from optsched.sweeps.processes import Workers
from optsched.sweeps.under_way import TICK_S, Board, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from concurrent.futures import Executor, Future

    from optsched.instance import Document, NamedDocument
    from optsched.results.result import Result
    from optsched.sweeps.under_way import Listener

    Tell = Callable[[str], object]
    Points = Generator[tuple[int, Point], None, None]

WORTH_S = 8.0  # work for this process alone from which on starting others saves time


class SweepTask(NamedTuple):
    """A point to compute, as any process can take it.

    Attributes
    ----------
    problem
        Name of the problem, or ``"rollout"``.
    base, changes
        An instance or scenario, and the changes by path that put the value in.
    content
        Hash of the changed document, see `content_of`.
    options
        Keywords of `optsched.solve` or `optsched.simulate`.
    origin
        Whose the method or policy is, and the hash of its source; nothing of one of ours.
    """

    problem: str
    base: NamedDocument
    changes: dict[str, Any]
    content: str
    value: float
    method: str
    options: dict[str, Any]
    origin: str = ""

    def key(self) -> str:
        """Return the hash of all that the point depends on."""
        options = {name: _plain(value) for name, value in self.options.items()}
        parts = [self.problem, self.content, self.value, self.method, options, versions()]
        if self.origin:  # else a changed file would give an old answer
            parts.append(self.origin)
        return hashlib.sha256(to_json(parts)).hexdigest()


def content_of(document: dict[str, Any]) -> str:
    """Return the hash of an instance or scenario, the file of its trace included."""
    digest = hashlib.sha256(to_json(document))
    trace = document.get("trace")
    file = trace.get("file") if isinstance(trace, dict) else None
    if file is not None and Path(file).is_file():
        digest.update(read_bytes(Path(file)))
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Return an option as JSON knows it: a trace by its hash."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    from optsched.rollout.results.outputs import trace_sha256

    return trace_sha256(value)


def compute(task: SweepTask, tell: Tell | None = None) -> Point:
    """Compute a point; a value that gives no valid instance becomes a point too."""
    if tell is not None:
        tell("")
    return _simulated(task, tell) if task.problem == ROLLOUT else _solved(task, tell)


def _solved(task: SweepTask, tell: Tell | None) -> Point:
    from optsched.solving import solve

    try:
        instance = task.base.changed(task.changes)
    except InstanceError as error:
        return _invalid(task, "; ".join(error.faults))
    assert isinstance(instance, Instance)
    progress = None if tell is None else lambda progress: tell(progress.text)
    result = solve(instance, task.method, progress=progress, **task.options)
    if result.ending.is_interrupted:
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
        plan=_as_json(result.plan),
        certificate=_as_json(result.certificate),
    )


def _as_json(part: Document | None) -> dict[str, Any] | None:
    return None if part is None else part.model_dump(mode="json", by_alias=True, exclude_none=True)


def _simulated(task: SweepTask, tell: Tell | None) -> Point:
    from optsched.bounds.above import quick_bounds
    from optsched.rollout.run import simulate
    from optsched.rollout.scenario import Scenario

    try:
        scenario = task.base.changed(task.changes)
        assert isinstance(scenario, Scenario)
        progress = None if tell is None else _telling_share(tell)
        done = simulate(scenario, task.method, progress=progress, **task.options)
    except InstanceError as error:
        return _invalid(task, "; ".join(error.faults))
    except ValueError as error:  # a job that asks for more GPUs than there are, say
        return _invalid(task, str(error))
    measured = done.metrics | quick_bounds(done)
    metrics = {name: float(value) for name, value in measured.items() if value is not None}
    left = int(metrics["unfinished"])
    return Point(
        value=task.value,
        method=task.method,
        status="simulated",
        seconds=round(done.wall_s, 6),
        reason=f"{left:,} of {len(done.record.trace):,} jobs are unfinished" if left else "",
        metrics=metrics,
    )


def _telling_share(tell: Tell) -> Callable[[float], None]:
    def progress(share: float) -> None:
        tell(f"{share:.0%} of jobs ended")

    return progress


def _invalid(task: SweepTask, reason: str) -> Point:
    return Point(value=task.value, method=task.method, status="invalid", reason=reason)


def sweep(
    tasks: dict[int, SweepTask],
    executor: Executor | int | None,
    listener: Listener | None = None,
) -> Points:
    """Yield points with the numbers of their tasks, as they are done.

    Parameters
    ----------
    executor
        Where to compute them; or how many processes, 1 for this one alone; None for as many as
        there are CPUs, if the work is worth starting them.
    listener
        Is told which points are under way; not of those in an executor of the caller's.
    """
    watch = None if listener is None else Watch(tasks, listener)
    if executor is None:
        yield from _here_or_in_processes(tasks, watch)
    elif executor == 1:
        yield from ((number, _here(number, tasks, watch)) for number in tasks)
    elif isinstance(executor, int):
        yield from _in_processes(tasks, executor, watch)
    else:
        futures = {submitted(executor, compute, task): n for n, task in tasks.items()}
        yield from _as_done(futures, tasks)


def _here(number: int, tasks: dict[int, SweepTask], watch: Watch | None) -> Point:
    """Compute a point in this process."""
    if watch is None:
        return compute(tasks[number])
    return compute(tasks[number], lambda text: watch.tell({number: text}))


def _here_or_in_processes(tasks: dict[int, SweepTask], watch: Watch | None) -> Points:
    """Begin in this process; start others once it is known that the rest is worth it."""
    processes, begun = min(_cpus(), len(tasks)), time.monotonic()
    for done, number in enumerate(tasks):
        left = len(tasks) - done
        if processes > 1 and done and (time.monotonic() - begun) / done * left > WORTH_S:
            rest = dict(list(tasks.items())[done:])
            yield from _in_processes(rest, min(processes, left), watch)
            return
        yield number, _here(number, tasks, watch)


def _in_processes(tasks: dict[int, SweepTask], processes: int, watch: Watch | None) -> Points:
    # Tasks come with the process, and its queue holds numbers only: Python 3.11 can hang if a
    # worker dies while something large is on its way to it (gh-94777).
    board = None if watch is None else Board(tasks)
    with Workers(processes, _take, tasks, board) as pool:
        futures = {submitted(pool, _compute_number, number): number for number in tasks}
        look = None if watch is None or board is None else lambda: watch.tell(board.texts())
        yield from _as_done(futures, tasks, look)


_worker_tasks: dict[int, tuple[SweepTask, Board | None]] = {}


def _take(tasks: dict[int, SweepTask], board: Board | None) -> None:
    _worker_tasks.update((number, (task, board)) for number, task in tasks.items())


def _compute_number(number: int) -> Point:
    task, board = _worker_tasks[number]
    if board is None:
        return compute(task)
    try:
        return compute(task, lambda text: board.put(number, text))
    finally:
        board.clear(number)


def _as_done(
    futures: dict[Future[Point], int],
    tasks: dict[int, SweepTask],
    look: Callable[[], None] | None = None,
) -> Points:
    """Yield all that is done, even if something fails; what a dead worker leaves is done here."""
    failure: Exception | None = None
    left = dict(tasks)
    try:
        for future in _completed(futures, look):
            try:
                point = future.result()
            except Exception as error:
                if is_lost(error):
                    continue
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


def _completed(
    futures: Iterable[Future[Point]], look: Callable[[], None] | None
) -> Iterator[Future[Point]]:
    """Yield futures as they are done; look now and then at what the others tell."""
    if look is None:
        yield from as_completed(futures)
        return
    left = set(futures)
    while left:
        done, left = wait(left, TICK_S, FIRST_COMPLETED)
        look()
        yield from done


def _cancel(futures: Iterable[Future[Point]]) -> None:
    for future in futures:
        future.cancel()


def _cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1

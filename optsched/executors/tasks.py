"""Tasks one by one, as they are done: in this process, in others of this machine, anywhere."""

from __future__ import annotations

import os
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, as_completed, wait
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from optsched.executors.calls import is_lost, submitted
from optsched.executors.processes import Workers
from optsched.executors.under_way import TICK_S, Board, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from concurrent.futures import Executor, Future

    from optsched.executors.under_way import Listener

    Tell = Callable[[str], object]

WORTH_S = 8.0  # work for this process alone from which on starting others saves time


class Task(Protocol):
    """Something to compute, as any process can take it.

    Attributes
    ----------
    called, method
        Of what, and by what: what it is called while it is under way.
    """

    @property
    def called(self) -> str:
        """What it is called while it is under way, such as a value."""
        ...

    @property
    def method(self) -> str:
        """By which method or policy."""
        ...

    def compute(self, tell: Tell | None = None) -> Any:
        """Compute it, and tell how far it is."""
        ...


T = TypeVar("T", bound=Task)


def compute(task: Task, tell: Tell | None = None) -> Any:
    """Compute a task; an error gets a note on which one it was."""
    if tell is not None:
        tell("")
    try:
        return task.compute(tell)
    except Exception as error:
        error.add_note(f"{task.method}: {task.called}")
        raise


def computed(
    tasks: dict[int, T],
    executor: Executor | int | None,
    listener: Listener | None = None,
) -> Generator[tuple[int, Any], None, None]:
    """Yield what tasks give, with their numbers, as they are done.

    Parameters
    ----------
    executor
        Where to compute them; or how many processes, 1 for this one alone; None for as many as
        there are CPUs, if the work is worth starting them.
    listener
        Is told which tasks are under way; not of those in an executor of the caller's.

    Warns
    -----
    RuntimeWarning
        If a worker died; what it left is computed in this process.

    Raises
    ------
    ValueError
        If there are to be less than one process; and whatever a task raises, once all that had
        been begun beside it has ended. A note tells which task.
    """
    if isinstance(executor, int) and executor < 1:
        raise ValueError(f"processes: must be at least 1, found {executor}")
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


def _here(number: int, tasks: dict[int, T], watch: Watch | None) -> Any:
    """Compute a point in this process."""
    if watch is None:
        return compute(tasks[number])
    return compute(tasks[number], lambda text: watch.tell({number: text}))


def _here_or_in_processes(tasks: dict[int, T], watch: Watch | None) -> Iterator[tuple[int, Any]]:
    """Begin in this process; start others once it is known that the rest is worth it."""
    processes, begun = min(_cpus(), len(tasks)), time.monotonic()
    for done, number in enumerate(tasks):
        left = len(tasks) - done
        if processes > 1 and done and (time.monotonic() - begun) / done * left > WORTH_S:
            rest = dict(list(tasks.items())[done:])
            yield from _in_processes(rest, min(processes, left), watch)
            return
        yield number, _here(number, tasks, watch)


def _in_processes(
    tasks: dict[int, T], processes: int, watch: Watch | None
) -> Iterator[tuple[int, Any]]:
    # Tasks come with the process, and its queue holds numbers only: Python 3.11 can hang if a
    # worker dies while something large is on its way to it (gh-94777).
    board = None if watch is None else Board(tasks)
    with Workers(processes, _take, tasks, board) as pool:
        futures = {submitted(pool, _compute_number, number): number for number in tasks}
        look = None if watch is None or board is None else lambda: watch.tell(board.texts())
        yield from _as_done(futures, tasks, look)


_worker_tasks: dict[int, tuple[Task, Board | None]] = {}


def _take(tasks: dict[int, Task], board: Board | None) -> None:
    _worker_tasks.update((number, (task, board)) for number, task in tasks.items())


def _compute_number(number: int) -> Any:
    task, board = _worker_tasks[number]
    if board is None:
        return compute(task)
    try:
        return compute(task, lambda text: board.put(number, text))
    finally:
        board.clear(number)


def _as_done(
    futures: dict[Future[Any], int],
    tasks: dict[int, T],
    look: Callable[[], None] | None = None,
) -> Iterator[tuple[int, Any]]:
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
        text = f"a worker died; {len(left)} of {len(tasks)} tasks are computed in this process"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        yield from ((number, compute(task)) for number, task in left.items())


def _completed(
    futures: Iterable[Future[Any]], look: Callable[[], None] | None
) -> Iterator[Future[Any]]:
    """Yield futures as they are done; look now and then at what the others tell."""
    if look is None:
        yield from as_completed(futures)
        return
    left = set(futures)
    while left:
        done, left = wait(left, TICK_S, FIRST_COMPLETED)
        look()
        yield from done


def _cancel(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.cancel()


def _cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1

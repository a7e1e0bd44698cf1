"""Points of a sweep one by one: what one depends on, and how it is computed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import to_json

from optsched.documents.faults import InstanceError
from optsched.documents.files import read_bytes
from optsched.instance import Instance
from optsched.results.result import versions
from optsched.sweeps.parameters import ROLLOUT
from optsched.sweeps.points import Point

if TYPE_CHECKING:
    from optsched.executors.tasks import Tell
    from optsched.instance import Document, NamedDocument
    from optsched.results.result import Result


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
    label
        What its points are called, where an option of the policy is swept.
    """

    problem: str
    base: NamedDocument
    changes: dict[str, Any]
    content: str
    value: float
    method: str
    options: dict[str, Any]
    origin: str = ""
    label: str = ""

    @property
    def called(self) -> str:
        """Its value, and the seed where it has one of its own."""
        seed = self.options.get("seed") if self.problem == ROLLOUT else None
        return f"{self.value:.6g}" if seed is None else f"{self.value:.6g}, seed {seed}"

    def compute(self, tell: Tell | None = None) -> Point:
        """Compute the point; a value that gives no valid instance becomes a point too."""
        return _simulated(self, tell) if self.problem == ROLLOUT else _solved(self, tell)

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
    from optsched.rollout.rollout_tasks import telling_share
    from optsched.rollout.run import simulate
    from optsched.rollout.scenario import Scenario

    try:
        scenario = task.base.changed(task.changes)
        assert isinstance(scenario, Scenario)
        progress = None if tell is None else telling_share(tell)
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
        method=task.label or task.method,
        status="simulated",
        seconds=round(done.wall_s, 6),
        reason=f"{left:,} of {len(done.record.trace):,} jobs are unfinished" if left else "",
        metrics=metrics,
    )


def _invalid(task: SweepTask, reason: str) -> Point:
    return Point(
        value=task.value, method=task.label or task.method, status="invalid", reason=reason
    )

"""Rollouts of a comparison: in any process, and kept in a folder as they end."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import to_json

from optsched.executors.cache import Cache
from optsched.executors.tasks import computed
from optsched.rollout.checkpoints.checkpoint import key_of
from optsched.rollout.checkpoints.kept_records import plain_record, record_of
from optsched.rollout.checkpoints.plain_data import of_json
from optsched.rollout.checkpoints.plain_data import to_json as plain_json
from optsched.rollout.registry import label_of, origin
from optsched.rollout.results.starvation import tell_starvation
from optsched.rollout.run import Rollout, rolled_out

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from concurrent.futures import Executor
    from pathlib import Path

    from optsched.executors.tasks import Tell
    from optsched.executors.under_way import Listener
    from optsched.rollout.registry import PolicyLike
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


class RolloutTask(NamedTuple):
    """A rollout to run; the policy is one that a process can be handed."""

    scenario: Scenario
    policy: PolicyLike
    trace: Trace
    seed: int

    @property
    def called(self) -> str:
        """Its seed."""
        return f"seed {self.seed}"

    @property
    def method(self) -> str:
        """Its policy."""
        return label_of(self.policy)

    def compute(self, tell: Tell | None = None) -> tuple[dict[str, Any], float]:
        """Return what the rollout left, without scenario and trace, and the seconds it took."""
        progress = None if tell is None else telling_share(tell)
        done = rolled_out(self.scenario, self.policy, self.trace, self.seed, progress=progress)
        return plain_record(done.record), done.wall_s

    def rollout(self, outcome: tuple[dict[str, Any], float]) -> Rollout:
        """Return the rollout of what `compute` returned."""
        record, seconds = outcome
        return Rollout(record_of(record, self.scenario, self.trace), seconds)

    @property
    def is_named(self) -> bool:
        """Whether its policy has a name, so that any process finds it, at any time."""
        return isinstance(self.policy, str)

    def key(self) -> str:
        """Return the hash of all that the rollout depends on."""
        whose = origin(self.policy)
        told = key_of(self.scenario, self.trace, self.method, self.seed, False, whose)
        return hashlib.sha256(to_json(told)).hexdigest()


class RolloutCache(Cache[RolloutTask, Rollout]):
    """Rollouts that were run before, in a folder."""

    schema_id, noun = "optsched/kept-rollout/1", "rollout"

    def body(self, value: Rollout) -> Any:
        """Return a rollout as plain data in JSON."""
        record = json.loads(plain_json(plain_record(value.record)))
        return {"record": record, "wall_s": value.wall_s}

    def value(self, body: Any, task: RolloutTask) -> Rollout:
        """Return the rollout of a file.

        Raises
        ------
        ValueError
            If it is none of this task.
        """
        record = of_json(json.dumps(body["record"]).encode())
        return task.rollout((record, float(body["wall_s"])))


def telling_share(tell: Tell) -> Callable[[float], None]:
    """Return what tells the share of jobs that have ended, as text."""

    def progress(share: float) -> None:
        tell(f"{share:.0%} of jobs ended")

    return progress


def rollouts_of(
    tasks: list[RolloutTask],
    executor: Executor | int | None,
    folder: str | Path | None,
    progress: Callable[[float], None] | None,
    under_way: Listener | None,
) -> Generator[tuple[int, Rollout], None, None]:
    """Yield rollouts with the numbers of their tasks, as they end; each is kept at once.

    Those that the folder has are not run again. Policies that are no names, but objects or classes
    of the caller, run in this process unless an executor is named, and are not kept.
    """
    cache = RolloutCache(folder)
    keys = {n: task.key() for n, task in enumerate(tasks) if folder is not None and task.is_named}
    count = 0

    def told(number: int, rollout: Rollout) -> tuple[int, Rollout]:
        nonlocal count
        count += 1
        tell_starvation(rollout.record)
        if progress is not None:
            progress(count / len(tasks))
        return number, rollout

    left = {}
    for number, task in enumerate(tasks):
        known = cache.get(keys[number], task) if number in keys else None
        if known is None:
            left[number] = task
        else:
            yield told(number, known)
    if executor is None and not all(task.is_named for task in tasks):
        executor = 1
    for number, outcome in computed(left, executor, under_way):
        rollout = tasks[number].rollout(outcome)
        if number in keys:
            cache.put(keys[number], rollout)
        yield told(number, rollout)

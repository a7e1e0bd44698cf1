"""Rollouts of a policy under test, with all that it decided."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from optsched.plugins.errors import failure
from optsched.rollout.checkpoints.plain_data import to_json
from optsched.rollout.engine.engine import Engine
from optsched.rollout.engine.live_view import NEVER
from optsched.rollout.physics.beliefs import believed
from optsched.rollout.registry import make

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.rollout.engine.decision import Decision, Policy
    from optsched.rollout.engine.view import View
    from optsched.rollout.registry import PolicyLike
    from optsched.rollout.scenario import Scenario
    from optsched.testing.small_worlds import World
    from optsched.traces.trace import Trace

    Entry = tuple[int, Any]

SEED = 0


class Recorded:
    """A policy that notes what another one decides, and is that one else.

    Parameters
    ----------
    forecast
        The trace that it is prepared with, in place of that of the rollout.
    """

    def __init__(self, policy: Policy, forecast: Trace | None = None) -> None:
        self.policy, self.forecast = policy, forecast
        self.log: list[Entry] = []
        self.failures_us: dict[int, list[int]] = {}
        self.name = policy.name

    def decide(self, view: View) -> Decision:
        """Let the policy decide, and note what."""
        for job in view.failed:
            self.failures_us.setdefault(job, []).append(view.now_us)
        try:
            decision = self.policy.decide(view)
        except Exception as error:
            text = f"decide() at {view.now_us / 1e6:g} s"
            raise failure(text, "failed", error) from error
        self.log.append((view.now_us, _plain(decision)))
        return decision

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.policy, name)
        if name == "prepare" and self.forecast is not None:
            return lambda trace: found(self.forecast)
        if name == "retries":
            return self._noted(found)
        return found

    def _noted(self, retries: Callable[[View, int, str], bool]) -> Callable[..., bool]:
        def asked(view: View, job: int, reason: str) -> bool:
            answer = retries(view, job, reason)
            self.log.append((view.now_us, ("retries", job, bool(answer))))
            return answer

        return asked


def _plain(decision: Any) -> Any:
    """Return what a decision says, in its order; itself if it is none."""
    try:
        return (
            tuple((int(job), tuple(map(int, gpus))) for job, gpus in decision.place.items()),
            tuple(map(int, decision.stop)),
            decision.rent,
            tuple((int(job), tuple(map(int, gpus))) for job, gpus in decision.pre_run.items()),
            decision.pre_run_us,
        )
    except (AttributeError, TypeError, ValueError):
        return repr(type(decision))


@dataclass
class Run:
    """A rollout that ended: what was decided, in order, and what became of the jobs.

    `first_look_us` is when the policy first asked how far jobs are.
    """

    log: list[Entry]
    failures_us: dict[int, list[int]]
    starts_us: list[int] = field(default_factory=list)
    ends_us: list[int] = field(default_factory=list)
    snapshots: dict[int, bytes] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    steps: int = 0
    first_look_us: int = NEVER

    def digests(self) -> list[tuple[int, str]]:
        """Return a short hash for each decision."""
        return [(now, hashlib.sha256(repr(said).encode()).hexdigest()[:16])
                for now, said in self.log]  # fmt: skip


def engine_of(
    policy: PolicyLike,
    world: World,
    trace: Trace | None = None,
    scenario: Scenario | None = None,
    truth: Scenario | None = None,
) -> Engine:
    """Return an engine that has not begun, with a policy that notes what it decides.

    Parameters
    ----------
    scenario
        What the policy is told; if none, the world's.
    truth
        What happens; if none, as the policy is told.
    """
    told = scenario or world.scenario
    recorded = Recorded(make(policy, told, SEED), world.trace)
    if truth is None:
        return Engine(told, trace or world.trace, recorded, SEED)
    return Engine(truth, trace or world.trace, recorded, SEED, told=believed(told, SEED))


def run(engine: Engine, save_at: frozenset[int] = frozenset(), until_us: int | None = None) -> Run:
    """Go on to the end, or beyond a moment; saved after the steps of these numbers."""
    recorded: Any = engine.policy
    done = Run(recorded.log, recorded.failures_us)
    while engine.step():
        done.steps += 1
        if done.steps in save_at:
            done.snapshots[done.steps] = to_json(engine.saved())
            done.lengths[done.steps] = len(recorded.log)
        if until_us is not None and engine.now_us > until_us:
            break
    done.first_look_us = engine.world.view.first_look_us
    jobs = engine.record().jobs
    done.starts_us, done.ends_us = jobs.first_start_us.tolist(), jobs.end_us.tolist()
    return done


def reference(policy: PolicyLike) -> str | None:
    """Return a text by which another process finds a policy; None if there is none."""
    if isinstance(policy, str):
        return policy
    if not isinstance(policy, type) or "<" in policy.__qualname__:
        return None
    if policy.__module__ == "__main__" or policy.__module__.startswith("optsched_plugin_"):
        import inspect

        try:
            return f"{inspect.getfile(policy)}:{policy.__qualname__}"
        except (OSError, TypeError):
            return None
    return f"{policy.__module__}:{policy.__qualname__}"


def first_difference(one: list[Any], other: list[Any]) -> int | None:
    """Return the moment of the first decision in which two rollouts differ; None if in none."""
    for (now, said), (also, answered) in zip(one, other, strict=False):
        if (now, said) != (also, answered):
            return int(min(now, also))
    if len(one) != len(other):
        longer = max(one, other, key=len)
        return int(longer[min(len(one), len(other))][0])
    return None

"""What a policy sees, and what it may decide."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.rollout.view import View


@dataclass(frozen=True)
class SolveRecord:
    """One call of a solver inside a decision; `seconds` never influences anything.

    `fallback`: nothing better than the greedy plan was found, nor was that one proven. `is_warm`:
    what the last call left was enough, and no program was solved.
    """

    status: str
    objective: float
    bound: float
    seconds: float
    fallback: bool = False
    is_warm: bool = False

    @property
    def gap(self) -> float:
        """Relative gap, as in results."""
        scale = abs(self.objective)
        return abs(self.objective - self.bound) / scale if scale else 0.0


@dataclass(frozen=True)
class Decision:
    """A sparse change: what is not named stays as it is.

    Attributes
    ----------
    place
        By job the GPUs that it holds from now on, ascending: a waiting job starts, a running one is
        moved (other GPUs, as many) or resized (another number). Equal GPUs change nothing.
    stop
        Running jobs that go back to waiting.
    rent
        Nodes to have rented from now on, where the cluster is rented; None leaves it.
    solves
        Calls of solvers, for the record.
    pre_run
        By waiting job the one GPU on which it is tried for `pre_run_us` (Philly's guideline to
        catch early failures of gangs). A trial makes no progress. If the job's next attempt fails
        within `pre_run_us` of running, that failure happens in the trial; otherwise the job is back
        in the queue after `pre_run_us`, and in `View.arrived`.
    """

    place: Mapping[int, Sequence[int]] = field(default_factory=dict)
    stop: Sequence[int] = ()
    rent: int | None = None
    solves: Sequence[SolveRecord] = ()
    pre_run: Mapping[int, Sequence[int]] = field(default_factory=dict)
    pre_run_us: int = 0


NOTHING = Decision()


class InvalidDecision(ValueError):
    """A decision breaks a rule of the cluster; nothing of it was applied."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule


class Policy(Protocol):
    """What a rollout calls: after all events of a moment, at epochs and when triggered.

    A policy may keep state of its own; it must be picklable (rollouts can be interrupted and go
    on) and draw random numbers only from a generator seeded by the `seed` it was made with.
    """

    name: str

    def decide(self, view: View) -> Decision:
        """Return the change that is wanted now."""
        ...

"""What a policy sees, and what it may decide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Protocol

from optsched.verification import relative_gap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.rollout.engine.view import View


NOT_STATED = math.nan
"""An objective without a plan, or a bound that nothing proves."""


@dataclass(frozen=True)
class SolveRecord:
    """One call of a solver inside a decision; seconds never influence anything.

    Attributes
    ----------
    status
        As of `optsched.Result`. Optimal and infeasible count as unverified where `verified` is not
        True.
    objective, bound
        `NOT_STATED` if there is none.
    fallback
        Nothing better than the greedy plan was found, nor was that one proven.
    is_warm
        What the last call left was enough, and no program was solved.
    verified
        Whether the verifier confirmed what the certificate states; None if it was not asked.
    seconds, verification_s
        How long the call took, and how much of that was the verifier's.
    scale
        Least denominator of the gap, as in `optsched.verification.relative_gap`.
    """

    status: str
    objective: float
    bound: float
    seconds: float
    fallback: bool = False
    is_warm: bool = False
    verified: bool | None = None
    verification_s: float = 0.0
    scale: float = 0.0

    @property
    def gap(self) -> float:
        """Relative gap, as in results; `NOT_STATED` without a plan or a bound."""
        if not (math.isfinite(self.objective) and math.isfinite(self.bound)):
            return NOT_STATED
        gap = relative_gap(self.objective, self.bound, self.scale)
        return NOT_STATED if gap is None else gap

    @property
    def told(self) -> str:
        """The status, without words of proof that nobody verified."""
        unproven = {"optimal": "unverified", "infeasible": "error"}
        return self.status if self.verified else unproven.get(self.status, self.status)


Rent = int | Mapping[str, int] | None
"""Nodes to have rented, by type where there are several; None leaves them."""


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
        Nodes to have rented from now on, where the cluster is rented; by type where its GPUs are of
        several, and those of types that are not named stay. None leaves it.
    solves
        Calls of solvers, for the record.
    pre_run
        By waiting job the one GPU on which it is tried for `pre_run_us` (Philly's guideline to
        catch early failures of gangs). A trial makes no progress. If the job's next attempt fails
        within `pre_run_us` of running for a reason that one GPU shows (`SHOWN_BY_ONE_GPU` of
        `optsched.traces.failure_reasons`), that failure happens in the trial; otherwise the job is
        back in the queue after `pre_run_us`, and in `View.arrived`.
    accepts
        By waiting job the worst place that it accepts from now on: (nodes, level), at most so many
        nodes in one domain of such a level of `Cluster.levels`, 0 being one node. Any place until
        the policy says, and again each time the job comes back to the queue. It changes nothing but
        why a job is said to wait.
    """

    place: Mapping[int, Sequence[int]] = field(default_factory=dict)
    stop: Sequence[int] = ()
    rent: Rent = None
    solves: Sequence[SolveRecord] = ()
    pre_run: Mapping[int, Sequence[int]] = field(default_factory=dict)
    pre_run_us: int = 0
    accepts: Mapping[int, tuple[int, int]] = field(default_factory=dict)


#: The decision that changes nothing.
NOTHING = Decision()


ADVICE = {
    "overcommit": "begin with view.free_gpus(node) of each node, and take out what you give away",
    "gang-size": "a job gets view.demand(job) GPUs, or a width of its model: all at once, or none",
    "not-active": "take jobs from view.pending and view.running only",
    "not-submitted": "take jobs from view.pending and view.running only",
    "unknown-job": "take jobs from view.pending and view.running only",
    "gpu-type": "all GPUs of a job are of one type of view.cluster.types.runs_on(view.model(job))",
    "unknown-gpu": "GPUs are numbers from 0 to view.cluster.gpus - 1",
    "repeated-gpu": "every GPU of a job once",
    "node-not-ready": "view.free_gpus(node) has none of nodes that are not ready",
    "quota": "the GPUs that a queue holds may not exceed view.scenario.quotas",
    "memory": "what shares a GPU must fit view.scenario.sharing.memory_gb",
}
"""By rule that a decision may break: what a policy should do."""


def whole_numbers(gpus: Iterable[int]) -> tuple[int, ...]:
    """Return GPUs as plain whole numbers; a tuple whose sum is one has no others in it.

    Raises
    ------
    TypeError
        If one of them is none.
    """
    if type(gpus) is tuple:
        try:
            is_plain = type(sum(gpus)) is int
        except TypeError:  # which is told of one of them below
            is_plain = False
        if is_plain:
            return gpus
    return tuple(map(index, gpus))


class InvalidDecision(ValueError):
    """A decision breaks a rule of the cluster; nothing of it was applied.

    Attributes
    ----------
    time_s
        When it was made; the engine notes it.
    """

    def __init__(self, rule: str, text: str, told: str = "") -> None:
        super().__init__(rule, text, told)  # what it is made of again in another process
        self.rule, self.text, self._told = rule, text, told
        self.time_s = 0.0

    def __str__(self) -> str:
        return self._told or f"{self.rule}: {self.text}"

    def of(self, policy: str, *, is_of_others: bool) -> InvalidDecision:
        """Return the error as a user is told it: whose decision, when, and what to do."""
        parts = [f"policy '{policy}' breaks a rule at {self.time_s:,.15g} s, {self}"]
        parts += [ADVICE[self.rule]] if self.rule in ADVICE else []
        parts += [f"`optsched policies {policy} --check` tries all rules"] if is_of_others else []
        made = InvalidDecision(self.rule, self.text, "; ".join(parts))
        made.time_s = self.time_s
        return made


class Policy(Protocol):
    """What a rollout calls: after all events of a moment, at epochs and when triggered.

    It draws random numbers only from a generator seeded by the `seed` it was made with. It may
    have, besides:

    - `every_epoch`, true if it is to be called at every epoch while there are jobs, not only after
      something happened;
    - `prepare(trace)`, called once, before the first moment;
    - `retries(view, job, reason) -> bool`, asked when a job fails and would be retried;
    - `state()` and `restore(state)`, so that rollouts can be interrupted and go on. The state is
      all that a policy keeps from call to call, as plain data: numbers, text, None, bytes, lists,
      tuples, sets, dicts, deques, arrays of numbers, `random.Random` and the generators of
      `numpy.random.default_rng`. An equal state is given to a new policy, made as the first one
      was (and prepared): from there on both must decide the same. It is written as JSON, never
      pickled; what can be computed again is better left out. A policy that keeps nothing needs
      neither method. `optsched.rollout.RestorablePolicy` is a base that has both::

        class Alternating(RestorablePolicy):
            name, changing = "alternating", ("turn",)

            def __init__(self):
                self.turn = 0
    """

    name: str

    def decide(self, view: View) -> Decision:
        """Return the change that is wanted now."""
        ...

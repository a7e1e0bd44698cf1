"""Philly's scheduler, and the guidelines that its study gives: each is a switch.

Source: Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
USENIX ATC 2019: gangs in queues with quotas, locality that is relaxed after waiting, jobs that fit
overtaking others; and its guidelines on locality, interference and failures.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from pydantic import Field

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.fifo import GangOptions, Gangs
from optsched.rollout.policies.free_nodes import ALL, members
from optsched.rollout.policy_options import Count, NonNegative, Positive, takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.fifo import Gpus
    from optsched.rollout.scenario import Scenario

USER_ERRORS = frozenset(
    {
        "CPU out of memory",
        "Incorrect inputs",
        "Semantic error",
        "Core dump",
        "Invalid mem access",
        "Syntax error",
        "Permission error",
        "Import error",
        "Model diverged",
        "Output node error",
    }
)
"""Reasons of table 7 that users cause, alone or with one other: a retry meets them again."""


class PhillyOptions(GangOptions):
    """Philly's settings, and the guidelines as switches."""

    relax_s: NonNegative = Field(
        default=180.0,
        description="Seconds of waiting after which a gang accepts a worse place, again and again; "
        "0: any place at once.",
    )
    backfill: bool = Field(
        default=True, description="Whether gangs of another size may overtake one that waits."
    )
    stop_retrying: bool = Field(
        default=False, description="Whether a job that fails by a user's error is not tried again."
    )
    dedicated: bool = Field(
        default=False,
        description="Whether a gang of two GPUs or more avoids nodes where another one has GPUs; "
        "it shares a node if it has relaxed its wishes and there is no other place.",
    )
    defragment: bool = Field(
        default=False,
        description="Whether smaller jobs are moved off one node at an epoch, where a gang of at "
        "most one node waits though enough GPUs are free.",
    )
    pre_run: bool = Field(
        default=False,
        description="Whether gangs of two GPUs or more are first tried on one GPU, again after "
        "each failure until a trial is passed.",
    )
    pre_run_s: Positive = Field(default=120.0, description="Seconds of a trial.")
    pool: Count = Field(default=8, description="Most trials at once.")


class Philly(Gangs):
    """Gangs with relaxed locality, and the guidelines; users' errors are `USER_ERRORS`."""

    changing = (*Gangs.changing, "trials", "untried", "_passed", "_gangs_on", "_gang_nodes")

    def __init__(self, scenario: Scenario, options: PhillyOptions) -> None:
        super().__init__("philly", scenario, options)
        self.stop_retrying = options.stop_retrying
        self.dedicated = options.dedicated
        self.defragment = options.defragment
        self.pre_run_us = round(options.pre_run_s * US) if options.pre_run else 0
        self.pool = options.pool
        self.trials: set[int] = set()
        self.untried: deque[int] = deque()
        self._passed: set[int] = set()
        self._gangs_on: dict[int, int] = {}
        self._gang_nodes = 0

    def retries(self, view: View, job: int, reason: str) -> bool:
        """Tell whether a job is tried again after a failure."""
        return not (self.stop_retrying and reason in USER_ERRORS)

    def decide(self, view: View) -> Decision:
        """Place the waiting jobs that fit, begin trials, and make room."""
        self.update(view)
        places = self.place_waiting(view) if self.lines else {}
        if self.defragment and view.is_epoch and self.lines:
            places |= self._defragment(view, places)
        pre_run = self._begin_trials(view) if self.untried else {}
        accepts = self.relaxing.news(view.now_us, view.demand)
        if not (places or pre_run or accepts):
            return NOTHING
        return Decision(place=places, pre_run=pre_run, pre_run_us=self.pre_run_us, accepts=accepts)

    # --- trials -------------------------------------------------------------------------------

    def update(self, view: View) -> None:
        """Take note of what happened; a trial that did not fail was passed."""
        failed = set(view.failed)
        for job in view.ended:
            self.trials.discard(job)
            self._passed.discard(job)
        for job in failed:
            self.trials.discard(job)
        super().update(view)

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait in its line, or for its trial."""
        if job in self.trials:
            self.trials.remove(job)
            self._passed.add(job)
        if self.pre_run_us and view.demand(job) > 1 and job not in self._passed:
            self.untried.append(job)
        else:
            super().arrive(view, job)

    def _begin_trials(self, view: View) -> dict[int, Gpus]:
        begun: dict[int, Gpus] = {}
        while self.untried and len(self.trials) < self.pool:
            job = self.untried[0]
            gpus = self.among(ALL, 1, 0) if self.has_quota(view, job, 1) else None
            if gpus is None:
                break
            self.untried.popleft()
            self.hold(view, job, gpus)
            self.trials.add(job)
            begun[job] = gpus
        return begun

    # --- dedicated servers --------------------------------------------------------------------

    def search(self, size: int, stage: int) -> Gpus | None:
        """Return GPUs for a gang at a stage of relaxing."""
        if not self.dedicated or size == 1:
            return super().search(size, stage)
        alone = self.among(~self._gang_nodes, size, stage)
        return alone if alone is not None or not stage else super().search(size, stage)

    def hold(self, view: View, job: int, gpus: Gpus) -> None:
        """Take note of the GPUs that a job gets."""
        super().hold(view, job, gpus)
        self._count_gangs(gpus, 1)

    def release(self, view: View, job: int) -> None:
        """Take back the GPUs that a job held, if any."""
        self._count_gangs(self.held.get(job, ()), -1)
        super().release(view, job)

    def _count_gangs(self, gpus: Gpus, change: int) -> None:
        if len(gpus) < 2 or not self.dedicated:
            return
        for node in {self.nodes.node_of[gpu] for gpu in gpus}:
            count = self._gangs_on.get(node, 0) + change
            self._gangs_on[node] = count
            self._gang_nodes = (
                self._gang_nodes | 1 << node if count else self._gang_nodes & ~(1 << node)
            )

    # --- defragmentation ----------------------------------------------------------------------

    def _defragment(self, view: View, placed: dict[int, Gpus]) -> dict[int, Gpus]:
        """Return moves, and GPUs for the first gang that they make room for; hold all of them."""
        on_node = self._whole_jobs(placed)
        for job, key in sorted((line[0], key) for key, line in self.lines.items()):
            size = view.demand(job)
            if not 1 < size <= view.cluster.largest or size > self.nodes.total:
                continue
            if not self.has_quota(view, job, size):
                continue
            for node in self._most_free_first(view, size):
                moves = self._moves(on_node.get(node, []), node, size)
                if moves is not None:
                    return self._moved(view, job, key, node, moves)
        return {}

    def _whole_jobs(self, placed: dict[int, Gpus]) -> dict[int, list[int]]:
        """Return the jobs that run on one node each, by node, the smallest first."""
        on_node: dict[int, list[int]] = {}
        for job, gpus in self.held.items():
            nodes = {self.nodes.node_of[gpu] for gpu in gpus}
            if len(nodes) == 1 and job not in placed and job not in self.trials:
                on_node.setdefault(nodes.pop(), []).append(job)
        for jobs in on_node.values():
            jobs.sort(key=lambda job: (len(self.held[job]), job))
        return on_node

    def _most_free_first(self, view: View, size: int) -> Iterator[int]:
        for group in reversed(self.nodes.nodes_with):
            for node in members(group & self._usable):
                if view.cluster.size[node] >= size:
                    yield node

    def _moves(self, jobs: list[int], node: int, size: int) -> dict[int, int] | None:
        """Return nodes for the smallest jobs of a node, until a gang fits there; None if not."""
        missing = size - self.nodes.count[node]
        others = self._usable & ~(1 << node)
        available = list(self.nodes.count)
        moves: dict[int, int] = {}
        for job in jobs:
            need = len(self.held[job])
            if missing <= 0 or need >= size:
                break
            fitting = [n for n in self._nodes_with(need, others) if available[n] >= need]
            if not fitting:
                return None
            target = min(fitting, key=lambda n: available[n])
            available[target] -= need
            moves[job] = target
            missing -= need
        return moves if missing <= 0 else None

    def _nodes_with(self, size: int, nodes: int) -> Iterator[int]:
        for group in self.nodes.nodes_with[size:]:
            yield from members(group & nodes)

    def _moved(
        self, view: View, job: int, key: tuple[str, int], node: int, moves: dict[int, int]
    ) -> dict[int, Gpus]:
        places: dict[int, Gpus] = {}
        for small, target in moves.items():
            gpus = self.nodes.gpus(target, len(self.held[small]))
            self.release(view, small)
            self.hold(view, small, gpus)
            places[small] = gpus
        places[job] = self.nodes.gpus(node, view.demand(job))
        self.hold(view, job, places[job])
        self.lines[key].popleft()
        self.relaxing.leave(job)
        if not self.lines[key]:
            del self.lines[key]
        return places


@takes(PhillyOptions)
def philly(scenario: Scenario, seed: int, options: PhillyOptions) -> Philly:
    """Philly's scheduler with some of its guidelines."""
    return Philly(scenario, options)

"""Philly's scheduler, and the guidelines that its study gives: each is a switch.

Source: Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
USENIX ATC 2019: gangs in queues with quotas, locality that is relaxed after waiting, jobs that fit
overtaking others; and its guidelines on locality, interference and failures.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.fifo import GangOptions, Gangs
from optsched.rollout.policies.free_nodes import ALL
from optsched.rollout.policies.gangs.lending import LendingGangs
from optsched.rollout.policies.gangs.philly_options import USER_ERRORS, PhillyOptions
from optsched.rollout.policy_options import takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.fifo import Gpus
    from optsched.rollout.scenario import Scenario


class Philly(LendingGangs):
    """Gangs with relaxed locality, lent quotas and the guidelines; users' errors: `USER_ERRORS`.

    A gang is tried when it arrives and then every three minutes, at the first call from then on.
    Where the scenario lends quotas, queues borrow what others leave idle. If an owner is tried in
    vain within its quota while the cluster is nearly full, borrowers are preempted for it.
    """

    changing = (
        *Gangs.changing,
        "tries",
        "trials",
        "untried",
        "_passed",
        "_gangs_on",
        "_gang_nodes",
    )

    def __init__(self, scenario: Scenario, options: PhillyOptions) -> None:
        relax_s = (options.retry_s or scenario.epoch_s) * options.relax_after
        wishes = GangOptions(relax_s=relax_s, backfill=options.backfill)
        super().__init__("philly", scenario, wishes, options.spread)
        self.every_epoch = True
        self.retry_us = round(options.retry_s * US)
        self.reclaim_at = options.reclaim_at
        self.tries: dict[int, int] = {}
        self.vain: list[int] = []  # gangs tried in vain by the present call
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
            places |= self.defragment_once(view, places)
        pre_run = self._begin_trials(view) if self.untried else {}
        stop = self.reclaim(view, places) if self.lends and self.lines else []
        accepts = self.relaxing.news(view.now_us, view.demand)
        self.vain.clear()
        if not (places or pre_run or accepts):
            return NOTHING
        return Decision(
            place=places, stop=stop, pre_run=pre_run, pre_run_us=self.pre_run_us, accepts=accepts
        )

    # --- tries, and quotas that are lent ------------------------------------------------------

    def is_due(self, view: View, job: int) -> bool:
        """Tell whether a waiting job is tried now: at its arrival, and every so often after it."""
        if not self.retry_us:
            return True
        tries = view.waited_us(job) // self.retry_us
        if self.tries.get(job, -1) >= tries:
            return False
        self.tries[job] = tries
        return True

    def find(self, view: View, job: int, size: int) -> Gpus | None:
        """Return GPUs for a job, or None; take note of a try in vain."""
        gpus = super().find(view, job, size)
        if gpus is None and self.lends:
            self.vain.append(job)
        return gpus

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
        self.tries.pop(job, None)
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


@takes(PhillyOptions)
def philly(scenario: Scenario, seed: int, options: PhillyOptions) -> Philly:
    """Philly's scheduler with some of its guidelines."""
    return Philly(scenario, options)

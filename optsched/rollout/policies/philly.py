"""Philly's scheduler, and the guidelines that its study gives: each is a switch.

Source: Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
USENIX ATC 2019: gangs in queues with quotas, locality that is relaxed after waiting, jobs that fit
overtaking others; and its guidelines on locality, interference and failures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.fifo import GangOptions, Gangs
from optsched.rollout.policies.free_nodes import MOST_STAGES
from optsched.rollout.policies.gangs.lending import LendingGangs
from optsched.rollout.policies.gangs.philly_options import PhillyOptions
from optsched.rollout.policies.guidelines.dedicated_servers import DedicatedServers
from optsched.rollout.policies.guidelines.defragmentation import Defragmentation
from optsched.rollout.policies.guidelines.retry_estimates import RetryEstimates
from optsched.rollout.policies.guidelines.trials import Trials
from optsched.rollout.policies.relaxing import RelaxingByTries
from optsched.rollout.policy_options import takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.fifo import Gpus, Key
    from optsched.rollout.scenario import Scenario


class Philly(LendingGangs):
    """Gangs with relaxed locality, lent quotas and the guidelines.

    A gang is tried when it arrives and then every three minutes, at the first call from then on.
    Where the scenario lends quotas, queues borrow what others leave idle. If an owner is tried in
    vain within its quota while the cluster is nearly full, borrowers are preempted for it.
    """

    changing = (
        *Gangs.changing,
        "tries",
        "trials",
        "estimates",
        "own",
        "defragmentation",
        "every_epoch",
    )

    def __init__(self, scenario: Scenario, options: PhillyOptions) -> None:
        try_s = options.retry_s or scenario.epoch_s
        wishes = GangOptions(relax_s=try_s * options.relax_after, backfill=options.backfill)
        is_spread = options.spread and not options.dedicated
        doubles = options.relax_by == "twice"
        super().__init__("philly", scenario, wishes, is_spread, doubles)
        self.by_tries: RelaxingByTries | None = None
        if options.relax_for == "place" and options.relax_after:
            self.relaxing = self.by_tries = RelaxingByTries(self.nodes, options.relax_after)
        self.retry_us = round(options.retry_s * US)
        self.reclaim_at, self.reclaim_after = options.reclaim_at, options.reclaim_after
        self.tries: dict[int, int] = {}
        self.due: dict[Key, int] = {}
        self.vain: list[int] = []  # gangs tried in vain by the present call
        self.stop_retrying = options.stop_retrying
        self.estimates = RetryEstimates(options.learn_by, options.stop_below, options.prior)
        self.dedicated = options.dedicated
        self.own = DedicatedServers(self)
        if options.dedicated:
            self.relaxing.before_us = round(try_s * US) * options.share_after
        self.defragment = options.defragment
        self.defragmentation = Defragmentation(self)
        pre_run_us = round(options.pre_run_s * US) if options.pre_run else 0
        self.trials = Trials(self, pre_run_us, options.pool)

    def decide(self, view: View) -> Decision:
        """Place the waiting jobs that fit, begin trials, and make room."""
        self.update(view)
        places = self.trials.start(view) if self.trials.kept else {}
        if self.lines:
            places |= self.place_waiting(view)
        if self.defragment and self.vain:
            self.defragmentation.make_room(view, self.vain, places)
        stop = self.reclaim(view, places) if self.lends and self.lines else []
        if self.trials.length_us:
            self.trials.keep(places)
        pre_run = self.trials.begin(view) if self.trials.untried else {}
        accepts = self.relaxing.news(view.now_us, view.demand)
        self.vain.clear()
        self.every_epoch = bool(self.lines or self.trials.untried or self.trials.kept)
        if not (places or pre_run or accepts):
            return NOTHING
        pre_run_us = self.trials.length_us
        return Decision(
            place=places, stop=stop, pre_run=pre_run, pre_run_us=pre_run_us, accepts=accepts
        )

    # --- tries, and quotas that are lent ------------------------------------------------------

    def is_due(self, view: View, job: int) -> bool:
        """Tell whether a waiting job is tried now: at its arrival, and every so often after it."""
        if not self.retry_us:
            self.tries[job] = self.tries.get(job, -1) + 1
            return True
        tries = self.waited_us(view, job) // self.retry_us
        if self.tries.get(job, -1) >= tries:
            return False
        self.tries[job] = tries
        return True

    def waited_us(self, view: View, job: int) -> int:
        """Return for how long a job has waited, its trial included."""
        if self.trials.length_us:
            return self.trials.waited_us(view, job)
        return view.waited_us(job)

    def find(self, view: View, job: int, size: int) -> Gpus | None:
        """Return GPUs for a job, or None; take note of a try in vain."""
        if self.dedicated and size > 1:
            gpus = self._on_own_servers(view, job, size)
        else:
            gpus = super().find(view, job, size)
        if gpus is None and (self.lends or self.defragment):
            self.vain.append(job)
        if gpus is None and self.by_tries is not None and size <= self.nodes.total:
            self.by_tries.count(job, size, view.now_us)
        return gpus

    def stage(self, view: View, job: int) -> int:
        """Return how often a job has relaxed its wishes so far."""
        if self.by_tries is not None:
            return min(MOST_STAGES, self.by_tries.stage_of(job, view.demand(job)))
        return super().stage(view, job)

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait in its line; if it is back from its trial, it is there already."""
        if self.trials.length_us and self.trials.returns(view, job):
            return
        self.line_up(view, job)
        if self.trials.length_us:
            self.trials.enter(view, job)

    def line_up(self, view: View, job: int) -> None:
        """Let a job wait in its line, and try it at once."""
        self.tries.pop(job, None)
        super().arrive(view, job)

    def count_quota(self, view: View, job: int, change: int) -> None:
        """Take note that a job's queue holds more GPUs, or fewer if negative."""
        if self.quotas and view.queue(job) in self._used:
            self._used[view.queue(job)] += change

    # --- what has happened --------------------------------------------------------------------

    def update(self, view: View) -> None:
        """Take note of what happened since the last call."""
        if self.estimates.open:
            for job in view.ended:
                self.estimates.close(view, job)
        if self.trials.length_us:
            for job in view.failed:
                self.trials.fail(view, job)
            self.trials.passed.difference_update(view.ended)
        super().update(view)

    def retries(self, view: View, job: int, reason: str) -> bool:
        """Tell whether a job is tried again after a failure."""
        return not self.stop_retrying or self.estimates.retries(view, job, reason)

    # --- dedicated servers --------------------------------------------------------------------

    def shares(self, view: View, job: int) -> bool:
        """Tell whether a gang shares servers with others: always, or since it has waited enough."""
        return not self.dedicated or self.waited_us(view, job) >= self.relaxing.before_us

    def _on_own_servers(self, view: View, job: int, size: int) -> Gpus | None:
        gpus = self.own.find(size)
        if gpus is None and self.shares(view, job):
            return super().find(view, job, size)
        return gpus

    def hold(self, view: View, job: int, gpus: Gpus) -> None:
        """Take note of the GPUs that a job gets."""
        super().hold(view, job, gpus)
        if self.dedicated:
            self.own.count(gpus, 1)

    def release(self, view: View, job: int) -> None:
        """Take back the GPUs that a job held, if any."""
        if self.dedicated:
            self.own.count(self.held.get(job, ()), -1)
        super().release(view, job)


@takes(PhillyOptions)
def philly(scenario: Scenario, seed: int, options: PhillyOptions) -> Philly:
    """Philly's scheduler with some of its guidelines."""
    return Philly(scenario, options)

"""BOA within an allowance: at every epoch the widths of the jobs at hand, as an integer program.

Source: docs/math/boa.md, Budgeted drain, after EPEW'24, arXiv 2406.15560.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from optsched.rollout.policies.budgets import arrival_rates as known
from optsched.rollout.policies.budgets.boa import Boa, BoaOptions
from optsched.rollout.policies.budgets.boa_program import Ahead, Block, Program
from optsched.rollout.policy_options import Count, Gap, Share, takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.decision import Decision, SolveRecord
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario


class BudgetedOptions(BoaOptions):
    """The allowance, and the integer program; its node limit keeps plans off the clock."""

    eta: Share = Field(
        default=0.0, description="How much of what was saved or overspent is given back at once."
    )
    sizes: Literal["mean", "estimates"] = Field(
        default="mean",
        description="What a job has left in a phase: the mean work of the phase, or as the oracle "
        "tells.",
    )
    most_nodes: Count = Field(default=1000, description="Of the integer program.")
    program_gap: Gap = Field(default=1e-3, description="Of the integer program.")


class Budgeted(Boa):
    """At every epoch: least total time of the jobs at hand within an allowance of GPU-seconds.

    The allowance is what the stationary widths would use, plus `eta` x (budget x time - what was
    spent), but at least what the widths of least GPU time use. So with eta = 0, without rescaling
    and while the cluster has room, the stationary widths are optimal. Jobs that arrive between
    epochs start with their stationary width, and each job keeps to the plan of the last epoch.
    Consecutive phases with the same stationary width get one width here, too.
    """

    every_epoch = True
    changing = (*Boa.changing, "planned", "runs_s", "_is_stale", "_held_us", "_last")

    def __init__(self, name: str, scenario: Scenario, seed: int, options: BudgetedOptions) -> None:
        super().__init__(name, scenario, seed, options)
        self.eta, self.sizes = options.eta, options.sizes
        self.most_nodes, self.program_gap = options.most_nodes, options.program_gap
        self.planned: dict[int, list[tuple[int, int]]] = {}
        self.runs_s: dict[int, float] = {}
        self._is_stale = False
        self._held_us = 0
        self._last = (0, 0)

    def width(self, view: View, job: int) -> int:
        """Return the planned width of a job in its phase, or else its stationary one."""
        phase = view.phase(job)
        for until, width in self.planned.get(job, ()):
            if phase < until:
                return width
        return super().width(view, job)

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait, and take note of how long it should run."""
        if self.sizes == "estimates" and job not in self.runs_s:
            self.runs_s[job] = float(view.remaining_us([job])[0]) / US
        super().arrive(view, job)

    def forget(self, job: int) -> None:
        """Let a job want nothing."""
        super().forget(job)
        self.planned.pop(job, None)

    def decide(self, view: View) -> Decision:
        """Plan again if anything happened since the last plan; then as in `Elastic`."""
        self._count(view.now_us)
        news = (view.arrived, view.ended, view.failed, view.advanced)
        self._is_stale = self._is_stale or any(news)
        decision = super().decide(view)
        self._last = (view.now_us, sum(map(len, self.held.of.values())))
        return decision

    def _count(self, now_us: int) -> None:
        before, gpus = self._last
        self._held_us += (now_us - before) * gpus

    def refresh(self, view: View) -> list[SolveRecord]:
        """Plan again at an epoch if anything happened since the last plan."""
        if view.is_epoch and self._is_stale and self.wanted:
            self._is_stale = False
            self._plan(view)
            for job in self.waiting:
                self.want(job, self.width(view, job))
            self.stale.update(self.held.of)
        return super().refresh(view)

    # --- the plan -----------------------------------------------------------------------------

    def _plan(self, view: View) -> None:
        started = time.perf_counter()
        ahead = self._admitted([self._ahead(view, job) for job in sorted(self.wanted)])
        allowance = self._allowance(view, ahead)
        program = Program(ahead, allowance, self.scenario.gpus)
        widths, record = program.solve(self.most_nodes, self.time_limit_s, self.program_gap)
        self.planned = {
            a.job: [(block.until, width) for block, width in zip(a.blocks, chosen, strict=True)]
            for a, chosen in zip(ahead, widths, strict=True)
        }
        self._solves.append(record(time.perf_counter() - started))

    def _admitted(self, ahead: list[Ahead]) -> list[Ahead]:
        """Return the jobs from the first on for which the cluster has room at their least."""
        free = self.scenario.gpus
        admitted = []
        for a in ahead:
            free -= a.blocks[0].gpus[0]
            if free < 0:
                break
            admitted.append(a)
        return admitted

    def _ahead(self, view: View, job: int) -> Ahead:
        model, demand = view.model(job), view.demand(job)
        stationary = self.sequence(view, job)
        now = min(view.phase(job), len(stationary) - 1)
        left = self._left(view, job, now)
        blocks, first = [], now
        for width, run in itertools.groupby(stationary[now:]):
            until = first + len(list(run))
            blocks.append(
                self._block((model, demand), left[first - now : until - now], until, width)
            )
            first = until
        rescale_s = known.rescale_s(self.scenario, model)
        return Ahead(job, tuple(blocks), self.held.width(job), rescale_s)

    def _block(self, key: tuple[str, int], work: Sequence[float], until: int, floor: int) -> Block:
        """Return a block of the last phases before `until`, with so much work in each."""
        curves = self.curves.of(*key)[until - len(work) : until]
        widths = set(curves[0].gpus).intersection(*(curve.gpus for curve in curves[1:]))
        gpus = tuple(sorted(widths))
        pairs = list(zip(work, curves, strict=True))
        seconds = tuple(sum(w / curve.speed_at(k) for w, curve in pairs) for k in gpus)
        return Block(until, gpus, seconds, floor)

    def _left(self, view: View, job: int, now: int) -> list[float]:
        """Return the expected work that a job has left in each phase from the present one on."""
        model, demand = view.model(job), view.demand(job)
        rates = self.curves.works(model, demand)
        run_s = self.runs_s.get(job, float("nan"))
        if math.isnan(run_s):
            stream = self.streams.get(self._sums.key(model, demand))
            works = [60.0 * rate for rate in rates] if stream is None else stream.works_s
            return [max(work, known.LEAST_WORK_S) for work in works[now:]]
        left_s = float(view.remaining_us([job])[0]) / US
        speeds = [curve.speed_at(demand) or 1.0 for curve in self.curves.of(model, demand)]
        behind = sum(
            run_s * r / s for r, s in zip(rates[now + 1 :], speeds[now + 1 :], strict=True)
        )
        works = [run_s * rate for rate in rates[now:]]
        works[0] = min(works[0], (left_s - behind) * speeds[now])
        return [max(work, known.LEAST_WORK_S) for work in works]

    def _allowance(self, view: View, ahead: Sequence[Ahead]) -> float:
        stationary = sum(a.totals(a.floor)[1] for a in ahead)
        least = sum(a.totals(a.least)[1] for a in ahead)
        spent_us = self._held_us if self.scenario.rented is None else view.spent_gpu_us
        saved = self.budget * view.now_us / US - spent_us / US
        return max(least, stationary + self.eta * saved)


@takes(BudgetedOptions, draws=True)
def boa_budgeted(scenario: Scenario, seed: int, options: BudgetedOptions) -> Budgeted:
    """Plan the widths of the jobs at hand within an allowance."""
    return Budgeted("boa-budgeted", scenario, seed, options)

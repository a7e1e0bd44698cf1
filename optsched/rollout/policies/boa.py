"""BOA's policies: the stationary widths of the room, and widths by simpler rules.

Jobs hold what `Elastic` gives them; these say which width a job wants in each phase.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from optsched.rollout.decision import SolveRecord
from optsched.rollout.policies import streams as known
from optsched.rollout.policies.elastic import Elastic
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.policies.curves import Curve
    from optsched.rollout.scenario import Scenario
    from optsched.rollout.view import View
    from optsched.traces.trace import Trace


class Boa(Elastic):
    """The stationary widths that the room BOA gives for the stream of jobs (B0 of its theory).

    Parameters
    ----------
    budget
        Time-average GPUs; if not given, the scenario's, or all GPUs of the cluster.
    method
        A method of the room: its exact one by default; greedy ones are stationary rules, too.
    rates
        Where arrival rates and mean works are from: "trace", all jobs of the rollout's trace, as
        the authors take them; "history", the jobs that came so far; else a BOA instance.
    widths
        "integer", or "mixed": one class may have two widths, drawn job by job.
    every_s
        history: seconds between two solutions; new widths hold from a job's next phase on.

    If not even the least use of GPUs keeps within the budget, jobs get the widths of least use.
    """

    def __init__(
        self,
        name: str,
        scenario: Scenario,
        seed: int,
        *,
        budget: float | None = None,
        method: str | None = None,
        rates: str = "trace",
        widths: str = "integer",
        every_s: float = 300.0,
        gap: float = 1e-3,
        time_limit_s: float = 60.0,
        **options: Any,
    ) -> None:
        super().__init__(name, scenario, **options)
        self.seed = seed
        self.budget = _budget(name, scenario, budget)
        self.method, self.widths = method, _one_of("widths", widths, ("integer", "mixed"))
        self.gap, self.time_limit_s = gap, time_limit_s
        self.every_us = round(every_s * US)
        self.next_us = 0
        self.table: known.Widths = {}
        self.streams: dict[known.Key, known.Stream] = {}
        self.history = known.History(self.curves) if rates == "history" else None
        self._rates = rates
        self._sums = known.Sums(self.curves)
        self._solves: list[SolveRecord] = []

    def prepare(self, trace: Trace) -> None:
        """Take the streams from the trace of the rollout, where they are to be from there."""
        if self._rates == "trace":
            self.streams = known.of_trace(trace, self.curves)

    def width(self, view: View, job: int) -> int:
        """Return the width that the table has for a job in its phase."""
        phases = self.sequence(view, job)
        return phases[min(view.phase(job), len(phases) - 1)]

    def sequence(self, view: View, job: int) -> tuple[int, ...]:
        """Return the widths of a job in all of its phases."""
        key = self._sums.key(view.model(job), view.demand(job))
        rows = self.table.get(key) or known.least_use([key], self.curves)[key]
        if len(rows) == 1:
            return rows[0][1]
        draw = random.Random(f"{self.seed}/{job}").random()
        return next((widths for upto, widths in rows if draw < upto), rows[-1][1])

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait, and learn from it."""
        if self.history is not None and not view.failures(job):
            self.history.arrive(view, job)
        if view.now_us >= self.next_us:
            self._renew(view.now_us)
        super().arrive(view, job)

    def refresh(self, view: View) -> list[SolveRecord]:
        """Return the calls of the room since the last decision."""
        solves, self._solves = self._solves, []
        return solves

    def _renew(self, now_us: int) -> None:
        """Look at the streams again, and solve for the widths."""
        if self.history is not None:
            self.streams = self.history.streams(now_us)
            self.next_us = now_us + self.every_us
        else:
            self.next_us = 1 << 62
            if self._rates != "trace":
                self.streams = known.of_instance(self._rates, self.curves)
        self._solve()

    def _solve(self) -> None:
        from optsched.boa.plan import BoaPlan
        from optsched.solve import solve

        started = time.perf_counter()
        instance = known.instance_of(
            self.scenario, self.curves, self.streams, self.budget, self.widths
        )
        result = solve(instance, self.method, gap=self.gap, time_limit_s=self.time_limit_s)
        plan = result.plan
        self.table = known.least_use(self.streams, self.curves)
        if isinstance(plan, BoaPlan):
            self.table = known.widths_of(self.streams, plan)
        value = float("nan")
        self._solves.append(
            SolveRecord(
                status=str(result.status.value),
                objective=value if result.objective is None else result.objective,
                bound=value if result.bound is None else result.bound,
                seconds=time.perf_counter() - started,
                fallback=plan is None,
            )
        )


class FixedWidth(Elastic):
    """Every job k GPUs for life, or the largest width below k that its phase has, or its least.

    Source: the fixed-width policy "dummy" of the BOA authors' code, Li-Zhouzi/artifacts.
    """

    def __init__(self, name: str, scenario: Scenario, *, k: int = 4, **options: Any) -> None:
        super().__init__(name, scenario, **options)
        if not (isinstance(k, int) and k >= 1):
            raise ValueError(f"k must be a whole number of at least 1, not {k!r}")
        self.k = k

    def width(self, view: View, job: int) -> int:
        """Return the width of a job."""
        curve = self.curve(view, job)
        return curve.at_most(self.k) or curve.least


class Efficiency(Elastic):
    """The largest width at which a GPU does at least theta of what it does at the best width."""

    def __init__(
        self, name: str, scenario: Scenario, *, theta: float = 0.5, **options: Any
    ) -> None:
        super().__init__(name, scenario, **options)
        if not 0 < theta <= 1:
            raise ValueError(f"theta must be above 0 and at most 1, not {theta!r}")
        self.theta = theta
        self._found: dict[Curve, int] = {}

    def width(self, view: View, job: int) -> int:
        """Return the width of a job."""
        curve = self.curve(view, job)
        if curve not in self._found:
            shares = [speed / gpus for gpus, speed in zip(curve.gpus, curve.speed, strict=True)]
            least = self.theta * max(shares) * (1 - 1e-12)
            pairs = zip(curve.gpus, shares, strict=True)
            self._found[curve] = max(gpus for gpus, share in pairs if share >= least)
        return self._found[curve]


def _budget(name: str, scenario: Scenario, budget: float | None) -> float:
    told = scenario.budget_gpus if budget is None else budget
    found = float(scenario.gpus) if told is None else told
    if not found > 0:
        raise ValueError(f"policy '{name}': budget must be above 0, not {budget!r}")
    return found


def _one_of(option: str, value: str, names: tuple[str, ...]) -> str:
    from optsched.problems import UnknownNameError

    if value not in names:
        raise UnknownNameError(option, value, list(names))
    return value


# --- policies ---------------------------------------------------------------------------------


def boa(scenario: Scenario, seed: int, **options: Any) -> Boa:
    """Give jobs the stationary widths of least mean JCT within the budget."""
    return Boa("boa", scenario, seed, **options)


def one_width_per_class(scenario: Scenario, seed: int, **options: Any) -> Boa:
    """Give all jobs of a class one width for life, the best within the budget."""
    return Boa("one-width-per-class", scenario, seed, **{"method": "class-width", **options})


def fixed_width(scenario: Scenario, seed: int, **options: Any) -> FixedWidth:
    """Give every job k GPUs."""
    return FixedWidth("fixed-width", scenario, **options)


def efficiency_threshold(scenario: Scenario, seed: int, **options: Any) -> Efficiency:
    """Give every job the largest width of a given efficiency."""
    return Efficiency("efficiency-threshold", scenario, **options)

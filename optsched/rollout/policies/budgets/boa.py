"""BOA's policies: the stationary widths of the problem BOA, and widths by simpler rules.

Jobs hold what `Elastic` gives them; these say which width a job wants in each phase.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from optsched.rollout.policies.budgets import arrival_rates as known
from optsched.rollout.policies.budgets.streams import StreamOptions, StreamWidths
from optsched.rollout.policies.budgets.typed_budgets import BoaOnTypes, FixedOnTypes
from optsched.rollout.policies.elastic import Elastic, ElasticOptions
from optsched.rollout.policies.epoch_solver import recorded, solved
from optsched.rollout.policy_options import Count, Gap, Positive, takes
from optsched.rollout.prices.fleets import check_type

if TYPE_CHECKING:
    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario


def _is_method(name: str) -> str:
    from optsched.registry import problem

    names = [method.name for method in problem("boa").methods]
    if name not in names:
        raise ValueError(", ".join(names))
    return name


class BoaOptions(StreamOptions):
    """What BOA's widths are solved for, and how."""

    method: Annotated[str, AfterValidator(_is_method)] | None = Field(
        default=None,
        description="A method of BOA: the exact one if null; greedy ones are stationary rules too.",
    )
    widths: Literal["integer", "mixed"] = Field(
        default="integer", description="mixed: a class may have two widths, drawn job by job."
    )
    gap: Gap = Field(default=1e-3, description="Relative gap at which a search ends.")
    time_limit_s: Positive = Field(default=60.0, description="Of each search.")


class Boa(StreamWidths):
    """The stationary widths that the problem BOA gives for the stream of jobs (B0 of its theory).

    If not even the least use of GPUs keeps within the budget, jobs get the widths of least use.
    """

    changing: ClassVar[tuple[str, ...]] = (*StreamWidths.changing, "table", "_solves")

    def __init__(self, name: str, scenario: Scenario, seed: int, options: BoaOptions) -> None:
        super().__init__(name, scenario, seed, options)
        self.method, self.widths = options.method, options.widths
        self.gap, self.time_limit_s = options.gap, options.time_limit_s
        self.table: known.Widths = {}
        self._solves: list[SolveRecord] = []

    def width(self, view: View, job: int) -> int:
        """Return the width that the table has for a job in its phase."""
        phases = self.sequence(view, job)
        return phases[min(view.phase(job), len(phases) - 1)]

    def sequence(self, view: View, job: int) -> tuple[int, ...]:
        """Return the widths of a job in all of its phases."""
        key = self.sums.key(view.model(job), view.demand(job))
        rows = self.table.get(key) or known.least_use([key], self.curves)[key]
        if len(rows) == 1:
            return rows[0][1]
        draw = random.Random(f"{self.seed}/{job}").random()
        return next((widths for upto, widths in rows if draw < upto), rows[-1][1])

    def refresh(self, view: View) -> list[SolveRecord]:
        """Return the solves since the last decision."""
        solves, self._solves = self._solves, []
        return solves

    def renewed(self) -> None:
        """Solve for the widths."""
        from optsched.boa.plan import BoaPlan

        instance = known.instance_of(
            self.scenario, self.curves, self.streams, self.budget, self.widths
        )
        result = solved(instance, self.method, gap=self.gap, time_limit_s=self.time_limit_s)
        plan = result.plan
        self.table = known.least_use(self.streams, self.curves)
        if isinstance(plan, BoaPlan):
            self.table = known.widths_of(self.streams, plan)
        self._solves.append(recorded(instance, result))


class FixedOptions(ElasticOptions):
    """One width."""

    k: Count = Field(default=4, description="GPUs of every job.")
    gpu_type: str | None = Field(
        default=None,
        description="Where GPUs are of several types: theirs; null: that of reference.",
    )


class FixedWidth(Elastic):
    """Every job k GPUs for life, or the largest width below k that its phase has, or its least.

    Source: the fixed-width policy "dummy" of the BOA authors' code, Li-Zhouzi/artifacts.
    """

    def __init__(self, name: str, scenario: Scenario, options: FixedOptions) -> None:
        super().__init__(name, scenario, options)
        self.k = options.k

    def width(self, view: View, job: int) -> int:
        """Return the width of a job."""
        curve = self.curve(view, job)
        return curve.at_most(self.k) or curve.least


class EfficiencyOptions(ElasticOptions):
    """One efficiency."""

    theta: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.5, description="Least speedup per GPU, as a share of the best width's."
    )


class Efficiency(Elastic):
    """The largest width at which a GPU does at least theta of what it does at the best width."""

    def __init__(self, name: str, scenario: Scenario, options: EfficiencyOptions) -> None:
        super().__init__(name, scenario, options)
        self.theta = options.theta
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


# --- policies ---------------------------------------------------------------------------------


class OneWidthOptions(BoaOptions):
    """As `BoaOptions`, by another method."""

    method: Annotated[str, AfterValidator(_is_method)] | None = Field(
        default="class-width", description="A method of BOA; null: the exact one."
    )


@takes(BoaOptions, draws=True)
def boa(scenario: Scenario, seed: int, options: BoaOptions) -> StreamWidths:
    """Give jobs the stationary widths of least mean JCT within the budget."""
    return _boa("boa", scenario, seed, options)


@takes(OneWidthOptions, draws=True)
def one_width_per_class(scenario: Scenario, seed: int, options: OneWidthOptions) -> StreamWidths:
    """Give all jobs of a class one width for life, the best within the budget."""
    return _boa("one-width-per-class", scenario, seed, options)


def _boa(name: str, scenario: Scenario, seed: int, options: BoaOptions) -> StreamWidths:
    several = len(set(scenario.node_types)) > 1
    return (BoaOnTypes if several else Boa)(name, scenario, seed, options)


@takes(FixedOptions)
def fixed_width(scenario: Scenario, seed: int, options: FixedOptions) -> Elastic:
    """Give every job k GPUs."""
    check_type(options.gpu_type, scenario)
    made = FixedOnTypes if len(set(scenario.node_types)) > 1 else FixedWidth
    return made("fixed-width", scenario, options)


@takes(EfficiencyOptions)
def efficiency_threshold(scenario: Scenario, seed: int, options: EfficiencyOptions) -> Efficiency:
    """Give every job the largest width of a given efficiency."""
    return Efficiency("efficiency-threshold", scenario, options)

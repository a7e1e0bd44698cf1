"""Mean JCT of policies that keep a budget, above the bound at the bill that they really ran up."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules, UnknownPhysics
from optsched.bounds.verify.bounds import verify_bounds
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.bounds.certificate import Bounds
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

SCENARIO = "boa-cloud"
BUDGETS = (22, 24, 27, 30, 36, 45)
BUDGETED = ("boa", "boa-budgeted")


class Spent(NamedTuple):
    """A rollout beside bounds of the same class of schedules.

    Attributes
    ----------
    rented, held
        GPUs that it paid for, and that its jobs held, on average over time.
    billed_above, held_above
        Its mean JCT over the bound at the GPU-hours that it paid for, and that its jobs held,
        less 1.
    """

    rented: float
    held: float
    billed_above: float
    held_above: float

    @property
    def is_below(self) -> bool:
        """Whether it is below a bound, which refutes the bound."""
        return min(self.billed_above, self.held_above) < 0


def spent(policy: str, budget: float, seeds: Sequence[int]) -> list[Spent]:
    """Return what a policy reaches at a budget, by seed."""
    scenario = read_scenario(SCENARIO).changed({"budget_gpus": budget})
    return [_spent(scenario, policy, seed) for seed in seeds]


def _spent(scenario: Scenario, policy: str, seed: int) -> Spent:
    trace = jobs_of(scenario, seed=seed)
    figures = simulate(scenario, policy, trace=trace, seed=seed).metrics
    assert not figures["unfinished"], "jobs did not end"
    billed, held = figures["rented_gpu_hours"] or 0.0, figures["gpu_hours"] or 0.0
    bounds = proven(scenario, trace, moves=bool(figures["migrations"]), bill=billed)
    assert bounds.trade is not None, "no job is elastic"
    mean = figures["rented_gpus_mean"] or 0.0
    at_held = max(bounds.trade.jct_mean_s_at(held, bounds.jobs), bounds.jct_mean_s or 0.0)
    jct_s = figures["jct_mean_s"] or 0.0
    above = [jct_s / bound_s - 1 for bound_s in (bounds.jct_mean_s_at_bill(billed), at_held)]
    return Spent(mean, mean * held / billed, *above)


def proven(scenario: Scenario, trace: Trace, *, moves: bool, bill: float) -> Bounds:
    """Return bounds of schedules with or without moves, after their verifier has proven them.

    Those at the bill count starts of nodes where these are known: with moves changes of width may
    cost nothing, and jobs of days with overheads of seconds would take too long to prove.
    """
    try:
        bounds = bound_of(scenario, trace, Schedules(moves=moves), bills=(bill,))
    except UnknownPhysics:
        bounds = bound_of(scenario, trace, Schedules(moves=moves))
    verify_bounds(scenario, trace, bounds)
    return bounds


def bills_markdown(found: dict[tuple[str, float], list[Spent]], head: str) -> str:
    """Return a table with a row for each budget and policy: medians over seeds, and the worst."""
    lines = [head, "", "| budget | policy | GPUs rented | GPUs held | above, at the bill | worst |"]
    lines[-1] += " above, at the GPU-hours held | worst |"
    lines.append("|---:|---|" + "---:|" * 6)
    for (policy, budget), rows in found.items():
        cells = [f"{budget:g}", f"`{policy}`"]
        cells += [f"{median(row.rented for row in rows):.1f}"]
        cells += [f"{median(row.held for row in rows):.1f}"]
        for name in ("billed_above", "held_above"):
            values = [getattr(row, name) for row in rows]
            cells += [f"{100 * median(values):,.1f} %", f"{100 * max(values):,.1f} %"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)

"""Energy of policies that share GPUs, above the bound of the same jobs."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import verify_bounds
from optsched.eaco.interference import GroupRates
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.rollout.scenario import Scenario

SCENARIOS = ("eaco-28", "eaco-64")
SAVING = ("fifo-exclusive", "fifo-packed", "best-delta-energy", "eaco-greedy", "longest-first")


class Drawn(NamedTuple):
    """The energy of a rollout over its bounds, less 1.

    Attributes
    ----------
    above
        Of all schedules.
    above_borne
        Of those in which no job is slower beside others than its users bear; None if it is none.
    """

    above: float
    above_borne: float | None

    @property
    def is_below(self) -> bool:
        """Whether it is below a bound, which refutes the bound."""
        return min(self.above, self.above_borne or 0.0) < 0


def drawn(name: str, policies: Sequence[str], seeds: Sequence[int]) -> dict[str, list[Drawn]]:
    """Return what policies draw, by seed, beside bounds that the verifier has proven."""
    scenario = read_scenario(name)
    found: dict[str, list[Drawn]] = {policy: [] for policy in policies}
    for seed in seeds:
        trace = jobs_of(scenario, seed=seed)
        least = []
        for within in (False, True):
            bounds = bound_of(scenario, trace, Schedules(within_slowdowns=within))
            verify_bounds(scenario, trace, bounds)
            assert bounds.energy_kwh is not None, "the scenario has no watts"
            least.append(bounds.energy_kwh)
        for policy in policies:
            engine = Engine(scenario, trace, make(policy, scenario, seed), seed)
            is_borne = run_within(engine, scenario)
            figures = metrics(engine.record())
            assert not figures["unfinished"], "jobs did not end"
            above = [(figures["energy_kwh"] or 0.0) / bound - 1 for bound in least]
            found[policy].append(Drawn(above[0], above[1] if is_borne else None))
    return found


def run_within(engine: Engine, scenario: Scenario) -> bool:
    """Run to the end; return whether no job was ever slower beside others than its users bear."""
    models = scenario.models
    utilisation = {name: model.utilisation for name, model in models.items()}
    rates = GroupRates(scenario.sharing.interference, "", utilisation)
    known: dict[tuple[int, ...], bool] = {}
    while engine.step():
        for jobs in {*engine.world.state.jobs_on}:
            if len(jobs) > 1 and jobs not in known:
                names = [engine.trace.model[job] for job in jobs]
                known[jobs] = all(
                    rate * (models[name].max_slowdown or 1e9) >= 1
                    for name, rate in rates.of(names).by_type.items()
                )
    return all(known.values())


def energies_markdown(found: Mapping[str, Mapping[str, list[Drawn]]], head: str) -> str:
    """Return a table with a row for each scenario and policy: medians over seeds, and the worst."""
    lines = [head, "", "| scenario | policy | above, all schedules | worst |"]
    lines[-1] += " above, as users bear | worst |"
    lines.append("|---|---|" + "---:|" * 4)
    for name, rows in found.items():
        for policy, told in rows.items():
            cells = [name, f"`{policy}`"]
            cells += _cells([row.above for row in told])
            cells += _cells([row.above_borne for row in told])
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(values: Sequence[float | None]) -> list[str]:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return ["slower than that", ""]
    return [f"{100 * median(known):,.1f} %", f"{100 * max(known):,.1f} %"]

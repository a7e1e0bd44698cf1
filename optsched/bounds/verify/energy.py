"""What prices of work prove of energy: no group of jobs on a GPU is charged more than it draws."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from optsched.bounds.verify.groups import Groups, job_types
from optsched.bounds.verify.least_work import WorkReader, least_end_us, least_rates
from optsched.bounds.verify.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.bounds.certificate import EnergyCertificate
    from optsched.bounds.schedules import Schedules
    from optsched.bounds.verify.groups import Group
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

US: Final = 1_000_000
J_PER_KWH: Final = 3_600_000
INWARD: Final = 1 - Fraction(1, 10**9)
"""Less than what the engine's sum of watts x time keeps, of up to four million floats."""


class _Idle(NamedTuple):
    """Watts of the whole cluster without jobs, and what a GPU with jobs adds to its group's."""

    cluster_w: Fraction
    busy_w: Fraction


def proven_energy_kwh(
    scenario: Scenario, trace: Trace, schedules: Schedules, certificate: EnergyCertificate
) -> Fraction:
    """Return the energy, PUE included, below which no schedule of a class is.

    Energy >= sum over jobs of price of its type x GPU time at its rate + idle watts x the last
    end, if in each group the prices x rates add up to no more than what a GPU draws beyond its
    idle watts. Prices that add up to more are scaled down: any prices prove something.

    Raises
    ------
    Refused
        If the certificate has not one price for each type, or there are too many groups.
    """
    if scenario.power is None:
        raise Refused("energy: the scenario has no watts")
    types = job_types(scenario, trace)
    if len(certificate.prices_uw) != len(types.names):
        found = f"{len(certificate.prices_uw):,} prices for {len(types.names):,} types of jobs"
        raise Refused(f"energy: one price for each type, found {found}")
    groups = list(Groups(scenario, types, within_slowdowns=schedules.within_slowdowns).all())
    idle = _idle(scenario, min((group.gpu_w for group in groups), default=Fraction(0)))
    prices = _within(groups, idle.busy_w, [Fraction(p, US) for p in certificate.prices_uw])
    works = WorkReader(scenario, trace, schedules, least_rates(groups, types)).all()
    work_uj = sum(
        (prices[t] * w.gpu_us for t, w in zip(types.of_job, works, strict=True)), Fraction(0)
    )
    total_uj = work_uj + idle.cluster_w * least_end_us(scenario, trace, works)
    return total_uj * INWARD * Fraction(scenario.power.pue) / (US * J_PER_KWH)


def _within(groups: Sequence[Group], busy_w: Fraction, prices: list[Fraction]) -> list[Fraction]:
    """Return prices scaled down until no group is charged more than it draws."""
    scale = Fraction(1)
    for group in groups:
        charged = sum(
            (prices[t] * r for t, r in zip(group.types, group.rates, strict=True)), Fraction(0)
        )
        if charged > 0:
            scale = min(scale, (group.gpu_w + busy_w) / charged)
    return [price * scale for price in prices]


def _idle(scenario: Scenario, least_gpu_w: Fraction) -> _Idle:
    """Return idle watts: of nodes that are always there; others may draw none at all.

    Where idle nodes stay on, a GPU with jobs draws its group's watts instead of those without one;
    where they sleep, or are given back, it has its share of a node whose GPUs are all in use.
    """
    power = scenario.power
    if power is None:
        return _Idle(Fraction(0), Fraction(0))
    sizes = _sizes(scenario)
    away = {node for down in scenario.downtime for node in down.nodes}
    base, sleep = Fraction(power.node.base_w), Fraction(power.node.sleep_w)
    if scenario.rented is not None:
        return _Idle(Fraction(0), base / max(sizes))
    there = [size for node, size in enumerate(sizes) if node not in away]
    if power.idle_nodes == "sleep":
        return _Idle(sleep * len(there), max(Fraction(0), base - sleep) / max(sizes))
    bare = min(Fraction(power.gpu.bare_w), least_gpu_w)
    return _Idle(base * len(there) + bare * sum(there), -bare)


def _sizes(scenario: Scenario) -> list[int]:
    topology = scenario.topology
    if topology is None:
        return scenario.node_sizes
    nodes: dict[tuple[int, ...], int] = {}
    for path in topology.ancestors.tolist():
        nodes[tuple(path)] = nodes.get(tuple(path), 0) + 1
    return list(nodes.values())

"""What a policy is called where a scenario lacks what it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.registry import ENTRIES

if TYPE_CHECKING:
    from optsched.rollout.declarations.entry import Entry
    from optsched.rollout.policy_needs import Need
    from optsched.rollout.scenario import Scenario


KNOWS_ALL = "knows the future"
"""What tables say of a policy that is told of jobs to come."""


def unmet(scenario: Scenario, policy: str) -> str:
    """Return what a scenario lacks for a policy, named with its options, in a sentence; or ""."""
    found = _lacking(scenario, policy)
    if found is None:
        return ""
    known, need = found
    return (
        f"policy '{policy}' needs {need.text}; '{scenario.name}' has none: {need.otherwise}, "
        f"and {known.name} {known.becomes}"
    )


def known_as(scenario: Scenario, policy: str) -> str:
    """Return what a policy is called in tables: its name, and in brackets what it has become.

    Examples
    --------
    >>> import optsched
    >>> known_as(optsched.read_scenario("philly-small"), "boa")
    'boa (no speedup curves here: is fifo-requested)'
    >>> known_as(optsched.read_scenario("boa-cloud"), "sia")
    'sia (no batch sizes here: speedups are taken as they are given)'
    """
    became = became_of(scenario, policy)
    known = _entry(policy)
    if knows_all(policy):
        became = "; ".join(filter(None, (became, KNOWS_ALL)))
    if not became:
        rather = None if known is None else known.prefers
        if rather is not None and not rather.is_met(scenario):
            became = f"no {rather.name} here: {rather.otherwise}"
    return f"{policy} ({became})" if became else policy


def knows_all(policy: str) -> bool:
    """Tell whether a policy, named with its options, is told of jobs that are still to come."""
    known = _entry(policy)
    return known is not None and known.clairvoyant == "all"


def became_of(scenario: Scenario, policy: str) -> str:
    """Return what a policy has become for want of what it needs; nothing if it is itself."""
    found = _lacking(scenario, policy)
    return "" if found is None else f"no {found[1].name} here: {found[0].becomes}"


def _entry(policy: str) -> Entry | None:
    name = policy.partition(":")[0]
    return next((entry for entry in ENTRIES if entry.name == name), None)


def _lacking(scenario: Scenario, policy: str) -> tuple[Entry, Need] | None:
    """Return a policy of ours and the first of its needs that a scenario does not meet."""
    known = _entry(policy)
    needs = () if known is None else known.needs
    need = next((need for need in needs if not need.is_met(scenario)), None)
    return None if known is None or need is None else (known, need)

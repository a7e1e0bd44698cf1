"""No code from data: what a scenario may not name, though a command line or a caller may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.plugins.errors import PluginError
from optsched.plugins.plugin import code_fault
from optsched.rollout import registry
from optsched.traces.importers.registry import FORMATS, installed_formats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.rollout.scenario import Scenario

BY_HAND, OF_TRACE = "--policy (policies=)", "--trace and --input-format (trace=)"


def code_faults(scenario: Scenario) -> list[str]:
    """Return what a scenario names that is code of others: ``module:Name`` or ``file.py:Name``."""
    ours = [known.name for known in registry.ENTRIES]
    policies = (code_fault(name, ours, BY_HAND) for name in scenario.policies)
    faults = [f"policies.{n}: {fault}" for n, fault in enumerate(policies) if fault]
    fault = code_fault(scenario.trace.format or "", FORMATS, OF_TRACE)
    return [*faults, f"trace.format: {fault}"] if fault else faults


def refuse_policies(scenario: Scenario) -> None:
    """Raise if the policies that a scenario names are not all ours, before they are run.

    Those of installed plug-ins are refused, too: whoever wrote a file does not choose what runs.

    Raises
    ------
    PluginError
        If one of them is code of others.
    """
    for fault in (*code_faults(scenario), *_of_plugins(scenario)):
        if fault.startswith("policies"):
            raise PluginError(f"scenario '{scenario.name}': {fault}")


def _of_plugins(scenario: Scenario) -> Iterator[str]:
    ours = {known.name for known in registry.ENTRIES}
    named = [text.partition(":")[0] for text in scenario.policies]
    if ours.issuperset(named):
        return
    others = {known.name for known in registry.installed_entries()} - ours
    for n, name in enumerate(named):
        if name in others:
            yield f"policies.{n}: '{name}' is of a plug-in; if you trust the file, give {BY_HAND}"


def format_fault(scenario: Scenario) -> str:
    """Return what is wrong with the format that a scenario names: it may be one of ours only."""
    named = scenario.trace.format
    if named is None or named in FORMATS:
        return ""
    fault = code_fault(named, FORMATS, OF_TRACE)
    if not fault and any(named == other.name for other in installed_formats()):
        fault = f"'{named}' is of a plug-in; if you trust the file, give {OF_TRACE}"
    return fault and f"trace.format: {fault}"

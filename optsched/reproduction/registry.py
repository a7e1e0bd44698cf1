"""All systems whose figures are measured, with their studies and claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.registry import UnknownNameError
from optsched.reproduction.claims import boa, eaco, pal, philly

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from optsched.reproduction.claim import Claim
    from optsched.reproduction.studies import Study

SYSTEMS: dict[str, ModuleType] = {"boa": boa, "pal": pal, "eaco": eaco, "philly": philly}
"""Modules with `TITLE`, `STUDIES`, `claims()` and `drawings()`, by the name of the system."""
STUDIES: dict[str, Study] = {
    study.name: study for module in SYSTEMS.values() for study in module.STUDIES
}
ALL = "all"


def chosen_systems(names: Iterable[str]) -> list[str]:
    """Return the systems that are asked for, each once, in the order of `SYSTEMS`.

    Raises
    ------
    UnknownNameError
        If there is no such system.
    """
    wanted = set(names)
    for name in sorted(wanted):
        if name not in (ALL, *SYSTEMS):
            raise UnknownNameError("system named", name, [*SYSTEMS, ALL])
    return [name for name in SYSTEMS if name in wanted or ALL in wanted or not wanted]


def claims_of(systems: Iterable[str]) -> list[Claim]:
    """Return the claims of systems."""
    return [claim for name in systems for claim in SYSTEMS[name].claims()]

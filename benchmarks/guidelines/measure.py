"""Rollouts of one trace under Philly's scheduler, with and without its study's guidelines."""

from __future__ import annotations

import json
from pathlib import Path

from optsched.reproduction.philly.guidelines import BASE, GUIDELINES, jobs_at, rolled

KEPT = Path(__file__).parents[1] / "results" / "guidelines"


def measured(load: float, jobs: int, seed: int, again: bool = False) -> dict[str, dict[str, float]]:
    """Return the figures of all policies on one trace, from a file if they were measured before."""
    path = KEPT / f"{load:g}-{jobs}-{seed}.json"
    if path.exists() and not again:
        kept: dict[str, dict[str, float]] = json.loads(path.read_text())
        if list(kept) == [BASE, *GUIDELINES]:
            return kept
    trace = jobs_at(load, jobs, seed)
    found = {
        name: rolled(policy, trace, seed) for name, policy in ({BASE: BASE} | GUIDELINES).items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))
    return found

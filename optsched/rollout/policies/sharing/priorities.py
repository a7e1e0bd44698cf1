"""Who comes first where queues have priorities: the order of EaCO's algorithm 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.rollout.engine.view import View


def by_priority(view: View, jobs: Iterable[int]) -> list[int]:
    """Return jobs by falling priority of their queues, equal ones in the order of submission."""
    priorities = view.scenario.priorities
    if not priorities:
        return sorted(jobs)
    return sorted(jobs, key=lambda job: (-priorities.get(view.queue(job), 0.0), job))

"""What the methods of Sia's round take of the memory at their peak, from an instance's sizes.

Bytes are fitted to processes that solve rounds of 1,000 to 400,000 configurations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optsched.sia.instance import SiaInstance


def memory(instance: SiaInstance, method: str) -> int | None:
    """Return the bytes that a method takes at its peak; of a greedy one, with its bound."""
    configurations = sum(len(job.configurations) for job in instance.jobs)
    options = configurations + len(instance.jobs)
    solving = 45_000_000 + (900 + 24 * len(instance.gpus)) * options
    return solving + 80_000_000 + 3_500 * options if method == "milp" else solving

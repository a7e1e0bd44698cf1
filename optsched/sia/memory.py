"""What the methods of Sia's round take of the memory at their peak, from an instance's sizes.

Bytes are fitted, from above, to solves of rounds with 760 to 152,000 options and three types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optsched.sia.instance import SiaInstance


def memory(instance: SiaInstance, method: str) -> int | None:
    """Return the bytes that a method takes at its peak; of a greedy one, with its bound."""
    options = sum(1 + len(job.configurations) for job in instance.jobs)
    solving = 25_000_000 + (200 + 40 * len(instance.gpus)) * options
    return solving + 75_000_000 + 2_000 * options if method == "milp" else solving  # with Pyomo

"""What the methods of BOA take of the memory at their peak, from an instance's sizes.

Bytes are fitted to `benchmarks/memory.py`. A *node* is one (phase, width).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.boa.instance import Table

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance, Phase

MIB = 2**20
LOADED = 5 * MIB  # numpy's parts
PYOMO = 92 * MIB  # Pyomo and HiGHS as they are loaded
PRICED = 125  # of a node: times, GPUs and what the verifier adds up
LABELLED = 290  # of a node, on average; how many labels stay open cannot be told beforehand
BUILT, SWITCHED = 1650, 3500  # of a node: its width, and the rescaling to it, in Pyomo and HiGHS


def memory(instance: BoaInstance, method: str) -> int | None:
    """Return the bytes that a method takes at its peak; of a greedy one, its bound does."""
    if instance.widths == "continuous":
        return None
    nodes = sum(_widths(phase) for c in instance.classes for phase in c.phases)
    if method == "milp":
        switches = sum(
            _widths(phase) for c in instance.classes if c.rescale_s for phase in c.phases
        )
        return PYOMO + BUILT * nodes + SWITCHED * switches
    each = PRICED
    if method == "exact" and instance.widths == "integer":
        each += LABELLED
    return LOADED + each * nodes


def _widths(phase: Phase) -> int:
    speedup = phase.speedup
    return len(speedup.gpus) if isinstance(speedup, Table) else speedup.max_gpus

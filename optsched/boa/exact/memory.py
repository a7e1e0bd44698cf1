"""What the methods of BOA take of the memory at their peak, from an instance's sizes.

Bytes are fitted to `benchmarks/memory.py`. A *node* is one (phase, option).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.boa.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance


def memory(instance: BoaInstance, method: str) -> int | None:
    """Return the bytes that a method takes at its peak; of a greedy one, its bound does."""
    if instance.widths == "continuous":
        return None
    nodes = sum(map(instance.option_count, instance.classes))
    if method == "milp":
        charged = filter(instance.charges_starts, instance.classes)
        switches = sum(map(instance.option_count, charged))
        built = SETTINGS.width_bytes * nodes + SETTINGS.rescaling_bytes * switches
        return SETTINGS.pyomo_bytes + built
    each = SETTINGS.priced_bytes
    if method == "exact" and instance.widths == "integer":
        each += SETTINGS.labelled_bytes
    return SETTINGS.loaded_bytes + each * nodes

"""What the verifier works out once for instances that share their tables, as epochs do.

All of it follows from types, interference, GPUs and a few numbers, none of it from jobs; and the
verifier alone adds to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.kept_by_tables import KeptByTables
from optsched.eaco.verify.limits import LIMITS

if TYPE_CHECKING:
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.kept_by_tables import Kept

_KEPT = KeptByTables(LIMITS.kept_tables, LIMITS.kept_figures)


def kept_figures(instance: EacoInstance) -> Kept:
    """Return the figures that are kept for the tables of an instance."""
    return _KEPT.of(instance.interference, instance.types, instance.gpu_types)

"""What a cluster draws while groups of jobs run, in exact rational numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from optsched.eaco.verify.group_energy import loads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.eaco.plan import Group
    from optsched.eaco.verify.group_energy import ExactFigures


def above_sleep_w(
    figures: ExactFigures, groups: Sequence[Group], gpu_w: Sequence[Fraction]
) -> Fraction:
    """Return the watts of the nodes in use above sleep, their GPUs included."""
    total = Fraction(0)
    for (name, _), used in loads(figures, groups).items():
        nodes = figures.nodes[name]
        empty = (nodes.gpus - used) * Fraction(figures.gpus[nodes.gpu].power.bare_w)
        total += Fraction(nodes.power.base_w) - Fraction(nodes.power.sleep_w) + empty
    for group, watts in zip(groups, gpu_w, strict=True):
        total += figures.gang(group) * watts
    return total


def cluster_w(figures: ExactFigures, groups: Sequence[Group]) -> Fraction:
    """Return the watts of the cluster if every group had its greatest at once."""
    greatest = [max(phase.gpu_w for phase in figures.phases(group)) for group in groups]
    return figures.instance.idle_floor_w + above_sleep_w(figures, groups, greatest)

"""The joules of a plan's groups until their last jobs end, in exact rational numbers.

Part of the verifier. Where rates come from utilisations alone, all jobs of a group run at one rate:
they end in the order of their work, and a job with less of it than all others changes the watts
only while it runs. Without phases, that takes a few products of whole numbers.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from optsched.cluster.power import Affine
from optsched.eaco.verify.group_energy import wakes_j

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.eaco.instance import Nodes
    from optsched.eaco.plan import Group
    from optsched.eaco.verify.group_energy import ExactFigures


def total_j(figures: ExactFigures, groups: Sequence[Group]) -> Fraction:
    """Return the joules of groups until their last jobs end, and of waking nodes."""
    closed = [nodes for nodes in figures.instance.nodes if has_closed_form(figures, nodes)]
    even = {nodes.id: ClosedForm(figures, nodes) for nodes in closed}
    joules = wakes_j(figures, groups)
    for alike in figures.alike(groups):
        first = alike[0]
        if first.level is None and first.nodes in even:
            joules += len(alike) * even[first.nodes].energy_j(first)
        else:
            joules += len(alike) * figures.energy_j(first, figures.phases(first))
    return joules


def has_closed_form(figures: ExactFigures, nodes: Nodes) -> bool:
    """Tell whether all jobs of a group at full power run at one rate on some nodes."""
    return (
        figures.instance.interference.fallback == "utilisation"
        and not figures.instance.rates[nodes.gpu].measured
        and isinstance(figures.gpus[nodes.gpu].power.curve, Affine)
    )


class ClosedForm:
    """Nodes of which `has_closed_form` holds."""

    def __init__(self, figures: ExactFigures, nodes: Nodes) -> None:
        table, power = figures.instance.interference, figures.gpus[nodes.gpu].power
        self._figures, context = figures, Fraction(power.context_w) + figures.node_share_w(nodes)
        span = Fraction(power.peak_w) - Fraction(power.context_w)
        slope, partner = Fraction(table.saturation_slope), Fraction(table.partner_slowdown)
        busy = {kind.id: kind.utilisation.as_integer_ratio() for kind in figures.instance.types}
        below = {under for _, under in busy.values()}
        self._unit = unit = lcm(slope.denominator, partner.denominator, *below)
        self._slope, self._partner = int(slope * unit), int(partner * unit)
        self._busy = {name: over * (unit // under) for name, (over, under) in busy.items()}
        self._grain = lcm(context.denominator, span.denominator)
        self._context, self._span = int(context * self._grain), int(span * self._grain)

    def energy_j(self, group: Group) -> Fraction:
        """Return the joules of a group at full power, as `ExactFigures.energy_j` does."""
        jobs = [self._figures.jobs[name] for name in group.jobs]
        works = [(self._figures.work_s(job, group), self._busy[job.type]) for job in jobs]
        total, busy, before = Fraction(0), 0, 0
        for size, (work, alone) in enumerate(sorted(works, reverse=True), start=1):
            busy += alone
            watts = self._watts(busy, size)
            total += work * (watts - before)
            before = watts
        return jobs[0].gpus * total / (self._unit**2 * self._grain)

    def _watts(self, busy: int, size: int) -> int:
        """Return the watts of a second of work, in whole grains of squared units."""
        slowdown = self._unit**2
        if size > 1:
            slowdown += self._unit * self._partner * (size - 1)
            slowdown += self._slope * max(0, busy - self._unit)
        return self._context * slowdown + self._span * min(self._unit * busy, slowdown)

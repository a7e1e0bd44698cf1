"""How fast jobs get on where nodes are taken away: what interruptions leave, on average.

Source: docs/math/boa.md, Interruptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.boa.instance import JobClass
from optsched.boa.options import exact_terms
from optsched.rollout.policies.budgets.arrival_rates import rescale_s
from optsched.rollout.policies.width_curves import Curve, Curves
from optsched.rollout.prices.markets import interruption_rates, offers

if TYPE_CHECKING:
    from optsched.boa.offers import Offer
    from optsched.rollout.scenario import Scenario


class SpotSpeeds:
    """Curves by type as `Curves.by_type` has them, with interruptions where there are any."""

    def __init__(self, scenario: Scenario, curves: Curves) -> None:
        self.scenario, self.curves = scenario, curves
        self._offers = offers(scenario) if interruption_rates(scenario) else {}
        self._known: dict[tuple[str, int], tuple[dict[str, Curve], ...]] = {}

    def by_type(self, model: str, demand: int) -> tuple[dict[str, Curve], ...]:
        """Return by phase the widths on each type, and the mean speed at each.

        Without those at which a job is interrupted more than once for each checkpoint.
        """
        phases = self.curves.by_type(model, demand)
        if not self._offers:
            return phases
        key = model, demand
        if key not in self._known:
            self._known[key] = tuple(self._slower(model, own) for own in phases)
        return self._known[key]

    def _slower(self, model: str, curves: dict[str, Curve]) -> dict[str, Curve]:
        made = {name: self._curve(model, c, self._offers[name]) for name, c in curves.items()}
        return {name: curve.useful() for name, curve in made.items() if curve.gpus}

    def _curve(self, model: str, curve: Curve, offer: Offer) -> Curve:
        if not offer.interruptions_per_node_h:
            return curve
        checkpoint_s = self.scenario.costs.checkpoint_every_s
        job_class = JobClass.model_construct(
            id=model,
            arrival_rate_per_h=0.0,
            rescale_s=rescale_s(self.scenario, model),
            checkpoint_s=checkpoint_s,
            phases=(),
        )
        count = sum(gpus <= offer.most_gpus(checkpoint_s) for gpus in curve.gpus)
        kept = [exact_terms(job_class, offer, gpus)[1] for gpus in curve.gpus[:count]]
        pairs = zip(curve.speed, kept, strict=False)
        speeds = tuple(speed * top / bottom for speed, (top, bottom) in pairs)
        return Curve(curve.gpus[:count], speeds)

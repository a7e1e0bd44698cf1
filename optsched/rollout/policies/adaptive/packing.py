"""Whether jobs side by side on the same GPUs get more done than in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.interference import GroupRates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.scenario import Scenario


class Packing:
    """Rates of groups of models by the scenario's interference; keeps nothing but what it knows."""

    def __init__(self, scenario: Scenario) -> None:
        sharing = scenario.sharing
        self.most_jobs = sharing.max_jobs_per_gpu
        self._memory_gb = sharing.memory_gb
        self._models = scenario.models
        self.utilisation = {name: model.utilisation for name, model in self._models.items()}
        self._rates = GroupRates(sharing.interference, "", self.utilisation)
        self._total: dict[tuple[str, ...], float] = {}

    def gains(self, group: Sequence[str], guest: str) -> bool:
        """Tell whether a group of models gets more done with a guest than alone, or in turns."""
        if len(group) >= self.most_jobs or guest not in self._models:
            return False
        return self.total((*group, guest)) > max(1.0, self.total(tuple(group)))

    def total(self, group: tuple[str, ...]) -> float:
        """Return the sum of the rates of models side by side; 0 if that is not known or allowed."""
        key = tuple(sorted(group))
        if key not in self._total:
            self._total[key] = self._sum(key)
        return self._total[key]

    def busy(self, group: Sequence[str]) -> float:
        """Return the utilisation of the GPUs of a group, as of jobs alone."""
        return sum(self.utilisation.get(name, 1.0) for name in group)

    def _sum(self, key: tuple[str, ...]) -> float:
        if len(key) == 1:
            return 1.0
        if any(name not in self._models for name in key):
            return 0.0
        memory = sum(self._models[name].memory_gb for name in key)
        rates = self._rates.of(key)
        if (self._memory_gb is not None and memory > self._memory_gb) or not rates.is_known:
            return 0.0
        return float(sum(rates.by_type[name] for name in key)) if rates.fits else 0.0

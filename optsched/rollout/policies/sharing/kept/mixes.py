"""What job types may do side by side on a GPU of the cluster: worked out once for each set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.greedy.group_costs import GroupCosts
from optsched.eaco.greedy.published_rules import labels_of
from optsched.rollout.policies.eaco_adapter import GPU, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.eaco.greedy.type_mix import TypeMix
    from optsched.rollout.policies.eaco_adapter import EacoInstanceParts

    Types = tuple[str, ...]  # sorted


class Mixes:
    """Rules and figures of groups without deadlines, by the types of their jobs.

    Attributes
    ----------
    costs
        Those of an instance of the same types and GPUs.
    memory_gb
        By type, on each GPU.
    limit_gb
        Of a GPU.
    """

    def __init__(self, parts: EacoInstanceParts) -> None:
        self.costs = GroupCosts(parts.template)
        self.models = parts.models
        self.tolerance = {
            name: None if model.max_slowdown is None else max(1.0, model.max_slowdown)
            for name, model in parts.models.items()
        }
        self.memory_gb = {name: kind.memory_gb for name, kind in self.costs.types.items()}
        self.limit_gb = self.costs.gpus[GPU].memory_gb
        self._mixes: dict[Types, TypeMix] = {}
        self._allowed: dict[Types, bool] = {}
        self._speeds: dict[Types, float] = {}
        self._wider: dict[tuple[Types, str], Types | None] = {}
        self._followers: dict[Types, list[str]] = {}
        self._labels: dict[Types, dict[str, int]] = {}

    def type_of(self, model: str) -> str:
        """Return the type of a job, by its model."""
        return model if model in self.models else OTHER

    def of(self, types: Types) -> TypeMix:
        """Return how jobs of some types get on."""
        mix = self._mixes.get(types)
        if mix is None:
            mix = self._mixes[types] = self.costs.side_by_side(GPU, types)
        return mix

    def allows(self, types: Types) -> bool:
        """Tell whether jobs of some types may be a group; one alone, whether it fits on a GPU."""
        if types not in self._allowed:
            mix = self.of(types)
            if len(types) == 1:
                self._allowed[types] = mix.may_share and self.costs.figures.memory_fits(types, GPU)
            else:
                self._allowed[types] = mix.may_share and all(
                    self._bears(name, mix) for name in types
                )
        return self._allowed[types]

    def _bears(self, name: str, mix: TypeMix) -> bool:
        most = self.tolerance.get(name)
        return most is None or mix.bears(name, most)

    def speeds(self, types: Types) -> float:
        """Return the sum of the rates of jobs of some types side by side."""
        total = self._speeds.get(types)
        if total is None:
            speeds = self.of(types).speeds
            total = self._speeds[types] = sum(speeds[name] for name in types)
        return total

    def wider(self, types: Types, name: str) -> Types | None:
        """Return types with one more job; None if they may not be a group."""
        key = (types, name)
        if key not in self._wider:
            more = tuple(sorted((*types, name)))
            self._wider[key] = more if self.allows(more) else None
        return self._wider[key]

    def followers(self, types: Types) -> list[str]:
        """Return the types of which one more job may come to a group."""
        known = self._followers.get(types)
        if known is None:
            names = [name for name in self.memory_gb if self.wider(types, name) is not None]
            known = self._followers[types] = names
        return known

    def labels(self, names: Iterable[str]) -> dict[str, int]:
        """Return Lucid's label of each type, if these are the types there are."""
        key = tuple(sorted(names))
        if key not in self._labels:
            self._labels[key] = labels_of(self.costs, GPU, key)
        return self._labels[key]

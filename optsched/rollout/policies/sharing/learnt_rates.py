"""Rates of groups that were seen, and what they say of groups that were not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from optsched.eaco.interference import SMALLEST_RATE, GroupRates, Interference, MeasuredGroup
from optsched.rollout.checkpoints.restorable import Restorable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from optsched.rollout.scenario import Scenario

    Key = tuple[str, ...]

Beginning = Literal["told", "formula"]


class LearntRates(Restorable):
    """The history H of EaCO's Algorithm 1: mean rates by the multiset of types on a GPU.

    A group that was not seen is predicted from those that were, as `Interference` does it: from
    larger groups, from pairs, else by its formula of utilisations. Which groups cannot run at all,
    or are not allowed, is known.

    Parameters
    ----------
    begins_with
        "told": the scenario's measured groups, until they are seen; "formula": none of them.

    Attributes
    ----------
    seen
        By group and type how often its rate was observed, and the mean.
    """

    changing = ("seen",)

    def __init__(self, scenario: Scenario, begins_with: Beginning) -> None:
        table = scenario.sharing.interference
        self._utilisation = {name: model.utilisation for name, model in scenario.models.items()}
        self._allowed = GroupRates(table, "", self._utilisation)
        groups = {tuple(sorted(group.types)): group for group in table.groups}
        if begins_with == "formula":
            groups = {key: group for key, group in groups.items() if not all(group.rates)}
        self._first = groups
        self._table = table
        self.seen: dict[Key, dict[str, tuple[int, float]]] = {}
        self._before = GroupRates(self._with(()), "", self._utilisation)  # any was seen
        self._measured: dict[Key, MeasuredGroup] = {}  # of those that were seen
        self._rates: GroupRates | None = None

    @property
    def table(self) -> Interference:
        """What is known as a table: groups as they were seen, and the formula for all others."""
        for key in self.seen.keys() - self._measured.keys():
            self._measured[key] = self._as_seen(key)
        return self._with(self._measured[key] for key in sorted(self.seen))

    def has_seen(self, types: Iterable[str]) -> bool:
        """Tell whether a group was seen."""
        return tuple(sorted(types)) in self.seen

    def allows(self, types: Iterable[str]) -> bool:
        """Tell whether jobs of some types may run on the same GPU, memory aside."""
        chosen = list(types)
        return self._utilisation.keys() >= set(chosen) and self._allowed.of(chosen).fits

    def of(self, types: Sequence[str]) -> dict[str, float]:
        """Return the rates that are expected of jobs of some types on one GPU, by type."""
        if len(types) == 1:
            return {types[0]: 1.0}
        return {name: float(rate) for name, rate in self._all().of(types).by_type.items()}

    def busy(self, types: Sequence[str]) -> float:
        """Return the utilisation that is expected of a GPU; 1 beside an unknown model."""
        if not self._utilisation.keys() >= set(types):
            return 1.0
        return float(self._all().busy(types)) if types else 0.0

    def note(self, types: Sequence[str], name: str, rate: float) -> None:
        """Note the rate at which a job of a type was seen in a group."""
        key = tuple(sorted(types))
        of_group = self.seen.setdefault(key, {})
        count, mean = of_group.get(name, (0, 0.0))
        of_group[name] = (count + 1, mean + (rate - mean) / (count + 1))
        self._measured.pop(key, None)
        self._rates = None

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        super().restore(state)
        self._measured.clear()
        self._rates = None

    def _all(self) -> GroupRates:
        if self._rates is None:
            self._rates = GroupRates(self.table, "", self._utilisation)
        return self._rates

    def _as_seen(self, key: Key) -> MeasuredGroup:
        """Return a group as it was seen; of types of it that were not, what was thought before."""
        thought, seen = self._before.of(key).by_type, self.seen[key]
        rates = [seen[name][1] if name in seen else float(thought[name]) for name in key]
        return MeasuredGroup(types=key, rates=tuple(min(max(r, SMALLEST_RATE), 1.0) for r in rates))

    def _with(self, measured: Iterable[MeasuredGroup]) -> Interference:
        groups = self._first | {tuple(sorted(group.types)): group for group in measured}
        update = {"groups": tuple(groups.values()), "fallback": "utilisation"}
        return self._table.model_copy(update=update)

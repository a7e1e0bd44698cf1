"""Rates of groups that were seen, and what they say of groups that were not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from optsched.eaco.growing_rates import GrowingRates
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
        self._rates: GrowingRates | None = None
        self._news: set[Key] = set()  # groups that these do not have as they were seen
        self._of: dict[Key, dict[str, float]] = {}
        self._busy: dict[Key, float] = {}

    @property
    def table(self) -> Interference:
        """What is known as a table: groups as they were seen, and the formula for all others."""
        return self._with(self._measured(key) for key in sorted(self.seen))

    def has_seen(self, types: Iterable[str]) -> bool:
        """Tell whether a group was seen."""
        return tuple(sorted(types)) in self.seen

    def allows(self, types: Iterable[str]) -> bool:
        """Tell whether jobs of some types may run on the same GPU, memory aside."""
        chosen = list(types)
        return self._utilisation.keys() >= set(chosen) and self._allowed.of(chosen).fits

    def of(self, types: Key) -> dict[str, float]:
        """Return the rates that are expected of jobs of types, sorted, on one GPU, by type."""
        rates = self._up_to_date()
        if types not in self._of:
            by_type = rates.of(types).by_type
            self._of[types] = {name: float(rate) for name, rate in by_type.items()}
        return self._of[types]

    def busy(self, types: Key) -> float:
        """Return the utilisation expected of a GPU by types, sorted; 1 beside an unknown model."""
        rates = self._up_to_date()
        if types not in self._busy:
            is_known = self._utilisation.keys() >= set(types)
            self._busy[types] = float(rates.busy(types)) if is_known else 1.0
        return self._busy[types]

    def note(self, types: Sequence[str], name: str, rate: float) -> None:
        """Note the rate at which a job of a type was seen in a group."""
        key = tuple(sorted(types))
        of_group = self.seen.setdefault(key, {})
        count, mean = of_group.get(name, (0, 0.0))
        of_group[name] = (count + 1, mean + (rate - mean) / (count + 1))
        self._news.add(key)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        super().restore(state)
        self._rates = None

    def _up_to_date(self) -> GrowingRates:
        """Return the rates by all that was seen; what does not follow from them is forgotten."""
        if self._rates is None:
            self._rates = GrowingRates(self.table, "", self._utilisation)
            self._of.clear()
            self._busy.clear()
            self._news.clear()
        while self._news:
            for key in self._rates.measure(self._measured(self._news.pop())):
                self._of.pop(key, None)
                self._busy.pop(key, None)
        return self._rates

    def _measured(self, key: Key) -> MeasuredGroup:
        """Return a group as it was seen; of types of it that were not, what was thought before."""
        thought, seen = self._before.of(key).by_type, self.seen[key]
        rates = [seen[name][1] if name in seen else float(thought[name]) for name in key]
        return MeasuredGroup(types=key, rates=tuple(min(max(r, SMALLEST_RATE), 1.0) for r in rates))

    def _with(self, measured: Iterable[MeasuredGroup]) -> Interference:
        groups = self._first | {tuple(sorted(group.types)): group for group in measured}
        update = {"groups": tuple(groups.values()), "fallback": "utilisation"}
        return self._table.model_copy(update=update)

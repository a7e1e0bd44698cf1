"""Job types that were measured side by side, for methods that look at many groups at once.

A multiset of types is *touched* if it stands within a measured one: its rates are in the table.
Rates of a group without any touched pair are those of the formula, and so is its cost.
"""

from __future__ import annotations

import itertools
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.group_figures import TypeFigures
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.eaco.instance import EacoInstance, Nodes

Key = tuple[str, ...]


def measured_names(instance: EacoInstance, gpu: str) -> list[str]:
    """Return the types that stand in a measurement which the formula does not say already."""
    names = {name for key in _that_count(instance, gpu) for name in key}
    return sorted(names)


def _that_count(instance: EacoInstance, gpu: str) -> list[Key]:
    """Return what was measured; of a type alone only if its watts or utilisation were."""
    measured = instance.rates[gpu].measured
    return [
        key
        for key, entry in measured.items()
        if len(key) > 1 or entry.gpu_power_w is not None or entry.utilisation is not None
    ]


class MeasuredTypes:
    """What was measured on GPUs of one type, in arrays over the jobs of a pricing problem.

    Parameters
    ----------
    types
        Of each job, by position.
    is_special
        Whether no group has the formula's figures; then all are touched.

    Attributes
    ----------
    of
        Shape (jobs + 1,): index of each job's type among those measured, their number for all
        others; the last entry is that of no job.
    weight
        Shape (jobs + 1,): 1 for types measured beside others, 2 for those whose watts alone were:
        a group of less than 2 has none but the formula's figures.
    """

    def __init__(
        self, instance: EacoInstance, nodes: Nodes, types: list[str], *, is_special: bool = False
    ) -> None:
        self._table = instance.rates[nodes.gpu]
        rates, gpu = instance.rates[nodes.gpu], TypeFigures(instance).gpus[nodes.gpu]
        names = [name for name in measured_names(instance, nodes.gpu) if name in {*types}]
        self.names, self.number = names, len(names)
        number = {name: n for n, name in enumerate(names)}
        self.of = np.array([number.get(name, self.number) for name in types] + [self.number])
        self._tell_pairs(_that_count(instance, nodes.gpu), number)
        if is_special:
            self.special[:-1], self.weight[:-1] = True, 2
        inner = {
            part
            for key in _that_count(instance, nodes.gpu)
            for size in range(1, len(key) + 1)
            for part in itertools.combinations(key, size)
            if all(name in number for name in part)
        }
        coded = sorted((self._code([number[name] for name in key]), key) for key in inner)
        self.codes = np.array([code for code, _ in coded], dtype=np.int64)
        self.rates = np.zeros((len(coded) + 1, self.number + 1))
        self.busy, self.watts = np.full((2, len(coded) + 1), np.nan)
        for row, (_, key) in enumerate(coded):
            for name, rate in rates.of(key).by_type.items():
                self.rates[row, number[name]] = float(rate)
            if rates.of(key).fits:
                self.busy[row] = float(rates.busy(key))
                self.watts[row] = float(rates.gpu_w(key, gpu.power))
        self._tell_paired_rates(instance, nodes.gpu, number)
        self._tell_quick(inner, instance.max_jobs_per_gpu)

    def _tell_pairs(self, keys: list[Key], number: dict[str, int]) -> None:
        """Note which types touch, and which ones were measured alone."""
        self.touch = np.zeros((self.number + 1, self.number + 1), dtype=bool)
        special = np.zeros(self.number + 1, dtype=bool)
        for key in keys:
            for pair in itertools.combinations(key, 2):
                if all(name in number for name in pair):
                    a, b = (number[name] for name in pair)
                    self.touch[a, b] = self.touch[b, a] = True
            if len(key) == 1 and key[0] in number:
                special[number[key[0]]] = True
        self.touch |= special[:, None] | special
        weight = np.minimum(self.touch.any(axis=1) + special, 2)
        self.special, self.weight = special[self.of], weight[self.of].astype(np.int64)

    def _tell_paired_rates(self, instance: EacoInstance, gpu: str, number: dict[str, int]) -> None:
        """Note the rate of each type beside each other; nan if they were not measured."""
        self.beside = np.full((self.number + 1, self.number + 1), np.nan)
        rates = instance.rates[gpu]
        for key in rates.measured:
            if len(key) == 2 and all(name in number for name in key):
                a, b = (number[name] for name in key)
                by_type = rates.of(key).by_type
                self.beside[a, b], self.beside[b, a] = by_type[key[0]], by_type[key[1]]

    def _code(self, kinds: list[int]) -> int:
        code = 0
        for kind in sorted(kinds):
            code = code * (self.number + 1) + kind + 1
        return code

    def rows(self, kinds: Indices) -> Indices:
        """Return which touched multiset each row of types is; the last row of `rates` for none.

        Parameters
        ----------
        kinds
            Shape (groups, k): as of `of`.
        """
        code = np.zeros(len(kinds), dtype=np.int64)
        for kind in np.sort(kinds, axis=1).T:
            code = code * (self.number + 1) + kind + 1
        code[(kinds >= self.number).any(axis=1)] = -1
        if not len(self.codes):
            return np.zeros(len(kinds), dtype=np.intp)
        at = np.minimum(np.searchsorted(self.codes, code), len(self.codes) - 1)
        return np.where(self.codes[at] == code, at, len(self.codes))

    def touched(self, at: Indices) -> Bools:
        """Tell which groups have more than the formula's figures, by positions of their jobs."""
        found = self.special[at].any(axis=1)
        for a, b in itertools.combinations(range(at.shape[1]), 2):
            found |= self.touch[self.of[at[:, a]], self.of[at[:, b]]]
        return np.asarray(found)

    def joins_untouched(self, at: Indices, more: Indices) -> Bools:
        """Tell which groups jobs may join without touching anyone in it."""
        joins = np.ones(len(at), dtype=bool)
        hot = np.flatnonzero(self.weight[more])  # few, as a rule
        for held in at[hot].T:
            joins[hot] &= ~self.touch[self.of[held], self.of[more[hot]]]
        return joins

    def least_slowdown_share(self, alone: Floats, slope: float, partner: float) -> float:
        """Return which share of the formula's slowdown beyond 1 all touched multisets have.

        Parameters
        ----------
        alone
            Shape (types measured + 1,): utilisation of each alone.
        """
        share = 1.0
        for key in self._quick:
            kinds = [self.names.index(name) for name in key]
            greatest = float(max(self._table.of(key).by_type.values()))
            beyond = slope * max(float(alone[kinds].sum()) - 1, 0.0) + partner * (len(kinds) - 1)
            if greatest > 0 and beyond > 0:
                share = min(share, (1 / greatest - 1) / beyond)
        return 0.0 if self._is_unclear else max(share, 0.0)

    def _tell_quick(self, inner: set[Key], most: int) -> None:
        """Note the multisets that may be quicker than the formula says: touched ones, and products.

        Products of pairs are those of types which were all measured beside each other.
        """
        clique = bool(np.isfinite(self.beside).any()) and most > 2
        many = comb(self.number + most, most)
        self._is_unclear = clique and many > SETTINGS.most_multisets
        self._quick = {key for key in inner if len(key) > 1}
        if clique and not self._is_unclear:
            for size in range(2, most + 1):
                self._quick |= {*itertools.combinations_with_replacement(self.names, size)}

    def least_watts_share(
        self, alone: Floats, context: float, span: float, share_w: float
    ) -> float:
        """Return the least share of their power model's watts that touched multisets draw."""
        least = 1.0
        for row, code in enumerate(self.codes.tolist()):
            if np.isnan(self.watts[row]):
                continue
            kinds = self._kinds(code)
            busy = float((alone[kinds] * self.rates[row, kinds]).sum())
            model = context + share_w + span * min(1.0, busy)
            if model > 0:
                least = min(least, (self.watts[row] + share_w) / model)
        return max(least, 0.0)

    def _kinds(self, code: int) -> list[int]:
        kinds = []
        while code:
            code, kind = divmod(code, self.number + 1)
            kinds.append(kind - 1)
        return kinds

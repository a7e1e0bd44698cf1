"""Label setting for the constrained shortest path (Irnich & Desaulniers 2005), by value and use."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.exact.lagrangian_dual import completions
from optsched.boa.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.boa.exact.phase_graphs import Path, PhaseChain
    from optsched.documents.arrays import Floats, Indices


class Labels(NamedTuple):
    """Partial plans: value and use so far, and how each came about.

    Attributes
    ----------
    parent
        Index of the label that was extended.
    pick
        What it was extended by: a column of a chain's phase, or an option of a unit.
    """

    value: Floats
    use: Floats
    parent: Indices
    pick: Indices

    def taken(self, index: Indices) -> Labels:
        """Return the labels at an index."""
        return Labels(self.value[index], self.use[index], self.parent[index], self.pick[index])


class LabelEffort:
    """Counts the labels made in one enumeration; past the limit only a beam of them is kept.

    Parameters
    ----------
    stop
        Tells whether time is up.
    share
        Of the limit, for searches that shall only find a plan.

    Attributes
    ----------
    made
        Labels so far.
    complete
        Whether no label was left out.
    """

    def __init__(self, stop: Callable[[], bool], share: float = 1.0) -> None:
        self.made = 0
        self.complete = True
        self._most = int(SETTINGS.most_labels * share)
        self._stop = stop

    def spend(self, count: int) -> None:
        """Count labels that are made, also those that are dominated."""
        self.made += count

    def out_of_time(self) -> bool:
        """Tell whether time is up; the enumeration is incomplete then."""
        stopped = self._stop()
        self.complete &= not stopped
        return stopped

    def kept(self, labels: Labels, price: float) -> Labels:
        """Return all labels, or those of least priced value if too many have been made."""
        is_beam = self.made > self._most
        most = SETTINGS.beam_labels if is_beam else SETTINGS.most_kept_labels
        if len(labels.value) <= most:
            return labels
        self.complete = False
        priced = labels.value + price * labels.use
        return labels.taken(np.sort(np.argpartition(priced, most - 1)[:most]))


class Unit(NamedTuple):
    """The options that one class or free phase has left below a target, undominated.

    Attributes
    ----------
    make
        Turns the index of an option into a column or a path.
    """

    value: Floats
    use: Floats
    make: Callable[[int], int | Path]


def undominated(value: Floats, use: Floats) -> Indices:
    """Return the indices, by growing use, of pairs that no other equals or beats in both."""
    if len(value) <= 1:
        return np.arange(len(value))
    order = np.lexsort((value, use))
    lowest = np.minimum.accumulate(value[order])
    kept = np.r_[True, value[order[1:]] < lowest[:-1]]
    return order[kept]


def paths_through(chain: PhaseChain, price: float, cutoff: float, effort: LabelEffort) -> Unit:
    """Enumerate the undominated paths through a chain whose priced value is below `cutoff`."""
    nodes, rescaling = chain.priced(price)
    after = completions(nodes, rescaling)
    usable = _priced_before(nodes, rescaling) + after < cutoff
    layers = [_first_layer(chain, np.flatnonzero(usable[0]))]
    for e in range(1, len(nodes)):
        layer = _next_layer(chain, e, layers[-1], np.flatnonzero(usable[e]), effort)
        priced = layer.value + price * layer.use + after[e][layer.pick]
        layers.append(effort.kept(layer.taken(np.flatnonzero(priced < cutoff)), price))
    last = layers[-1]
    ends = undominated(last.value, last.use)
    return Unit(last.value[ends], last.use[ends], lambda n: _traced(chain, layers, ends[n]))


def _priced_before(nodes: Floats, rescaling: Floats) -> Floats:
    """Return the least priced value from the start to each node, the node included."""
    before = np.empty_like(nodes)
    before[0] = nodes[0] + rescaling
    for e in range(1, len(nodes)):
        np.minimum(before[e - 1], before[e - 1].min() + rescaling, out=before[e])
        before[e] += nodes[e]
    return before


def _first_layer(chain: PhaseChain, columns: Indices) -> Labels:
    value = chain.value[0, columns] + chain.rescale_value[columns]
    use = chain.use[0, columns] + chain.rescale_use[columns]
    return Labels(value, use, np.full(len(columns), -1), columns)


def _next_layer(
    chain: PhaseChain, e: int, layer: Labels, columns: Indices, effort: LabelEffort
) -> Labels:
    """Extend labels by a phase: each stays at its width, or any undominated one changes."""
    if len(columns) == 1 and (layer.pick == columns[0]).all():
        k = columns[0]
        effort.spend(len(layer.value))
        value, use = layer.value + chain.value[e, k], layer.use + chain.use[e, k]
        return Labels(value, use, np.arange(len(value)), layer.pick)
    if not len(columns):  # the target lies within rounding of the price's bound
        return layer.taken(columns)
    pool = undominated(layer.value, layer.use)
    parts = []
    for k in columns:
        staying = np.flatnonzero(layer.pick == k)
        moving = pool[layer.pick[pool] != k]
        parent = np.concatenate([staying, moving])
        effort.spend(len(parent))
        changed = np.repeat([0.0, 1.0], [len(staying), len(moving)])
        value = layer.value[parent] + (chain.value[e, k] + changed * chain.rescale_value[k])
        use = layer.use[parent] + (chain.use[e, k] + changed * chain.rescale_use[k])
        kept = undominated(value, use)
        parts.append(Labels(value[kept], use[kept], parent[kept], np.full(len(kept), k)))
    return Labels(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def _traced(chain: PhaseChain, layers: list[Labels], index: int) -> Path:
    columns = np.empty(len(layers), np.intp)
    for e in range(len(layers) - 1, -1, -1):
        columns[e] = layers[e].pick[index]
        index = int(layers[e].parent[index])
    return chain.path(columns)

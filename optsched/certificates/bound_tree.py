"""Branch-and-bound trees in certificates (Land & Doig 1960), verified: form, paths and values.

A tree covers all plans: in each split a count, which is a whole number, is at most a number or at
least one more. So the least of what its leaves prove is a lower bound on every plan. What a leaf
proves is a problem's own: the verifiers of certificates in `<problem>/verify` reckon it, and know
what rules count.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import inf, isfinite
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from pydantic import Field

from optsched.documents.faults import shown
from optsched.instance import Document
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Index = Annotated[int, Field(ge=0)]
Value = TypeVar("Value")


class Split(Document):
    """Two branches; each plan is in one: a count is at most a number, or at least one more.

    Attributes
    ----------
    rule
        Index of the rule that counts.
    at_most
        Greatest count in the first branch.
    cases
        Indices of the two branches among the certificate's `nodes`; both lie behind this one.
    """

    rule: Index
    at_most: Index
    cases: tuple[Index, Index]


class Cut(Document):
    """The price of a rule that every plan keeps, by the index of the rule."""

    rule: Index
    price: Price


MOST_STEPS = 10_000_000


def tree_faults(nodes: Sequence[Document], rules: int) -> Iterator[BrokenRule]:
    """Yield why nodes are not a tree, the first of them its root, or one that is too deep.

    Splits on the paths to all nodes are `MOST_STEPS` at most: a short file can name more of them
    than anybody could follow.

    Parameters
    ----------
    rules
        How many rules splits may name.
    """
    broken = list(_form_faults(nodes, rules))
    yield from broken
    steps = 0 if broken else sum(Paths(nodes).depths)
    if steps > MOST_STEPS:
        text = f"its paths have {steps:,} splits in all, {MOST_STEPS:,} are followed at most"
        yield BrokenRule("tree", text)


def _form_faults(nodes: Sequence[Document], rules: int) -> Iterator[BrokenRule]:
    count = len(nodes)
    if not count:
        yield BrokenRule("tree", "the certificate has no nodes")
    parents: Counter[int] = Counter()
    for n, node in enumerate(nodes):
        if not isinstance(node, Split):
            continue
        if node.rule >= rules:
            text = f"nodes[{n}] splits by rules[{shown(node.rule)}], but there are {rules}"
            yield BrokenRule("known-rule", text)
        for branch in node.cases:
            if branch >= count:
                text = f"nodes[{n}] has the branch nodes[{shown(branch)}], but there are {count}"
                yield BrokenRule("tree", text)
            elif branch <= n:
                text = f"nodes[{n}] has the branch nodes[{branch}], which is not behind it"
                yield BrokenRule("tree", text)
        parents.update(node.cases)
    for n in range(1, count):
        if parents[n] != 1:
            yield BrokenRule("tree", f"nodes[{n}] is a branch of {parents[n]} splits, not of one")


# --- what is stated ---------------------------------------------------------------------------


class Statement(NamedTuple):
    """What a certificate states: a bound on the costs of plans, or else that there is no plan.

    Attributes
    ----------
    is_of_costs
        Whether the prices are for costs.
    bound
        Every plan costs at least this.
    left_out
        So many jobs are left out by all that leaves jobs out; more than none, so there is no plan.
    """

    is_of_costs: bool
    bound: float | None
    left_out: float | None

    @property
    def figure(self) -> float:
        """What the value of each leaf has to reach."""
        figure = self.bound if self.is_of_costs else self.left_out
        return 0.0 if figure is None else figure

    def faults(self) -> Iterator[BrokenRule]:
        """Yield what is wrong with the figures that are stated."""
        bound, left_out = self.bound, self.left_out
        if self.is_of_costs:
            if left_out is not None:
                text = "is stated, but prices of costs prove nothing about it"
                yield BrokenRule("left-out", text)
            if bound is None or not isfinite(bound):
                text = "the certificate states none" if bound is None else f"{bound!r} is stated"
                yield BrokenRule("bound", text)
            return
        if bound is not None:
            yield BrokenRule("bound", "a proof that no plan exists has no bound")
        if left_out is None or not 0 < left_out < inf:
            text = f"a proof that no plan exists needs more than none, {left_out!r} is stated"
            yield BrokenRule("left-out", text)

    def value_faults(
        self, values: Mapping[int, int | None], limit: Fraction | int, unit: int
    ) -> Iterator[BrokenRule]:
        """Yield the leaf that proves least, if it is less than is stated.

        Parameters
        ----------
        values
            What leaves prove, in multiples of 1 / `unit`; None where no plan is.
        limit
            What is stated, in the same unit.
        """
        low = {n: value for n, value in values.items() if value is not None and value < limit}
        if low:
            n = min(low, key=low.__getitem__)
            more = f"; {len(low)} of {len(values)} leaves prove less" if len(low) > 1 else ""
            proven = written(Fraction(low[n], unit))
            text = f"nodes[{n}] proves only {proven}, {self.figure!r} is stated{more}"
            yield BrokenRule("bound" if self.is_of_costs else "left-out", text)

    def whole_faults(self, what: str, value: int | None, unit: int) -> Iterator[BrokenRule]:
        """Yield that one argument for all plans, named `what`, proves less than is stated.

        Parameters
        ----------
        value
            What it proves, in multiples of 1 / `unit`; None where no plan is.
        """
        if value is not None and value < Fraction(self.figure) * unit:
            text = f"{what} prove only {written(Fraction(value, unit))}, {self.figure!r} is stated"
            yield BrokenRule("bound" if self.is_of_costs else "left-out", text)


def written(value: Fraction | int) -> str:
    """Write a figure as the nearest float, also one beyond all floats."""
    try:
        return repr(float(value))
    except OverflowError:
        return "less than every float" if value < 0 else "more than every float"


# --- prices -----------------------------------------------------------------------------------


def split_price_faults(where: str, prices: Sequence[float], splits: int) -> Iterator[BrokenRule]:
    """Yield why there is not one price for each split on the path to a leaf."""
    if len(prices) != splits:
        text = f"{where} has {len(prices)} prices for {splits} splits"
        yield BrokenRule("one-price-per-split", text)


def cut_faults(
    where: str, cuts: Sequence[Cut], rules: Sequence[object], limited: type, otherwise: str
) -> Iterator[BrokenRule]:
    """Yield which cuts name no rule of the class `limited`; `otherwise` says what others lack."""
    for cut in cuts:
        if cut.rule >= len(rules):
            text = f"{where} cuts by rules[{shown(cut.rule)}], but there are {len(rules)}"
            yield BrokenRule("known-rule", text)
        elif not isinstance(rules[cut.rule], limited):
            yield BrokenRule("cut", f"{where} cuts by rules[{cut.rule}], {otherwise}")


# --- paths ------------------------------------------------------------------------------------


class PathStep(NamedTuple):
    """A split on the path to a node, and which of its two branches the path takes."""

    split: Split
    side: int


class Paths:
    """The paths to nodes from the root, kept by their last branches: all at once may be very long.

    Parameters
    ----------
    nodes
        A tree in which `tree_faults` has nothing to report.

    Attributes
    ----------
    depths
        Splits on the path to each node.
    """

    def __init__(self, nodes: Sequence[object]) -> None:
        self.depths = [0] * len(nodes)
        self._last: dict[int, tuple[int, PathStep]] = {}
        for n, node in enumerate(nodes):
            if isinstance(node, Split):
                for side, branch in enumerate(node.cases):
                    self.depths[branch] = self.depths[n] + 1
                    self._last[branch] = n, PathStep(node, side)

    def to(self, n: int) -> list[PathStep]:
        """Return the path to a node."""
        path = []
        while n in self._last:
            n, step = self._last[n]
            path.append(step)
        return path[::-1]


def at_leaves(
    nodes: Sequence[Document], verify: Callable[[int, Any, list[PathStep]], Value]
) -> dict[int, Value]:
    """Return what is verified at each leaf, by its number.

    Parameters
    ----------
    nodes
        A tree in which `tree_faults` has nothing to report.
    verify
        Given the number of a leaf, the leaf and the path to it: what it proves.
    """
    paths, leaves = Paths(nodes), enumerate(nodes)
    return {n: verify(n, leaf, paths.to(n)) for n, leaf in leaves if not isinstance(leaf, Split)}

"""Branch-and-bound trees in certificates (Land & Doig 1960): branches, and what makes a tree."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from optsched.documents.faults import shown
from optsched.instance import Document
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Index = Annotated[int, Field(ge=0)]


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


def tree_faults(nodes: Sequence[Document], rules: int) -> Iterator[BrokenRule]:
    """Yield why nodes are not a tree, the first of them its root.

    Parameters
    ----------
    rules
        How many rules splits may name.
    """
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

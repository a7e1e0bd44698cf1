"""Strong branching, and the bases that nodes start from (Applegate, Bixby, Chvatal & Cook, 1995).

A tree that takes its nodes by their bounds goes back and forth, and cuts come and go. So each node
keeps its basis by name, not by row; its branches start from where the probes of them ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.settings import SETTINGS
from optsched.mip.branch_and_bound import Branch
from optsched.mip.incremental_lp import basic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import highspy

    from optsched.documents.arrays import Bools
    from optsched.eaco.cuts.cuts_and_branching import Rule
    from optsched.eaco.exact.lp_solution import Path
    from optsched.eaco.exact.relaxation import Relaxation


class NodeBasis(NamedTuple):
    """A basis, whatever else the program has when it is taken up again.

    Attributes
    ----------
    columns, frame
        Shape (columns,), (rows of the frame,): whether they are basic.
    binding
        Rules whose rows are not basic.
    """

    columns: Bools
    frame: Bools
    binding: tuple[Rule, ...]


class NodeBases:
    """Bases of a relaxation at the nodes of a tree.

    Parameters
    ----------
    relaxation
        Its program grows: columns and rules are added, and cuts are dropped, but no column is.
    """

    def __init__(self, relaxation: Relaxation) -> None:
        self._relaxation = relaxation
        self._probes: dict[Path, highspy.HighsBasis] = {}
        self._rows: dict[Rule, int] = {}  # of the probes

    def here(self) -> NodeBasis | None:
        """Return the basis of the last solve."""
        relaxation = self._relaxation
        return self._named(relaxation.master.basis(), relaxation.rows)

    def start_from(self, basis: NodeBasis) -> None:
        """Let the next solve begin from a basis; rules that bind there get their rows back."""
        relaxation, master = self._relaxation, self._relaxation.master
        relaxation.add_cuts(rule for rule in basis.binding if rule in relaxation.capacity)
        binding = [relaxation.row_of(rule) for rule in basis.binding]
        columns, rows = np.zeros(master.columns, dtype=bool), np.ones(master.rows, dtype=bool)
        columns[: len(basis.columns)] = basis.columns
        rows[: len(basis.frame)] = basis.frame
        rows[binding] = False
        master.start_from(columns, rows)

    def probed(
        self, path: Path, splits: Sequence[tuple[Rule, int]], clock: Callable[[], float | None]
    ) -> Iterator[tuple[float, float]]:
        """Yield about how much the optimum of a node rises in the two branches of each split."""
        relaxation, master = self._relaxation, self._relaxation.master
        for rule, _ in splits:
            relaxation.row_of(rule)
        relaxation.bound_rows(path)
        self._probes, self._rows = {}, dict(relaxation.rows)
        solved = master.solve(clock())
        if solved is None:
            yield from [(0.0, 0.0)] * len(splits)
            return
        basis = master.basis()
        for split in splits:
            values = []
            for branch in (Branch(*split, is_above=False), Branch(*split, is_above=True)):
                relaxation.bound_rows((*path, branch))
                values.append(master.probe(basis, SETTINGS.probe_steps) - solved.objective)
                self._probes[*path, branch] = master.basis()
            yield values[0], values[1]

    def of_probe(self, path: Path) -> NodeBasis | None:
        """Return where the probe of a branch ended, if it was among the last ones."""
        probe = self._probes.get(path)
        return None if probe is None else self._named(probe, self._rows)

    def _named(self, basis: highspy.HighsBasis, rows: dict[Rule, int]) -> NodeBasis | None:
        """Return a basis by names; None if there is none, as after a solve that was cut short."""
        columns, are_basic = basic(basis)
        if not basis.valid or len(are_basic) != self._relaxation.frame_rows + len(rows):
            return None
        binding = tuple(rule for rule, row in rows.items() if not are_basic[row])
        return NodeBasis(columns, are_basic[: self._relaxation.frame_rows], binding)

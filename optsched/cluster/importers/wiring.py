"""What a topology file of Slurm says, with the places where it says so."""

from __future__ import annotations

from typing import NamedTuple

from optsched.cluster.importers.hostlist import HostlistError, expand
from optsched.documents.faults import cut


class Field(NamedTuple):
    """A value and where it begins: line and column, both from 1."""

    value: str
    at: tuple[int, int]

    @property
    def place(self) -> str:
        """Line and column in words."""
        return f"line {self.at[0]}, column {self.at[1]}"

    def names(self) -> list[str]:
        """Return the names that the value, a hostlist, stands for.

        Raises
        ------
        ValueError
            With line and column if it does not parse.
        """
        try:
            return expand(self.value)
        except HostlistError as error:
            line, column = self.at
            place = f"line {line}, column {column + error.position}"
            raise ValueError(f"{place}: {error}, in the hostlist '{cut(self.value)}'") from None


class Switch(NamedTuple):
    """A switch with its children, or a block with its nodes."""

    name: Field
    children: Field | None
    nodes: Field | None


class Wiring(NamedTuple):
    """Switches, or blocks with the sizes of base and aggregated blocks."""

    switches: list[Switch]
    blocks: list[Switch]
    sizes: Field | None

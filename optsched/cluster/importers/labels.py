"""A table of node labels, as CSV: node, gpus, and one column for each level from the closest up.

A value of a label names one domain only within the domain above it, as the labels of Kubernetes
nodes do (Kueue's topology-aware scheduling); an empty cell skips the level.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from optsched.cluster.importers.nested import NodeRow, nested_topology
from optsched.cluster.importers.text import gpu_ids, read_text
from optsched.documents.faults import InstanceError
from optsched.documents.limits import LIMITS

if TYPE_CHECKING:
    from pathlib import Path

    from optsched.cluster.topology import Topology


def read_labels(path: Path, gpus_per_node: int | None) -> Topology:
    """Read a CSV of node labels; domains are called by their labels from the top down."""
    text, origin = read_text(path), str(path)
    reader = csv.reader(text.splitlines(), skipinitialspace=True, strict=True)
    rows: list[NodeRow] = []
    faults: list[str] = []
    first: dict[str, int] = {}
    count = 0
    try:
        header = [name.strip() for name in next(reader)]
        levels = _levels(header, origin)
        for cells in reader:
            try:
                if any(cells):
                    row = _row(header, levels, cells, gpus_per_node, origin)
                    if first.setdefault(row.node, reader.line_num) != reader.line_num:
                        raise ValueError(f"column 1: '{row.node}' is in line {first[row.node]} too")
                    rows.append(row)
                    count += len(row.gpus)
                    if count > LIMITS.items:
                        text = f"more than {LIMITS.items:,} GPUs, up to here"
                        raise InstanceError(origin, [f"line {reader.line_num}: {text}"])
            except ValueError as error:
                if isinstance(error, InstanceError):
                    raise
                faults.append(f"line {reader.line_num}, {error}")
    except csv.Error as error:
        faults.append(f"line {reader.line_num}: {error}; expected CSV")
    if faults:
        raise InstanceError(origin, faults)
    return nested_topology(levels, rows, origin)


def _levels(header: list[str], origin: str) -> list[str]:
    if header[:1] != ["node"]:
        heading = "".join(header[:1])
        text = f"line 1, column 1: expected the heading 'node', found '{heading}'"
        raise InstanceError(origin, [text])
    if len(header) > LIMITS.levels:
        raise InstanceError(origin, [f"line 1: {len(header):,} columns, more than {LIMITS.levels}"])
    if "" in header or len(set(header)) < len(header):
        raise InstanceError(origin, ["line 1: headings must differ and not be empty"])
    return [name for name in header[1:] if name != "gpus"]


def _row(
    header: list[str], levels: list[str], cells: list[str], gpus_per_node: int | None, origin: str
) -> NodeRow:
    if len(cells) != len(header):
        raise ValueError(f"column {len(cells)}: {len(cells)} cells under {len(header)} headings")
    values = dict(zip(header, (cell.strip() for cell in cells), strict=True))
    node, count = values["node"], gpus_per_node
    if not node:
        raise ValueError("column 1: the node has no name")
    if "gpus" in values:
        gpus = values["gpus"]
        if not (gpus.isascii() and gpus.isdigit() and len(gpus) < 6):
            place = f"column {header.index('gpus') + 1}"
            raise ValueError(f"{place}: expected how many GPUs '{node}' has, found '{gpus}'")
        count = int(gpus)
    around: list[str | None] = []
    above: list[str] = []
    for level in reversed(levels):
        above += [values[level]] if values[level] else []
        around.insert(0, "/".join(above) if values[level] else None)
    return NodeRow(node, gpu_ids(node, count, origin), around)

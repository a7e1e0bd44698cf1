"""The matrix that `nvidia-smi topo -m` prints: how the GPUs of one node are connected."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from optsched.cluster.bottleneck import bottleneck_bandwidths, bottleneck_topology
from optsched.cluster.importers.text import Places, read_text
from optsched.documents.faults import InstanceError
from optsched.documents.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from optsched.cluster.topology import Topology

# From far to near; SOC is what older drivers call SYS. NVLinks are nearer than all of them, the
# nearer the more of them are bonded.
FAR_TO_NEAR = ("SYS", "NODE", "PHB", "PXB", "PIX")
_GPU = re.compile(r"GPU[0-9]+")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def read_nvidia_smi(path: Path, gpus_per_node: int | None) -> Topology:
    """Read the matrix of one node; its GPUs get the ids ``"node/<index>"``.

    Levels are kinds of connection, from the nearest: for example NV2, NV1, SYS. The level of a
    group is that of its weakest direct connection: a gang has no others' GPUs to send through. A
    tree cannot tell all pairs apart: groups are joined by complete linkage, the nearest first, so
    that no pair is said to be nearer than it is, and some are said to be farther. A node has
    `LIMITS.matrix_gpus` GPUs at most.
    """
    text, origin = _COLOUR.sub("", read_text(path)), str(path)
    try:
        links = _links(text)
    except ValueError as error:
        raise InstanceError(origin, [str(error)]) from None
    if gpus_per_node is not None and gpus_per_node != len({one for one, _ in links}):
        count = len({one for one, _ in links})
        raise InstanceError(origin, [f"has {count} GPUs, not {gpus_per_node} per node"])
    graph: nx.Graph[str] = nx.Graph()
    for one in dict.fromkeys(one for one, _ in links):
        graph.add_node(one, gpus=[f"node/{one.removeprefix('GPU')}"])
    graph.add_weighted_edges_from(_linked(list(graph), links), "bandwidth")
    name: dict[float, str] = {_nearness(kind): kind for kind in links.values()}
    widths = bottleneck_bandwidths(graph)
    return bottleneck_topology(graph, [name[w] for w in widths] or ["GPU"], widths[:-1])


def _linked(gpus: list[str], links: dict[tuple[str, str], str]) -> Iterator[tuple[str, str, float]]:
    """Yield the links of a tree of groups: each joins two, at the nearness of its farthest pair.

    Joining groups brings none nearer, so the weakest link on the way between two GPUs in this tree
    is that of the first group that holds both.
    """
    first = list(gpus)  # of each group
    nearness = np.array([[_nearness(links[a, b]) for b in gpus] for a in gpus], dtype=float)
    while len(first) > 1:
        above = np.where(np.triu(np.ones_like(nearness, dtype=bool), 1), nearness, -1.0)
        one, other = map(int, np.unravel_index(above.argmax(), above.shape))
        yield first[one], first[other], float(nearness[one, other])
        farthest = np.minimum(nearness[one], nearness[other])
        nearness[one], nearness[:, one] = farthest, farthest
        nearness = np.delete(np.delete(nearness, other, axis=0), other, axis=1)
        del first[other]


def _links(text: str) -> dict[tuple[str, str], str]:
    """Return the kind of connection of each ordered pair of GPUs, and "X" of a GPU with itself."""
    lines, places = list(re.finditer(r"[^\n]+", text)), Places(text)
    heads = (line for line in lines if line[0].split()[:1] == ["GPU0"])
    header = next((line for line in heads if "X" not in line[0].split()), None)
    if header is None:
        raise ValueError("line 1, column 1: expected a line that begins with GPU0, GPU1, ...")
    columns = [name for name in header[0].split() if _GPU.fullmatch(name)]
    if len(columns) > LIMITS.matrix_gpus:
        text = f"{len(columns):,} GPUs in one node, more than {LIMITS.matrix_gpus}"
        raise ValueError(f"{places.told(header.start())}: {text}")
    links: dict[tuple[str, str], str] = {}
    for line in lines[lines.index(header) + 1 :]:
        cells = list(islice(re.finditer(r"\S+", line[0]), len(columns) + 1))
        if not cells or not _GPU.fullmatch(cells[0][0]):
            continue
        row = cells[0][0]
        place = places.told(line.start())
        if row not in columns or len(cells) <= len(columns):
            raise ValueError(f"{place}: {row} has no cell for each of {len(columns)} GPUs")
        for column, cell in zip(columns, cells[1:], strict=False):
            kind = "SYS" if cell[0] == "SOC" else cell[0]
            if (kind == "X") != (row == column) or not re.fullmatch(_KIND, kind):
                place = places.told(line.start() + cell.start())
                raise ValueError(f"{place}: '{kind}' cannot connect {row} with {column}")
            if links.setdefault((column, row), kind) != kind:
                place = places.told(line.start() + cell.start())
                other = links[column, row]
                raise ValueError(f"{place}: {kind}, but {other} from {column} to {row}")
            links[row, column] = kind
    missing = [name for name in columns if (name, name) not in links]
    if missing:
        raise ValueError(f"{places.told(header.start())}: there is no line for {missing[0]}")
    return links


_KIND = re.compile(rf"X|NV[1-9][0-9]?|{'|'.join(FAR_TO_NEAR)}")


def _nearness(kind: str) -> float:
    if kind.startswith("NV"):
        return len(FAR_TO_NEAR) + int(kind[2:])
    return FAR_TO_NEAR.index(kind) + 1 if kind in FAR_TO_NEAR else 0

"""Slurm's network topology, of both plugins: topology/tree and topology/block."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

import networkx as nx

from optsched.cluster.importers.nested import NodeRow, nested_topology
from optsched.cluster.importers.slurm_conf import parse_conf
from optsched.cluster.importers.switches import switch_topology
from optsched.cluster.importers.text import gpu_ids, note, read_text, refuse_many
from optsched.cluster.topology_faults import some
from optsched.documents.faults import InstanceError, nearest, shown
from optsched.documents.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from optsched.cluster.importers.wiring import Field, Switch, Wiring
    from optsched.cluster.topology import Topology

    Entry = tuple[str, list[str], list[str]]  # name, child switches, nodes


def read_slurm(path: Path, gpus_per_node: int | None, topology: str | None = None) -> Topology:
    """Read topology.conf, or topology.yaml if the name of the file ends so.

    What ``scontrol show topology`` prints is read as topology.conf is.

    Of several topologies in topology.yaml, the one of that name is read.
    """
    text, origin = read_text(path), str(path)
    if path.suffix in (".yaml", ".yml"):
        from optsched.cluster.importers.slurm_yaml import parse_yaml

        wiring = parse_yaml(text, origin, topology)
    elif topology is not None:
        raise InstanceError(origin, ["only topology.yaml has topologies with names"])
    else:
        wiring = parse_conf(text, origin)
    return _topology(wiring, gpus_per_node, origin)


def _topology(wiring: Wiring, gpus_per_node: int | None, origin: str) -> Topology:
    if bool(wiring.switches) == bool(wiring.blocks):
        given = "both" if wiring.blocks else "neither"
        raise InstanceError(origin, [f"expected either switches or blocks, found {given}"])
    entries = _entries([*wiring.switches, *wiring.blocks], origin)
    nodes = {node for *_, nodes in entries for node in nodes}
    if not nodes:
        raise InstanceError(origin, ["no switch or block has nodes"])
    refuse_many(len(nodes), gpus_per_node, origin)
    both = [name for name, *_ in entries if name in nodes]
    faults = [f"'{name}' names both a node and a switch or block" for name in both]
    if faults:
        raise InstanceError(origin, faults)
    if wiring.blocks:
        ratios = _ratios(wiring.sizes, origin)
        return _blocks(entries, ratios, gpus_per_node, origin)
    return _switches(entries, gpus_per_node, origin)


def _entries(switches: list[Switch], origin: str) -> list[Entry]:
    """Expand all hostlists; every fault of the file at once."""
    names: dict[str, str] = {}
    entries: list[Entry] = []
    faults: list[str] = []
    count = 0
    for switch in switches:
        name, place = switch.name.value, switch.name.place
        if name in names:
            faults.append(f"{place}: '{name}' is already defined at {names[name]}")
        names.setdefault(name, place)
        try:
            children = switch.children.names() if switch.children else []
            entries.append((name, children, switch.nodes.names() if switch.nodes else []))
            count += len(children) + len(entries[-1][2])
        except ValueError as error:
            faults.append(str(error))
        if count > LIMITS.items:
            text = f"the hostlists stand for more than {LIMITS.items:,} names, up to here"
            raise InstanceError(origin, [f"{place}: {text}"])
    faults += [] if faults else islice(_unknown_children(switches, entries), LIMITS.faults + 1)
    if faults:
        raise InstanceError(origin, faults)
    return entries


def _unknown_children(switches: list[Switch], entries: list[Entry]) -> Iterator[str]:
    names = [name for name, *_ in entries]
    known = set(names)
    for switch, (_, children, _) in zip(switches, entries, strict=True):
        for child in children:
            if child not in known and switch.children:
                hint = nearest(child, some(child, names))
                yield f"{switch.children.place}: there is no switch '{child}'; {hint}"


def _switches(entries: list[Entry], gpus_per_node: int | None, origin: str) -> Topology:
    entries = _with_nodes(entries, origin)
    fabric: nx.DiGraph[str] = nx.DiGraph()
    gpus: dict[str, list[str]] = {}
    for name, children, nodes in entries:
        fabric.add_node(name, height=1)
        fabric.add_edges_from((name, child) for child in [*children, *nodes])
        gpus |= {node: gpu_ids(node, gpus_per_node, origin) for node in nodes}
    parts = enumerate(nx.weakly_connected_components(fabric))
    part_of = {vertex: number for number, part in parts for vertex in part}
    first = {part_of[vertex]: vertex for vertex in reversed(list(fabric))}
    if len(first) > 1:
        listed = ", ".join(f"'{name}'" for name in reversed(first.values()))
        text = f"no switch stands above the separate parts with {listed}, so no job can span them"
        raise InstanceError(origin, [f"{text}: import them one by one"])
    return switch_topology(fabric, gpus, ["node"], origin)


def _with_nodes(entries: list[Entry], origin: str) -> list[Entry]:
    """Return the switches above nodes; Topograph writes others for nodes that may come."""
    bare = _bare_switches(entries)
    if bare:
        listed = ", ".join(f"'{name}'" for name in islice(bare, 10))
        more = f" and {len(bare) - 10:,} more" if len(bare) > 10 else ""
        note(f"switches without nodes are left out: {listed}{more}", origin)
    return [
        (name, [child for child in children if child not in bare], nodes)
        for name, children, nodes in entries
        if name not in bare
    ]


def _bare_switches(entries: list[Entry]) -> dict[str, None]:
    """Return the switches without nodes, below themselves and below all switches below them."""
    above: dict[str, list[str]] = {}
    left = {}
    for name, children, nodes in entries:
        left[name] = len(set(children)) + (len(nodes) > 0)
        for child in dict.fromkeys(children):
            above.setdefault(child, []).append(name)
    found = [name for name, *_ in entries if not left[name]]
    for name in found:  # which grows
        for parent in above.get(name, ()):
            left[parent] -= 1
            if not left[parent]:
                found.append(parent)
    return dict.fromkeys(name for name, *_ in entries if not left[name])


def _ratios(sizes: Field | None, origin: str) -> list[int]:
    """Return how many base blocks stand in each aggregated block, ascending."""
    if sizes is None:
        return []
    if not re.fullmatch(r"[1-9][0-9]{0,8}(,[1-9][0-9]{0,8})*", sizes.value):
        text = f"expected sizes of blocks such as 4,16, found {shown(sizes.value)}"
        raise InstanceError(origin, [f"{sizes.place}: {text}"])
    base, *rest = sorted({int(size) for size in sizes.value.split(",")})
    if len(rest) >= LIMITS.levels:
        text = f"{len(rest) + 1:,} sizes of blocks, more than {LIMITS.levels}"
        raise InstanceError(origin, [f"{sizes.place}: {text}"])
    for size in rest:
        if size % base or (size // base).bit_count() != 1:
            text = f"the size {size} is not a power of two times the base size {base}"
            raise InstanceError(origin, [f"{sizes.place}: {text}"])
    return [size // base for size in rest]


def _blocks(
    entries: list[Entry], ratios: list[int], gpus_per_node: int | None, origin: str
) -> Topology:
    """Put nodes in base blocks, and runs of consecutive base blocks in aggregated blocks.

    Blocks without nodes count in these runs: Topograph pads with them what is to stand apart.
    """
    _refuse_shared_nodes(entries, origin)
    names = [name for name, *_ in entries]
    rows: list[NodeRow] = []
    for number, (block, _, nodes) in enumerate(entries):
        around: list[str | None] = [block]
        before = (-1, -1)
        for ratio in ratios:
            first = number - number % ratio
            run = (first, min(first + ratio, len(names)) - 1)
            # cut short at the end of the list, a larger block can be the same as a smaller one
            around.append(None if run == before else f"{names[run[0]]}..{names[run[1]]}")
            before = run
        rows += [NodeRow(node, gpu_ids(node, gpus_per_node, origin), around) for node in nodes]
    levels = ["block", *(f"{ratio}-blocks" for ratio in ratios)]
    used = [n for n in range(len(levels)) if any(row.around[n] for row in rows)]
    rows = [row._replace(around=[row.around[n] for n in used]) for row in rows]
    return nested_topology([levels[n] for n in used], rows, origin)


def _refuse_shared_nodes(entries: list[Entry], origin: str) -> None:
    holder: dict[str, str] = {}
    faults: list[str] = []
    for block, _, nodes in entries:
        for node in nodes:
            if node in holder:
                faults.append(f"node '{node}' is in block '{holder[node]}' and in block '{block}'")
            holder.setdefault(node, block)
    if faults:
        raise InstanceError(origin, faults)

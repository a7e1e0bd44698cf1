"""The lines of Slurm's topology.conf, and of what ``scontrol show topology`` prints.

Facts of the format: https://slurm.schedmd.com/topology.conf.html; keys in any case, comments from
``#``, lines that go on after a backslash. `scontrol` adds a level to each switch, and names all
nodes below it; to each block it adds the size, and prints aggregated blocks on lines of their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from optsched.cluster.importers.text import Places
from optsched.cluster.importers.wiring import Field, Switch, Wiring
from optsched.documents.faults import InstanceError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS = ("SwitchName", "Switches", "Nodes", "LinkSpeed", "BlockName", "BlockSizes")
SHOWN = ("Level", "BlockIndex", "BlockSize", "AggregatedBlock")  # by scontrol only
_NO_TEXT = re.compile(r"#[^\n]*|\\\r?\n")
_PAIR = re.compile(r'([^\s=]+)[ \t]*=[ \t]*("[^"\n]*"|[^\s"]+)(?!\S)|\S+')


def parse_conf(text: str, origin: str) -> Wiring:
    """Parse topology.conf, or what `scontrol show topology` printed.

    Raises
    ------
    InstanceError
        With every line that does not parse.
    """
    wiring = Wiring([], [], None)
    faults: list[str] = []
    places = Places(text)
    plain = _NO_TEXT.sub(lambda match: " " * len(match[0]), text)  # offsets stay the same
    for line in re.finditer(r"[^\n]*\S[^\n]*", plain):
        try:
            pairs = dict(_pairs(places, plain, line.start(), line.end()))
            wiring = _with_line(wiring, pairs)
        except ValueError as error:
            blanks = len(line[0]) - len(line[0].lstrip())
            place = places.told(line.start() + blanks)
            faults.append(str(error) if str(error)[:5] == "line " else f"{place}: {error}")
    if faults:
        raise InstanceError(origin, faults)
    return wiring


def _pairs(places: Places, plain: str, start: int, end: int) -> Iterator[tuple[str, Field]]:
    known = {key.lower(): key for key in (*KEYS, *SHOWN)}
    keys: set[str] = set()
    for match in _PAIR.finditer(plain, start, end):
        place = places.told(match.start())
        if match[1] is None:
            raise ValueError(f"{place}: expected KEY=VALUE, found '{match[0]}'")
        key = known.get(match[1].lower())
        if key is None:
            raise ValueError(f"{place}: the key '{match[1]}' is unknown; {nearest(match[1], KEYS)}")
        if key in keys:
            raise ValueError(f"{place}: {key} stands twice in its line")
        keys.add(key)
        value = match[2].strip('"')
        yield key, Field(value, places.at(match.start(2) + match[2].startswith('"')))


def _with_line(wiring: Wiring, pairs: dict[str, Field]) -> Wiring:
    shown_sizes = _with_size(wiring, pairs)
    if shown_sizes is not None:
        wiring = wiring._replace(sizes=shown_sizes)
    if "AggregatedBlock" in pairs:
        return wiring
    present = [key for key in ("SwitchName", "BlockName", "BlockSizes") if key in pairs]
    if len(present) != 1:
        given = " and ".join(present) or "none"
        raise ValueError(f"expected one of SwitchName, BlockName and BlockSizes, found {given}")
    nodes, switches = pairs.get("Nodes"), pairs.get("Switches")
    if present == ["BlockSizes"]:
        return Wiring(wiring.switches, wiring.blocks, pairs["BlockSizes"])
    name = pairs[present[0]]
    if present == ["BlockName"]:
        if switches is not None:
            raise ValueError(f"block '{name.value}' needs Nodes, and nothing else")
        wiring.blocks.append(Switch(name, None, nodes))
        return wiring
    if "Level" in pairs and switches is not None:
        nodes = None  # those below the switches
    if nodes is not None and switches is not None:
        raise ValueError(f"switch '{name.value}' needs either Nodes or Switches")
    wiring.switches.append(Switch(name, switches, nodes))
    return wiring


def _with_size(wiring: Wiring, pairs: dict[str, Field]) -> Field | None:
    """Return the sizes of blocks with the one of this line, if `scontrol` printed one."""
    size, known = pairs.get("BlockSize"), wiring.sizes
    if size is None or (known is not None and size.value in known.value.split(",")):
        return known
    return size if known is None else Field(f"{known.value},{size.value}", known.at)

"""What a file may hold at most: more is refused when it is read, before it costs time or memory.

The limits lie far above what clusters have, so that a file beyond them is a mistake or an attack.
SECURITY.md says what they are for.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class FileLimits:
    """Limits of files.

    Attributes
    ----------
    file_bytes
        Of a file, plain or after decompression.
    expansion, expansion_bytes
        What is compressed may grow so many times, or to so many bytes, whichever is more.
    yaml_bytes
        Of a YAML file, which is slow to parse.
    depth
        Of lists and objects of JSON inside one another.
    text_chars
        Of a single text in JSON: a description, say.
    name_chars
        Of the name of a domain, GPU or node of a topology.
    levels
        Of a topology, and of switches above one another.
    items
        Domains or GPUs of a topology; names that the hostlists of a file stand for.
    range_names
        Names that one hostlist stands for.
    matrix_gpus
        Of one node, in the matrix of ``nvidia-smi topo -m``.
    columns
        Of a table of text.
    faults, fault_chars
        Faults that are told of a file, and the length of each.
    counted_faults
        Faults of types that are told apart; of more, only the number is told.
    hint_chars, hint_names
        The known name nearest to a misspelt one is looked for up to this length, and among so many.
    """

    file_bytes: int = 512 * MIB
    expansion: int = 32
    expansion_bytes: int = 16 * MIB
    yaml_bytes: int = 4 * MIB
    depth: int = 100
    text_chars: int = 100_000
    name_chars: int = 1_000
    levels: int = 32
    items: int = 500_000
    range_names: int = 65_536
    matrix_gpus: int = 256
    columns: int = 1_000
    faults: int = 100
    fault_chars: int = 1_000
    counted_faults: int = 100_000
    hint_chars: int = 100
    hint_names: int = 2_000


LIMITS = FileLimits()

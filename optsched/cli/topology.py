"""The commands `optsched topology ...`."""

from __future__ import annotations

import warnings
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import console

if TYPE_CHECKING:
    from rich.table import Table

    from optsched.cluster import Topology


class FileFormat(StrEnum):
    """Formats of files that describe clusters."""

    SLURM = "slurm"
    TOPOGRAPH = "topograph"
    NODE_LINK = "node-link"
    GRAPHML = "graphml"
    LABELS = "labels"
    NVIDIA_SMI = "nvidia-smi"


app = console.group("Import and show topologies of clusters.")


@app.command("import")
def import_file(
    source: Annotated[str, typer.Argument(metavar="FILE", help="For example topology.conf.")],
    file_format: Annotated[FileFormat, typer.Option("--format")],
    gpus_per_node: Annotated[
        int | None,
        typer.Option(metavar="N", help="Where the file does not say it; ids are <node>/<index>."),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One of several in Slurm's topology.yaml."),
    ] = None,
    domain_label: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Topograph's label of NVLink domains, if not its own."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Default: stdout.")
    ] = None,
) -> None:
    """Read the topology of a cluster from a file of another program.

    Example: optsched topology import topology.conf --format slurm --gpus-per-node 8 -o c.json
    """
    from optsched.cluster import import_topology
    from optsched.cluster.importers import ImportNote
    from optsched.instance import write

    console.check_output(output, (".json",))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", ImportNote)
        imported = import_topology(
            source,
            file_format.value,
            gpus_per_node,
            topology=topology,
            domain_label=domain_label,
        )
    for note in notes:
        console.say(f"note: {note.message}", err=True)
    if output is None:
        console.print_json(imported.to_json())
        return
    write(imported, output)
    console.show(_table(imported))


@app.command()
def show(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A file written by import.")],
) -> None:
    """Show the levels of a topology, from the root down.

    Example: optsched topology show cluster.json
    """
    from optsched.cluster import read_topology

    console.show(_table(read_topology(source)))


def _table(topology: Topology) -> Table:
    """Return a row for each level from the root down: domains, and their GPUs."""
    from optsched.cli import tables

    rows = []
    for level in reversed(topology.levels):
        sizes = [len(topology.gpus_in(int(domain))) for domain in topology.domains_at(level)]
        ends = dict.fromkeys([min(sizes, default=0), max(sizes, default=0)])
        each = " to ".join(f"{size:,}" for size in ends)
        rows.append((level, f"{len(sizes):,}", f"{sum(sizes):,}", each))
    return tables.grid(("level", "domains", "available GPUs", "in each"), rows, left=1)

"""The commands `optsched topology ...`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli import completion, console, options
from optsched.cli.printing import output

if TYPE_CHECKING:
    from optsched.cluster import Topology


Format = Annotated[
    str,
    options.data(
        "--input-format",
        "--format",
        metavar="NAME",
        help="Of the file: slurm, topograph, node-link, graphml, labels or nvidia-smi; or a "
        "reader of your own, my.py:read.",
    ),
]
GpusPerNode = Annotated[
    int | None,
    options.data(metavar="N", help="Where the file does not say it; ids are <node>/<index>."),
]
TopologyName = Annotated[
    str | None, options.data(metavar="NAME", help="One of several in Slurm's topology.yaml.")
]
DomainLabel = Annotated[
    str | None,
    options.data(metavar="KEY", help="Topograph's label of NVLink domains, if not its own."),
]
TopologyOutput = Annotated[
    str | None,
    options.file(
        "--output", "-o", metavar="FILE", help="Where it goes, as JSON; by default it is printed."
    ),
]

app = console.group("Import and show topologies of clusters.")


@app.command("import", cls=output.Command)
def import_file(
    source: Annotated[str, typer.Argument(metavar="FILE", help="For example topology.conf.")],
    input_format: Format,
    gpus_per_node: GpusPerNode = None,
    topology: TopologyName = None,
    domain_label: DomainLabel = None,
    topology_file: TopologyOutput = None,
) -> None:
    """Read the topology of a cluster from a file of another program.

    Example: optsched topology import topology.conf --input-format slurm --gpus-per-node 8 -o c.json
    """
    from optsched.cluster import import_topology
    from optsched.cluster.importers import ImportNote
    from optsched.instance import write

    console.check_output(topology_file, (".json",))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", ImportNote)
        imported = import_topology(
            source, input_format, gpus_per_node, topology=topology, domain_label=domain_label
        )
    for note in notes:
        output.say(f"note: {note.message}", err=True)
    if topology_file is None:
        output.print_json(imported.to_json())
        return
    write(imported, topology_file)
    _show(imported)


@app.command(cls=output.Command)
def show(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A file written by import.", autocompletion=completion.files
        ),
    ],
    picture: options.Picture = None,
) -> None:
    """Show the levels of a topology, from the root down.

    JSON: levels, each with level, domains, available_gpus, least_in_each, most_in_each.

    Example: optsched topology show cluster.json
    """
    from optsched.cluster import read_topology

    console.check_output(picture, options.PICTURES, "--plot")
    topology = read_topology(source)
    if picture is not None:
        from optsched.cluster.plot import plot_topology

        console.draw(lambda axes: plot_topology(topology, ax=axes), picture)
    _show(topology)


def _show(topology: Topology) -> None:
    from optsched.cli.printing import tables

    rows = levels(topology)
    names = ("level", "domains", "available GPUs", "in each")
    output.show(
        tables.grid(names, (_texts(row) for row in rows), left=1),
        records=lambda: rows,
        document=lambda: {"levels": rows},
    )


def levels(topology: Topology) -> list[dict[str, Any]]:
    """Return a row for each level from the root down: domains, and their GPUs."""
    rows = []
    for level in reversed(topology.levels):
        sizes = [len(topology.gpus_in(int(domain))) for domain in topology.domains_at(level)]
        rows.append({
            "level": level, "domains": len(sizes), "available_gpus": sum(sizes),
            "least_in_each": min(sizes, default=0), "most_in_each": max(sizes, default=0),
        })  # fmt: skip
    return rows


def _texts(row: dict[str, Any]) -> tuple[str, ...]:
    ends = dict.fromkeys([row["least_in_each"], row["most_in_each"]])
    each = " to ".join(f"{size:,}" for size in ends)
    return row["level"], f"{row['domains']:,}", f"{row['available_gpus']:,}", each

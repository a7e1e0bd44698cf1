"""Topologies from the files that clusters already have: one module for each format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.cluster.importers.text import ImportNote as ImportNote
from optsched.plugins.errors import PluginError
from optsched.plugins.plugin import (
    TOPOLOGY_IMPORTERS,
    Plugin,
    by_name,
    installed,
    loaded_function,
)
from optsched.registry import UnknownNameError, loaded

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.cluster.topology import Topology

#: Name of each format to the function that reads it.
FORMATS = {
    "slurm": "optsched.cluster.importers.slurm:read_slurm",
    "topograph": "optsched.cluster.importers.topograph:read_topograph",
    "node-link": "optsched.cluster.importers.graphs:read_node_link",
    "graphml": "optsched.cluster.importers.graphs:read_graphml",
    "labels": "optsched.cluster.importers.labels:read_labels",
    "nvidia-smi": "optsched.cluster.importers.nvidia:read_nvidia_smi",
}


OPTIONS = {"slurm": "topology", "topograph": "domain_label"}  # that only one format has


def import_topology(
    path: str | Path,
    file_format: str,
    gpus_per_node: int | None = None,
    *,
    topology: str | None = None,
    domain_label: str | None = None,
) -> Topology:
    """Read the topology of a cluster from a file of another program.

    It may have `optsched.documents.limits.LIMITS.items` nodes and GPUs.

    Parameters
    ----------
    path
        The file.
    file_format
        ``"slurm"``: topology.conf, topology.yaml or what ``scontrol show topology`` prints,
        tree or block; ``"topograph"``: JSON of
        Topograph's graph engine; ``"node-link"`` and ``"graphml"``: a graph of networkx;
        ``"labels"``: CSV with the columns node, gpus and one for each level from the closest up;
        ``"nvidia-smi"``: what ``nvidia-smi topo -m`` prints. Or of others: a name that is
        installed, or ``"module:Name"`` of a function of (path, gpus_per_node).
    gpus_per_node
        Where the file does not say how many GPUs a node has: they get the ids ``"<node>/<index>"``.
    topology
        Of ``"slurm"``: name of one of the topologies of a topology.yaml.
    domain_label
        Of ``"topograph"``: key of the label with the NVLink domain, if it was configured; by
        default that of Topograph, ``"accelerator.topograph.run/domain"``.

    Warns
    -----
    ImportNote
        If something in the file is not looked at that may matter.

    Raises
    ------
    InstanceError
        If the file does not parse, with line and column, or is no tree of domains.
    UnknownNameError
        If there is no such format.
    OSError
        If the file cannot be read.
    """
    reader = _reader(file_format)
    if gpus_per_node is not None and not 1 <= gpus_per_node <= 1024:
        raise ValueError(f"GPUs per node must be from 1 to 1024, found {gpus_per_node}")
    options = {"topology": topology, "domain_label": domain_label}
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if OPTIONS.get(file_format) != name:
            fitting = next(other for other, option in OPTIONS.items() if option == name)
            raise ValueError(f"{name} is an option of the format '{fitting}', not '{file_format}'")
    return _checked(reader(Path(path), gpus_per_node, **given), file_format)


def installed_formats() -> list[Plugin]:
    """Return the formats of installed plug-ins; none is imported."""
    return installed(TOPOLOGY_IMPORTERS, FORMATS)


def _reader(file_format: str) -> Callable[..., Any]:
    if file_format in FORMATS:
        ours: Callable[..., Any] = loaded(FORMATS[file_format])
        return ours
    plugin = by_name(file_format, TOPOLOGY_IMPORTERS, FORMATS)
    if plugin is None:
        known = [*FORMATS, *(other.name for other in installed_formats())]
        raise UnknownNameError("format", file_format, known)
    return loaded_function(plugin, "format", "(path, gpus_per_node)")


def _checked(found: object, file_format: str) -> Topology:
    from optsched.cluster.topology import Topology

    if not isinstance(found, Topology):
        what = f"its reader returned an object of type {type(found).__name__}"
        raise PluginError(f"format '{file_format}': {what}, expected a Topology")
    return found

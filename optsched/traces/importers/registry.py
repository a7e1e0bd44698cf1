"""Traces from the files that others publish: one module for each format."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.documents.faults import InstanceError
from optsched.plugins.errors import PluginError
from optsched.plugins.plugin import TRACE_IMPORTERS, Plugin, by_name, installed, loaded_function
from optsched.registry import UnknownNameError
from optsched.traces.files import open_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.traces.trace import Trace


class Format(NamedTuple):
    """A format of traces: `module` has `read(text, name, origin, **options)`.

    `members` is the pattern of traces inside an archive; `workloads` tells whether one file may
    hold several workloads.
    """

    module: str
    summary: str
    members: str = "*.csv"
    workloads: bool = False


FORMATS = {
    "philly": Format("philly", "Microsoft Philly's cluster_job_log (JSON, ATC'19)", "*job_log*"),
    "philly-csv": Format("philly_csv", "Philly jobs as CSV: timestamp, duration, num_gpus, ..."),
    "elasticflow": Format("elasticflow", "ElasticFlow's Philly jobs with deadlines (CSV)"),
    "muri": Format("muri", "Muri's Philly jobs (CSV, times in milliseconds)"),
    "helios": Format("helios", "SenseTime Helios' cluster_log.csv (SC'21)"),
    "acme": Format("acme", "Shanghai AI Lab's trace_seren.csv and trace_kalos.csv (NSDI'24)"),
    "openb": Format("openb", "Alibaba's openb_pod_list_*.csv (ATC'23)"),
    "pollux": Format("pollux", "Pollux's and Sia's workload-N.csv", "*workload-*.csv"),
    "pal": Format("pal", "PAL's workload-N.csv (SC'24), one or several in a file", "*.csv", True),
    "gavel": Format("gavel", "Gavel's *.trace (OSDI'20), with throughputs=FILE", "*.trace"),
    "csv": Format("own_table.reader", "a table of your own, with columns of any names"),
    "slurm": Format("slurm", "What `sacct --parsable2` prints", "*"),
}
"""Name of each format to what it reads."""
BY_FIELD = frozenset({"csv"})
"""Formats with options that tell something of each field, as mappings too."""
OWN = Format("", "of somebody else", "*")


def import_trace(
    path: str | Path, file_format: str, workload: str | int | None = None, **options: Any
) -> Trace:
    """Read the jobs of a trace that another program or project wrote.

    What was left out or interpreted is told in `Trace.notes`, with counts.

    Parameters
    ----------
    path
        A text file, plain or compressed by gzip, or a tar archive of such files.
    file_format
        A key of `FORMATS`; or of others: a name that is installed, or ``"module:Name"`` of a
        function of (text, name, origin) with options as keywords, which returns a `Trace`.
    workload
        Which one, if the file or archive holds several: its name inside.
    **options
        Of the format: see `read` of its module.

    Raises
    ------
    InstanceError
        If anything in it is wrong: the first 20 faults, each with line and column.
    UnknownNameError
        If there is no such format, workload or option.
    OSError
        If the file cannot be read.
    """
    known = FORMATS.get(file_format, OWN)
    _check_options(file_format, options)
    wanted = None if workload is None else str(workload)
    name, text, wanted = open_trace(Path(path), wanted, known.members)
    if known.workloads:
        options["workload"] = wanted
    elif wanted is not None:
        fault = f"holds one workload only: it cannot be asked for workload '{wanted}'"
        raise InstanceError(str(path), [fault])
    return _read(file_format, text, name, str(path), options)


def format_options(file_format: str) -> dict[str, Any]:
    """Return the options of a format, and what each is by default."""
    parameters = inspect.signature(_reader(file_format)).parameters.values()
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "workload"]
    return {parameter.name: parameter.default for parameter in named}


def installed_formats() -> list[Plugin]:
    """Return the formats of installed plug-ins; none is imported."""
    return installed(TRACE_IMPORTERS, FORMATS)


def _reader(file_format: str) -> Callable[..., Any]:
    """Return what reads a format: ours, of an installed plug-in, or ``module:Name``."""
    if file_format in FORMATS:
        module = importlib.import_module(f"optsched.traces.importers.{FORMATS[file_format].module}")
        reader: Callable[..., Any] = module.read
        return reader
    plugin = by_name(file_format, TRACE_IMPORTERS, FORMATS)
    if plugin is None:
        known = [*FORMATS, *(other.name for other in installed_formats())]
        raise UnknownNameError("format of traces", file_format, known)
    return loaded_function(plugin, "format of traces", "(text, name, origin)")


def _read(file_format: str, text: str, name: str, path: str, options: dict[str, Any]) -> Trace:
    from optsched.traces.trace import Trace

    found = _reader(file_format)(text, name, path, **options)
    if not isinstance(found, Trace):
        what = f"its reader returned an object of type {type(found).__name__}"
        raise PluginError(f"format of traces '{file_format}': {what}, expected a Trace")
    return found


def _check_options(file_format: str, options: dict[str, Any]) -> None:
    known = list(format_options(file_format))
    kinds = (str, Mapping) if file_format in BY_FIELD else (str,)
    for name in options:
        if name not in known:
            raise UnknownNameError(f"option of format '{file_format}'", name, known or ["none"])
        if not isinstance(options[name], kinds):
            raise ValueError(f"option {name}: expected a word, found {options[name]!r}")

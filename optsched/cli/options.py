"""The options of all commands: each has one name, one meaning and one form wherever it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import completion
from optsched.plugins.plugin import referred

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA, LIMITS, FILES = "Data", "Method and limits", "Output"

PICTURES = (".png", ".svg", ".pdf")


def fraction(text: str | float) -> float:
    """Return a number, or per cents as in ``1%``."""
    written = str(text).strip()
    try:
        return float(written[:-1]) / 100 if written.endswith("%") else float(written)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is no number such as 0.01, nor 1%") from None


def split(texts: Iterable[str] | None) -> list[str]:
    """Return the names in options that are given several times or hold lists: ``A,B``."""
    return [name.strip() for text in texts or () for name in text.split(",") if name.strip()]


def policies(texts: Iterable[str]) -> list[str]:
    """Return the policies in lists such as ``"fifo:relax_s=600,backfill=true,las"``.

    What stands between two commas is an option of the policy before it if it is ``key=value``
    without a colon in the key.
    """
    return [name for text in texts for name in _policies(text)]


def _policies(text: str) -> list[str]:
    names: list[str] = []
    for part in text.split(","):
        key, equals, _ = part.partition("=")
        if not equals or ":" in key:
            names.append(part.strip())
        elif not names or not _has_options(names[-1]):
            raise ValueError(f"--policy {text}: option '{part.strip()}' follows no policy:")
        else:
            names[-1] += f",{part.strip()}"
    return [name for name in names if name]


def _has_options(policy: str) -> bool:
    """Tell whether a policy ends in options: what follows ``module:Name:``, or another name."""
    found = referred(policy)
    return ":" in policy if found is None else bool(found[1])


# --- arguments --------------------------------------------------------------------------------

Source = Annotated[
    str,
    typer.Argument(
        metavar="INSTANCE",
        help="A file, or the name of a bundled instance.",
        autocompletion=completion.instances,
    ),
]
ScenarioName = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A file, or one of `optsched scenarios`.",
        autocompletion=completion.scenarios,
    ),
]
ResultFile = Annotated[
    str,
    typer.Argument(
        metavar="RESULT", help="A file written by --output.", autocompletion=completion.files
    ),
]

# --- data -------------------------------------------------------------------------------------

Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change a field, e.g. budget_gpus=24 or 'jobs.*.weight=2'; null removes it. "
        "May be given several times.",
        rich_help_panel=DATA,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set an option of the format or generator. May be given several times.",
        rich_help_panel=DATA,
    ),
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        "--input-format",
        metavar="NAME",
        help="Of the file: one of `optsched trace formats`; by default a trace of optsched's.",
        rich_help_panel=DATA,
    ),
]
TraceFile = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Jobs instead of the scenario's own.",
        rich_help_panel=DATA,
    ),
]
Workload = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="Which one, where the file holds several.", rich_help_panel=DATA
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        metavar="RESULT",
        help="Begin with the result of the previous epoch.",
        rich_help_panel=DATA,
        autocompletion=completion.files,
    ),
]

# --- methods and limits -----------------------------------------------------------------------

MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="See `optsched methods`; the default is the exact one.",
        rich_help_panel=LIMITS,
        autocompletion=completion.methods,
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "-m",
        metavar="A,B,...",
        help="Methods, of which the first is the curve. May be given several times.",
        rich_help_panel=LIMITS,
        autocompletion=completion.methods,
    ),
]
PolicyName = Annotated[
    str,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAME",
        help="With options, e.g. fifo:backfill=yes; see `optsched policies`. Or your own: "
        "my.py:Fair, module:Fair.",
        rich_help_panel=LIMITS,
        autocompletion=completion.policies,
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        "--policies",
        "-p",
        metavar="A,B,...",
        help="The first is what the others are compared with. What follows a colon, up to the "
        "next name, are options: fifo:relax_s=600,backfill=true,las is two policies. May be "
        "given several times; by default those of the scenario. Your own: my.py:Fair.",
        rich_help_panel=LIMITS,
        autocompletion=completion.policies,
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Of each solve: stop with the best plan so far.",
        rich_help_panel=LIMITS,
    ),
]
Gap = Annotated[
    float | None,
    typer.Option(
        metavar="FRACTION",
        parser=fraction,
        help="Relative gap at which to stop: 0.01 or 1%; by default 1e-6.",
        rich_help_panel=LIMITS,
    ),
]
Seed = Annotated[
    int,
    typer.Option(metavar="N", help="Seed of everything that is drawn.", rich_help_panel=LIMITS),
]
Seeds = Annotated[
    int,
    typer.Option(
        metavar="N", help="Runs of each policy, with seeds 0 to N - 1.", rich_help_panel=LIMITS
    ),
]
Threads = Annotated[
    int, typer.Option(metavar="N", help="Threads for HiGHS.", rich_help_panel=LIMITS)
]
Memory = Annotated[
    float | None,
    typer.Option(
        metavar="GIB", help="May be taken; by default what is free.", rich_help_panel=LIMITS
    ),
]
Processes = Annotated[
    int,
    typer.Option(metavar="N", help="Work in so many processes at once.", rich_help_panel=LIMITS),
]
AndCompare = Annotated[
    bool,
    typer.Option(
        "--compare/--no-compare", help="Run the greedy methods too.", rich_help_panel=LIMITS
    ),
]

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Print a line on stderr for each new phase, better plan and bound.",
        rich_help_panel=FILES,
    ),
]

# --- output -----------------------------------------------------------------------------------

Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write it there, as JSON.", rich_help_panel=FILES
    ),
]
TableOutput = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write all data there, as .json or .csv.",
        rich_help_panel=FILES,
    ),
]
Picture = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw it there, as .png, .svg or .pdf.",
        rich_help_panel=FILES,
    ),
]

"""The options of all commands: each has one name, one meaning and one form wherever it stands."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import completion
from optsched.plugins.plugin import referred

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA, LIMITS, FILES = "Data", "Method and limits", "Output"

data = partial(typer.Option, rich_help_panel=DATA)
limit = partial(typer.Option, rich_help_panel=LIMITS)
file = partial(typer.Option, rich_help_panel=FILES)
"""What declares an option of each panel of `--help`."""

MOST_SEEDS = 10_000
PICTURES = (".png", ".svg", ".pdf")


def fraction(text: str | float) -> float:
    """Return a number, or per cents as in ``1%``."""
    written = str(text).strip()
    try:
        return float(written[:-1]) / 100 if written.endswith("%") else float(written)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is no number such as 0.01, nor 1%") from None


def seeds(text: str) -> list[int]:
    """Return the seeds of a list such as ``0,1,7`` or ``0-4``, or of one.

    Raises
    ------
    ValueError
        If it is none, or one is named twice.
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        ends = (first, last) if dash else (first, first)
        if not all(end.isdecimal() and end.isascii() and len(end) < 10 for end in ends):
            raise ValueError(f"--seed {text}: expected whole numbers, such as 3; 0,1,7; or 0-4")
        if int(ends[1]) - int(ends[0]) >= MOST_SEEDS:
            raise ValueError(f"--seed {text}: more than {MOST_SEEDS:,} seeds")
        found += range(int(ends[0]), int(ends[1]) + 1)
    if not found or len(set(found)) < len(found):
        raise ValueError(f"--seed {text}: expected each seed once, the least first in a range")
    return found


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
    data(
        "--set",
        metavar="PATH=VALUE",
        help="Change a field, e.g. budget_gpus=24 or 'jobs.*.weight=2'; null removes it. "
        "May be given several times.",
    ),
]
Settings = Annotated[
    list[str] | None,
    data(
        "--set",
        metavar="KEY=VALUE",
        help="Set an option of the format or generator. May be given several times.",
    ),
]
InputFormat = Annotated[
    str | None,
    data(
        "--input-format",
        metavar="NAME",
        help="Of the file: one of `optsched trace formats`; by default a trace of optsched's.",
    ),
]
TraceFile = Annotated[
    str | None, data("--trace", metavar="FILE", help="Jobs instead of the scenario's own.")
]
Workload = Annotated[str | None, data(metavar="N", help="Which one, where the file holds several.")]
Start = Annotated[
    str | None,
    data(
        metavar="RESULT",
        help="Begin with the result of the previous epoch.",
        autocompletion=completion.files,
    ),
]

# --- methods and limits -----------------------------------------------------------------------

MethodName = Annotated[
    str | None,
    limit(
        "--method",
        "-m",
        metavar="NAME",
        help="See `optsched methods`; the default is the exact one.",
        autocompletion=completion.methods,
    ),
]
Methods = Annotated[
    list[str] | None,
    limit(
        "--method",
        "-m",
        metavar="A,B,...",
        help="Methods, of which the first is the curve. May be given several times.",
        autocompletion=completion.methods,
    ),
]
PolicyName = Annotated[
    str,
    limit(
        "--policy",
        "-p",
        metavar="NAME",
        help="With options, e.g. fifo:backfill=yes; see `optsched policies`. Or your own: "
        "my.py:Fair, module:Fair.",
        autocompletion=completion.policies,
    ),
]
Policies = Annotated[
    list[str] | None,
    limit(
        "--policy",
        "--policies",
        "-p",
        metavar="A,B,...",
        help="The first is what the others are compared with. What follows a colon, up to the "
        "next name, are options: fifo:relax_s=600,backfill=true,las is two policies. May be "
        "given several times; by default those of the scenario. Your own: my.py:Fair.",
        autocompletion=completion.policies,
    ),
]
TimeLimit = Annotated[
    float | None, limit(metavar="SECONDS", help="Of each solve: stop with the best plan so far.")
]
Gap = Annotated[
    float | None,
    limit(
        metavar="FRACTION",
        parser=fraction,
        help="Relative gap at which to stop: 0.01 or 1%; by default 1e-6.",
    ),
]
Seed = Annotated[int, limit(metavar="N", help="Seed of everything that is drawn.")]
Seeds = Annotated[
    str,
    limit(
        "--seed",
        metavar="A,B,...",
        help="Seed of everything that is drawn; or several, 0,1,7 or 0-4, for a run with each.",
    ),
]
SeedCount = Annotated[int | None, typer.Option("--seeds", metavar="N", hidden=True)]
"""What `--seed 0-4` was called once: `--seeds 5`."""
Threads = Annotated[int, limit(metavar="N", help="Threads for HiGHS.")]
Memory = Annotated[
    float | None, limit(metavar="GIB", help="May be taken; by default what is free.")
]
Processes = Annotated[int, limit(metavar="N", help="Work in so many processes at once.")]
AllProcesses = Annotated[
    int | None,
    limit(
        metavar="N",
        help="Work in so many processes at once; by default all CPUs, if that saves time.",
    ),
]
Scheduler = Annotated[
    str | None,
    limit(
        metavar="ADDRESS",
        help="Instead: on the workers of a Dask scheduler, such as tcp://10.0.0.5:8786.",
    ),
]
Cache = Annotated[
    str | None,
    file(metavar="DIR", help="Keep there what is done; what was killed goes on from it."),
]
AndCompare = Annotated[
    bool | None, limit("--compare/--no-compare", help="Run the greedy methods too.")
]

Verbose = Annotated[
    bool,
    file(
        "--verbose", "-v", help="Print a line on stderr for each new phase, better plan and bound."
    ),
]

Bound = Annotated[
    bool | None,
    limit(
        "--bound/--no-bound",
        help="Say how far policies are above a certified bound; by default where that is quick.",
    ),
]

# --- output -----------------------------------------------------------------------------------

Output = Annotated[
    str | None, file("--output", "-o", metavar="FILE", help="Write it there, as JSON.")
]
TableOutput = Annotated[
    str | None,
    file("--output", "-o", metavar="FILE", help="Write all data there, as .json or .csv."),
]
Picture = Annotated[
    str | None, file("--plot", metavar="FILE", help="Draw it there, as .png, .svg or .pdf.")
]

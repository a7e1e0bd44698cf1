"""The command line: `optsched --help`.

Exit codes: 0 done, 1 a check or proof failed, 2 bad input, 3 infeasible, 4 no plan within the
limits, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

from typing import Annotated

import typer

from optsched.cli import (
    bound,
    documents,
    frontier,
    instances,
    interrupts,
    report,
    reproduce,
    rollout,
    solve,
    topology,
    trace,
    verify,
)
from optsched.cli.console import Commands, ExitCode
from optsched.cli.printing import output, streams

MODULES = {
    "Solve and prove": (solve, verify, frontier),
    "Simulate": (rollout, bound, reproduce),
    "Explain and show": (report,),
    "Look up and begin": (instances, documents),
}
"""The modules of commands, by the panel of `optsched --help` that lists them."""

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings=output.HELP_OPTIONS,
)
for panel, modules in MODULES.items():
    for command in (each for module in modules for each in module.COMMANDS):
        app.command(cls=output.Command, rich_help_panel=panel)(command)
app.add_typer(topology.app, name="topology", rich_help_panel="Your own data")
app.add_typer(trace.app, name="trace", rich_help_panel="Your own data")


def main() -> None:
    """Run the command line."""
    interrupts.install()
    streams.prepare()
    try:
        app(prog_name="optsched")
    except SystemExit as end:
        if interrupts.has_come():
            interrupts.leave(end.code if isinstance(end.code, int) else ExitCode.FAILED)
        raise


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        output.say(f"optsched {version('optsched')}")
        raise typer.Exit


@app.callback()
def _optsched(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Provably optimal scheduling of deep-learning jobs on GPU clusters.

    Example: optsched solve boa/cbd-85

    Exit codes: 0 done, 1 a check or proof failed, 2 bad input, 3 infeasible,
    4 no plan within the time limit, 130 interrupted, 143 terminated.
    """

"""The command `optsched frontier`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli import console

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from optsched.sweeps.points import Frontier

FieldPath = Annotated[
    str, typer.Option(metavar="PATH", help="Field to sweep, e.g. jobs.*.max_slowdown.")
]
Values = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Instead: these values, ascending.")
]
Methods = Annotated[
    list[str] | None,
    typer.Option(help="Method or policy; may be given several times; the first is the curve."),
]
TimeLimit = Annotated[float | None, typer.Option(metavar="SECONDS", help="Of each solve.")]
Processes = Annotated[
    int | None, typer.Option(metavar="N", help="By default all CPUs, if that saves time.")
]
CacheFolder = Annotated[
    str | None, typer.Option(metavar="DIR", help="Keep points there; a killed sweep resumes.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change a field beforehand."),
]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write .json or .csv.")
]
Picture = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Draw it, as .png, .svg or .pdf.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the frontier as JSON and nothing else.")
]


def frontier(
    source: Annotated[
        str, typer.Argument(metavar="INSTANCE", help="A file or name; or that of a scenario.")
    ],
    parameter: FieldPath = "budget_gpus",
    first: Annotated[float | None, typer.Option("--from", help="Least value.")] = None,
    last: Annotated[float | None, typer.Option("--to", help="Greatest value.")] = None,
    points: Annotated[int, typer.Option(help="How many values, evenly spaced.")] = 25,
    values: Values = None,
    method: Methods = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="The greedy methods too.")] = False,
    metric: Annotated[str, typer.Option(help="Of scenarios: the objective.")] = "jct_mean_s",
    time_limit: TimeLimit = None,
    gap: Annotated[float | None, typer.Option(help="Relative gap at which solves stop.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything that is drawn.")] = 0,
    processes: Processes = None,
    cache: CacheFolder = None,
    changes: Changes = None,
    output: Output = None,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """Solve an instance, or run a scenario, at every value of a parameter.

    Example: optsched frontier boa/cbd-85 --from 20 --to 80 --points 200 --cache points

    Example: optsched frontier pal-64 --parameter epoch_s --values 60,300,900
    """
    from optsched.sweeps.frontier import frontier as run
    from optsched.sweeps.frontier import subject_of

    console.check_output(output, (".json", ".csv"))
    console.check_output(picture, (".png", ".svg", ".pdf"), "--plot")
    swept = chosen_values(first, last, points, values)
    options: dict[str, Any] = {"time_limit_s": time_limit, "gap": gap, "seed": seed}
    options = {name: value for name, value in options.items() if value is not None}
    subject, wanted = subject_of(source), console.changes(changes)
    subject = subject.changed(wanted) if wanted else subject
    with (
        console.plain_warnings(),
        console.progress_bar(f"{parameter} of {subject.name}") as progress,
    ):
        curve = run(
            subject, parameter, swept, methods="all" if greedy else method, metric=metric,
            executor=processes, cache=cache, progress=progress, **options,
        )  # fmt: skip
    if output is not None:
        _write(curve, output)
    if picture is not None:
        _draw(curve, picture)
    _print(curve, as_json)
    raise typer.Exit(_exit_code(curve))


COMMANDS = (frontier,)


def chosen_values(
    first: float | None, last: float | None, points: int, values: str | None
) -> list[float]:
    """Return the values that the options ask for; checks only what the options can get wrong."""
    if values is not None:
        if first is not None or last is not None:
            raise ValueError("--values: stands for --from and --to; give the one or the others")
        try:
            return [float(text) for text in values.split(",")]
        except ValueError:
            raise ValueError(f"--values {values}: expected numbers, such as 20,24,30") from None
    if first is None or last is None:
        raise ValueError("--from and --to: give both, or --values")
    if points < 2 or not first < last:
        raise ValueError(
            f"--from {first:g} --to {last:g} --points {points}: expected two points or more, "
            "and --from below --to"
        )
    step = (last - first) / (points - 1)
    return [*(first + n * step for n in range(points - 1)), last]


def _write(curve: Frontier, path: str | Path) -> None:
    from optsched.documents.json_files import write_text

    is_csv = str(path).endswith(".csv")
    text = curve.frame().to_csv(index=False, lineterminator="\n") if is_csv else curve.to_json()
    write_text(path, text)


def _draw(curve: Frontier, path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.4), layout="constrained")
    curve.plot(figure.subplots())
    figure.savefig(path, dpi=150)


def _print(curve: Frontier, as_json: bool) -> None:
    from optsched.cli import tables

    if as_json:
        console.print_json(curve.to_json())
        return
    console.show(tables.rows(curve.summary()), "", _table(curve))


def _table(curve: Frontier) -> Table:
    """Return what the methods reached at some values: all, or as many as fit on a screen."""
    from optsched.cli import tables
    from optsched.results.result import figure

    values = curve.values
    count = min(len(values), 20)
    chosen = {values[round(n * (len(values) - 1) / max(count - 1, 1))] for n in range(count)}
    rows: dict[float, list[str]] = {}
    for point in curve.points:
        if point.value in chosen:
            reached = str(point.status)
            if point.objective is not None:
                reached = figure(point.objective)
            rows.setdefault(point.value, []).append(reached)
    entries = ([f"{value:,.6g}", *texts] for value, texts in rows.items())
    return tables.grid([curve.parameter, *curve.methods], entries)


def _exit_code(curve: Frontier) -> console.ExitCode:
    if any(point.objective is not None for point in curve.points):
        return console.ExitCode.DONE
    infeasible = any(point.status == "infeasible" for point in curve.points)
    return console.ExitCode.INFEASIBLE if infeasible else console.ExitCode.NO_PLAN

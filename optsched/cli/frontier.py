"""The command `optsched frontier`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli import completion, console, options, progress
from optsched.cli.printing import output

if TYPE_CHECKING:
    from pathlib import Path

    from optsched.instance import Instance
    from optsched.rollout import Scenario
    from optsched.sweeps.points import Frontier

SWEEP = "Values"
MOST_POINTS = 100_000

FieldPath = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Field to sweep, e.g. 'jobs.*.max_slowdown'; by default budget_gpus.",
        rich_help_panel=SWEEP,
    ),
]
Least = Annotated[float | None, typer.Option("--from", help="Least value.", rich_help_panel=SWEEP)]
Greatest = Annotated[
    float | None, typer.Option("--to", help="Greatest value.", rich_help_panel=SWEEP)
]
Points = Annotated[
    int,
    typer.Option(metavar="N", help="How many values, evenly spaced.", rich_help_panel=SWEEP),
]
Values = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...", help="Instead: these values, ascending.", rich_help_panel=SWEEP
    ),
]
Against = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Of scenarios, with --plot: a metric from left to right, such as cost_usd.",
        rich_help_panel=SWEEP,
    ),
]
Metric = Annotated[
    str,
    typer.Option(metavar="NAME", help="Of scenarios: the objective.", rich_help_panel=SWEEP),
]


def frontier(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INSTANCE",
            help="A file or name; or that of a scenario.",
            autocompletion=completion.subjects,
        ),
    ],
    parameter: FieldPath = None,
    first: Least = None,
    last: Greatest = None,
    points: Points = 25,
    values: Values = None,
    metric: Metric = "jct_mean_s",
    against: Against = "",
    method: options.Methods = None,
    policy: options.Policies = None,
    compare: options.AndCompare = False,
    time_limit: options.TimeLimit = None,
    gap: options.Gap = None,
    seed: options.Seeds = "0",
    processes: options.AllProcesses = None,
    scheduler: options.Scheduler = None,
    cache: options.Cache = None,
    changes: options.Changes = None,
    table_file: options.TableOutput = None,
    picture: options.Picture = None,
    verbose: options.Verbose = False,
) -> None:
    """Solve an instance, or run a scenario, at every value of a parameter.

    JSON: the frontier, see `optsched schema frontier`. CSV: a row for each point.

    Example: optsched frontier boa/cbd-85 --from 20 --to 80 --points 200 --cache points

    Example: optsched frontier pal-64 --parameter epoch_s --values 60,300,900

    Example: optsched frontier boa-cloud --policy boa --parameter policy.budget --values 24,30,40

    Example: optsched frontier boa/cbd-85 --from 20 --to 80 --scheduler tcp://10.0.0.5:8786
    """
    from optsched.sweeps.frontier import frontier as run

    console.check_output(table_file, (".json", ".csv"))
    console.check_output(picture, options.PICTURES, "--plot")
    swept = chosen_values(first, last, points, values)
    given: dict[str, Any] = {"time_limit_s": time_limit, "gap": gap, **_seeds(seed)}
    subject = _subject(source, changes)
    path = parameter or _budget_of(subject)
    with (
        console.plain_warnings(),
        console.executor(processes, scheduler) as executor,
        progress.sweeping(f"{path} of {subject.name}", verbose=verbose) as (tell, under_way),
    ):
        curve = run(
            subject, path, swept, methods=_methods(method, policy, compare), metric=metric,
            executor=executor, cache=cache, progress=tell, under_way=under_way,
            **{name: value for name, value in given.items() if value is not None},
        )  # fmt: skip
    _finish(curve, table_file, picture, against)
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
    if points > MOST_POINTS:
        raise ValueError(f"--points {points}: more than {MOST_POINTS:,}")
    if points < 2 or not first < last:
        raise ValueError(
            f"--from {first:g} --to {last:g} --points {points}: expected two points or more, "
            "and --from below --to"
        )
    step = (last - first) / (points - 1)
    return [*(first + n * step for n in range(points - 1)), last]


def _seeds(text: str) -> dict[str, Any]:
    """Return one seed, or several, as `optsched.frontier` takes them."""
    numbers = options.seeds(text)
    return {"seed": numbers[0]} if len(numbers) == 1 else {"seeds": numbers}


def _subject(source: str, changes: list[str] | None) -> Instance | Scenario:
    from optsched.sweeps.frontier import subject_of

    subject, wanted = subject_of(source), console.changes(changes)
    return subject.changed(wanted) if wanted else subject


def _budget_of(subject: Instance | Scenario) -> str:
    """Return the field that is swept where none is named: a budget, if there is one."""
    if getattr(subject, "rented", ...) is None and getattr(subject, "budget_gpus", None) is None:
        text = f"'{subject.name}' has no budget: name the field to sweep, as in --parameter epoch_s"
        raise ValueError(text)
    return "budget_gpus"


def _finish(curve: Frontier, table_file: str | None, picture: str | None, against: str) -> None:
    """Write and print what was reached."""
    from optsched.cli.printing import tables

    if table_file is not None:
        _write(curve, table_file)
    if picture is not None:
        console.draw(partial(curve.plot, against=against), picture)
    headlines, reached = tables.frontier(curve)
    output.show(
        headlines, "", reached,
        records=lambda: curve.frame().to_dict("records"), document=curve.to_json,
    )  # fmt: skip


def _write(curve: Frontier, path: str | Path) -> None:
    from optsched.documents.json_files import write_text

    is_csv = str(path).endswith(".csv")
    text = curve.frame().to_csv(index=False, lineterminator="\n") if is_csv else curve.to_json()
    write_text(path, text)


def _methods(
    method: list[str] | None, policy: list[str] | None, compare: bool | None
) -> list[str] | str | None:
    """Return what is run, as `optsched.frontier` takes it."""
    names = [*options.split(method), *options.policies(policy or ())]
    if compare and names:
        raise ValueError("--compare runs all methods: it cannot stand beside --method or --policy")
    return "all" if compare else names or None


def _exit_code(curve: Frontier) -> console.ExitCode:
    if any(point.objective is not None for point in curve.points):
        return console.ExitCode.DONE
    infeasible = any(point.status == "infeasible" for point in curve.points)
    return console.ExitCode.INFEASIBLE if infeasible else console.ExitCode.NO_PLAN

"""The command `optsched reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import console, options
from optsched.cli.printing import output
from optsched.cli.printing.sheets import Column, Sheet, csv_text, sheet
from optsched.cli.progress import sweeping

if TYPE_CHECKING:
    from optsched.reproduction.claim import Row
    from optsched.reproduction.estimates import Estimate
    from optsched.reproduction.reproduction import Reproduction


def _systems() -> list[str]:
    from optsched.reproduction.registry import ALL, SYSTEMS

    return [*SYSTEMS, ALL]


Systems = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SYSTEM...",
        help="boa, pal, eaco, philly, or all, which is the default.",
        show_default=False,
        autocompletion=_systems,
    ),
]
Data = Annotated[
    list[str] | None,
    options.data(
        metavar="FILE",
        help="A file of the authors in the place of what is generated; SYSTEM=FILE where several "
        "systems are asked for. May be given several times.",
    ),
]
Only = Annotated[
    list[str] | None,
    options.data(
        metavar="PATTERN",
        help="Only rows whose key fits, such as 'pal-penalty-*'. May be given several times.",
    ),
]
Quick = Annotated[
    bool, options.limit("--quick", help="Few seeds and jobs: about a minute on two cores.")
]
Full = Annotated[bool, options.limit("--full", help="20 seeds.")]
Folder = Annotated[
    str | None,
    options.file(
        "--output",
        "-o",
        metavar="DIR",
        help="Write index.html, reproduction.json, draws.json, rows.csv and rows.tex there.",
    ),
]


def reproduce(
    systems: Systems = None,
    data: Data = None,
    only: Only = None,
    quick: Quick = False,
    full: Full = False,
    seed: options.Seed = 0,
    processes: options.AllProcesses = None,
    scheduler: options.Scheduler = None,
    folder: Folder = None,
) -> None:
    """Measure the figures that published systems rest on, and say which come out.

    Each row: what was published and where, ours with a 95 % interval over seeds,
    the same by the exact method, what no schedule can pass, and a verdict. All
    together take ten minutes on two cores.

    JSON: systems, level, seed, files, versions, rows, sha256_of_draws, sha256, timings_cpu_s,
    timings_of_decisions.

    Example: optsched reproduce pal --quick -o pal-again
    """
    from optsched.reproduction.reproduce import reproduce as run

    if quick and full:
        raise ValueError("--quick and --full: expected one of them")
    level = "quick" if quick else "full" if full else "default"
    wanted = systems or ["all"]
    files = _files(wanted, data or [])
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    with (
        console.executor(processes, scheduler) as executor,
        sweeping("reproducing") as (progress, under_way),
    ):
        found = run(wanted, level=level, only=only or (), seed=seed, data=files,
                    executor=executor, progress=progress, under_way=under_way)  # fmt: skip
    if folder is not None:
        _write(found, Path(folder))
    output.show(
        *_tables(found), records=lambda: [row.record() for row in found.rows],
        document=found.document,
    )  # fmt: skip


COMMANDS = (reproduce,)


def _files(systems: list[str], texts: list[str]) -> dict[str, str]:
    """Return by system the file that is given for it.

    Raises
    ------
    ValueError
        If it is not said for which, or two are given for one.
    """
    known, files = _systems(), dict[str, str]()
    for text in texts:
        name, equals, path = text.partition("=")
        if not (equals and name in known):
            name, path = systems[0], text
            if len(systems) > 1 or name == "all":
                raise ValueError(f"--data {text}: of which system? Expected SYSTEM=FILE")
        if name in files:
            raise ValueError(f"--data {text}: '{name}' has a file already")
        files[name] = path
    return files


def _write(found: Reproduction, folder: Path) -> None:
    from optsched.documents.json_files import write_text

    write_text(folder / "reproduction.json", found.to_json())
    write_text(folder / "draws.json", found.draws())
    write_text(folder / "rows.csv", csv_text([row.record() for row in found.rows]))
    write_text(folder / "rows.tex", _table(found.rows).latex() + "\n")
    write_text(folder / "index.html", found.page())


def _tables(found: Reproduction) -> list[Sheet | str]:
    """Return the tables: a row for each claim, then how many have each verdict."""
    counts = ", ".join(f"{count} {name}" for name, count in found.verdicts.items())
    parts: list[Sheet | str] = []
    for system in found.systems:
        rows = [row for row in found.rows if row.claim.system == system]
        parts += [_table([row for row in rows if not row.claim.is_detail], system), ""]
    return [*parts, counts]


def _table(rows: list[Row] | tuple[Row, ...], title: str = "") -> Sheet:
    columns = (
        Column("claim", fold=" "), Column("published", right=True), Column("ours", right=True),
        Column("95 % interval", right=True, rank=1), Column("seeds", right=True, rank=2),
        Column("exact", right=True, rank=1), Column("bound", right=True, rank=2),
        Column("verdict"), Column("data", rank=3), Column("why", fold=" ", rank=4),
    )  # fmt: skip
    return sheet(columns, (_cells(row) for row in rows), title)


def _cells(row: Row) -> tuple[str, ...]:
    from optsched.reproduction.texts import interval_text, number, published_text

    def one(value: Estimate | None) -> str:
        return "" if value is None else number(value.value)

    seeds = "" if row.ours is None else str(row.ours.seeds)
    unit = f", {row.claim.unit}" if row.claim.unit else ""
    return (
        row.claim.what + unit, published_text(row.claim.published), one(row.ours),
        interval_text(row.ours), seeds, one(row.exact), one(row.bound), str(row.verdict),
        "" if row.basis is None else str(row.basis), row.why,
    )  # fmt: skip

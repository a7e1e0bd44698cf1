"""What the scripts that write bundled instances share: reading figures, checking, writing."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.documents.json_files import dumps, load, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from optsched.instance import Instance

Row = dict[str, str]
Document = dict[str, Any]

FOLDER = Path(__file__).parent
SOLVED_WITHIN_S = 600


def rows(data: Path, name: str) -> list[Row]:
    """Return the lines of a CSV file."""
    with (data / name).open(newline="") as file:
        return list(csv.DictReader(file))


def scenario_document(name: str, description: str, source: str, **content: object) -> Document:
    """Return the document of a scenario."""
    head = {"schema": "optsched/scenario/1", "name": name}
    return {**head, "description": description, "source": source, **content}


def texts(cls: type[Instance], documents: Iterable[Document]) -> dict[str, str]:
    """Return the text of each instance of a problem by the name of its file, validated."""
    by_file = {}
    for document in documents:
        cls.from_document(document, document["name"])
        by_file[f"{document['name'].removeprefix(f'{cls.problem}/')}.json"] = dumps(document)
    return by_file


def known_values(problem: str) -> Document:
    """Return the proven optima of a problem's instances, or the best values, as in known.json."""
    from optsched import read, solve

    values = {}
    for path in sorted((FOLDER / problem).glob("*.json")):
        result = solve(read(path), time_limit_s=SOLVED_WITHIN_S)
        kind = "optimal" if result.status == "optimal" else "best"
        values[f"{problem}/{path.stem}"] = {kind: result.objective, "unit": result.objective_unit}
    return values


def run(problem: str, build: Callable[[Path], dict[str, str]]) -> None:
    """Write the files of a problem, or with ``--known`` what is known of them into known.json."""
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} DATA_DIR | --known")
    if sys.argv[1] == "--known":
        path = FOLDER / "known.json"
        write_text(path, dumps(dict(sorted((load(path) | known_values(problem)).items()))))
        return
    (FOLDER / problem).mkdir(exist_ok=True)
    for name, text in build(Path(sys.argv[1])).items():
        write_text(FOLDER / problem / name, text)

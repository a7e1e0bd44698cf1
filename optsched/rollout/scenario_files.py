"""Reading of scenarios: from files, and bundled ones by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.documents.faults import InstanceError, shown
from optsched.documents.schemas import require
from optsched.instance import BUNDLED, find_bundled, load
from optsched.rollout.code_in_files import code_faults
from optsched.rollout.scenario import Scenario

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_ID = "optsched/scenario/1"
_FOLDER = BUNDLED / "scenarios"


def read_scenario(source: str | Path) -> Scenario:
    """Read a scenario from a file, or a bundled one by name.

    Parameters
    ----------
    source
        A path, or the name of a bundled scenario such as ``"philly-small"``.

    Raises
    ------
    InstanceError
        If the file is not a valid scenario; all faults are named at once.
    FileNotFoundError, OSError
        If it cannot be read; a name that is not there gets the nearest one that is.

    Examples
    --------
    >>> import optsched
    >>> scenario = optsched.read_scenario("philly-small")
    >>> scenario.gpus, len(scenario.nodes)
    (64, 3)
    """
    document, origin = load(find_scenario(source)), str(source)
    if not isinstance(document, dict):
        raise InstanceError(origin, [f"document: expected an object, found {shown(document)}"])
    schema = document.get("schema")
    if schema is None:
        raise InstanceError(origin, [f'schema: missing: expected "schema": "{SCHEMA_ID}"'])
    require(document, SCHEMA_ID, origin)
    scenario = Scenario.from_document(document, origin)
    if faults := code_faults(scenario):
        raise InstanceError(origin, faults)
    return scenario


def find_scenario(source: str | Path) -> Path:
    """Return the path of a file, or of the bundled scenario of that name.

    `trace.file` of a scenario is relative to the folder of this path.
    """
    try:
        return find_bundled(source, _FOLDER, "file or bundled scenario", scenario_names)
    except FileNotFoundError as error:
        if (BUNDLED / f"{source}.json").is_file():
            text = f"{source} is an instance, no scenario: use `optsched solve`"
            raise FileNotFoundError(text) from None
        raise error from None


def scenario_names() -> list[str]:
    """Return the names of the bundled scenarios, such as ``"philly-small"``."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def scenario_schema() -> dict[str, Any]:
    """Return the JSON Schema of scenarios."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **Scenario.model_json_schema(by_alias=True),
    }

"""Reading of files that hold frontiers; `optsched.write` writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from optsched.documents.faults import InstanceError, lines, shown, validation_faults
from optsched.documents.json_files import load
from optsched.documents.schemas import hint
from optsched.instance import find
from optsched.sweeps.points import SCHEMA_ID, Frontier

if TYPE_CHECKING:
    from pathlib import Path

OLD_SCHEMA_ID: Final = "optsched/frontier/1"


def read_frontier(source: str | Path) -> Frontier:
    """Read a frontier that was written with `optsched.write`; it is unverified until `verify`.

    Raises
    ------
    InstanceError
        If the file is not a frontier, with every fault.

    Examples
    --------
    >>> import optsched
    >>> frontier = optsched.frontier("boa/hand", budgets=[2, 3], executor=1)
    >>> optsched.write(frontier, "frontier.json")
    >>> optsched.read_frontier("frontier.json") == frontier
    True
    """
    document, origin = load(find(source)), str(source)
    if not isinstance(document, dict):
        raise InstanceError(origin, [f"document: expected an object, found {shown(document)}"])
    if document.get("schema") == OLD_SCHEMA_ID:
        document |= {"schema": SCHEMA_ID, "instance_sha256": ""}  # of another hash
    if document.get("schema") != SCHEMA_ID:
        schema = shown(document["schema"]) if "schema" in document else "none"
        text = f'schema: not a frontier; expected "{SCHEMA_ID}", found {schema}'
        raise InstanceError(origin, [text + hint(document.get("schema"), SCHEMA_ID)])
    if document.get("points") == []:
        raise InstanceError(origin, ["points: must not be empty"])
    try:
        return Frontier.model_validate(document)
    except ValidationError as error:
        faults = dict(validation_faults(error, Frontier)).items()
        raise InstanceError(origin, lines(faults)) from None

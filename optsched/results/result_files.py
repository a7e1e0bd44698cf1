"""Results as files: reading them, those of older versions too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from optsched.documents.faults import InstanceError, lines, shown, validation_faults
from optsched.documents.json_files import load
from optsched.documents.schemas import hint
from optsched.instance import find
from optsched.registry import PROBLEMS, problem
from optsched.results.result import SCHEMA_ID, Result

if TYPE_CHECKING:
    from pathlib import Path

    from optsched.documents.faults import Fault

OLD_SCHEMA_ID: Final = "optsched/result/1"


UNPROVEN = {"optimal": "unverified", "infeasible": "error"}  # what version 1 states without proof


def read_result(source: str | Path) -> Result:
    """Read a result that was written with `optsched.write`; it is unverified until `verify`.

    Results of version 1 are read, too. They do not say which data they are of, so that they can not
    be verified.

    Raises
    ------
    InstanceError
        If the file is not a result, with every fault.

    Examples
    --------
    >>> import optsched
    >>> optsched.write(optsched.solve("boa/hand"), "result.json")
    >>> result = optsched.read_result("result.json")
    >>> optsched.verify("boa/hand", result)
    >>> result.is_verified
    True
    """
    return result_of(load(find(source)), str(source))


def result_of(document: Any, origin: str) -> Result:
    """Return the result in a document; faults become an `InstanceError` of its origin."""
    entry = problem(_problem_name(document, origin))
    if document["schema"] == OLD_SCHEMA_ID:
        document = _of_version_2(document)
    faults: list[Fault] = []
    for key, cls in (("plan", entry.plan), ("certificate", entry.certificate)):
        try:
            if document.get(key) is not None:
                document[key] = cls.model_validate(document[key])
        except ValidationError as error:
            faults += (((key, *path), text) for path, text in validation_faults(error, cls))
            document[key] = None
    try:
        result = Result.model_validate(document)
    except ValidationError as error:
        faults += validation_faults(error, Result)
    if faults:
        raise InstanceError(origin, lines(dict(faults).items()))
    return result


def _problem_name(document: Any, origin: str) -> str:
    if not isinstance(document, dict):
        raise InstanceError(origin, [f"document: expected an object, found {shown(document)}"])
    if document.get("schema") not in (SCHEMA_ID, OLD_SCHEMA_ID):
        stated = shown(document["schema"]) if "schema" in document else "none"
        text = f'schema: not a result; expected "{SCHEMA_ID}", found {stated}'
        text += hint(document.get("schema"), SCHEMA_ID)
        raise InstanceError(origin, [text])
    name = document.get("problem")
    if not isinstance(name, str) or name not in PROBLEMS:
        stated = shown(name) if "problem" in document else "none"
        raise InstanceError(
            origin, [f"problem: expected one of {', '.join(PROBLEMS)}, found {stated}"]
        )
    return name


def _of_version_2(document: dict[str, Any]) -> dict[str, Any]:
    """Return a result of version 1 as one of version 2 that nothing was proven of."""
    status = document.get("status")
    changed = {"schema": SCHEMA_ID, "instance_sha256": "", "changes": {}}
    if isinstance(status, str) and status in UNPROVEN:
        changed["status"] = UNPROVEN[status]
        text = f"a result of version 1 states '{status}', which was not verified"
        changed["message"] = "; ".join(filter(None, [str(document.get("message", "")), text]))
    return document | changed

"""What to say of a file of optsched that is of another kind, or newer, than what is expected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from optsched.documents.faults import InstanceError, shown

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {
    "result": "a result: `optsched verify INSTANCE FILE` takes it",
    "frontier": "a frontier: `optsched verify INSTANCE FILE` takes it",
    "comparison": "a comparison: `optsched report` takes it",
    "bound": "bounds: `optsched verify SCENARIO FILE` takes them",
    "rollout": "the summary of a rollout: `optsched report` takes its folder",
    "scenario": "a scenario: `optsched rollout` takes it",
    "topology": "a topology: `optsched topology show` takes it",
    "trace": "a trace: `optsched trace show` takes it",
}
INSTANCE = "an instance: `optsched solve` takes it"
_FORM = re.compile(r"optsched/([a-z]{1,20})/([0-9]{1,4})")


def hint(found: object, expected: str) -> str:
    """Return what to do with a file of a schema that is not the expected one; "" if unknown.

    Parameters
    ----------
    expected
        Such as ``"optsched/trace/1"``; ``"optsched/instance/1"`` for an instance of any problem.
    """
    given = _FORM.fullmatch(found) if isinstance(found, str) else None
    known = _FORM.fullmatch(expected)
    if given is None or known is None:
        return ""
    if given[1] != known[1]:
        kind = KINDS.get(given[1], "" if known[1] == "instance" else INSTANCE)
        return f"; it is {kind}" if kind else ""
    if int(given[2]) > int(known[2]):
        return "; it was written by a newer optsched than this one"
    return ""


def require(document: object, expected: str, path: str | Path) -> None:
    """Refuse a document that states another schema, before its fields are looked at.

    Raises
    ------
    InstanceError
        With what it is, if that is known.
    """
    found = document.get("schema", expected) if isinstance(document, dict) else expected
    if found != expected:
        text = f"schema: expected '{expected}', found {shown(found)}{hint(found, expected)}"
        raise InstanceError(str(path), [text])

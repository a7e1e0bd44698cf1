"""Changes of a document's fields, by path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import nearest, shown

if TYPE_CHECKING:
    from optsched.documents.faults import SchemaPlace


def parts(path: str) -> list[str]:
    """Return the parts of a path; ``classes[2].id`` and ``classes.2.id`` are the same."""
    return re.sub(r"\[(-?[0-9]+|\*)\]", r".\1", path).split(".")


def assign(document: Any, here: SchemaPlace, path: list[str], value: Any) -> None:
    """Set a field of a document in place, or remove it where the value is None.

    Parameters
    ----------
    here
        What fields there may be.
    path
        Parts; ``*`` is every entry of a list.

    Raises
    ------
    LookupError
        If the path leads nowhere.
    """
    part, rest = path[0], path[1:]
    for key in _keys(document, part, here.fields):
        if rest:
            if isinstance(document, dict) and key not in document:
                raise LookupError(f"'{part}' is not set, so nothing inside it can be changed")
            assign(document[key], here.inside(key), rest, value)
        elif value is None and isinstance(document, dict):
            document.pop(key, None)
        else:
            document[key] = value


def _keys(document: Any, part: str, fields: list[str]) -> list[Any]:
    """Return the keys or indices of `document` that a part of a path means."""
    if isinstance(document, dict):
        if part == "*":
            return list(document)
        if part in document or part in fields:
            return [part]
        raise LookupError(f"there is no field '{part}'; {nearest(part, fields)}")
    if not isinstance(document, list):
        raise LookupError(f"'{part}' leads into {shown(document)}, which has no fields")
    if part == "*":
        return list(range(len(document)))
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in document]
    if part in ids:
        return [ids.index(part)]
    if re.fullmatch("-?[0-9]{1,9}", part) and -len(document) <= int(part) < len(document):
        return [int(part)]
    known = f"; {nearest(part, [name for name in ids if name])}" if any(ids) else ""
    count = len(document)
    raise LookupError(f"'{part}' is neither an id nor an index of a list of {count}{known}")

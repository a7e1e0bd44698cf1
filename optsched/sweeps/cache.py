"""Points that were computed before, in a folder: one small file each, written whole or not at all.

A file is named by the hash of all that its point depends on. A cache never stops a sweep: damaged
files are computed again, and where nothing can be written the sweep goes on without; a warning says
so, once.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from optsched.documents.files import read_bytes
from optsched.documents.json_files import dumps, write_text
from optsched.sweeps.points import Point

SCHEMA_ID = "optsched/point/1"


class Cache:
    """Points by the hash of what they depend on.

    Parameters
    ----------
    folder
        Made if it is not there; None for no cache.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._told: set[str] = set()

    def get(self, key: str) -> Point | None:
        """Return the point of a key; None if there is none that can be used."""
        if self._folder is None:
            return None
        path = self._folder / f"{key}.json"
        try:
            return _point(json.loads(read_bytes(path)), key)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._warn("read", f"cannot read points in {self._folder}: {error.strerror}")
        except (ValueError, KeyError, TypeError, RecursionError):
            self._warn("damaged", f"{path} is damaged: its point is computed again")
        return None

    def put(self, key: str, point: Point) -> None:
        """Keep a point, if it can be written."""
        if self._folder is None or "write" in self._told:
            return
        body = point.model_dump(mode="json", by_alias=True, exclude_none=True)
        document = {"schema": SCHEMA_ID, "key": key, "sha256": _digest(body), "point": body}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_text(self._folder / f"{key}.json", dumps(document))
        except OSError as error:
            text = f"cannot write points to {self._folder}: {error.strerror or error}"
            self._warn("write", f"{text}; the sweep goes on without")

    def _warn(self, kind: str, text: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            warnings.warn(f"cache: {text}", RuntimeWarning, stacklevel=4)


def _point(document: Any, key: str) -> Point:
    """Return the point in a file; raises ValueError if it is not as it was written."""
    if document["key"] != key or document["sha256"] != _digest(document["point"]):
        raise ValueError("not as it was written")
    try:
        return Point.model_validate(document["point"])
    except ValidationError as error:
        raise ValueError("not a point") from error


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()

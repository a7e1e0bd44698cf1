"""What was computed before, in a folder: one small file each, written whole or not at all.

A file is named by the hash of all that its content depends on. A cache never stops a computation:
damaged files are computed again, and where nothing can be written it goes on without; a warning
says so, once.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from optsched.documents.files import read_bytes
from optsched.documents.json_files import dumps, write_text

T = TypeVar("T")
V = TypeVar("V")


class Cache(ABC, Generic[T, V]):
    """Values by the hash of what they depend on.

    Parameters
    ----------
    folder
        Made if it is not there; None for no cache.

    Attributes
    ----------
    schema_id, noun
        Of its files; and what is in one.
    """

    schema_id: ClassVar[str]
    noun: ClassVar[str]

    def __init__(self, folder: str | Path | None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._told: set[str] = set()

    @abstractmethod
    def body(self, value: V) -> Any:
        """Return a value as JSON knows it."""

    @abstractmethod
    def value(self, body: Any, task: T) -> V:
        """Return the value of a task that a body holds.

        Raises
        ------
        ValueError
            If it holds none.
        """

    def get(self, key: str, task: T) -> V | None:
        """Return the value of a key; None if there is none that can be used."""
        if self._folder is None:
            return None
        path = self._folder / f"{key}.json"
        try:
            document = json.loads(read_bytes(path))
            named = "key", "sha256", self.noun
            written, digest, body = (document[name] for name in named)
            if written != key or digest != _digest(body):
                raise ValueError("not as it was written")
            return self.value(body, task)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            text = f"cannot read {self.noun}s in {self._folder}: {error.strerror}"
            self._warn("read", text)
        except (ValueError, KeyError, TypeError, RecursionError):
            self._warn("damaged", f"{path} is damaged: its {self.noun} is computed again")
        return None

    def put(self, key: str, value: V) -> None:
        """Keep a value, if it can be written."""
        if self._folder is None or "write" in self._told:
            return
        body = self.body(value)
        document = {"schema": self.schema_id, "key": key, "sha256": _digest(body), self.noun: body}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_text(self._folder / f"{key}.json", dumps(document))
        except OSError as error:
            text = f"cannot write {self.noun}s to {self._folder}: {error.strerror or error}"
            self._warn("write", f"{text}; it goes on without")

    def _warn(self, kind: str, text: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            warnings.warn(f"cache: {text}", RuntimeWarning, stacklevel=4)


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()

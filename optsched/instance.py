"""Instances: validated data, read from JSON files with every fault named at once."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast

from pydantic import AfterValidator, Field

from optsched.documents.base import CheckedDocument as CheckedDocument
from optsched.documents.base import Document as Document
from optsched.documents.changes import assign, parts
from optsched.documents.faults import Fault as Fault
from optsched.documents.faults import InstanceError as InstanceError
from optsched.documents.faults import near_name, nearest, place, shown
from optsched.documents.faults import path_text as path_text
from optsched.documents.json_files import compact, encoded, write_text
from optsched.documents.json_files import dumps as dumps
from optsched.documents.json_files import load as load
from optsched.documents.schemas import hint
from optsched.registry import PROBLEMS, UnknownNameError, problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Wide enough for every cluster, narrow enough that no product of a few of them overflows a float.
SMALLEST, LARGEST = 1e-9, 1e12


def _zero_or_not_tiny(value: float) -> float:
    if 0 < value < SMALLEST:
        raise ValueError(f"0 or at least {SMALLEST:g}")
    return value


Positive = Annotated[float, Field(ge=SMALLEST, le=LARGEST, allow_inf_nan=False)]
NonNegative = Annotated[
    float, Field(ge=0, le=LARGEST, allow_inf_nan=False), AfterValidator(_zero_or_not_tiny)
]


def html_rows(texts: dict[str, str]) -> str:
    """Return names and texts as an HTML table, for notebooks."""
    rows = (
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in texts.items()
    )
    return f"<table>{''.join(rows)}</table>"


BUNDLED = Path(__file__).parent / "instances"


class NamedDocument(CheckedDocument):
    """Base of files of their own: a schema, a name, where the data come from, and changes."""

    schema_id: str = Field(alias="schema")
    name: str = Field(default="unnamed", description="Short name, used in tables and messages.")
    description: str = Field(default="", description="What the instance is, in a sentence or two.")
    source: str = Field(default="", description="Where the figures come from.")

    @property
    def sha256(self) -> str:
        """Digest of all data: SHA-256 of the JSON document, keys sorted, without blanks."""
        return hashlib.sha256(self._compact().encode()).hexdigest()

    def _compact(self) -> str:
        return compact(self.model_dump(mode="json", by_alias=True, exclude_none=True))

    @cached_property
    def changes(self) -> dict[str, Any]:
        """The changes that `changed` made since the document was read; no part of the data."""
        return {}

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with fields changed by path, validated again.

        Parameters
        ----------
        changes
            Path to value: ``{"budget_gpus": 24, "classes.*.rescale_s": 0}``. In a list, a part of a
            path is an index, an id, or ``*`` for every entry; ``classes[2].id`` and
            ``classes.2.id`` are the same. The value None removes an optional field.

        Raises
        ------
        InstanceError
            If a path leads nowhere or the changed document is not valid.
        """
        document, origin = self.changed_document(changes), f"{self.name} after the change of fields"
        changed = type(self).from_document(document, origin)
        earlier = {path: old for path, old in self.changes.items() if path not in changes}
        changed.__dict__["changes"] = earlier | json.loads(encoded(dict(changes), origin))
        return changed

    def changed_document(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document with fields changed as by `changed`, not yet validated.

        Raises
        ------
        InstanceError
            If a path leads nowhere.
        """
        faults, document = [], self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for path, value in changes.items():
            try:
                assign(document, place(type(self)), parts(path), value)
            except LookupError as error:
                faults.append(f"{path}: {error.args[0]}")
        if faults:
            raise InstanceError("change of fields", faults)
        return document


class Instance(NamedDocument):
    """Base of all instances of the problems.

    Examples
    --------
    >>> import optsched
    >>> optsched.read("boa/hand").changed({"budget_gpus": 3}).budget_gpus
    3.0
    """

    problem: ClassVar[str]
    example: ClassVar[str]

    def __str__(self) -> str:
        return "  ".join([self.name, *(f"{key}: {text}" for key, text in self._headline().items())])

    def _repr_html_(self) -> str:
        rows = {"instance": self.name, **self._headline(), "what it is": self.description}
        return html_rows(rows)

    def _headline(self) -> dict[str, str]:
        return problem(self.problem).headline(self)


if TYPE_CHECKING:

    class ReadInstance(Instance):
        """An instance of which only the file tells the problem: fields of any name and type."""

        def __getattr__(self, name: str) -> Any: ...
else:
    ReadInstance = Instance


def read(source: str | Path) -> ReadInstance:
    """Read an instance from a file, or a bundled one by name.

    Parameters
    ----------
    source
        A path, or the name of a bundled instance such as ``"boa/cbd-85"``.

    Raises
    ------
    InstanceError
        If the file is not a valid instance; all faults are named at once.
    FileNotFoundError, OSError
        If it cannot be read.

    Examples
    --------
    >>> import optsched
    >>> [job_class.id for job_class in optsched.read("boa/cbd-85").classes]
    ['cifar10', 'deepspeech2', 'bert']
    """
    document, origin = load(find(source)), str(source)
    if not isinstance(document, dict):
        raise InstanceError(origin, [f"document: expected an object, found {shown(document)}"])
    if "schema" not in document:
        near = near_name("schema", document)
        hint = f", found '{near}'" if near else ""
        first = f'missing: expected for example "schema": "optsched/boa/1"{hint}'
        raise InstanceError(origin, [f"schema: {first}"])
    instance = instance_class(document["schema"], origin).from_document(document, origin)
    return cast("ReadInstance", instance)


def as_instance(source: Instance | str | Path) -> Instance:
    """Return an instance, read if it is a path or the name of a bundled one.

    Raises
    ------
    InstanceError, FileNotFoundError, OSError
        As of `read`.
    TypeError
        If it is none of these.
    """
    if isinstance(source, Instance):
        return source
    if isinstance(source, str | Path):
        return read(source)
    known = "an instance, a path, or the name of a bundled instance such as 'boa/hand'"
    raise TypeError(f"expected {known}, found {type(source).__name__}")


def find(source: str | Path) -> Path:
    """Return the path of a file, or of the bundled instance of that name."""
    scenario = BUNDLED / "scenarios" / f"{source}.json"
    if Path(source).name == str(source) and not Path(source).exists() and scenario.is_file():
        raise FileNotFoundError(f"{source} is a scenario, no instance: use `optsched rollout`")
    return find_bundled(source, BUNDLED, "file or bundled instance", names)


def find_bundled(
    source: str | Path, folder: Path, kind: str, known: Callable[[], list[str]]
) -> Path:
    """Return the path of a file, or of the one in a folder of bundled ones that has that name.

    Raises
    ------
    FileNotFoundError
        If there is neither; a name gets the nearest of the known ones.
    """
    path = Path(source)
    if not str(source):
        raise FileNotFoundError(f"the name of the {kind} is empty")
    if path.exists():
        return path
    bundled = folder / f"{str(source).removesuffix('.json')}.json"
    if bundled.is_file() and bundled.resolve().is_relative_to(folder.resolve()):
        return bundled
    if path.suffix.lower() in (".json", ".yaml", ".yml") or path.is_absolute():
        raise FileNotFoundError(f"{source}: no such file")
    try:
        raise UnknownNameError(kind, str(source), known())
    except UnknownNameError as error:
        raise FileNotFoundError(str(error)) from None


def instance_class(schema_id: object, origin: str) -> type[Instance]:
    """Return the class for a schema id such as ``"optsched/boa/1"``."""
    known = [f"optsched/{name}/1" for name in PROBLEMS]
    if isinstance(schema_id, str) and schema_id.startswith("optsched/result/"):
        raise InstanceError(
            origin,
            ["schema: this is a result; expected an instance, which comes before the result"],
        )
    if not isinstance(schema_id, str) or schema_id not in known:
        like = next((i for i in known if str(schema_id).startswith(i[:-1])), "optsched/instance/1")
        told = hint(schema_id, like) or f"; {nearest(str(schema_id), known)}"
        raise InstanceError(origin, [f"schema: {shown(schema_id)} is unknown{told}"])
    return problem(schema_id.split("/")[1]).instance


def write(document: Document, path: str | Path) -> None:
    """Write an instance or a result as JSON; `read` of it gives an equal object.

    The file is there whole or not at all, whenever the process or the disk gives out.

    Raises
    ------
    OSError
        If it cannot be written; a file that was there before is still the same then.

    Examples
    --------
    >>> import optsched
    >>> optsched.write(optsched.read("boa/hand"), "mine.json")
    >>> optsched.read("mine.json") == optsched.read("boa/hand")
    True
    """
    write_text(path, document.to_json())


def names(problem_name: str | None = None) -> list[str]:
    """Return the names of the bundled instances, such as ``"boa/hand"``.

    Examples
    --------
    >>> import optsched
    >>> optsched.names("sia")
    ['sia/cluster-64', 'sia/hand']
    """
    problems = [problem_name] if problem_name else list(PROBLEMS)
    return sorted(
        f"{name}/{path.stem}" for name in problems for path in (BUNDLED / name).glob("*.json")
    )


def known_values() -> dict[str, Any]:
    """Return the best known values of the bundled instances, by name.

    Examples
    --------
    >>> import optsched
    >>> optsched.known_values()["pal/tiny"]
    {'optimal': 3.1, 'unit': 'x'}
    """
    path = BUNDLED / "known.json"
    values: dict[str, Any] = load(path) if path.exists() else {}
    return values

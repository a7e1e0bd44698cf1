"""Instances: validated data, read from JSON files with every fault named at once."""

from __future__ import annotations

import difflib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from optsched.problems import ROOMS, UnknownNameError, problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_core import ErrorDetails

# Wide enough for every cluster, narrow enough that no product of a few of them overflows a float.
Positive = Annotated[float, Field(ge=1e-9, le=1e12, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Fault = tuple[tuple[str | int, ...], str]

_BUNDLED = Path(__file__).parent / "instances"
_NUMBER_WORDS = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "finite_number": "a finite number",
    "string_type": "a string",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


class InstanceError(ValueError):
    """A file or document that is not an instance; `faults` has one line per fault, with its path."""

    def __init__(self, origin: str, faults: list[str]) -> None:
        self.origin = origin
        self.faults = faults
        count = f"{len(faults)} faults" if len(faults) > 1 else "1 fault"
        super().__init__(f"{origin}: {count}\n" + "\n".join(f"  {fault}" for fault in faults))


class Document(BaseModel):
    """Base of everything that is written to a file: frozen, and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    def to_json(self) -> str:
        """Return the JSON text, lists of numbers on one line, the same bytes for the same data."""
        return dumps(self.model_dump(mode="json", by_alias=True, exclude_none=True))


class Instance(Document):
    """Base of all instances: a name, where the data come from, and cross-field checks."""

    problem: ClassVar[str]
    example: ClassVar[str]

    schema_id: str = Field(alias="schema")
    name: str = Field(default="unnamed", description="Short name, used in tables and messages.")
    description: str = Field(default="", description="What the instance is, in a sentence or two.")
    source: str = Field(default="", description="Where the figures come from.")

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield faults that concern several fields; must bear fields of wrong types."""
        yield from ()

    @model_validator(mode="after")
    def _no_document_faults(self) -> Self:
        faults = list(self.document_faults(self.model_dump(by_alias=True)))
        if faults:
            raise ValueError("; ".join(f"{path_text(path)}: {text}" for path, text in faults))
        return self

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with fields changed by path, validated anew.

        Parameters
        ----------
        changes
            Path to value: ``{"budget_gpus": 24, "classes.*.rescale_s": 0, "classes.bert.phases.0": ...}``.
            In a list, a part of a path is an index, an id, or ``*`` for every entry. The value None
            removes an optional field.

        Raises
        ------
        InstanceError
            If a path leads nowhere or the changed document is not valid.
        """
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        known = _known_names(type(self))
        faults = []
        for path, value in changes.items():
            try:
                _assign(document, path.split("."), value, known)
            except LookupError as error:
                faults.append(f"{path}: {error.args[0]}")
        if faults:
            raise InstanceError("change of fields", faults)
        return type(self).from_document(document, origin=f"{self.name} after the change of fields")

    @classmethod
    def from_document(cls, document: Any, origin: str = "document") -> Self:
        """Validate a document as it comes out of `json.loads`.

        Raises
        ------
        InstanceError
            With all faults at once, each with its path.
        """
        if not isinstance(document, dict):
            raise InstanceError(origin, [f"expected an object, found {_shown(document)}"])
        faults: dict[tuple[str | int, ...], str] = {}
        instance = None
        try:
            instance = cls.model_validate_json(json.dumps(document), strict=True)
        except ValidationError as error:
            for detail in error.errors():
                if detail["loc"]:  # the rest are document faults, found again below
                    path = _without_tags(detail["loc"], document)
                    faults.setdefault(path, _fault_text(detail, _known_names(cls)))
        for path, text in cls.document_faults(document):
            faults.setdefault(path, text)
        if faults or instance is None:
            lines = [f"{path_text(path)}: {text}" for path, text in faults.items()]
            raise InstanceError(origin, sorted(lines, key=_natural))
        return instance


def read(source: str | Path) -> Instance:
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
    """
    path = find(source)
    document = load(path)
    if not isinstance(document, dict) or "schema" not in document:
        first = 'the first key is "schema", for example "schema": "optsched/boa/1"'
        raise InstanceError(str(source), [f"not an instance of optsched: {first}"])
    return instance_class(document["schema"], origin=str(source)).from_document(
        document, origin=str(source)
    )


def find(source: str | Path) -> Path:
    """Return the path of a file, or of the bundled instance of that name."""
    path = Path(source)
    if path.exists():
        return path
    bundled = _BUNDLED / f"{str(source).removesuffix('.json')}.json"
    if bundled.is_file() and bundled.resolve().is_relative_to(_BUNDLED.resolve()):
        return bundled
    if path.suffix == ".json" or path.is_absolute():
        raise FileNotFoundError(f"{source}: no such file")
    try:
        raise UnknownNameError("file or bundled instance", str(source), names())
    except UnknownNameError as error:
        raise FileNotFoundError(str(error)) from None


def load(path: Path) -> Any:
    """Parse a JSON file; whatever is wrong with it becomes an `InstanceError`."""
    if path.is_dir():
        raise InstanceError(str(path), ["is a folder, expected a JSON file"])
    data = path.read_bytes()
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique_keys)
    except UnicodeDecodeError as error:
        text = f"byte {error.start} is not UTF-8 text; expected a JSON file"
    except json.JSONDecodeError as error:
        text = f"line {error.lineno}, column {error.colno}: {error.msg}; expected JSON"
        if error.pos >= len(data.rstrip()):
            text += " (the file ends too early: is it truncated?)"
    except RecursionError:
        text = "nested too deeply"
    except _DuplicateKeyError as error:
        text = error.args[0]
    raise InstanceError(str(path), [text])


def instance_class(schema_id: object, origin: str) -> type[Instance]:
    """Return the class for a schema id such as ``"optsched/boa/1"``."""
    known = [f"optsched/{name}/1" for name in ROOMS]
    if not isinstance(schema_id, str) or schema_id not in known:
        hint = difflib.get_close_matches(str(schema_id), known, n=1, cutoff=0.5)
        expected = f"did you mean '{hint[0]}'?" if hint else f"expected one of {', '.join(known)}"
        raise InstanceError(origin, [f"schema: {_shown(schema_id)} is unknown; {expected}"])
    return problem(schema_id.split("/")[1]).instance


def write(document: Document, path: str | Path) -> None:
    """Write an instance or a result as JSON; `read` of it gives an equal object."""
    Path(path).write_text(document.to_json(), encoding="utf-8")


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a problem's instances."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"optsched/{name}/1",
        **problem(name).instance.model_json_schema(by_alias=True),
    }


def names(problem_name: str | None = None) -> list[str]:
    """Return the names of the bundled instances, such as ``"boa/hand"``."""
    rooms = [problem_name] if problem_name else list(ROOMS)
    return sorted(
        f"{room}/{path.stem}" for room in rooms for path in (_BUNDLED / room).glob("*.json")
    )


def known_values() -> dict[str, Any]:
    """Return the best known values of the bundled instances, by name."""
    values: dict[str, Any] = load(_BUNDLED / "known.json")
    return values


def dumps(document: Any, indent: str = "") -> str:
    """Write JSON with one line for each list of scalars; nested levels are indented by two."""
    inner = indent + "  "
    if isinstance(document, dict) and document:
        rows = [f"{json.dumps(str(k))}: {dumps(v, inner)}" for k, v in document.items()]
        opening, closing = "{", "}"
    elif isinstance(document, list) and any(isinstance(v, dict | list) for v in document):
        rows = [dumps(v, inner) for v in document]
        opening, closing = "[", "]"
    else:
        return json.dumps(document, ensure_ascii=False, allow_nan=False)
    body = ",\n".join(f"{inner}{row}" for row in rows)
    text = f"{opening}\n{body}\n{indent}{closing}"
    return text if indent else text + "\n"


def path_text(path: tuple[str | int, ...]) -> str:
    """Write a path as in ``classes[2].phases[0].speedup.gpus[3]``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "document"


class _DuplicateKeyError(ValueError):
    pass


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise _DuplicateKeyError(f"the key {', '.join(map(repr, twice))} stands twice in one object")
    return document


def _known_names(cls: type[Instance]) -> list[str]:
    document = cls.model_json_schema(by_alias=True)
    definitions = [document, *document.get("$defs", {}).values()]
    return sorted({key for part in definitions for key in part.get("properties", {})})


def _without_tags(loc: tuple[str | int, ...], document: Any) -> tuple[str | int, ...]:
    """Drop the tags of unions, which pydantic puts into a path but which no file holds."""
    path: list[str | int] = []
    for position, part in enumerate(loc):
        inside = document.get(part) if isinstance(document, dict) else None
        if isinstance(document, dict) and part not in document:
            if position == len(loc) - 1:  # a missing key
                path.append(part)
            continue
        path.append(part)
        if isinstance(document, list) and isinstance(part, int) and part < len(document):
            inside = document[part]
        document = inside
    return tuple(path)


def _fault_text(detail: ErrorDetails, known: list[str]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    found = _shown(detail["input"])
    if kind == "extra_forbidden":
        key = str(detail["loc"][-1])
        near = difflib.get_close_matches(key, known, n=1)
        return f"unknown key; did you mean '{near[0]}'?" if near else "unknown key"
    if kind == "missing":
        return "missing"
    if kind == "union_tag_not_found":
        return f"needs 'kind': one of {context['discriminator'] and 'table, amdahl, power'}"
    if kind in _NUMBER_WORDS:
        return f"expected {_NUMBER_WORDS[kind]}, found {found}"
    if kind in ("too_short", "tuple_too_short"):
        return "must not be empty"
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return f"expected {message}, found {found}"


def _shown(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _natural(line: str) -> list[tuple[int, str]]:
    """Sort key that puts ``classes[2]`` before ``classes[10]``."""
    parts = line.split(":")[0].replace("[", "\0").replace("]", "\0").split("\0")
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _assign(document: Any, path: list[str], value: Any, known: list[str]) -> None:
    part, rest = path[0], path[1:]
    for key in _keys(document, part, known):
        if rest:
            if isinstance(document, dict) and key not in document:
                raise LookupError(f"'{part}' is not set, so nothing inside it can be changed")
            _assign(document[key], rest, value, known)
        elif value is None and isinstance(document, dict):
            document.pop(key, None)
        else:
            document[key] = value


def _keys(document: Any, part: str, known: list[str]) -> list[Any]:
    """Return the keys or indices of `document` that a part of a path means."""
    if isinstance(document, dict):
        if part == "*":
            return list(document)
        if part in document or part in known:
            return [part]
        raise UnknownNameError("field", part, known)
    if not isinstance(document, list):
        raise LookupError(f"'{part}' leads into {_shown(document)}, which has no fields")
    if part == "*":
        return list(range(len(document)))
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in document]
    if part in ids:
        return [ids.index(part)]
    if part.lstrip("-").isdigit() and -len(document) <= int(part) < len(document):
        return [int(part)]
    raise LookupError(f"'{part}' is neither an id nor an index of a list of {len(document)}")

"""Faults of documents: where each one is, what was found there and what was expected."""

from __future__ import annotations

import difflib
import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeGuard

from optsched.documents.limits import LIMITS
from optsched.documents.units import unit_hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
Fault = tuple[Path, str]

_EXPECTED = {
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "finite_number": "a finite number",
    "string_type": "a string",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


class InstanceError(ValueError):
    """A file or document that is not what it should be.

    `faults` has a line for each fault, of the first `LIMITS.faults`; `more` is how many there are
    besides, in files of millions of lines.

    Examples
    --------
    >>> import optsched
    >>> optsched.InstanceError("mine.json", ["budget_gpus: missing"]).faults
    ['budget_gpus: missing']
    """

    def __init__(self, origin: str, faults: list[str], more: int = 0) -> None:
        beyond = len(faults) - LIMITS.faults
        faults = [cut(fault, LIMITS.fault_chars) for fault in faults[: LIMITS.faults]]
        self.origin, self.faults = origin, faults
        self.more = more + max(0, beyond)
        total = len(faults) + self.more
        count = f"{total:,} faults" if total > 1 else "1 fault"
        rows = [*faults, f"and {self.more:,} more"] if self.more else faults
        if beyond > 0:  # the search for them may have ended there
            count, rows[-1] = f"more than {LIMITS.faults} faults", "and more"
        super().__init__(f"{origin}: {count}\n" + "\n".join(f"  {row}" for row in rows))


@dataclass(frozen=True)
class SchemaPlace:
    """A place in the documents of a class, as its JSON Schema describes it."""

    schema: dict[str, Any]
    node: dict[str, Any]

    @property
    def fields(self) -> list[str]:
        """The names of the fields that an object may have here."""
        names = set(self.node.get("properties", {}))
        for option in self.node.get("oneOf", ()):
            names.update(self._at(option).fields)
        return sorted(names)

    def tagged(self, tag: object) -> SchemaPlace | None:
        """Return the alternative of a union that a tag names; None if it names none."""
        if str(tag).startswith("tuple["):  # of what may be a list, or a number
            return next((self._at(o) for o in self.node.get("anyOf", ()) if "items" in o), None)
        mapping = self.node.get("discriminator", {}).get("mapping", {})
        return self._at({"$ref": mapping[tag]}) if tag in mapping else None

    def inside(self, part: str | int) -> SchemaPlace:
        """Return the place one step further along a path."""
        if isinstance(part, int):
            return self._at(self.node.get("items", {}))
        options = [self._at(option) for option in self.node.get("oneOf", ())]
        for place in (self, *options):
            if part in place.node.get("properties", {}):
                return self._at(place.node["properties"][part])
        values = self.node.get("additionalProperties")  # of an object with free keys
        return self._at(values if isinstance(values, dict) else {})

    def _at(self, node: dict[str, Any]) -> SchemaPlace:
        while "$ref" in node or "anyOf" in node:
            if "$ref" in node:
                node = self.schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
                continue
            options = [option for option in node["anyOf"] if option.get("type") != "null"]
            if len(options) != 1:
                break
            node = options[0]  # of what may be null
        return SchemaPlace(self.schema, node)


@functools.cache
def place(cls: type[BaseModel]) -> SchemaPlace:
    """Return the outermost place in the documents of a class."""
    schema = cls.model_json_schema(by_alias=True)
    return SchemaPlace(schema, schema)


def validation_faults(error: ValidationError, cls: type[BaseModel]) -> Iterator[Fault]:
    """Yield path and text of every fault that pydantic found in fields of the class."""
    if error.error_count() > LIMITS.counted_faults:  # each takes a kilobyte
        fields = ", ".join(place(cls).fields)
        yield (), f"{error.error_count():,} fields are wrong; known here: {fields}"
        return
    for detail in error.errors(include_url=False)[: 5 * LIMITS.faults]:  # more are not told
        if detail["type"] == "json_invalid":
            deep = "recursion" in detail["ctx"]["error"]
            yield (), "nested too deeply" if deep else "holds a lone surrogate: not valid text"
            continue
        if detail["type"] == "document_faults" or _is_echo(detail):
            continue  # `document_faults` are asked for directly
        path, above, here = _located(detail["loc"], place(cls))
        if detail["type"].startswith("union_tag_") and "discriminator" in here.node:
            tag = str(here.node["discriminator"]["propertyName"])
            yield (*path, tag), _tag_text(detail["input"].get(tag), here)
        else:
            yield path, _text(detail, above.fields)


def first_faults(faults: Iterable[Fault]) -> list[Fault]:
    """Return the first faults, one more than are told: each may take a search for a near name."""
    return list(islice(faults, LIMITS.faults + 1))


def lines(faults: Iterable[Fault]) -> list[str]:
    """Write faults as text, in the order of their paths."""
    return [f"{path_text(path)}: {text}" for path, text in sorted(faults, key=_order)]


def all_lines(between: Iterable[Fault], typed: dict[Path, str] | None = None) -> list[str]:
    """Write the first faults between fields of a document, and those of types of single fields."""
    faults = dict(typed or ())
    for path, text in first_faults(between):
        faults.setdefault(path, text)
    return lines(faults.items())


def prefixed(path: Path, faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield faults of a part of a document, with the path of the part before theirs."""
    return (((*path, *tail), text) for tail, text in faults)


def mapping(value: Any) -> Mapping[str, Any]:
    """Return what stands in a raw document where an object is expected; empty if it is none."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """Return what stands in a raw document where a list is expected; empty if it is none."""
    return value if isinstance(value, list | tuple) else ()


def is_number(value: Any) -> TypeGuard[int | float]:
    """Tell whether a value in a raw document is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def path_text(path: Path) -> str:
    """Write a path as in ``classes[2].phases[0].speedup.gpus[3]``."""
    return "".join(map(_step, path)).removeprefix(".") or "document"


def shown(value: object) -> str:
    """Write a value that was found in a document, in a few words."""
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"a whole number of {value.bit_length()} bits"
    plain = isinstance(value, str | bool | None)
    if isinstance(value, str):
        value = value[:50]
    text = json.dumps(value, ensure_ascii=False) if plain else repr(value)
    return cut(text)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint: the known name that is nearest to a misspelt one, or all that there are."""
    known = list(known)
    near = near_name(name, known)
    if near is not None:
        return f"did you mean '{near}'?"
    if len(known) > LIMITS.hint_names:
        return f"{len(known):,} are known here"
    return f"known: {', '.join(known)}" if known else "none is known here"


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is nearest to a misspelt one, looked for among the first ones.

    It takes time with the square of the lengths of names, so long names have none.
    """
    if len(name) > LIMITS.hint_chars:
        return None
    short = (each for each in known if len(each) <= LIMITS.hint_chars)
    among = list(islice(short, LIMITS.hint_names))
    same = [each for each in among if each.lower() == name.lower()]
    near = same or difflib.get_close_matches(name, among, n=1)
    return near[0] if near else None


def cut(text: str, most: int = 40) -> str:
    """Return a text, or its beginning if it is longer."""
    return text if len(text) <= most else text[: most - 3] + "..."


def _is_echo(detail: ErrorDetails) -> bool:
    """Tell whether a list is called too short, or no number, only as its entries have faults."""
    if detail["type"] in ("too_short", "tuple_too_short"):
        return bool(len(detail["input"]) >= detail["ctx"]["min_length"])
    return detail["loc"][-1:] == ("constrained-int",) and bool(sequence(detail["input"]))


def _located(loc: Path, here: SchemaPlace) -> tuple[Path, SchemaPlace, SchemaPlace]:
    """Drop the tags of unions, which no file holds; return path, last object or list, and end."""
    path: list[str | int] = []
    above = here
    for part in loc:
        tagged = here.tagged(part)
        if tagged is not None:
            here = tagged
        elif isinstance(part, int) or here.fields or here.node.get("additionalProperties"):
            path.append(part)
            above, here = here, here.inside(part)
    return tuple(path), above, here


def _tag_text(value: object, here: SchemaPlace) -> str:
    known = ", ".join(f"'{tag}'" for tag in here.node["discriminator"]["mapping"])
    if value is None:
        return f"missing: give one of {known}"
    return f"expected one of {known}, found {shown(value)}"


def _text(detail: ErrorDetails, fields: list[str]) -> str:
    kind, context, given = detail["type"], detail.get("ctx", {}), shown(detail["input"])
    if kind == "extra_forbidden":
        return f"unknown key; {nearest(str(detail['loc'][-1]), fields)}"
    if kind == "missing":
        return "missing"
    if kind in _EXPECTED:
        hint = unit_hint(_named(detail["loc"]), detail["input"])
        return f"expected {_EXPECTED[kind]}, found {given}{'; ' if hint else ''}{hint}"
    if kind in ("too_short", "tuple_too_short", "string_too_short"):
        return "must not be empty"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']:g}, found {given}"
    if kind == "less_than_equal":
        found = detail["input"]
        share = (
            f"; for {found:g} % give {found / 100:g}" if _may_be_per_cent(context, found) else ""
        )
        return f"must be at most {context['le']:g}, found {given}{share}"
    expected = detail["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"expected {expected}, found {given}"


def _named(loc: Path) -> str:
    """Return the name of the field at a place, whatever alternative and entry of it."""
    names = (part for part in reversed(loc) if isinstance(part, str) and "_" in part)
    return next(names, "")


def _may_be_per_cent(context: dict[str, Any], found: object) -> bool:
    return context["le"] == 1 and is_number(found) and 1 < found <= 100


def _order(fault: Fault) -> list[tuple[bool, int, str]]:
    """Sort key that puts ``classes[2]`` before ``classes[10]``."""
    return [(False, part, "") if isinstance(part, int) else (True, 0, part) for part in fault[0]]


def _step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part.isidentifier() else f"[{shown(part)}]"

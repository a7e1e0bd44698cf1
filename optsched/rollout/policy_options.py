"""Options of policies: what each takes, of which type and range; and how they are written.

Each maker of a policy names the class of its options, and they are validated here alone, whether
they come as text (``"fifo:backfill=no"``) or from Python.
"""

from __future__ import annotations

import contextlib
import types
import typing
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from optsched.documents.faults import nearest, shown, validation_faults
from optsched.instance import LARGEST
from optsched.registry import renamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from optsched.rollout.engine.decision import Policy
    from optsched.rollout.scenario import Scenario

Positive = Annotated[float, Field(gt=0, le=LARGEST)]
NonNegative = Annotated[float, Field(ge=0, le=LARGEST)]
Share = Annotated[float, Field(ge=0, le=1)]
Tries = Annotated[int, Field(ge=0, le=1_000_000)]
Gap = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
GpuType = Annotated[
    str | None,
    Field(
        description="Where rented GPUs are of several types: rent these alone; null: all types, in "
        "the proportion of the scenario's nodes."
    ),
]

WORDS = {"true": True, "yes": True, "on": True, "1": True,
         "false": False, "no": False, "off": False, "0": False}  # fmt: skip
"""How true and false are written, in any case; nothing else is."""


class Options(BaseModel):
    """The options of a policy; each field has a default. Types are not converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class OptionError(ValueError):
    """Options that a policy does not take, or not as they are."""


O_contra = TypeVar("O_contra", bound=Options, contravariant=True)
P_co = TypeVar("P_co", bound="Policy", covariant=True)


class Build(Protocol[O_contra, P_co]):
    """Makes a policy of options that are valid."""

    def __call__(self, scenario: Scenario, seed: int, options: O_contra, /) -> P_co:
        """Return the policy."""
        ...


class Maker(Generic[O_contra, P_co]):
    """Makes a policy of a scenario, a seed and options, which it checks.

    Attributes
    ----------
    options
        The class of the options.
    draws
        Whether rollouts of the policy may differ between seeds on the same trace.
    """

    def __init__(self, build: Build[O_contra, P_co], options: type[Options], draws: bool) -> None:
        self.build, self.options, self.draws = build, options, draws
        self.__doc__ = build.__doc__

    def __call__(self, scenario: Scenario, seed: int = 0, /, **options: object) -> P_co:
        """Return the policy.

        Raises
        ------
        OptionError
            If an option is unknown, or not of its type or range.
        """
        checked: Any = validated(self.options, options)
        return self.build(scenario, seed, checked)


def takes(
    options: type[O_contra], *, draws: bool = False
) -> Callable[[Build[O_contra, P_co]], Maker[O_contra, P_co]]:
    """Let a maker take options of a class.

    Parameters
    ----------
    draws
        Whether rollouts may differ between seeds on the same trace.
    """
    return lambda build: Maker(build, options, draws)


def validated(cls: type[Options], given: Mapping[str, object]) -> Options:
    """Return options of a class.

    Raises
    ------
    OptionError
        With every fault, in one line.
    """
    known = list(cls.model_fields)
    told = [_unknown(name, known) for name in given if name not in known]
    try:
        options = cls(**{name: value for name, value in given.items() if name in known})
    except ValidationError as error:
        told += [_fault(path, text) for path, text in validation_faults(error, cls)]
    if told:
        raise OptionError("; ".join(told))
    return options


def read(cls: type[Options], text: str) -> dict[str, object]:
    """Return the options in a text such as ``"relax_s=600,backfill=no"``, each of its field's type.

    What cannot be read as that type stays text, so that `validated` names it.

    Raises
    ------
    OptionError
        If a part is not ``key=value``, or an option is given twice.
    """
    options: dict[str, object] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise OptionError(f"option '{part}': expected key=value")
        if key in options:
            raise OptionError(f"option '{key}': given twice")
        field = cls.model_fields.get(key)
        options[key] = value if field is None else _read(set(_types(field.annotation)), value)
    return options


def described(cls: type[Options]) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type, default and meaning of each option, for a table."""
    schema = cls.model_json_schema()["properties"]
    for name, field in cls.model_fields.items():
        default = "required" if field.is_required() else shown(field.default).strip('"')
        yield name, _type_text(schema[name]), default, field.description or ""


def _unknown(name: str, known: list[str]) -> str:
    if not known:
        return f"there is no option '{name}': the policy takes none"
    if hint := renamed("policy option", name):
        return f"there is no option '{name}'{hint}"
    hint = nearest(name, known)
    if not hint.startswith("known"):
        hint += f" known: {', '.join(known)}"
    return f"there is no option '{name}'; {hint}"


def _fault(path: tuple[str | int, ...], text: str) -> str:
    text = text.replace("a valid boolean", "true or false")
    return f"option '{path[0]}': {text}" if path else text.removesuffix(", found an object")


def _types(annotation: object) -> Iterator[object]:
    """Yield the plain types that an annotation allows."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        yield from _types(typing.get_args(annotation)[0])
    elif origin in (typing.Union, types.UnionType):
        for part in typing.get_args(annotation):
            yield from _types(part)
    else:
        yield annotation


def _read(types: set[object], value: str) -> object:
    if bool in types and value.lower() in WORDS:
        return WORDS[value.lower()]
    if type(None) in types and value.lower() == "null":
        return None
    for kind in (int, float) if types & {int, float} else ():
        with contextlib.suppress(ValueError):
            return kind(value)
    return value


def _type_text(schema: dict[str, Any]) -> str:
    """Return in words what a field may be, of its JSON Schema."""
    if "anyOf" in schema:
        return " or ".join(_type_text(part) for part in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    names = {"boolean": "true or false", "integer": "whole number", "string": "text"}
    name = names.get(schema.get("type", ""), schema.get("type", "any"))
    words = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    limits = [f"{sign} {schema[key]:g}" for key, sign in words.items()
              if key in schema and abs(schema[key]) < 1e9]  # fmt: skip
    return " ".join([name, *limits])

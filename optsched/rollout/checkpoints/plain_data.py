"""Values of Python as JSON and back, exactly; nothing in it can run code.

Numbers, text, None and lists are JSON's own; objects with text as keys are JSON's, too. Everything
else is an object of one key that begins with `@` and says what it is: ``{"@tuple": [1, 2]}``.
Numbers may be NaN or infinite, as Python's `json` writes them.

Read is what this module knows and no more: numbers, containers, arrays, generators of random
numbers, and the `RECORDS`, whose names are looked up there and nowhere else.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from array import array
from base64 import b64decode, b64encode
from collections import deque
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic_core
from pydantic import BaseModel

from optsched.registry import loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SCALARS = {bool, int, float, str, type(None)}
WIDE = 1 << 4096
"""A whole number up to here is written as it is; Python does not convert much longer ones."""

RECORDS = frozenset(
    {
        "optsched.eaco.exact.master:Duals",
        "optsched.eaco.exact.warm_start:WarmStart",
        "optsched.eaco.exact.warm_start_duals:WarmStartDuals",
        "optsched.eaco.groups.enumeration:JobClass",
        "optsched.eaco.instance:Job",
        "optsched.pal.exact.warm_start:WarmStart",
        "optsched.pal.job_types:GangType",
        "optsched.pal.job_types:JobDemand",
        "optsched.pal.node_classes.aggregated_relaxation:AggregatedRelaxation",
        "optsched.pal.node_classes.aggregation:Held",
        "optsched.pal.node_classes.aggregation:NodeClass",
        "optsched.pal.node_classes.aggregation:NodeClasses",
        "optsched.pal.node_classes.aggregation:WideKeep",
        "optsched.pal.node_classes.warm_start:WarmPatterns",
        "optsched.rollout.engine.decision:SolveRecord",
        "optsched.rollout.policies.budgets.arrival_rates:Stream",
        "optsched.sia.solver:RoundMemory",
    }
)
"""Classes whose fields alone are written: named tuples, dataclasses and documents.

One with `to_plain` and `of_plain` says itself what is written, and is made of that again.
"""


class NotPlain(TypeError):
    """A value that is not plain data."""


class Damaged(ValueError):
    """Plain data that this module did not write."""


def to_json(value: object) -> bytes:
    """Return a value as JSON.

    Raises
    ------
    NotPlain
        If it holds something that is no plain data.
    """
    document = _plain(value)
    try:
        return pydantic_core.to_json(document, inf_nan_mode="constants")
    except ValueError:  # text that is no Unicode
        return json.dumps(document).encode()


def of_json(text: bytes) -> Any:
    """Return the value that `to_json` wrote.

    Raises
    ------
    Damaged
        If it did not.
    """
    try:
        return _restored(json.loads(text))
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        raise Damaged(f"{type(error).__name__}: {error}") from None
    except RecursionError:
        raise Damaged("nested too deeply") from None


# --- writing ----------------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return value if -WIDE < value < WIDE else {"@int": f"{value:x}"}
    if kind in SCALARS:
        return value
    if kind is list:
        return _listed(value)
    if kind is dict:
        return _mapped(value)
    write = WRITERS.get(kind)
    if write is not None:
        return write(value)
    if isinstance(value, np.generic):
        return {"@scalar": _array(np.asarray(value))["@array"]}
    return _record(value, f"{kind.__module__}:{kind.__qualname__}")


def _listed(values: Sequence[Any]) -> Any:
    """Return a list, at once where it holds numbers and text alone, or rows of them."""
    kinds = set(map(type, values))
    if kinds <= SCALARS:
        return values
    if kinds == {tuple}:
        inner = set(map(type, chain.from_iterable(values)))
        if inner <= SCALARS:
            return {"@rows": values}
    return [_plain(value) for value in values]


def _mapped(values: dict[Any, Any]) -> dict[str, Any]:
    if all(type(key) is str and not key.startswith("@") for key in values):
        return {key: _plain(value) for key, value in values.items()}
    return {"@dict": [_listed(list(values)), _listed(list(values.values()))]}


def _in_order(values: set[Any] | frozenset[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _array(values: Any) -> dict[str, Any]:
    if values.dtype.kind not in "biufc":
        raise NotPlain(f"an array of {values.dtype}")
    return {"@array": [values.dtype.str, values.shape, _text(values.tobytes())]}


def _generator(draws: np.random.Generator) -> dict[str, Any]:
    state = draws.bit_generator.state
    if state["bit_generator"] != PCG:
        raise NotPlain(f"a generator {state['bit_generator']}, not {PCG}")
    return {"@generator": state}


def _record(value: Any, name: str) -> dict[str, Any]:
    if name not in RECORDS:
        raise NotPlain(f"an object of {name.replace(':', '.')}")
    if hasattr(value, "to_plain"):
        fields: Any = value.to_plain()
    elif isinstance(value, BaseModel):
        fields = dict(value)
    elif isinstance(value, tuple):
        fields = list(value)
    else:
        fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
    return {"@record": [name, _plain(fields)]}


def _bytes(values: array[Any]) -> str:
    """Return the bytes of numbers, the least significant first on any machine."""
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return _text(values.tobytes())


def _text(data: bytes | bytearray) -> str:
    return b64encode(data).decode()


PCG = "PCG64"
"""The generator of `numpy.random.default_rng`; states of others are not checked as they are set."""

WRITERS: dict[type, Callable[[Any], Any]] = {
    tuple: lambda value: {"@tuple": _listed(value)},
    set: lambda value: {"@set": _listed(_in_order(value))},
    frozenset: lambda value: {"@frozenset": _listed(_in_order(value))},
    deque: lambda value: {"@deque": [value.maxlen, _listed(list(value))]},
    bytes: lambda value: {"@bytes": _text(value)},
    bytearray: lambda value: {"@bytearray": _text(value)},
    array: lambda value: {"@packed": [value.typecode, _bytes(value)]},
    Fraction: lambda value: {"@fraction": [_plain(value.numerator), _plain(value.denominator)]},
    random.Random: lambda value: {"@random": _plain(value.getstate())},
    np.random.Generator: _generator,
    np.ndarray: _array,
}


# --- reading ----------------------------------------------------------------------------------


def _restored(document: Any) -> Any:
    if type(document) is list:
        if set(map(type, document)) <= SCALARS:
            return document
        return [_restored(value) for value in document]
    if type(document) is not dict:
        return document
    if len(document) == 1:
        (key,) = document
        if key.startswith("@"):
            return READERS[key](document[key])
    return {key: _restored(value) for key, value in document.items()}


def _dict(parts: Any) -> dict[Any, Any]:
    keys, values = map(_restored, parts)
    return dict(zip(keys, values, strict=True))


def _packed(parts: Any) -> array[Any]:
    code, text = parts
    values = array({"q": "q", "d": "d"}[code])
    values.frombytes(b64decode(text, validate=True))
    if sys.byteorder == "big":
        values.byteswap()
    return values


def _of_array(parts: Any) -> Any:
    kind, shape, text = parts
    dtype = np.dtype(str(kind))
    if dtype.kind not in "biufc" or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("no array of numbers")
    return np.frombuffer(b64decode(text, validate=True), dtype).reshape(shape).copy()


def _deque(parts: Any) -> deque[Any]:
    most, values = parts
    return deque(_restored(values), most)


def _random(parts: Any) -> random.Random:
    draws = random.Random()
    draws.setstate(_restored(parts))
    return draws


def _of_generator(state: Any) -> np.random.Generator:
    bits = np.random.PCG64(0)
    bits.state = state
    return np.random.Generator(bits)


def _of_record(parts: Any) -> Any:
    name, fields = parts[0], _restored(parts[1])
    if name not in RECORDS:
        raise ValueError("an unknown record")
    cls = loaded(name)
    if hasattr(cls, "of_plain"):
        return cls.of_plain(fields)
    if not issubclass(cls, BaseModel):
        return cls(*fields)
    if fields.keys() - cls.model_fields.keys():
        raise ValueError("an unknown field")
    return cls.model_construct(**fields)  # valid by construction, as it was


READERS: dict[str, Callable[[Any], Any]] = {
    "@int": lambda part: int(part, 16),
    "@tuple": lambda part: tuple(_restored(part)),
    "@rows": lambda part: list(map(tuple, part)),
    "@dict": _dict,
    "@set": lambda part: set(_restored(part)),
    "@frozenset": lambda part: frozenset(_restored(part)),
    "@deque": _deque,
    "@bytes": lambda part: b64decode(part, validate=True),
    "@bytearray": lambda part: bytearray(b64decode(part, validate=True)),
    "@packed": _packed,
    "@fraction": lambda part: Fraction(*map(_restored, part)),
    "@random": _random,
    "@generator": _of_generator,
    "@array": _of_array,
    "@scalar": lambda part: _of_array(part)[()],
    "@record": _of_record,
}

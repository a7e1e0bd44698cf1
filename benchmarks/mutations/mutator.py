"""Mutations: of bytes, for any file; and of values, keys and lists, for those of JSON."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

TOKENS = (
    b"", b"0", b"-1", b"1e308", b"NaN", b"null", b"true", b"[]", b"{}", b'""', b"9" * 400, b"\0",
    b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\x1b[31m", b",", b"|", b"\n", b"\r", b'"', b"'",
    b"[", b"]", b"{", b"}", b"<", b"&", b"=", b":", b"- ", b"9999-12-31", b"0001-01-01", b"[0-",
    b"2147483648", b"-0.0", b"1e-320", b"\\ud800", b"*", b"%", b"<<: ",
    b"!!python/object:os.system",
)  # fmt: skip
VALUES = (
    None, True, False, 0, 1, -1, 2, 10**9, 2**63, 10**400, 0.5, -0.0, 1e-320, 1e12, 1e308,
    float("nan"), float("inf"), "", "a", "\ud800", "\x1b[2J", "n" * 2000, "0", "optimal",
    "infeasible", [], [[]], [None], {}, {"a": 1}, {"": None}, [0] * 50, "../../etc/passwd", "/",
)  # fmt: skip


def mutated(data: bytes, random: Random) -> bytes:
    """Return a file in which one to four things are changed."""
    document = _document(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if document is not None and random.random() < 0.75:
            document = _edited(document, random)
        else:
            data = _patched(data if document is None else _written(document), random)
            document = _document(data)
    return data if document is None else _written(document)


def _document(data: bytes) -> Any:
    """Return what JSON holds; None for other files."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict | list) else None


def _written(document: Any) -> bytes:
    return json.dumps(document, indent=1).encode()


# --- values -------------------------------------------------------------------------------------


def _edited(document: Any, random: Random) -> Any:
    """Return a document with one value replaced, removed, renamed, doubled or swapped."""
    document = copy.deepcopy(document)
    places = list(_places(document))
    if not places:
        return random.choice(VALUES[-8:-2])
    holder, key = random.choice(places)
    kind = random.choice(("replace", "replace", "near", "delete", "rename", "double", "swap"))
    if kind == "replace":
        holder[key] = copy.deepcopy(random.choice(VALUES))
    elif kind == "near":
        holder[key] = _near(holder[key], random)
    elif kind == "delete":
        del holder[key]
    elif kind == "swap":
        other, place = random.choice(places)
        if not _holds(holder[key], other) and not _holds(other[place], holder):
            holder[key], other[place] = other[place], holder[key]
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    else:
        name = random.choice(list(holder)) + random.choice(("", "s", "\x1b", "n" * 500))
        holder[name] = copy.deepcopy(holder[key])
        if kind == "rename" and name != key:
            del holder[key]
    return document


def _near(value: Any, random: Random) -> Any:
    """Return a value that differs a little."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + random.choice((-1, 1, 10**6))
    if isinstance(value, float):
        return value * random.choice((-1, 1 + 1e-12, 2, 1e-9, 1e15))
    if isinstance(value, str):
        return value + random.choice(("x", " ", "\x9b", "0"))
    if isinstance(value, list):
        return value[::-1] if random.random() < 0.5 else value[:-1]
    return dict(list(value.items())[1:])


def _places(document: Any) -> Any:
    """Yield each list or object with an index or key of it."""
    left = [document]
    while left:
        holder = left.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                left.append(holder[key])


def _holds(value: Any, holder: Any) -> bool:
    """Tell whether a list or object is inside a value, or the value itself."""
    if not isinstance(value, dict | list):
        return False
    inner = (each for each, _ in _places(value))
    return value is holder or any(each is holder for each in inner)


# --- bytes --------------------------------------------------------------------------------------


def _patched(data: bytes, random: Random) -> bytes:
    """Return a file cut short, or with a piece of it replaced, removed, doubled or flipped."""
    start = random.randrange(len(data) + 1)
    end = min(len(data), start + random.choice((0, 1, 1, 3, 10, 60)))
    kind = random.choice(("token", "token", "cut", "double", "flip", "line", "far"))
    if kind == "cut":
        return data[:start]
    if kind == "double":
        return data[:end] + data[start:]
    if kind == "flip" and start < len(data):
        return data[:start] + bytes([data[start] ^ (1 << random.randrange(8))]) + data[start + 1 :]
    if kind == "line":
        lines = data.splitlines(keepends=True)
        random.shuffle(lines)
        return b"".join(lines[: random.randrange(len(lines) + 1)])
    if kind == "far":
        other = random.randrange(len(data) + 1)
        return data[:start] + data[other : other + 40] + data[end:]
    return data[:start] + random.choice(TOKENS) * random.choice((1, 1, 1, 300)) + data[end:]

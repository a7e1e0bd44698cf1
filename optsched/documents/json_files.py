"""JSON files: strict reading, writing that is easy to read and leaves no half-written file."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
from collections import Counter
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import InstanceError, first_faults, lines
from optsched.documents.files import encoding_text, read_bytes
from optsched.documents.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from optsched.documents.faults import Fault, Path


def load(path: FilePath, otherwise: str = "") -> Any:
    """Parse a JSON file; whatever is wrong with it becomes an `InstanceError`.

    A file whose name ends in .yaml or .yml may have comments; its data are those of JSON.

    Only a regular file is read, of `LIMITS.file_bytes` at most, with lists and objects
    `LIMITS.depth` deep and no text longer than `LIMITS.text_chars`. Of a file that is no JSON,
    `otherwise` says what else it may be.
    """
    is_yaml = path.suffix.lower() in (".yaml", ".yml")
    expected = "a YAML file" if is_yaml else "a JSON file"
    data = read_bytes(path, expected)
    try:
        document = (_yaml if is_yaml else _json)(data.decode("utf-8-sig"), str(path))
        odd = lines(first_faults(_oddities(document)))
    except InstanceError:
        raise
    except UnicodeDecodeError as error:
        text = f"{encoding_text(error)}; expected {expected}"
    except json.JSONDecodeError as error:
        text = f"line {error.lineno}, column {error.colno}: {_syntax_text(error, data)}{otherwise}"
    except RecursionError:
        text = "nested too deeply"
    except ValueError:  # Python refuses to convert them, to stay fast
        text = "a whole number has thousands of digits"
    else:
        if not odd:
            return document
        raise InstanceError(str(path), odd)
    raise InstanceError(str(path), [text])


def _json(text: str, origin: str) -> Any:
    return json.loads(text, object_pairs_hook=_object)


def _yaml(text: str, origin: str) -> Any:
    from optsched.documents.yaml_files import parse

    return parse(text, origin)


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


def compact(value: Any) -> str:
    """Return data as JSON in one way only: keys sorted, without blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def write_text(path: str | FilePath, text: str) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    OSError
        If it cannot be written; a file that was there before is still the same then.
    """
    target = FilePath(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():  # a device, say: it must not be replaced
            target.write_text(text, encoding="utf-8")
        else:
            _replace(target, text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def try_to_write(path: str | FilePath) -> None:
    """Find out whether `write_text` can write a file; nothing is changed.

    Raises
    ------
    OSError
        If it cannot.
    """
    target = FilePath(os.path.realpath(path))
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not target.exists() or target.is_file():
            _require_writable(target)
            draft = _draft(target)
            draft.touch()
            draft.unlink()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def encoded(document: dict[str, Any], origin: str) -> str:
    """Encode a document in one line; what JSON does not know becomes an `InstanceError`."""
    try:
        return json.dumps(document, default=_plain)
    except RecursionError:
        text = "nested too deeply"
    except (TypeError, ValueError) as error:
        text = str(error)
    raise InstanceError(origin, [f"document: {text}"])


def _plain(value: Any) -> Any:
    """Turn numbers and arrays of numpy into what JSON knows."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"expected what JSON knows, found {type(value).__name__}")


def _replace(target: FilePath, text: str) -> None:
    """Write a file under another name in the same folder, then rename it."""
    _require_writable(target)
    draft = _draft(target)
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, target)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def _require_writable(target: FilePath) -> None:
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))


def _draft(target: FilePath) -> FilePath:
    return target.with_name(f".{secrets.token_hex(8)}.tmp")


class _Repeating(dict[str, Any]):
    """An object of a file in which some keys stand more than once."""

    repeated: list[str]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) == len(pairs):
        return document
    marked = _Repeating(document)
    counts = Counter(key for key, _ in pairs)
    marked.repeated = [key for key, count in counts.items() if count > 1]
    return marked


def _oddities(document: Any, path: Path = ()) -> Iterator[Fault]:
    """Yield keys that stand twice, and what is longer or deeper than any file of use."""
    if len(path) > LIMITS.depth:
        yield path[:3], f"nested too deeply, more than {LIMITS.depth} levels"
        return
    if isinstance(document, _Repeating):
        for key in document.repeated:
            yield (*path, key), "stands more than once in its object"
    entries: Iterable[tuple[str | int, Any]] = ()
    if isinstance(document, dict):
        entries = document.items()
        if any(len(key) > LIMITS.text_chars for key in document):
            yield path, f"a key has more than {LIMITS.text_chars:,} characters"
    elif isinstance(document, list):
        entries = enumerate(document)
    for part, inner in entries:
        if isinstance(inner, dict | list):
            yield from _oddities(inner, (*path, part))
        elif isinstance(inner, str) and len(inner) > LIMITS.text_chars:
            text = f"a text of {len(inner):,} characters, more than {LIMITS.text_chars:,}"
            yield (*path, part), text


def _syntax_text(error: json.JSONDecodeError, data: bytes) -> str:
    if not data.strip():
        return "the file is empty; expected JSON"
    text = f"{error.msg}; expected JSON"
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
        text += " (the file ends too early: is it truncated?)"
    if error.pos == 0 and b"schema: " in data:
        text += "; the name of a YAML file ends in .yaml or .yml"
    return text

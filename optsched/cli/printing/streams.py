"""Standard streams as they are found: closed ones, and those that cannot say every character."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import unicodedata

# What the tables, messages and progress bars use, in ASCII.
PLAIN = {
    "…": "...", "–": "-", "—": "-", "−": "-", "·": "*", "•": "*", "×": "x", "≤": "<=", "≥": ">=",
    "→": "->", "←": "<-", "µ": "u", "μ": "u", "ε": "eps", "∞": "inf", "±": "+-", "≈": "~",
    "│": "|", "─": "-", "━": "-", "╸": "-", "╺": "-", "┃": "|", "‘": "'", "’": "'", "“": '"',
    "”": '"', "\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2028": " ", "\u2029": " ",
}  # fmt: skip


def prepare() -> None:
    """Let standard output and error take every text, and no file have one of their numbers.

    A daemon has none of them: what it opens first would be its standard output, and libraries that
    write to it, or only name its ``write`` when imported as old versions of numpy do, would fail.
    """
    with contextlib.suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="optsched.plain")


def plain(text: str) -> str:
    """Return a text in ASCII: alike, where that can be."""
    return "".join(_plain(character) for character in text)


def escaped(text: str) -> str:
    """Return JSON as standard output can say it: other characters are escaped, none is lost."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "optsched.json").decode(encoding)


def _plain(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    letters = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return letters or "?"


def _units(text: str) -> str:
    """Return the escapes of JSON, which are of UTF-16."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2))


def _replace_plainly(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return plain(error.object[error.start : error.end]), error.end


def _replace_by_escapes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return _units(error.object[error.start : error.end]), error.end


codecs.register_error("optsched.plain", _replace_plainly)
codecs.register_error("optsched.json", _replace_by_escapes)

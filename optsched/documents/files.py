"""Reading files that others wrote: regular ones only, and no larger than the limits."""

from __future__ import annotations

import os
import stat
import zlib
from typing import TYPE_CHECKING

from optsched.documents.faults import InstanceError
from optsched.documents.limits import LIMITS

if TYPE_CHECKING:
    from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_GZIP = b"\x1f\x8b"
_PIECE = 1 << 14


def read_bytes(path: Path, expected: str = "a file", most: int = LIMITS.file_bytes) -> bytes:
    """Return what a regular file holds, without ever waiting for it.

    Raises
    ------
    InstanceError
        If it is a folder, a pipe or a device, or larger than the limit.
    OSError
        If it cannot be read.
    """
    _require_regular(os.stat(path), path, expected)  # opening a device may already do something
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        _require_regular(os.fstat(file.fileno()), path, expected)
        data = file.read(most + 1)
    if len(data) > most:
        raise InstanceError(str(path), [f"is larger than {_size(most)}, the limit"])
    return data


def read_text(path: Path, expected: str = "a file", most: int = LIMITS.file_bytes) -> str:
    """Return the text of a regular file in UTF-8, with or without a byte order mark.

    Raises
    ------
    InstanceError
        As `read_bytes` does, and if it is not text.
    OSError
        If it cannot be read.
    """
    try:
        return read_bytes(path, expected, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = f"{encoding_text(error)}; expected {expected}"
        raise InstanceError(str(path), [text]) from None


def encoding_text(error: UnicodeDecodeError) -> str:
    """Return what is wrong with bytes that are not UTF-8 text."""
    if error.object[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "it is UTF-16, as PowerShell's > writes it: save it as UTF-8"
    return f"byte {error.start} is not UTF-8 text"


def decompressed(data: bytes, origin: str) -> bytes:
    """Return what gzip compressed, or else the data as they are.

    Raises
    ------
    InstanceError
        If it is no whole file of gzip, or holds more than the limits allow.
    """
    if data[:2] != _GZIP:
        return data
    most = max(LIMITS.expansion_bytes, LIMITS.expansion * len(data))
    most = min(most, LIMITS.file_bytes)
    parts = bytearray()
    at = 0
    while data[at : at + 2] == _GZIP:  # one member behind the other
        try:
            at = _inflate(data, at, parts, most)
        except zlib.error as error:
            raise InstanceError(origin, [f"is no whole file of gzip: {error}"]) from None
        if len(parts) > most:
            text = f"holds more than {_size(most)} when it is decompressed, the limit for its size"
            raise InstanceError(origin, [text])
    if data[at:].strip(b"\0"):
        raise InstanceError(origin, ["is no whole file of gzip: other data follow its end"])
    return bytes(parts)


def _inflate(data: bytes, at: int, parts: bytearray, most: int) -> int:
    """Add what a member holds, until there is too much; return where the next one begins."""
    inflate = zlib.decompressobj(wbits=31)
    while not inflate.eof and len(parts) <= most:
        piece = data[at : at + _PIECE]
        if not piece:
            raise zlib.error("it ends too early")
        parts += inflate.decompress(piece, most + 1 - len(parts))
        at += len(piece) - len(inflate.unused_data) - len(inflate.unconsumed_tail)
    return at


def _require_regular(status: os.stat_result, path: Path, expected: str) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        what = _KINDS.get(kind, "no regular file")
        raise InstanceError(str(path), [f"is {what}, expected {expected}"])


def _size(count: int) -> str:
    return f"{count >> 20:,} MiB"

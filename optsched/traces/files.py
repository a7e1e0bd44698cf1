"""Files of traces: plain or compressed text, or one member of an archive."""

from __future__ import annotations

import fnmatch
import io
import tarfile
from pathlib import Path, PurePosixPath

from optsched.documents.faults import InstanceError, cut, shown
from optsched.documents.files import decompressed, encoding_text, read_bytes
from optsched.registry import UnknownNameError

_ENDINGS = (".gz", ".tgz", ".tar", ".csv", ".json", ".trace", ".txt")


def open_trace(path: Path, workload: str | None, members: str) -> tuple[str, str, str | None]:
    """Return name and text of a trace, and what is left of `workload`.

    Parameters
    ----------
    path
        Text in UTF-8, plain or compressed by gzip; or a tar archive of such files. It has
        `LIMITS.file_bytes` at most, and no more than `LIMITS.expansion` times its own size, or
        `LIMITS.expansion_bytes`, when it is decompressed.
    workload
        In an archive the path of a member, or its last part with or without its ending.
    members
        Pattern of the archive's members that are traces, such as ``"*.csv"``.

    Raises
    ------
    InstanceError
        If it is no text, or an archive of several traces of which none was named.
    UnknownNameError
        If the archive has no such member.
    OSError
        If it cannot be read.
    """
    data = decompressed(read_bytes(path), str(path))
    try:
        if data[257:262] == b"ustar":
            member, data = _member(data, str(path), workload, members)
            return _bare(member), _text(data, f"{path}:{member}"), None
    except InstanceError:
        raise
    except (tarfile.TarError, EOFError, OverflowError, ValueError) as error:
        raise InstanceError(str(path), [f"is no whole archive of tar: {error}"]) from None
    return _bare(path.name), _text(data, str(path)), workload


def _member(data: bytes, origin: str, workload: str | None, pattern: str) -> tuple[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = {m.name: m for m in archive if m.isfile() and fnmatch.fnmatch(m.name, pattern)}
        name = _chosen(list(members), origin, workload)
        if members[name].issparse() or members[name].size > len(data):
            raise InstanceError(origin, [f"{shown(name)} is sparse, or larger than its archive"])
        file = archive.extractfile(members[name])
        return name, file.read() if file else b""


def _chosen(names: list[str], origin: str, workload: str | None) -> str:
    if workload is None:
        if len(names) == 1:
            return names[0]
        listed = cut(", ".join(names), 900)
        text = f"holds {len(names)} traces: name one of them as workload: {listed}"
        raise InstanceError(origin, [text])
    fitting = [name for name in names if workload in (name, PurePosixPath(name).name, _bare(name))]
    if not fitting:
        raise UnknownNameError(f"trace in {origin} named", workload, names)
    if len(fitting) > 1:
        text = f"holds several traces '{workload}': name one in full: {', '.join(fitting)}"
        raise InstanceError(origin, [text])
    return fitting[0]


def _bare(name: str) -> str:
    """Return the last part of a path without its endings."""
    name = PurePosixPath(name).name
    while name.endswith(_ENDINGS) and "." in name[1:]:
        name = name[: name.rindex(".")]
    return name


def _text(data: bytes, origin: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        text = f"line {line}: {encoding_text(error)}"
        raise InstanceError(origin, [text]) from None

"""A plug-in: a name that leads to code of others, which is loaded when it is asked for."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import nearest
from optsched.plugins.errors import PluginError, failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from importlib.metadata import EntryPoint

POLICIES = "optsched.policies"
TRACE_IMPORTERS = "optsched.trace_importers"
TOPOLOGY_IMPORTERS = "optsched.topology_importers"
METHODS = "optsched.methods."
"""Groups of entry points; of methods there is one for each problem: ``optsched.methods.pal``."""

_REFERENCE = re.compile(r"(?P<source>(?:[A-Za-z]:[\\/])?[^:]+):(?P<name>[^\W\d][\w.]*)(?::(.*))?")


@dataclass(frozen=True)
class Plugin:
    """Code of others by the name that was given for it.

    Attributes
    ----------
    name
        As it is asked for: the name of an entry point, ``"module:Name"`` or ``"file.py:Name"``.
    source, attribute
        A module, or a path that ends in ``.py``; and what to take from it.
    owner
        Whose it is, in words: a distribution with its version, a module or a file.
    fault
        Why it cannot be used, if that is known before it is loaded.
    """

    name: str
    source: str
    attribute: str
    owner: str
    fault: str = ""

    @property
    def told(self) -> str:
        """Which one, in words, for messages."""
        return f"'{self.name}' ({self.owner})"

    def load(self) -> Any:
        """Import it, unless this very code has been imported already.

        Raises
        ------
        PluginError
            In one line, if it cannot be: with its distribution and entry point, or its file.
        """
        if self.fault:
            raise PluginError(f"{self.told}: {self.fault}")
        from optsched.plugins.sources import load_file, load_module

        module = (load_file if _is_file(self.source) else load_module)(self.source, self.told)
        found = module
        for part in self.attribute.split("."):
            try:
                found = getattr(found, part)
            except AttributeError:
                known = [name for name in vars(found) if not name.startswith("_")]
                hint = f"; {nearest(part, known)}" if known else ""
                raise PluginError(f"{self.told}: there is no '{part}' in it{hint}") from None
            except Exception as error:
                raise failure(self.told, "cannot be taken from it", error) from error
        return found

    def origin(self) -> str:
        """Return whose it is, and the hash of its source as it was loaded, for records."""
        from optsched.plugins.sources import sha256_of_module

        self.load()
        return f"{self.owner}, SHA-256 {sha256_of_module(self.source)}"


def installed(group: str, bundled: Iterable[str] = ()) -> list[Plugin]:
    """Return the plug-ins of a group that are installed, by their names; nothing is imported.

    Parameters
    ----------
    bundled
        Names of ours: a plug-in of such a name cannot be used by it.
    """
    points = sorted(_points(group), key=lambda point: (point.name, _owner(point)))
    ours = set(bundled)
    return [_plugin(point, points, ours) for point in points]


def referred(text: str) -> tuple[Plugin, str] | None:
    """Return the plug-in that ``module:Name`` or ``file.py:Name`` names, and what follows it.

    None if the text does not have that form.
    """
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return None
    source, name = match["source"], match["name"]
    owner = f"file {source}" if _is_file(source) else f"module {source}"
    return Plugin(f"{source}:{name}", source, name, owner), match[3] or ""


def short_names(names: Iterable[str]) -> list[str]:
    """Return names as tables have them: of the paths of files as little as tells them apart."""
    known = list(names)
    parts = max((name.count("/") + name.count("\\") for name in known), default=0) + 1
    for kept in range(1, parts):
        shown = [_with_parts(name, kept) for name in known]
        if len(set(shown)) == len(set(known)):
            return shown
    return known


def _with_parts(name: str, kept: int) -> str:
    """Return a name, of the path in it only so many parts, the last ones."""
    path, dot, rest = name.partition(".py:")
    return "/".join(re.split(r"[\\/]", path)[-kept:]) + dot + rest if dot else name


def by_name(name: str, group: str, bundled: Iterable[str]) -> Plugin | None:
    """Return an installed plug-in, or what ``module:Name`` names; None if there is none."""
    for plugin in installed(group, bundled):
        if plugin.name == name:
            return plugin
    found = referred(name)
    return None if found is None or found[1] else found[0]


def loaded_function(plugin: Plugin, kind: str, parameters: str) -> Callable[..., Any]:
    """Return what a plug-in leads to.

    Raises
    ------
    PluginError
        If it cannot be loaded, or cannot be called.
    """
    found = plugin.load()
    if not callable(found):
        expected = f"expected a function of {parameters}"
        raise PluginError(f"{kind} {plugin.told}: {expected}, found {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


def code_fault(name: str, bundled: Iterable[str], instead: str) -> str:
    """Return what is wrong with a name in a file, if it names code; nothing of a bundled one."""
    if name.partition(":")[0] in set(bundled) or referred(name) is None:
        return ""
    return f"'{name}' names code, which no file may do; if you trust it, give {instead}"


def _points(group: str) -> set[EntryPoint]:
    return set(_all_points(_folders()).select(group=group))


def _folders() -> tuple[tuple[str, int], ...]:
    """Return where packages are looked for, and when each folder was last changed."""
    return tuple((path, _modified(path)) for path in sys.path)


def _modified(path: str) -> int:
    try:
        return os.stat(path or os.curdir).st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=1)  # reading what hundreds of packages offer takes some hundredths of a second
def _all_points(_: tuple[tuple[str, int], ...]) -> Any:
    from importlib.metadata import entry_points

    return entry_points()


def _plugin(point: EntryPoint, points: list[EntryPoint], bundled: set[str]) -> Plugin:
    others = {_owner(other) for other in points if other.name == point.name} - {_owner(point)}
    fault = ""
    if point.name in bundled:
        fault = f"the name is one of optsched; use it as {point.module}:{point.attr}"
    elif others:
        fault = f"{', '.join(sorted(others))} has the same name; use {point.module}:{point.attr}"
    elif not point.attr:
        fault = f"expected 'module:Name', found '{point.value}'"
    owner = f"{_owner(point)}, entry point '{point.name}' of {point.group}"
    return Plugin(point.name, point.module, point.attr, owner, fault)


def _owner(point: EntryPoint) -> str:
    distribution = point.dist
    return f"{distribution.name} {distribution.version}" if distribution else "no distribution"


def _is_file(source: str) -> bool:
    return source.endswith(".py") or "/" in source or "\\" in source

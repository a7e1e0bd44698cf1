"""Modules of others: imported once for each source, which is told apart by its hash."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
import sysconfig
import traceback
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from modulefinder import ModuleFinder
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.plugins.errors import PluginError, failure

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType, ModuleType

_known: dict[str, tuple[str, frozenset[Path]]] = {}
"""By the name of a module its hash when it was imported, and the files that belong to it."""


class _AsItIs(SourceFileLoader):
    """Compiles a file as it is now: cached code goes by whole seconds, and is written beside it."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load_file(source: str, told: str) -> ModuleType:
    """Import a file; again, with the modules of its folder that it imports, if they have changed.

    Its folder comes last in `sys.path`, so that it finds its neighbours and hides nothing.

    Raises
    ------
    PluginError
        If it is not there, or its code fails.
    """
    path = Path(source).expanduser()
    if not path.is_file():
        raise PluginError(f"{told}: there is no file {source}")
    path = path.resolve()
    name = _module_name(path)
    files = _own_files(path, told)
    digest = _digest(files)
    known = _known.get(name)
    if known is not None and known[0] == digest and name in sys.modules:
        return sys.modules[name]
    _forget(name, files)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    loader = _AsItIs(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))  # type: ignore[arg-type]
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise failure(told, "cannot be imported", error) from error
    _known[name] = (digest, files)
    return module


def load_module(source: str, told: str) -> ModuleType:
    """Import a module by its name.

    Raises
    ------
    PluginError
        If there is none, or its code fails, or it was changed since it was imported.
    """
    try:
        module = importlib.import_module(source)
    except (Exception, SystemExit) as error:
        here = f"; of a file, give its path: {source}.py:Name" if _is_missing(error, source) else ""
        fault = failure(told, "cannot be imported", error)
        raise PluginError(f"{fault}{here}") from error
    files = _files_of_module(module)
    digest = _digest(files)
    if _known.setdefault(source, (digest, files))[0] != digest:
        raise PluginError(f"{told}: its files have changed since it was imported; start anew")
    return module


def sha256_of_module(source: str) -> str:
    """Return the hash of the source of a module or file when it was imported."""
    path = Path(source).expanduser()
    return _known[source if source in _known else _module_name(path.resolve())][0]


def is_raised_by_others(error: BaseException) -> bool:
    """Tell whether an error came out of a file that was loaded as code of others."""
    own = {path for _, files in _known.values() for path in files}
    frames = traceback.walk_tb(error.__traceback__)
    return any(Path(frame.f_code.co_filename) in own for frame, _ in frames)


def _is_missing(error: BaseException, source: str) -> bool:
    return isinstance(error, ModuleNotFoundError) and error.name == source.partition(".")[0]


def _module_name(path: Path) -> str:
    """Return a name that no other file has."""
    stem = re.sub(r"\W", "_", path.stem)
    return f"optsched_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{stem}"


def _own_files(path: Path, told: str) -> frozenset[Path]:
    """Return a file and those of its folder that it imports, in whatever many steps."""
    finder = ModuleFinder(path=[str(path.parent)], excludes=["optsched"])
    try:
        finder.run_script(str(path))
    except (SyntaxError, ValueError) as error:  # a null byte is a ValueError
        raise failure(told, "cannot be imported", error) from error
    named = (getattr(module, "__file__", None) for module in finder.modules.values())
    found = {Path(file).resolve() for file in named if file}
    return frozenset(found | {path})


def _files_of_module(module: ModuleType) -> frozenset[Path]:
    """Return the files of Python in the outermost package of a module, or its own."""
    root = sys.modules[module.__name__.partition(".")[0]]
    if getattr(root, "__path__", None):
        return frozenset(file for part in root.__path__ for file in Path(part).rglob("*.py"))
    if root.__file__ is None:
        return frozenset()
    path = Path(root.__file__)
    sites = {Path(sysconfig.get_path(key)) for key in ("purelib", "platlib", "stdlib")}
    if path.parent in sites or path.suffix != ".py":  # its neighbours are not its own
        return frozenset({path})
    return _own_files(path, module.__name__)


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        stat = path.stat()
        digest.update(f"{path.name} {_content(path, stat.st_mtime_ns, stat.st_size)}\n".encode())
    return digest.hexdigest()


@lru_cache(maxsize=10_000)
def _content(path: Path, modified: int, size: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _forget(name: str, files: frozenset[Path]) -> None:
    """Let neighbours that a file imports be imported anew."""
    old = files | _known.pop(name, ("", frozenset[Path]()))[1]
    for other, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and other != "__main__" and Path(file) in old:
            del sys.modules[other]
    importlib.invalidate_caches()

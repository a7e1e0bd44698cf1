"""What the shell completes: names of bundled files, methods and policies, without solving."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BUNDLED = Path(__file__).parent.parent / "instances"
"""As `optsched.instance.BUNDLED`, which takes pydantic to import."""
FILES = (".json", ".yaml", ".yml")


def instances(incomplete: str) -> list[str]:
    """Complete the names of bundled instances, and files."""
    from optsched.registry import PROBLEMS

    names = (f"{p}/{path.stem}" for p in PROBLEMS for path in (BUNDLED / p).glob("*.json"))
    return _begun(incomplete, sorted(names)) + files(incomplete)


def scenarios(incomplete: str) -> list[str]:
    """Complete the names of bundled scenarios, and files."""
    names = sorted(path.stem for path in (BUNDLED / "scenarios").glob("*.json"))
    return _begun(incomplete, names) + files(incomplete)


def subjects(incomplete: str) -> list[str]:
    """Complete the names of bundled instances and scenarios, and files."""
    return list(dict.fromkeys([*instances(incomplete), *scenarios(incomplete)]))


def files(incomplete: str) -> list[str]:
    """Complete the names of files of optsched, and of folders."""
    folder = Path(incomplete if incomplete.endswith("/") else Path(incomplete).parent)
    try:
        return _begun(incomplete, sorted(_entries(folder)))
    except OSError:
        return []


def problems(incomplete: str) -> list[str]:
    """Complete the names of problems."""
    from optsched.registry import PROBLEMS

    return _begun(incomplete, PROBLEMS)


def methods(ctx: Any, incomplete: str) -> list[str]:
    """Complete the names of the methods of the instance that the command line names, or of all."""
    from optsched.registry import PROBLEMS, problem

    source = str(ctx.params.get("source") or "").split("/")[0]
    names = [source] if source in PROBLEMS else list(PROBLEMS)
    return _last(incomplete, dict.fromkeys(m.name for n in names for m in problem(n).methods))


def policies(incomplete: str) -> list[str]:
    """Complete the names of policies, the last one of a list."""
    from optsched.rollout.registry import ENTRIES, installed_entries

    return _last(incomplete, (entry.name for entry in (*ENTRIES, *installed_entries())))


def _entries(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        name = path.name if folder == Path() else str(folder / path.name)
        if path.is_dir():
            yield f"{name}/"
        elif path.suffix in FILES:
            yield name


def _last(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _begun(last, names)]


def _begun(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]

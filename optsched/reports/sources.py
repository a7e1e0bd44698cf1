"""What a report is made of: results, frontiers and folders of rollouts, read with every fault."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.documents.faults import InstanceError, shown
from optsched.documents.json_files import load
from optsched.explanation.explain import frontier_instance, instance_of
from optsched.instance import as_instance
from optsched.reports.rollout_folders import ROLLOUT, SimulatedTrace, read_folder
from optsched.results.result import SCHEMA_ID, Result
from optsched.results.result_files import OLD_SCHEMA_ID, read_result
from optsched.rollout.results.comparison_files import SCHEMA_ID as COMPARISON
from optsched.rollout.results.comparison_files import ComparisonDocument, read_comparison
from optsched.sweeps.frontier_files import OLD_SCHEMA_ID as OLD_FRONTIER
from optsched.sweeps.frontier_files import read_frontier
from optsched.sweeps.points import SCHEMA_ID as FRONTIER
from optsched.sweeps.points import Frontier
from optsched.verification import Violation, is_proven

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from optsched.instance import Instance


@dataclass(frozen=True)
class SolvedInstance:
    """A result, and the instance that it is of, if that is at hand."""

    label: str
    result: Result
    instance: Instance | None

    @property
    def versions(self) -> dict[str, str]:
        """What it was made with."""
        return self.result.versions


@dataclass(frozen=True)
class SweptInstance:
    """A frontier, and the instance whose parameter was swept, if that is at hand."""

    label: str
    frontier: Frontier
    instance: Instance | None

    @property
    def versions(self) -> dict[str, str]:
        """What it was made with."""
        return self.frontier.versions


@dataclass(frozen=True)
class ComparedPolicies:
    """A comparison, as `compare --output` wrote it."""

    label: str
    comparison: ComparisonDocument

    @property
    def versions(self) -> dict[str, str]:
        """What it was made with; a table in .csv does not say."""
        return self.comparison.versions


Source = SolvedInstance | SweptInstance | SimulatedTrace | ComparedPolicies


def gather(
    paths: Sequence[str | Path],
    instances: Iterable[Instance | str | Path] = (),
    *,
    any_versions: bool = False,
) -> list[Source]:
    """Read everything that a report is to show.

    Raises
    ------
    InstanceError
        If something cannot be read, is nothing that a report can show, or was made with other
        versions than the rest and `any_versions` is False; all such faults are named.
    """
    given = [as_instance(each) for each in instances]
    gathered, faults = [], []
    if not paths:
        faults.append("no result, frontier, comparison or folder of a rollout is named")
    for path in dict.fromkeys(map(str, paths)):
        try:
            gathered.append(_read(Path(path), given))
        except InstanceError as error:
            faults += [f"{path}: {fault}" for fault in error.faults]
        except OSError as error:
            faults.append(f"{path}: {(error.strerror or str(error)).lower()}")
    if not faults and not any_versions:
        faults = [f"{fault}; --any-versions shows all" for fault in version_faults(gathered)]
    if faults:
        raise InstanceError("report", faults)
    return gathered


def _read(path: Path, instances: list[Instance]) -> Source:
    if path.is_dir():
        return read_folder(path)
    if path.suffix == ".csv":
        return ComparedPolicies(path.name, read_comparison(path))
    document = load(path)
    schema = document.get("schema") if isinstance(document, dict) else None
    readers: dict[str, Callable[[], Source]] = {
        SCHEMA_ID: lambda: _solved(path, instances),
        OLD_SCHEMA_ID: lambda: _solved(path, instances),
        FRONTIER: lambda: _swept(path, instances),
        OLD_FRONTIER: lambda: _swept(path, instances),
        ROLLOUT: lambda: read_folder(path.parent),
        COMPARISON: lambda: ComparedPolicies(path.name, read_comparison(path)),
    }
    if not isinstance(schema, str) or schema not in readers:
        what = f"schema {shown(schema)}" if schema is not None else "no schema"
        kinds = "a result, a frontier, a comparison or the folder of a rollout"
        text = f"expected {kinds}, found {what}"
        raise InstanceError(str(path), [text])
    return readers[schema]()


def _solved(path: Path, instances: list[Instance]) -> SolvedInstance:
    result = read_result(path)
    instance = instance_of(result, instances)
    if instance is None:
        return SolvedInstance(path.name, result, None)
    try:
        is_proven(instance, result)
    except Violation as violation:
        raise InstanceError(str(path), [_refusal(violation)]) from None
    return SolvedInstance(path.name, result.attached(instance), instance)


def _swept(path: Path, instances: list[Instance]) -> SweptInstance:
    from optsched.sweeps.verified_points import is_frontier_proven

    frontier = read_frontier(path)
    if frontier.problem == "rollout":
        return SweptInstance(path.name, frontier, None)
    instance = frontier_instance(frontier, instances)
    try:
        if instance is not None:
            is_frontier_proven(instance, frontier)
    except Violation as violation:
        raise InstanceError(str(path), [_refusal(violation)]) from None
    return SweptInstance(path.name, frontier, instance)


def _refusal(violation: Violation) -> str:
    return f"the verifier refuses it: {'; '.join(map(str, violation.broken[:3]))}"


def version_faults(sources: list[Source]) -> Iterator[str]:
    """Yield the packages of which sources were made with several versions."""
    known = [source for source in sources if source.versions]
    packages = sorted({name for source in known for name in source.versions})
    for name in packages:
        by_version: dict[str, list[str]] = {}
        for source in known:
            by_version.setdefault(source.versions.get(name, "none"), []).append(source.label)
        if len(by_version) > 1:
            listed = "; ".join(f"{v} in {', '.join(held)}" for v, held in by_version.items())
            yield f"made with different versions of {name}: {listed}"

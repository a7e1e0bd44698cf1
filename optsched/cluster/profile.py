"""Slowdown profiles: how much slower than the median each GPU runs each class of applications."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field

from optsched.documents.base import Entries, Items
from optsched.documents.faults import InstanceError, shown
from optsched.instance import CheckedDocument, Fault, Positive
from optsched.registry import UnknownNameError

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats

Kind = Literal["persistent", "single-run"]


class Profile(CheckedDocument):
    """Slowdowns V[class, GPU] relative to the median GPU of the cluster that was measured.

    Source: PM-Scores of Jain et al., "PAL: A Variability-Aware Policy for Scheduling ML Workloads
    in GPU Clusters", SC 2024, arXiv 2408.11919.

    Examples
    --------
    >>> from optsched.cluster.profile import Profile
    >>> runs = [("a", "A", 9.0), ("a", "A", 11.0), ("b", "A", 12.0), ("c", "A", 8.0)]
    >>> Profile.from_runs(runs, "persistent").slowdown
    {'A': (1.0, 1.2, 0.8)}
    """

    gpus: Items[str] = Field(min_length=1, description="Ids of the GPUs.")
    slowdown: Entries[str, Items[Positive]] = Field(
        min_length=1,
        description="Per application class one value per GPU, in the order of `gpus`: run time "
        "relative to the median GPU (1 = median, 1.1 = ten percent slower).",
    )
    kind: Kind = Field(
        description="persistent: from the median run of each GPU; single-run: from one run each, "
        "so that what was passing then seems to last."
    )
    source: str = Field(default="", description="Where the figures come from.")

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield faults that concern several fields; bears fields of wrong types."""
        gpus, slowdown = document.get("gpus"), document.get("slowdown")
        ids = gpus if isinstance(gpus, list | tuple) else None
        yield from _gpu_faults(ids or ())
        if not isinstance(slowdown, Mapping):
            return
        if not slowdown:
            yield ("slowdown",), "holds no application class"
        for name, values in slowdown.items():
            path = ("slowdown", name)
            if name == "":
                yield path, "the id of an application class must not be empty"
            if isinstance(values, list | tuple):
                yield from ((path + tail, text) for tail, text in _value_faults(values, ids))

    @classmethod
    def from_runs(
        cls,
        runs: Iterable[tuple[object, object, float]],
        kind: Kind,
        *,
        source: str = "",
        seed: int = 0,
    ) -> Self:
        """Make a profile from measured run times of one fixed piece of work per class.

        Each GPU is represented by the median of its runs ("persistent") or by one of its own runs,
        drawn with the seed ("single-run"), and that time is divided by the median over GPUs. So a
        GPU that was measured more often does not pull the median towards itself.

        Parameters
        ----------
        runs
            (GPU, class, seconds) of each run, in any order; for arrays, `zip` of the three. GPUs
            and classes are named by `str` and keep the order of their first run.
        kind, source
            Fields of the profile.
        seed
            Of the draws for "single-run".

        Raises
        ------
        InstanceError
            If there is no run, if a time is not positive, or if a GPU lacks a class.
        """
        seconds, gpus = _by_class_and_gpu(runs)
        represent: dict[str, Callable[[list[float]], float]] = {
            "persistent": statistics.median,
            "single-run": random.Random(seed).choice,
        }
        if kind not in represent:
            raise UnknownNameError("kind of profile", kind, list(represent))
        slowdown = {}
        for name, by_gpu in seconds.items():
            times = [represent[kind](by_gpu[gpu]) for gpu in gpus]
            slowdown[name] = _relative(times, statistics.median(times))
        return cls(gpus=tuple(gpus), slowdown=slowdown, kind=kind, source=source)

    @classmethod
    def drawn(
        cls,
        rows_by_class: Mapping[str, Sequence[float]],
        gpus: Iterable[object],
        seed: int = 42,
        *,
        source: str = "",
    ) -> Self:
        """Draw a profile in the way of PAL's released simulator.

        Each GPU gets, for each class, the time of one run drawn from all runs of the class,
        whichever GPU it was measured on, over the median of all runs. This exaggerates how
        different GPUs are: most of the spread of single runs is from run to run (Longhorn,
        ResNet-50: 1.4 % of the runs took 1.7 to 3.6 times the median, yet no GPU's own median
        exceeds 1.12), and the draw makes it a property of the GPU for good. It also parts what was
        measured together: classes become independent of each other, and GPUs of their node.
        Use it to reproduce published figures, and `from_runs` for a real cluster.

        Parameters
        ----------
        rows_by_class
            Run times of each class, in any unit, in the order of the file.
        gpus
            Names of the GPUs, by `str`.
        seed
            42 in the release. The draws go GPU by GPU, for each through all classes in order.
        source
            Field of the profile.

        Raises
        ------
        InstanceError
            If a class has no run or a time is not positive.

        Notes
        -----
        Source: hal-uw/blox-pal, branch artifact, commit 8a59070, blox/cluster_state.py. There the
        median per GPU is looked up first, but by a number where the table has UUIDs, so that the
        draw always follows.
        """
        rows = {name: [float(time) for time in times] for name, times in rows_by_class.items()}
        faults = [f"class {shown(name)} has no run" for name, times in rows.items() if not times]
        faults += _time_faults((f"class {shown(name)}", t) for name, ts in rows.items() for t in ts)
        if faults:
            raise InstanceError("rows", faults)
        names = [str(gpu) for gpu in gpus]
        generator = random.Random(seed)
        draws = [[generator.choice(times) for times in rows.values()] for _ in names]
        slowdown = {
            name: _relative([draw[n] for draw in draws], statistics.median(times))
            for n, (name, times) in enumerate(rows.items())
        }
        return cls(gpus=tuple(names), slowdown=slowdown, kind="single-run", source=source)

    @property
    def classes(self) -> tuple[str, ...]:
        """Ids of the application classes."""
        return tuple(self.slowdown)

    def subset(self, gpus: Iterable[str]) -> Self:
        """Return the profile of some GPUs, in the order given; 1 stays the median of them all.

        Raises
        ------
        UnknownNameError
            If a GPU is not in the profile.
        """
        number = {gpu: n for n, gpu in enumerate(self.gpus)}
        chosen = tuple(gpus)
        for gpu in chosen:
            if gpu not in number:
                raise UnknownNameError("GPU", gpu, list(self.gpus))
        slowdown = {
            name: tuple(values[number[gpu]] for gpu in chosen)
            for name, values in self.slowdown.items()
        }
        return type(self)(gpus=chosen, slowdown=slowdown, kind=self.kind, source=self.source)

    def array(self, application_class: str) -> Floats:
        """Return the slowdowns of a class, an array (GPUs,) in the order of `gpus`.

        Raises
        ------
        UnknownNameError
            If the profile does not have the class.
        """
        import numpy as np

        return np.array(self._values(application_class), dtype=np.float64)

    def outliers(self, application_class: str, above: float = 1.5) -> tuple[str, ...]:
        """Return the GPUs with a slowdown above a threshold for a class.

        1.5 is where the spread between healthy GPUs ends: on Longhorn and Frontera no GPU's median
        run exceeds it.
        """
        values = self._values(application_class)
        return tuple(gpu for gpu, value in zip(self.gpus, values, strict=True) if value > above)

    def outlier_share(self, application_class: str, above: float = 1.5) -> float:
        """Return the share of the GPUs with a slowdown above a threshold for a class."""
        return len(self.outliers(application_class, above)) / len(self.gpus)

    def _values(self, application_class: str) -> tuple[float, ...]:
        if application_class not in self.slowdown:
            raise UnknownNameError("application class", application_class, list(self.slowdown))
        return tuple(self.slowdown[application_class])


def _gpu_faults(gpus: Sequence[Any]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for n, gpu in enumerate(gpus):
        if gpu == "":
            yield ("gpus", n), "the id of a GPU must not be empty"
        elif isinstance(gpu, str) and first.setdefault(gpu, n) != n:
            yield ("gpus", n), f"{shown(gpu)} is already gpus[{first[gpu]}]"


def _value_faults(values: Sequence[Any], gpus: Sequence[Any] | None) -> Iterator[Fault]:
    if gpus is not None and len(values) != len(gpus):
        yield (), f"has {len(values)} values for {len(gpus)} GPUs"
    for n, value in enumerate(values):
        if isinstance(value, int | float) and not isinstance(value, bool) and value <= 0:
            gpu = f" of GPU {shown(gpus[n])}" if gpus is not None and n < len(gpus) else ""
            yield (n,), f"slowdown{gpu} must be positive, found {shown(value)}"


def _relative(times: Sequence[float], median: float) -> tuple[float, ...]:
    return tuple(time / median for time in times)


def _time_faults(times: Iterable[tuple[str, float]]) -> list[str]:
    """Name the runs that did not take a positive, finite time."""
    return [
        f"{owner}: a run time must be positive and finite, found {shown(time)}"
        for owner, time in times
        if not 0 < time < float("inf")
    ]


def _by_class_and_gpu(
    runs: Iterable[tuple[object, object, float]],
) -> tuple[dict[str, dict[str, list[float]]], list[str]]:
    """Return the run times by class and GPU, and the GPUs in the order of their first run."""
    seconds: dict[str, dict[str, list[float]]] = {}
    gpus: dict[str, None] = {}
    for gpu, name, time in runs:
        gpus[str(gpu)] = None
        seconds.setdefault(str(name), {}).setdefault(str(gpu), []).append(float(time))
    faults = []
    for name, by_gpu in seconds.items():
        for gpu, times in by_gpu.items():
            faults += _time_faults((f"GPU '{gpu}', class '{name}'", time) for time in times)
        faults += [f"GPU '{gpu}' has no run of class '{name}'" for gpu in gpus if gpu not in by_gpu]
    if faults or not gpus:
        raise InstanceError("runs", faults or ["there is no run"])
    return seconds, list(gpus)

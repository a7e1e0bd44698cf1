"""Studies: rollouts that claims are read off, each cell of each seed a task of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from optsched.reproduction.estimates import Draw, Figures
    from optsched.reproduction.verdicts import Basis

    Progress = Callable[[float], None] | None


class Level(StrEnum):
    """How much is measured."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"


class Task(NamedTuple):
    """A cell of a study with one seed.

    Attributes
    ----------
    data
        The path of the authors' file, if it takes the place of what is generated.
    """

    study: str
    cell: str
    seed: int
    level: Level
    data: str | None = None


@dataclass(frozen=True)
class Study:
    """Rollouts in one world.

    Attributes
    ----------
    world
        What is rolled out, in a sentence.
    cells
        By level what is measured with each seed: policies as a rule.
    measure
        Returns the figures of a task; what it hangs on is all in the task.
    seeds
        By level how many.
    costly
        Cells that have fewer seeds than others, but for `--full`, and how many.
    workloads_of
        Returns how many workloads a file of the authors holds; None: the study takes no file. Each
        takes the place of a seed.
    is_timed
        Whether its figures are those of a clock: they stand among the timings, and in no row.
    """

    name: str
    basis: Basis
    world: str
    cells: Callable[[Level], Sequence[str]]
    measure: Callable[[Task], Figures]
    seeds: Mapping[Level, int]
    costly: Mapping[str, int] = field(default_factory=dict)
    workloads_of: Callable[[str], int] | None = None
    is_timed: bool = False

    def tasks(self, level: Level, first: int, data: str | None) -> Iterator[Task]:
        """Yield all that is to be measured."""
        seeds = range(first, first + self.seeds[level])
        if data is not None and self.workloads_of is not None:
            most = self.seeds[level] if level is Level.QUICK else None
            seeds = range(self.workloads_of(data))[:most]
        else:
            data = None
        for number, seed in enumerate(seeds):
            for cell in self.cells(level):
                if number >= self.costly.get(cell, len(seeds)) and level is not Level.FULL:
                    continue
                yield Task(self.name, cell, seed, level, data)


class Measured(NamedTuple):
    """What tasks found.

    Attributes
    ----------
    draws
        By study and seed the figures of each cell.
    seconds
        CPU seconds by task.
    timings
        By study that is timed and by cell the figures of the first seed.
    """

    draws: dict[str, dict[int, dict[str, Figures]]]
    seconds: dict[str, float]
    timings: dict[str, dict[str, Figures]]

    def of(self, study: str) -> list[Draw]:
        """Return what each seed of a study found."""
        return list(self.draws.get(study, {}).values())

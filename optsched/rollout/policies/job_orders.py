"""Orders: which jobs come first. Equal ones keep the order of submission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from optsched.registry import UnknownNameError
from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.tiresias.queues import Tiresias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

    Keys = tuple[Floats, ...]


class Order(Protocol):
    """Sorts jobs; `Restorable`, for it may keep state of its own."""

    @property
    def changing(self) -> tuple[str, ...]:
        """Names of what it keeps from call to call."""
        ...

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs, the most urgent first."""
        ...

    def steady(self, scenario: Scenario) -> SteadyOrder | None:
        """Return the order as one by keys, if it is such a one in a scenario."""
        ...


class SteadyOrder(Protocol):
    """Sorts by keys, equal ones by number: they stay while jobs wait, and have bounds otherwise.

    A key has one number or several; of several the first counts first.

    Attributes
    ----------
    is_exact
        Whether `keys` is exact for jobs that have held GPUs since they were seen, too.
    """

    is_exact: ClassVar[bool]

    def look(self, view: View, jobs: Sequence[int]) -> None:
        """Take note of all jobs that wait or run."""
        ...

    def note(self, view: View, started: Iterable[int], stopped: Iterable[int]) -> None:
        """Take note of what has happened since the last call, at which jobs started and stopped."""
        ...

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return for each job the numbers that the order looks at, now: shape (numbers, jobs)."""
        ...

    def keys(self, seen: Floats, now: int, held_us: Integers, widths: Integers) -> Keys:
        """Return keys of jobs that have held GPUs for some time since they were seen: at most so.

        Without such time they are exact, and where `is_exact` says so.
        """
        ...


class Unnoting(Restorable):
    """An order that sees all that it has to know when it is asked."""

    def look(self, view: View, jobs: Sequence[int]) -> None:
        """Do nothing."""

    def note(self, view: View, started: Iterable[int], stopped: Iterable[int]) -> None:
        """Do nothing."""


class Fifo(Unnoting):
    """First in, first out: by submission."""

    is_exact: ClassVar[bool] = True

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs by number, which is the order of submission."""
        return sorted(jobs)

    def steady(self, scenario: Scenario) -> SteadyOrder:
        """Return itself: numbers do not change."""
        return self

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return nothing: all keys are equal."""
        return np.zeros((0, len(jobs)))

    def keys(self, seen: Floats, now: int, held_us: Integers, widths: Integers) -> Keys:
        """Return keys without numbers."""
        return ()


@dataclass
class Las(Unnoting):
    """Least attained service: GPU-time held so far.

    Source: Gu et al., "Tiresias", NSDI 2019 (2D-LAS). With `one_dimensional` it is time without
    regard to GPUs, as in the released Blox and its fork for PAL.
    """

    is_exact: ClassVar[bool] = True

    one_dimensional: bool = False

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs, the least served first."""
        numbers = sorted(jobs)
        return _by(self.seen(view, numbers)[0], numbers)

    def steady(self, scenario: Scenario) -> SteadyOrder:
        """Return itself: service grows with the time for which GPUs are held, by their number."""
        return self

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return the service attained; whole numbers below 2^53 are exact."""
        served = view.attained_us if self.one_dimensional else view.attained_gpu_us
        return served(jobs).astype(np.float64)[None]

    def keys(self, seen: Floats, now: int, held_us: Integers, widths: Integers) -> Keys:
        """Return the service with what was attained since."""
        return (seen[0] + (held_us if self.one_dimensional else held_us * widths),)


@dataclass
class Srtf(Unnoting):
    """Shortest remaining time first, as the scenario's oracle tells it; unknown times come last.

    Source: Blox orders by iteration time x iterations - attained service. With `times_gpus` it is
    the shortest remaining service of Tiresias: remaining time x size of the gang.
    """

    is_exact: ClassVar[bool] = False

    times_gpus: bool = False

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs, the one with the least left first."""
        numbers = sorted(jobs)
        return _by(self.seen(view, numbers)[0], numbers)

    def steady(self, scenario: Scenario) -> SteadyOrder | None:
        """Return itself if estimates stay while jobs wait, and only fall while they run."""
        return None if scenario.estimates.kind == "history" else self

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return the time, or service, that is left."""
        left = view.remaining_us(jobs)
        if self.times_gpus:
            left = left * np.array([view.demand(job) for job in jobs], dtype=float)
        return np.where(np.isnan(left), np.inf, left)[None]

    def keys(self, seen: Floats, now: int, held_us: Integers, widths: Integers) -> Keys:
        """Return what was left when they were seen: it only falls."""
        return (seen[0],)


ORDERS: dict[str, Callable[..., Order]] = {
    "fifo": Fifo,
    "las": Las,
    "srtf": Srtf,
    "tiresias": Tiresias,
}
OPTIONS = {
    "fifo": (),
    "las": ("one_dimensional",),
    "srtf": ("times_gpus",),
    "tiresias": ("thresholds_gpu_s", "promote"),
}


def thresholds(told: float | str) -> float | str:
    """Return thresholds as they are told, if they are numbers above 0.

    Raises
    ------
    ValueError
        If they are not.
    """
    try:
        numbers = [float(part) for part in str(told).split("/")]
    except ValueError:
        numbers = [0.0]
    if not all(0 < number < 1e12 for number in numbers):
        raise ValueError("numbers above 0, parted by /")
    return told


def order(name: str, **options: object) -> Order:
    """Return an order by its name.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    TypeError
        If an option is not one of the order's.
    """
    if name not in ORDERS:
        raise UnknownNameError("order", name, list(ORDERS))
    return ORDERS[name](**options)


def _by(keys: NDArray[np.generic], numbers: list[int]) -> list[int]:
    return [numbers[n] for n in np.argsort(keys, kind="stable").tolist()]

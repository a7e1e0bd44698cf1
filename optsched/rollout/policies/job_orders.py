"""Orders: which jobs come first. Equal ones keep the order of submission."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from optsched.registry import UnknownNameError
from optsched.rollout.checkpoints.restorable import Restorable
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

NEVER = 1 << 62
"""A moment that does not come, in microseconds."""


class Order(Protocol):
    """Sorts jobs; `Restorable`, for it may keep state of its own."""

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs, the most urgent first."""
        ...

    def steady(self, scenario: Scenario) -> SteadyOrder | None:
        """Return the order as one by keys, if it is such a one in a scenario."""
        ...


class SteadyOrder(Protocol):
    """Sorts by keys, equal ones by number: they stay while jobs wait, and have bounds otherwise."""

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return for each job the number that the order looks at, now."""
        ...

    def keys(self, seen: Floats, held_us: Integers, widths: Integers) -> Floats:
        """Return keys of jobs that have held GPUs for some time since they were seen: at most so.

        Without such time they are exact.
        """
        ...


class Fifo(Restorable):
    """First in, first out: by submission."""

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs by number, which is the order of submission."""
        return sorted(jobs)

    def steady(self, scenario: Scenario) -> SteadyOrder:
        """Return itself: numbers do not change."""
        return self

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return zeros: all keys are equal."""
        return np.zeros(len(jobs))

    def keys(self, seen: Floats, held_us: Integers, widths: Integers) -> Floats:
        """Return zeros."""
        return seen


@dataclass
class Las(Restorable):
    """Least attained service: GPU-time held so far.

    Source: Gu et al., "Tiresias", NSDI 2019 (2D-LAS). With `one_dimensional` it is time without
    regard to GPUs, as in the released Blox and its fork for PAL.
    """

    one_dimensional: bool = False

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs, the least served first."""
        numbers = sorted(jobs)
        return _by(self.seen(view, numbers), numbers)

    def steady(self, scenario: Scenario) -> SteadyOrder:
        """Return itself: service grows with the time for which GPUs are held, by their number."""
        return self

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return the service attained; whole numbers below 2^53 are exact."""
        served = view.attained_us if self.one_dimensional else view.attained_gpu_us
        return served(jobs).astype(np.float64)

    def keys(self, seen: Floats, held_us: Integers, widths: Integers) -> Floats:
        """Return the service with what was attained since."""
        return seen + (held_us if self.one_dimensional else held_us * widths)


@dataclass
class Srtf(Restorable):
    """Shortest remaining time first, as the scenario's oracle tells it; unknown times come last.

    Source: Blox orders by iteration time x iterations - attained service. With `times_gpus` it is
    the shortest remaining service of Tiresias: remaining time x size of the gang.
    """

    times_gpus: bool = False

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs, the one with the least left first."""
        numbers = sorted(jobs)
        return _by(self.seen(view, numbers), numbers)

    def steady(self, scenario: Scenario) -> SteadyOrder | None:
        """Return itself if estimates stay while jobs wait, and only fall while they run."""
        return None if scenario.estimates.kind == "history" else self

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return the time, or service, that is left."""
        left = view.remaining_us(jobs)
        if self.times_gpus:
            left = left * np.array([view.demand(job) for job in jobs], dtype=float)
        return np.where(np.isnan(left), np.inf, left)

    def keys(self, seen: Floats, held_us: Integers, widths: Integers) -> Floats:
        """Return what was left when they were seen: it only falls."""
        return seen


@dataclass
class Tiresias(Restorable):
    """Discretised 2D-LAS: a few queues by attained GPU-time; in each the first started first.

    Jobs that have not started come behind those of their queue that have, by submission. So jobs of
    one queue do not take turns.

    Parameters
    ----------
    thresholds_gpu_s
        GPU-seconds at which a job falls into the next queue; a number for one threshold, or words
        such as ``"3250/36000"`` for several.
    promote
        A waiting job that has waited for `promote` times as long as it has run since its last
        promotion goes back to the first queue, and its service counts from zero; 0 for never.
    lease_us
        For so long after a start a job comes before all others: nobody takes its GPUs.

    Notes
    -----
    Source: Gu et al., NSDI 2019; SymbioticLab/Tiresias, simulator/jobs.py: two queues, parted at
    3,250 GPU-seconds, and a knob that is off by default. There all waiting since the last promotion
    counts, here the wait since the job last held GPUs.
    """

    changing = ("_forgiven", "_first_us", "_since_us", "_called_us")

    thresholds_gpu_s: float | str = 3250.0
    promote: float = 0.0
    lease_us: int = 0
    _forgiven: dict[int, tuple[int, int]] = field(default_factory=dict, init=False, repr=False)
    _first_us: dict[int, int] = field(default_factory=dict, init=False, repr=False)
    _since_us: dict[int, int] = field(default_factory=dict, init=False, repr=False)
    _called_us: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        parts = str(self.thresholds_gpu_s).split("/")
        self._limits = np.array(sorted(float(part) * US for part in parts))

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs by queue, those with a lease before all; in each by first start."""
        numbers = sorted(jobs)
        self._look(view, numbers)
        served = counted = view.attained_gpu_us(numbers)
        if self._forgiven:
            counted = served - np.array([self._forgiven.get(job, (0, 0))[0] for job in numbers])
        queues = np.searchsorted(self._limits, counted, side="right")
        if self.promote:
            self._promote(view, numbers, served, queues)
        first = self._first_us
        keys: list[Any] = [[first.get(job, NEVER) for job in numbers], queues]
        if (urgency := self.urgency(counted, queues)) is not None:
            keys.insert(1, urgency)
        latest = view.now_us - self.lease_us
        leased = {job for job, since in self._since_us.items() if since > latest}
        if leased:
            keys.append([job not in leased for job in numbers])
        return [numbers[n] for n in np.lexsort(keys).tolist()]

    def _promote(self, view: View, jobs: list[int], served: Integers, queues: Integers) -> None:
        """Bring jobs that have waited long for what they ran back to the first queue."""
        ran = view.attained_us(jobs)
        for n in np.flatnonzero(queues).tolist():
            job = jobs[n]
            since = int(ran[n]) - self._forgiven.get(job, (0, 0))[1]
            if since > 0 and view.waited_us(job) >= self.promote * since:
                self._forgiven[job] = int(served[n]), int(ran[n])
                queues[n] = 0

    def urgency(self, served: Integers, queues: Integers) -> Floats | None:
        """Return what comes before the first start within a queue, the least first; None: that."""
        return None

    def _look(self, view: View, jobs: Sequence[int]) -> None:
        """Take note of starts: a job that runs and did not at the last call began then."""
        for job in (*view.failed, *view.arrived):
            self._since_us.pop(job, None)
        for job in view.ended:
            for known in (self._forgiven, self._first_us, self._since_us):
                known.pop(job, None)
        if self._called_us < 0:  # what ran before there was this order began at some time
            pairs = zip(jobs, view.attained_us(jobs).tolist(), strict=True)
            self._first_us = {job: view.submit_us(job) for job, ran in pairs if ran}
        running = view.running.tolist()
        for job in self._since_us.keys() - set(running):
            del self._since_us[job]
        began = max(0, self._called_us)
        for job in running:
            if job not in self._since_us:
                self._since_us[job] = began
                self._first_us.setdefault(job, began)
        self._called_us = view.now_us

    def steady(self, scenario: Scenario) -> None:
        """Return None: leases end, and first starts count."""


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

"""Speeds of jobs that run on given GPUs without neighbours: width, slowest GPU and locality."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.boa.speedup_curves import speedup_at
from optsched.registry import UnknownNameError

if TYPE_CHECKING:
    from optsched.boa.instance import Phase, Speedup
    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.scenario import Model, Scenario
    from optsched.traces.trace import Trace


class JobPace(NamedTuple):
    """What is the same for all jobs of a model.

    Attributes
    ----------
    slowdown
        By GPU, V of the model's application class; None if all GPUs are alike to it.
    locality
        Factor on run times by the level at which its GPUs meet; None if all are 1.
    phases
        Empty if the width is fixed.
    troubled
        Whether passing trouble of nodes concerns it.
    """

    slowdown: tuple[float, ...] | None
    locality: tuple[float, ...] | None
    phases: tuple[Phase, ...]
    troubled: bool

    @property
    def is_plain(self) -> bool:
        """Whether its speed is always that of the reference."""
        return self == (None, None, (), False)


def paces(scenario: Scenario, cluster: Cluster, trace: Trace) -> list[JobPace]:
    """Return the pace of each job of a trace."""
    profile = Slowdowns(scenario, cluster)
    by_name = {name: _pace(scenario, profile, model) for name, model in scenario.models.items()}
    other = _pace(scenario, profile, None)
    return [by_name.get(name, other) for name in trace.model]


class Slowdowns:
    """Slowdowns of the cluster's GPUs, by application class."""

    def __init__(self, scenario: Scenario, cluster: Cluster) -> None:
        self._profile = scenario.profile
        self._numbers = list(range(cluster.gpus))
        if scenario.profile is not None and scenario.topology is not None:
            number = {gpu: n for n, gpu in enumerate(scenario.profile.gpus)}
            self._numbers = [number[gpu] for gpu in scenario.topology.gpus]

    def of(self, application_class: str) -> tuple[float, ...]:
        """Return V of each GPU: by its id if there is a topology, else by its position.

        All are 1 without a profile.

        Raises
        ------
        UnknownNameError
            If the profile does not have the class.
        """
        if self._profile is None:
            return (1.0,) * len(self._numbers)
        if application_class not in self._profile.slowdown:
            known = list(self._profile.slowdown)
            raise UnknownNameError("application class", application_class, known)
        values = self._profile.slowdown[application_class]
        return tuple(values[n] for n in self._numbers)


def _pace(scenario: Scenario, profile: Slowdowns, model: Model | None) -> JobPace:
    name = None if model is None else model.application_class
    slowdown = None if name is None or scenario.profile is None else profile.of(name)
    given = scenario.locality if model is None or not model.locality else model.locality
    locality = tuple(given) if any(factor != 1 for factor in given) else None
    phases = () if model is None else model.goodput_phases
    events = scenario.events
    troubled = events is not None and events.application_class in (None, name)
    return JobPace(slowdown, locality, phases, troubled)


def width_speed(speedup: Speedup, gpus: int) -> float:
    """Return the speedup of a phase at any width.

    Between the measured widths of a table it is interpolated. Above the greatest width the GPUs
    beyond it add nothing; below the smallest the speedup falls in proportion to the width.
    """
    least, most = speedup.widths[0], speedup.widths[-1]
    if gpus < least:
        return speedup_at(speedup, least) * gpus / least
    return speedup_at(speedup, min(gpus, most))


def phase_marks(phases: tuple[Phase, ...], demand: int) -> tuple[Fraction, ...]:
    """Return the share of a job's run time that is over at the end of each phase; the last is 1.

    Phase p takes t_p / sum t of the run time at the gang asked for, t_p = work_gpu_s / speedup.
    """
    times = [Fraction(p.work_gpu_s) / Fraction(width_speed(p.curve, demand)) for p in phases]
    total = sum(times, Fraction(0))
    return tuple(done / total for done in itertools.accumulate(times)) or (Fraction(1),)

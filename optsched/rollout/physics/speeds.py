"""Speeds of jobs that run on given GPUs without neighbours: width, slowest GPU and locality."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from optsched.registry import UnknownNameError

if TYPE_CHECKING:
    from optsched.boa.instance import Phase
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
        On GPUs of the reference type; empty if the width is fixed.
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
    types = cluster.types
    by_name = {
        name: _pace(scenario, profile, model, types.phases(name))
        for name, model in scenario.models.items()
    }
    other = _pace(scenario, profile, None, ())
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


def _pace(
    scenario: Scenario, profile: Slowdowns, model: Model | None, phases: tuple[Phase, ...]
) -> JobPace:
    name = None if model is None else model.application_class
    slowdown = None if name is None or scenario.profile is None else profile.of(name)
    given = scenario.locality if model is None or not model.locality else model.locality
    locality = tuple(given) if any(factor != 1 for factor in given) else None
    events = scenario.events
    troubled = events is not None and events.application_class in (None, name)
    return JobPace(slowdown, locality, phases, troubled)

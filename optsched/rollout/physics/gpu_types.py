"""Types of GPUs: which nodes have which, what runs on them, and how fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.batch_sizes import goodput_phases
from optsched.rollout.node_groups import pool_of
from optsched.rollout.physics.widths import width_speed

if TYPE_CHECKING:
    from optsched.boa.instance import Phase
    from optsched.rollout.scenario import Scenario


class GpuTypes:
    """The GPU types of a scenario; one, of no name, where its nodes name none.

    Attributes
    ----------
    names
        In the order of the nodes.
    of_node
        The type of each node.
    gpus
        How many GPUs there are of each type.
    reference
        The type whose GPUs run times of the trace are told of.

    Notes
    -----
    The GPUs of a type on the spot market are a type of another name, with the same speeds.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._models = scenario.models
        self.of_node = scenario.node_types
        self.gpus = dict.fromkeys(self.of_node, 0)
        if len(self.gpus) == 1:
            self.gpus[self.of_node[0]] = scenario.gpus
        else:
            for name, size in zip(self.of_node, scenario.node_sizes, strict=True):
                self.gpus[name] += size
        self.names = tuple(self.gpus)
        self._type_of = scenario.pool_types
        named = scenario.reference_gpu_type or self.names[0]
        self.reference = named if named in self.gpus else pool_of(named, "spot")
        self._phases: dict[tuple[str, str], tuple[Phase, ...]] = {}
        self._slowdowns: dict[tuple[str, int, int, str], float] = {}

    @property
    def are_several(self) -> bool:
        """Whether GPUs differ in type."""
        return len(self.names) > 1

    def runs_on(self, model: str) -> tuple[str, ...]:
        """Return the types that jobs of a model can run on, in the order of `names`."""
        known = self._models.get(model)
        told = () if known is None else known.gpu_types
        return tuple(n for n in self.names if self._type_of[n] in told) if told else self.names

    def most_gpus(self, model: str) -> int:
        """Return the largest gang that a job of a model can have."""
        return max((self.gpus[name] for name in self.runs_on(model)), default=0)

    def phases(self, model: str, gpu_type: str | None = None) -> tuple[Phase, ...]:
        """Return the phases of a model with the speedups at which its jobs get on.

        On GPUs of a type, else of the reference; batch sizes are considered. None if its width is
        fixed.
        """
        key = model, self._type_of[gpu_type or self.reference]
        if key not in self._phases:
            known = self._models.get(model)
            told = () if known is None else known.phases
            phases = tuple(phase.on(key[1]) for phase in told)
            batches = None if known is None else known.batches
            self._phases[key] = goodput_phases(phases, batches)
        return self._phases[key]

    def slowdown(self, model: str, phase: int, gpus: int, gpu_type: str) -> float:
        """Return how many times as long a phase takes on GPUs of a type as on those of reference.

        On as many of them; below 1 where they are faster.
        """
        if self._type_of[gpu_type] == self._type_of[self.reference]:
            return 1.0
        key = model, phase, gpus, gpu_type
        if key not in self._slowdowns:
            self._slowdowns[key] = self._slowdown(*key)
        return self._slowdowns[key]

    def _slowdown(self, model: str, phase: int, gpus: int, gpu_type: str) -> float:
        known = self._models.get(model)
        speeds = {} if known is None else known.gpu_speeds
        if speeds:
            return speeds[self._type_of[self.reference]] / speeds[self._type_of[gpu_type]]
        there = self.phases(model, gpu_type)
        if not there:
            return 1.0
        here = self.phases(model)[phase].curve
        return width_speed(here, gpus) / width_speed(there[phase].curve, gpus)

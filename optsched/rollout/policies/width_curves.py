"""What policies know of widths: how many GPUs a job may have, and how fast it is on them."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from optsched.boa.speedup_curves import curve
from optsched.rollout.physics.gpu_types import GpuTypes
from optsched.rollout.physics.widths import phase_marks, width_speed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.boa.instance import Phase
    from optsched.rollout.scenario import Scenario


class Curve(NamedTuple):
    """Widths that a phase may have, ascending, and the speedup at each."""

    gpus: tuple[int, ...]
    speed: tuple[float, ...]

    @property
    def least(self) -> int:
        """The least width."""
        return self.gpus[0]

    @property
    def best(self) -> int:
        """The least width of the greatest speedup."""
        return self.gpus[self.speed.index(max(self.speed))]

    def at_most(self, limit: float) -> int:
        """Return the largest width within a number of GPUs; 0 if there is none."""
        count = bisect_right(self.gpus, limit)
        return self.gpus[count - 1] if count else 0

    def speed_at(self, gpus: int) -> float:
        """Return the speedup at one of the widths, 0 at none."""
        return self.speed[self.gpus.index(gpus)] if gpus in self.gpus else 0.0

    def useful(self) -> Curve:
        """Return the curve of the widths that are faster than every narrower one."""
        kept, top = [], 0.0
        for gpus, speed in zip(self.gpus, self.speed, strict=True):
            if speed > top:
                kept.append((gpus, speed))
                top = speed
        return Curve(*(tuple(column) for column in zip(*kept, strict=True)))


class Curves:
    """Curves of a scenario's models, by phase; a job of another model has the width it asks for.

    On GPUs of the reference type, unless another one is named.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.types = scenario, GpuTypes(scenario)
        self._most = max(self.types.gpus.values())
        self._by_type: dict[tuple[str, int], tuple[dict[str, Curve], ...]] = {}
        self._known: dict[tuple[str, int], tuple[Curve, ...]] = {}
        self._useful: dict[tuple[str, int], tuple[Curve, ...]] = {}
        self._works: dict[tuple[str, int], tuple[float, ...]] = {}
        self._marks: dict[tuple[str, int], tuple[float, ...]] = {}

    def phases(self, model: str) -> Sequence[Phase]:
        """Return the phases of a model, with goodputs; none if its width is fixed."""
        return self.types.phases(model)

    def of(self, model: str, demand: int) -> tuple[Curve, ...]:
        """Return the curve of each phase, within the cluster; at least one."""
        key = self._key(model, demand)
        if key not in self._known:
            curves = tuple(self._curve(phase, demand) for phase in self.phases(model))
            self._known[key] = curves or (Curve((demand,), (1.0,)),)
        return self._known[key]

    def useful(self, model: str, demand: int) -> tuple[Curve, ...]:
        """Return the curve of each phase without the widths that a narrower one is as fast as."""
        key = self._key(model, demand)
        if key not in self._useful:
            self._useful[key] = tuple(curve.useful() for curve in self.of(model, demand))
        return self._useful[key]

    def _key(self, model: str, demand: int) -> tuple[str, int]:
        return model, 0 if self.phases(model) else demand

    def by_type(self, model: str, demand: int) -> tuple[dict[str, Curve], ...]:
        """Return by phase the useful widths on each type that has room for any, as `useful`."""
        key = (model, demand)
        if key not in self._by_type:
            self._by_type[key] = self._on_types(model, demand)
        return self._by_type[key]

    def _on_types(self, model: str, demand: int) -> tuple[dict[str, Curve], ...]:
        types = self.types
        if not types.are_several:
            return tuple({types.reference: curve} for curve in self.useful(model, demand))
        phases: list[dict[str, Curve]] = [{} for _ in self.of(model, demand)]
        for name in types.runs_on(model):
            for e, own in enumerate(phases):
                gpus, speeds = self._figures(model, e, demand, name)
                count = bisect_right(gpus, types.gpus[name])
                if count:
                    own[name] = Curve(gpus[:count], speeds[:count]).useful()
        return tuple(phases)

    def _figures(
        self, model: str, phase: int, demand: int, name: str
    ) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Return the widths of a phase on a type, and the speedup on it at each."""
        phases = self.types.phases(model, name)
        if phases:
            gpus, speed = curve(phases[phase].curve)
            widths, speeds = tuple(int(k) for k in gpus), speed.tolist()
        else:
            widths, speeds = (demand,), [1.0]
        if self.scenario.models.get(model) is not None and self.scenario.models[model].gpu_speeds:
            speeds = [
                speed / self.types.slowdown(model, phase, width, name)
                for width, speed in zip(widths, speeds, strict=True)
            ]
        return widths, tuple(speeds)

    def _curve(self, phase: Phase, demand: int) -> Curve:
        gpus, speed = curve(phase.curve)
        inside = gpus <= self._most
        if not inside.any():
            return Curve((demand,), (width_speed(phase.curve, demand),))
        widths = tuple(int(k) for k in gpus[inside])
        return Curve(widths, tuple(speed[inside].tolist()))

    def works(self, model: str, demand: int) -> tuple[float, ...]:
        """Return the work of each phase per second of run time at the gang asked for.

        In seconds at speedup 1, as `Phase.work_gpu_s`.
        """
        key = (model, demand)
        if key not in self._works:
            self._works[key] = self._phase_works(model, demand)
        return self._works[key]

    def marks(self, model: str, demand: int) -> tuple[float, ...]:
        """Return the shares of the run time at the gang asked for at which phases begin; then 1."""
        key = (model, demand)
        if key not in self._marks:
            phases = self.phases(model)
            ends = map(float, phase_marks(tuple(phases), demand)) if phases else (1.0,)
            self._marks[key] = (0.0, *ends)
        return self._marks[key]

    def _phase_works(self, model: str, demand: int) -> tuple[float, ...]:
        phases = self.phases(model)
        if not phases:
            return (1.0,)
        marks = self.marks(model, demand)
        return tuple(
            (after - before) * width_speed(phase.curve, demand)
            for before, after, phase in zip(marks, marks[1:], phases, strict=False)
        )

    def usual_run_s(self, model: str, demand: int) -> float:
        """Return the run time at a gang that the phases of a model declare; NaN without phases."""
        phases = self.phases(model)
        if not phases:
            return float("nan")
        return sum(phase.work_gpu_s / width_speed(phase.curve, demand) for phase in phases)

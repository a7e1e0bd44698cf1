"""Overheads: for how long a job holds its GPUs without getting on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.scenario import Scenario


class Overheads:
    """Whole microseconds of a start, a move and a change of width, by job.

    A model's `rescale_s` stands for `start_s` and `restore_s` (not for `checkpoint_s`) at every
    start from the queue, and for `rescale_s` at every change of width.

    Attributes
    ----------
    rescale_us
        By job the overhead of a change of width.
    are_none
        Whether nothing ever takes any time.
    """

    def __init__(self, scenario: Scenario, models: Sequence[str]) -> None:
        costs = scenario.costs
        self._first = _us(costs.start_s)
        self._later = _us(costs.restore_s)
        self._checkpoint = _us(costs.checkpoint_s)
        self._models = models
        self._own = {
            name: _us(model.rescale_s)
            for name, model in scenario.models.items()
            if model.rescale_s is not None
        }
        usual = _us(costs.rescale_s)
        self.rescale_us = [self._own.get(name, usual) for name in models]
        self.are_none = not (self._first or self._later or self._checkpoint or any(self.rescale_us))

    def start(self, job: int, is_first: bool, is_after_stop: bool) -> int:
        """Return the overhead of a start from the queue."""
        usual = self._first if is_first else self._later
        own = self._own.get(self._models[job], usual) if self._own else usual
        return own + self._checkpoint if is_after_stop else own

    def move(self) -> int:
        """Return the overhead of a move to as many other GPUs."""
        return self._later + self._checkpoint


def _us(seconds: float) -> int:
    return round(seconds * US)

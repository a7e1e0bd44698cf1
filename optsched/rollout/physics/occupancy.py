"""What the physics looks at: who holds which GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Occupancy(Protocol):
    """The part of the engine's state on which rates and watts depend."""

    @property
    def gpus_of(self) -> Sequence[tuple[int, ...]]:
        """By job the GPUs that it holds, ascending; empty if it holds none."""
        ...

    @property
    def jobs_on(self) -> Sequence[tuple[int, ...]]:
        """By GPU the jobs on it."""
        ...

    @property
    def phase(self) -> Sequence[int]:
        """By job the number of its phase."""
        ...

    @property
    def node_state(self) -> Sequence[int]:
        """By node OFF, STARTING or READY, as in `engine/state.py`."""
        ...

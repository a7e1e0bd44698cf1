"""A row of the benchmark: which function to call, with what, and what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

GRACE = 2.0  # of the limit, for making the instance and for verifying the plan
GRACE_S = 60.0


@dataclass(frozen=True)
class Row:
    """One line of the table, measured in a process of its own.

    Attributes
    ----------
    work
        What is solved; the cost of a method of a work is fitted over its sizes.
    size, unit
        How large, in what.
    method
        Who solves it.
    function
        "module:function", as `child.called` has it; it takes `options` and returns an `Outcome`.
    limit_s
        Seconds after which the method is to stop; the process is ended some time after them.
    needs
        Modules without which the row is skipped.
    is_ours
        Whether ratios of this size's rows refer to it.
    environment
        Environment variables of its process.
    """

    work: str
    size: int
    unit: str
    method: str
    function: str
    options: dict[str, Any] = field(default_factory=dict)
    limit_s: float = 60.0
    needs: tuple[str, ...] = ()
    is_ours: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The row in one line."""
        return f"{self.work} / {self.size:,} {self.unit} / {self.method}"

    @property
    def ends_after_s(self) -> float:
        """Seconds after which the process is ended, whatever it does."""
        return GRACE * self.limit_s + GRACE_S

    def missing(self) -> list[str]:
        """Return which of the modules it needs are not installed."""
        return [name for name in self.needs if find_spec(name) is None]

"""Ending: what only the process that solved knows of how a solve ended."""

from __future__ import annotations

from typing import NamedTuple


class Ending(NamedTuple):
    """How a solve ended, as far as it is known in memory only.

    Attributes
    ----------
    is_interrupted
        Whether Ctrl-C ended it.
    is_refused
        Whether the verifier refused its proof.
    is_warm
        Whether what the previous epoch left proved the plan, so that no program was solved.
    is_greedy
        Whether the plan is one of those that it began with.
    """

    is_interrupted: bool = False
    is_refused: bool = False
    is_warm: bool = False
    is_greedy: bool = False

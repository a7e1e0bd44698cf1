"""The registry of policies: names, where they are from, and how one is made.

Nothing heavy is imported here; a policy's module is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optsched.problems import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.rollout.decision import Policy
    from optsched.rollout.scenario import Scenario


@dataclass(frozen=True)
class Entry:
    """A named policy.

    `make` is "module:function"; the function takes the scenario, a seed and the options as
    keywords, and returns a policy.
    """

    name: str
    summary: str
    source: str
    make: str


_POLICIES = "optsched.rollout.policies."
_BLOX = "hal-uw/blox-pal, branch artifact, placement/"
_PAL = "Jain et al., PAL, SC 2024, arXiv 2408.11919"

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "fifo",
        "first in, first out, best fit; called at events it is fast",
        "",
        _POLICIES + "gangs:fifo",
    ),
    Entry(
        "philly",
        "gangs with relaxed locality and Philly's guidelines as switches",
        "Jeon et al., USENIX ATC 2019",
        _POLICIES + "philly:philly",
    ),
    Entry(
        "las",
        "least attained service, consolidated, preemptive",
        "Gu et al., Tiresias, NSDI 2019; Blox",
        _POLICIES + "rounds:las",
    ),
    Entry(
        "srtf",
        "shortest remaining time first, consolidated, preemptive",
        "Blox, hal-uw/blox-pal, schedulers/",
        _POLICIES + "rounds:srtf",
    ),
    Entry(
        "tiresias",
        "discretised least attained service, consolidated, preemptive",
        "Gu et al., Tiresias, NSDI 2019",
        _POLICIES + "rounds:tiresias",
    ),
    Entry(
        "packed-sticky",
        "in rounds: few nodes; running jobs stay",
        _BLOX + "packing_sticky.py",
        _POLICIES + "rounds:packed_sticky",
    ),
    Entry(
        "packed-non-sticky",
        "in rounds: few nodes, all jobs anew",
        _BLOX + "packing_nonsticky.py",
        _POLICIES + "rounds:packed_non_sticky",
    ),
    Entry(
        "random-sticky",
        "in rounds: any GPUs; running jobs stay",
        _BLOX + "random_sticky.py",
        _POLICIES + "rounds:random_sticky",
    ),
    Entry(
        "random-non-sticky",
        "in rounds: any GPUs, all jobs anew",
        _BLOX + "random_nonsticky.py",
        _POLICIES + "rounds:random_non_sticky",
    ),
    Entry(
        "pm-first",
        "in rounds: the fastest GPUs, class by class",
        _PAL,
        _POLICIES + "rounds:pm_first",
    ),
    Entry(
        "pal-greedy",
        "in rounds: PAL as published, class by class",
        _PAL,
        _POLICIES + "rounds:pal_greedy",
    ),
    Entry(
        "pal-multilevel",
        "in rounds: PAL over all levels of the topology",
        "",
        _POLICIES + "rounds:pal_multilevel",
    ),
    Entry(
        "pal",
        "in rounds: least total slowdown of all jobs at once, by the exact method",
        _PAL,
        _POLICIES + "rounds:pal",
    ),
)


def entry(name: str) -> Entry:
    """Look a policy up by its name.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    for known in ENTRIES:
        if known.name == name:
            return known
    raise UnknownNameError("policy", name, [known.name for known in ENTRIES])


def make(text: str, scenario: Scenario, seed: int = 0) -> Policy:
    """Return a policy by its name and options, such as ``"fifo:relax_s=600"``.

    Parameters
    ----------
    text
        A name; after a colon options as ``key=value``, separated by commas. Values are JSON
        (numbers, true, false, null) or else words.

    Raises
    ------
    UnknownNameError
        If there is no such policy.
    ValueError
        If an option is not one of the policy's, or malformed.
    """
    name, _, rest = text.partition(":")
    module, function = entry(name).make.split(":")
    maker: Callable[..., Policy] = getattr(importlib.import_module(module), function)
    options = dict(_option(part) for part in rest.split(",") if part)
    try:
        return maker(scenario, seed, **options)
    except TypeError as error:
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        told = f"there is no option '{unknown[1]}'" if unknown else str(error)
        raise ValueError(f"policy '{text}': {told}") from error


def _option(part: str) -> tuple[str, Any]:
    key, equals, value = part.partition("=")
    if not equals:
        raise ValueError(f"option '{part}': expected key=value")
    try:
        return key.strip(), json.loads(value)
    except ValueError:
        return key.strip(), value.strip()

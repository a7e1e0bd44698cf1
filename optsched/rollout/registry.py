"""The registry of policies: names, where they are from, and how one is made.

Nothing heavy is imported here; a policy's module is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
import json
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


ENTRIES: tuple[Entry, ...] = ()


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
        raise ValueError(f"policy '{text}': {error}") from error


def _option(part: str) -> tuple[str, Any]:
    key, equals, value = part.partition("=")
    if not equals:
        raise ValueError(f"option '{part}': expected key=value")
    try:
        return key.strip(), json.loads(value)
    except ValueError:
        return key.strip(), value.strip()

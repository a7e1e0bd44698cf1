"""The declaration of a policy: `optsched policies NAME`, the docs and all tables are made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from optsched.registry import loaded

if TYPE_CHECKING:
    from optsched.plugins.plugin import Plugin
    from optsched.rollout.engine.decision import Policy
    from optsched.rollout.policy_needs import Need
    from optsched.rollout.policy_options import Maker
    from optsched.rollout.scenario import Scenario

POLICIES = "optsched.rollout.policies."


@dataclass(frozen=True)
class Entry:
    """A named policy.

    Attributes
    ----------
    make
        "module:name" of a `Maker`, which takes the scenario, a seed and the options as keywords,
        and returns a policy; where a `rule` is named, of a function of that to a `Maker`. A policy
        of others has a `plugin` instead.
    faithful
        What is as in the source, in a sentence.
    differs
        Where it is not as its source has it, and why; a sentence each.
    needs
        What a scenario must have, or else the policy is another one.
    becomes
        Which one, for a table: "is fifo-requested".
    prefers
        What a scenario should have, or else a part of the policy has nothing to do: its first line
        says so.
    clairvoyant
        What it is told of jobs that are still to come, and no scheduler could know: "all", or
        "statistics" of the whole trace. Tables name those that know all.
    refuses
        What it is refused with at the start: "quotas", "rented", "downtime".
    example
        A command that shows it.
    knows_types
        Whether it keeps each job on GPUs of one type where a scenario has several that are not
        rented; all others are refused there.
    rents_types
        Whether it does so where the nodes are rented; all others are refused there.
    knows_priorities
        Whether jobs of queues of higher priority come first; all others are refused where a
        scenario has priorities.
    """

    name: str
    summary: str
    source: str
    make: str
    rule: str = ""
    plugin: Plugin | None = None
    faithful: str = ""
    differs: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    becomes: str = ""
    prefers: Need | None = None
    clairvoyant: Literal["", "statistics", "all"] = ""
    refuses: tuple[str, ...] = ()
    example: str = ""
    knows_types: bool = False
    rents_types: bool = False
    knows_priorities: bool = False

    @property
    def refused_with(self) -> tuple[str, ...]:
        """All that it is refused with at the start: `refuses`, and what it does not know."""
        if self.plugin is not None:
            return self.refuses
        known = {"GPU types": self.knows_types, "priorities": self.knows_priorities}
        if self.rents_types:
            known = {"owned GPU types": self.knows_types, **known, "GPU types": True}
        return (*self.refuses, *(name for name, is_known in known.items() if not is_known))

    def knows_types_of(self, scenario: Scenario) -> bool:
        """Tell whether it knows the GPU types of a scenario, where there are several."""
        if self.plugin is not None or len(set(scenario.node_types)) < 2:
            return True
        return self.knows_types if scenario.rented is None else self.rents_types

    def maker(self) -> Maker[Any, Policy]:
        """Import the maker; its `options` are what the policy takes."""
        if self.plugin is not None:
            from optsched.rollout.own_policies import maker_of

            return maker_of(self.plugin.load(), f"policy {self.plugin.told}")
        made = loaded(self.make)
        maker: Maker[Any, Policy] = made(self.rule) if self.rule else made
        return maker

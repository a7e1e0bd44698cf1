"""What policies need of a scenario to be more than a simpler policy by another name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from optsched.rollout.registry import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.rollout.registry import Entry
    from optsched.rollout.scenario import Scenario


class Need(NamedTuple):
    """Something that a scenario may have: in a word, in words, and whether it has it."""

    name: str
    text: str
    is_met: Callable[[Scenario], bool]
    otherwise: str


SHARING = Need(
    "sharing",
    "sharing.max_jobs_per_gpu of 2 or more",
    lambda scenario: scenario.sharing.max_jobs_per_gpu > 1,
    "no job ever shares a GPU",
)
PROFILE = Need(
    "profile",
    "a profile: the slowdown of each GPU",
    lambda scenario: scenario.profile is not None or scenario.events is not None,
    "all GPUs are equal to it",
)
SPEEDUPS = Need(
    "speedup curves",
    "models with phases: speedup curves",
    lambda scenario: any(model.phases for model in scenario.models.values()),
    "every job has the width that it asks for",
)
_BY_NAME = {
    **dict.fromkeys(("pm-first", "pal-greedy", "pal-silhouette", "pal-multilevel", "pal"), PROFILE),
    **dict.fromkeys(("equi", "srpt-k", "marginal-greedy"), SPEEDUPS),
}
_BY_MODULE = {"eaco": SHARING, "boa": SPEEDUPS, "boa_budgeted": SPEEDUPS, "pollux": SPEEDUPS,
              "sia": SPEEDUPS}  # fmt: skip


def need_of(policy: Entry) -> Need | None:
    """Return what a policy needs of a scenario; None if nothing."""
    module = policy.make.partition(":")[0].rpartition(".")[2]
    return _BY_NAME.get(policy.name) or _BY_MODULE.get(module)


def refuse_quotas(policy: str, scenario: Scenario) -> None:
    """Refuse at the start a policy that would break the quotas of queues in the middle of a run.

    Raises
    ------
    ValueError
        If the scenario has quotas.
    """
    if scenario.quotas:
        raise ValueError(
            f"policy '{policy}': it keeps no quotas of queues, and scenario '{scenario.name}' has "
            "some; fifo, philly, las and the other policies in rounds keep them, and "
            "quotas={} removes them"
        )


def unmet(scenario: Scenario, policy: str) -> str:
    """Return what a scenario lacks for a policy, named with its options, in a sentence; or ""."""
    name = policy.partition(":")[0]
    need = next((need_of(known) for known in ENTRIES if known.name == name), None)
    if need is None or need.is_met(scenario):
        return ""
    return f"policy '{policy}' needs {need.text}; '{scenario.name}' has none: {need.otherwise}"

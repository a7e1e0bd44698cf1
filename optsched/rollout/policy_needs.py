"""What policies need of a scenario to be more than a simpler policy by another name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    "GPU slowdowns",
    "a profile: the slowdown of each GPU, and models of its classes",
    lambda scenario: (
        scenario.profile is not None
        and any(model.application_class is not None for model in scenario.models.values())
    ),
    "all GPUs are equal to it",
)
SPEEDUPS = Need(
    "speedup curves",
    "models with phases: speedup curves of several widths",
    lambda scenario: any(
        len(curve.widths) > 1
        for model in scenario.models.values()
        for phase in model.phases
        for curve in phase.curves
    ),
    "every job has the width that it asks for",
)

BATCHES = Need(
    "batch sizes",
    "models with batches: batch sizes and gradient noise scale",
    lambda scenario: any(model.batches is not None for model in scenario.models.values()),
    "speedups are taken as they are given",
)


HARD_QUOTAS = Need(
    "hard quotas",
    "quotas that are not lent",
    lambda scenario: not (scenario.quotas and scenario.lends_quotas),
    "idle quota is borrowed, and nobody takes it back",
)


def refuse_gpu_types(policy: str, scenario: Scenario, knowing: Iterable[str]) -> None:
    """Refuse at the start a policy that takes all GPUs for alike.

    Parameters
    ----------
    knowing
        Names of policies that know types.

    Raises
    ------
    ValueError
        If the GPUs of the scenario are of several types.
    """
    types = tuple(dict.fromkeys(scenario.node_types))
    rented = "" if scenario.rented is None else " of rented nodes"
    if len(types) > 1:
        raise ValueError(
            f"policy '{policy}': it knows no GPU types{rented}, and scenario '{scenario.name}' has "
            f"{', '.join(types)}; {', '.join(knowing)} know them"
        )


def refuse_priorities(policy: str, scenario: Scenario, knowing: Iterable[str]) -> None:
    """Refuse at the start a policy to which all queues are alike.

    Parameters
    ----------
    knowing
        Names of policies that know priorities.

    Raises
    ------
    ValueError
        If queues of the scenario have priorities.
    """
    if scenario.priorities:
        raise ValueError(
            f"policy '{policy}': it knows no priorities, and queues of scenario '{scenario.name}' "
            f"have some; {', '.join(knowing)} know them, and priorities={{}} removes them"
        )


def refuse_unlike_nodes(policy: str, scenario: Scenario) -> None:
    """Refuse at the start a policy whose groups stand on any node alike.

    Raises
    ------
    ValueError
        If the nodes of the scenario differ in size.
    """
    if len(set(scenario.node_sizes)) > 1:
        raise ValueError(
            f"policy '{policy}': it needs equal nodes, and those of scenario '{scenario.name}' "
            "differ in size"
        )


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

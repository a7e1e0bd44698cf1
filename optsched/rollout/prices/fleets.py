"""Which nodes are rented for so many GPUs, where they are of several types, and how many."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from optsched.documents.faults import nearest, shown
from optsched.rollout.policy_options import OptionError
from optsched.rollout.prices.node_rates import prices_of_types

if TYPE_CHECKING:
    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.held_gpus import Holdings
    from optsched.rollout.scenario import Scenario


def fleet(cluster: Cluster, gpu_type: str | None) -> list[int]:
    """Return nodes in the order in which they are rented: those of a type, or all in proportion."""
    of_node = cluster.types.of_node
    if not cluster.types.are_several:
        return list(range(cluster.nodes))
    seen = dict.fromkeys(cluster.types.names, 0)
    rows = []
    for node, name in enumerate(of_node):
        seen[name] += 1
        rows.append(((2 * seen[name] - 1) / (2 * of_node.count(name)), node))
    return [node for _, node in sorted(rows) if gpu_type in (None, of_node[node])]


def capacity(scenario: Scenario, gpus: int | None, held: Holdings) -> int:
    """Return how many GPUs are shared out: so many, else what the budget allows, else all.

    Raises
    ------
    OptionError
        If there are fewer, or owned ones are of several types.
    """
    types, most = held.cluster.types, held.gpus_of_first(len(held.fleet))
    if types.are_several and scenario.rented is None and gpus not in (None, most):
        raise OptionError(f"option 'gpus': those of {', '.join(types.names)} differ: leave it null")
    if gpus is None:
        if types.are_several:
            return held.gpus_of_first(_affordable(scenario, held))
        budget = scenario.budget_gpus
        return most if budget is None else max(1, min(most, int(budget)))
    if gpus > most:
        raise OptionError(f"option 'gpus': must be at most {most}, found {gpus}")
    return gpus


def _affordable(scenario: Scenario, held: Holdings) -> int:
    """Return how many nodes of a fleet cost no more than the budget, one at least."""
    prices, budget = prices_of_types(scenario), scenario.budget_usd_per_h
    if budget is None or scenario.rented is None:
        return len(held.fleet)
    cluster = held.cluster
    costs = [prices[cluster.types.of_node[node]] * cluster.size[node] for node in held.fleet]
    return max(1, sum(total <= budget for total in accumulate(costs)))


def check_type(gpu_type: str | None, scenario: Scenario) -> None:
    """Refuse a type of GPUs that a scenario has none of, or one that some model does not run on.

    Raises
    ------
    OptionError
        Then, or where GPUs are of one type or are not rented.
    """
    if gpu_type is None:
        return
    types = dict.fromkeys(scenario.node_types)
    if scenario.rented is None or len(types) < 2:
        raise OptionError("option 'gpu_type': rented nodes of several types have it")
    if gpu_type not in types:
        hint = nearest(gpu_type, types)
        raise OptionError(f"option 'gpu_type': no node has {shown(gpu_type)}; {hint}")
    for name, model in scenario.models.items():
        if model.gpu_types and scenario.pool_types[gpu_type] not in model.gpu_types:
            raise OptionError(f"option 'gpu_type': model {shown(name)} runs on no {gpu_type}")

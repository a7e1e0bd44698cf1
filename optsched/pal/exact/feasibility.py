"""Phase one (Dantzig 1963): a plan that places all jobs, or a proof of infeasibility.

Nothing costs anything here but a job that is left out, which costs one. A tree for these costs
finds a plan that leaves none out, or proves that in every leaf more than nothing is left out; as
jobs are whole, that is one at least.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.exact.branch_and_bound import NodeRelaxation, PlacementTree
from optsched.pal.exact.relaxation import all_options
from optsched.pal.exact.rounding import rounded
from optsched.pal.settings import SETTINGS
from optsched.search import Infeasible

if TYPE_CHECKING:
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.branch_and_bound import PlacementNode
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.instance import PalInstance
    from optsched.search import Search


def find_any(instance: PalInstance, search: Search, problem: PalArrays) -> None:
    """Offer a plan that places all jobs, if one can be found within time and nodes.

    Raises
    ------
    Infeasible
        If it is proven that there is none.
    """
    free = without_costs(problem)
    options = widest(all_options(free))
    reward = np.ones(len(free.types))
    penalty = SETTINGS.penalty * len(instance.jobs)
    relaxation = NodeRelaxation(free, options, reward, penalty, search.seed)
    tree = PlacementTree(relaxation, search.seconds_left)
    if not tree.solve_root():
        search.out_of_time()
        return

    def visit(node: PlacementNode) -> None:
        search.offer(rounded(free, options, node.point).plan(instance))

    visit(tree.nodes[0])
    enough, most_nodes = SETTINGS.left_out, SETTINGS.feasibility_nodes
    tree.explore(lambda: enough if search.plan is None else -np.inf, visit, most_nodes)
    if search.plan is None and tree.bound >= enough:
        raise Infeasible(_reason(instance), tree.certificate(instance, "infeasible", [], np.inf))
    if search.plan is None:
        search.out_of_time()


def without_costs(problem: PalArrays) -> PalArrays:
    """Return the arrays with no costs but one for each job that is left out."""
    types = tuple(jobs.without_costs() for jobs in problem.types)
    return replace(problem, types=types, keeps=tuple(s._replace(cost=0.0) for s in problem.keeps))


def widest(options: GangOptions) -> GangOptions:
    """Return the option of each type and domain that allows all GPUs, and kept placements."""
    kept = np.arange(len(options.type)) >= options.first_keep
    kept[[columns.stop - 1 for _, _, columns in options.blocks]] = True
    return options.only(kept)


def _reason(instance: PalInstance) -> str:
    wanted, free = sum(job.gpus for job in instance.jobs), len(instance.free_gpus)
    if wanted > free:
        return f"the jobs need {wanted} GPUs, but {free} are free; admission 'all' places them all"
    capped = sum(job.highest_level is not None for job in instance.jobs)
    return (
        f"the jobs need {wanted} of {free} free GPUs, but with the highest_level of {capped} of "
        "them there is no way to place them all"
    )

"""The rows of the benchmark: what is solved, how large, and by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.suite.rows import Row
from benchmarks.suite.sizes import FULL, QUICK, Sizes

if TYPE_CHECKING:
    from collections.abc import Iterator

PHILLY_JOBS = 82_247
TREES = {1024: [8], 4096: [8, 8], 16_384: [8, 16]}  # domains of each level in one of the next
TREE_GAPS = {1024: 2e-3, 4096: 5e-3, 16_384: 1e-2}
EQUAL_NODE_GAPS = {1000: 1e-2, 10_000: 2e-3, 100_000: 2e-2}
USUAL_GAPS = {256: 1e-3, 1024: 2e-3, 4096: 1e-2, 16_384: 1.5e-2}
JOBS_PER_GPU = 0.4
EXACT_GAP = 1e-3
FEW_KINDS_GAP = 1e-2
PROVEN_GAP = 1e-6
SHARING_GAP = 1e-2
SIA_GAP = 1e-4
PEERS = {"scipy": (), "cvxpy": ("cvxpy",), "cp-sat": ("ortools",)}
SIA_PEERS = {
    "CBC": ("cvxpy", "cylp"),
    "GLPK_MI": ("cvxpy", "cvxopt"),
    "HIGHS": ("cvxpy",),
    "scipy": (),
}
NAMES = {
    "scipy": "scipy.optimize.milp",
    "cvxpy": "cvxpy + HiGHS",
    "cp-sat": "OR-Tools CP-SAT",
    "CBC": "cvxpy + CBC",
    "GLPK_MI": "cvxpy + GLPK",
    "HIGHS": "cvxpy + HiGHS",
}


def catalogue(*, quick: bool = False, philly: str | None = None) -> list[Row]:
    """Return all rows; of each size ours comes first.

    Parameters
    ----------
    philly
        The file philly_jobs_pollux.csv[.gz], whose jobs then replace generated ones.
    """
    sizes = QUICK if quick else FULL
    return [
        *placements(sizes),
        *placements_on_equal_nodes(sizes),
        *placements_on_few_kinds(sizes),
        *usual_placements(sizes),
        *known_placements(sizes),
        *next_epochs(sizes),
        *sharing(sizes),
        *budgets(sizes),
        *rollouts(sizes, philly),
        *bounds(sizes, philly),
        *sia(sizes),
        *tight_rounds(sizes),
    ]


def placements(sizes: Sizes) -> Iterator[Row]:
    """PAL on trees of GPUs that all differ: ours, MILPs of small ones, random parts of large."""
    for gpus in sizes.trees:
        work, options, limits = "PAL placement", _tree(gpus), {"limit_s": sizes.limit_s}
        size = (work, gpus, "GPUs")
        yield Row(*size, "exact", "pal:solve", options | limits, sizes.limit_s, is_ours=True)
        limit_s = sizes.peer_limit_s
        if gpus in sizes.milps:
            named = {"method": "milp", "limit_s": limit_s}
            yield Row(*size, "milp (Pyomo + HiGHS)", "pal:solve", options | named, limit_s)
            for solver, needs in PEERS.items():
                named = {"solver": solver, "limit_s": limit_s}
                yield Row(*size, NAMES[solver], "pal_peers:solve", options | named, limit_s, needs)
        if gpus in sizes.pops:
            for parts in (4, 8):
                limit_s = 2 * sizes.peer_limit_s
                named = {"parts": parts, "limit_s": limit_s}
                yield Row(*size, f"POP-{parts}", "pal:pop", options | named, limit_s)


def placements_on_equal_nodes(sizes: Sizes) -> Iterator[Row]:
    """PAL on nodes of 16 classes, jobs within a node."""
    for gpus in sizes.equal_nodes:
        options = _equal_nodes(gpus) | {"limit_s": sizes.limit_s}
        size = ("PAL placement, 16 node classes", gpus, "GPUs")
        yield Row(*size, "exact", "pal:solve", options, sizes.limit_s, is_ours=True)


def placements_on_few_kinds(sizes: Sizes) -> Iterator[Row]:
    """PAL on racks of nodes of a few kinds: above and below the size where methods change."""
    named = {"gap": FEW_KINDS_GAP, "limit_s": sizes.limit_s}
    for gpus in sizes.two_kinds:
        size = ("PAL placement, 2 kinds of nodes of 4", gpus, "GPUs")
        options = named | {"gpus": gpus, "kinds": 2}
        yield Row(*size, "exact", "pal:solve", options, sizes.limit_s, is_ours=True)
    for largest, numbers in sizes.usual_kinds.items():
        for gpus in numbers:
            size = (f"PAL placement, 4 kinds of nodes of 8, gangs to {largest}", gpus, "GPUs")
            options = named | {"gpus": gpus, "kinds": 4, "largest": largest}
            yield Row(*size, "exact", "pal:solve", options, sizes.limit_s, is_ours=True)


def usual_placements(sizes: Sizes) -> Iterator[Row]:
    """PAL with normal slowdowns on three levels, by five seeds (three of the largest)."""
    for gpus in sizes.usual:
        limits = {"gap": USUAL_GAPS[gpus], "limit_s": sizes.limit_s}
        for seed in range(1 if sizes is QUICK else 3 if gpus > 4096 else 5):
            options = {"gpus": gpus, "seed": seed} | limits
            size = (f"PAL usual placement, seed {seed}", gpus, "GPUs")
            yield Row(*size, "exact", "pal:solve_usual", options, sizes.limit_s, is_ours=True)


def known_placements(sizes: Sizes) -> Iterator[Row]:
    """PAL to 1e-6: jobs of equal cost, by five seeds, and the bundled racks of 256 GPUs."""
    named = {"gap": PROVEN_GAP, "limit_s": sizes.limit_s}
    for seed in range(1 if sizes is QUICK else 5):
        size = (f"PAL placement to 1e-6, equal jobs, seed {seed}", 64, "GPUs")
        options = named | {"seed": seed}
        yield Row(*size, "exact", "pal:solve_equal", options, sizes.limit_s, is_ours=True)
    if sizes is not QUICK:
        size = ("PAL placement to 1e-6, pal/racks-256", 256, "GPUs")
        options = named | {"name": "pal/racks-256"}
        yield Row(*size, "exact", "pal:solve_bundled", options, sizes.limit_s, is_ours=True)


def next_epochs(sizes: Sizes) -> Iterator[Row]:
    """5 % of the jobs replaced: from the last epoch's result, and from nothing."""
    trees = [("PAL next epoch", n, _tree(n)) for n in sizes.later_trees]
    equal = [
        ("PAL next epoch, 16 node classes", n, _equal_nodes(n)) for n in sizes.later_equal_nodes
    ]
    for work, gpus, options in [*trees, *equal]:
        yield from _later(work, gpus, "GPUs", "pal:epoch_later", options, sizes.limit_s)
    for jobs in sizes.later_eaco:
        options = {"jobs": jobs, "most": 3, "gap": SHARING_GAP}
        yield from _later(
            "EaCO next epoch", jobs, "jobs", "eaco:epoch_later", options, sizes.limit_s
        )
    for jobs in sizes.minutes_later:
        options = {"jobs": jobs, "most": 3, "gap": SHARING_GAP, "seeds": 10}
        work = "EaCO next epoch, ten minutes later"
        yield from _later(work, jobs, "jobs", "eaco:minutes_later", options, sizes.limit_s)


def _later(
    work: str, size: int, unit: str, function: str, options: dict[str, Any], limit_s: float
) -> Iterator[Row]:
    for method, warm in (("exact, from the last epoch", True), ("exact, from nothing", False)):
        named = options | {"warm": warm, "limit_s": limit_s}
        yield Row(work, size, unit, method, function, named, 2 * limit_s, is_ours=warm)


def sharing(sizes: Sizes) -> Iterator[Row]:
    """EaCO: to the optimum on few jobs, to 1 % on many, and on jobs of 50 types."""
    limit_s = sizes.limit_s
    milp_limit_s = 3 * sizes.peer_limit_s
    for jobs in sizes.eaco_few:
        size = ("EaCO sharing to 1e-6, 4 share", jobs, "jobs")
        few = {"jobs": jobs, "most": 4, "gap": PROVEN_GAP}
        options = few | {"limit_s": limit_s}
        yield Row(*size, "exact", "eaco:solve", options, limit_s, is_ours=True)
        options = few | {"limit_s": milp_limit_s, "method": "milp"}
        yield Row(*size, "milp (Pyomo + HiGHS)", "eaco:solve", options, milp_limit_s)
    if sizes is not QUICK:
        options = {"jobs": 60, "most": 4, "gap": PROVEN_GAP, "seeds": 10, "limit_s": 3 * limit_s}
        size = ("EaCO sharing to 1e-6, 4 share, ten seeds", 60, "jobs")
        yield Row(*size, "exact", "eaco:solve_seeds", options, 3 * limit_s, is_ours=True)
    named = {"gap": SHARING_GAP, "limit_s": limit_s}
    for most, numbers in sizes.eaco.items():
        for jobs in numbers:
            size = (f"EaCO sharing to 1 %, {most} share", jobs, "jobs")
            options = named | {"jobs": jobs, "most": most}
            yield Row(*size, "exact", "eaco:solve", options, limit_s, is_ours=True)
    for jobs in sizes.eaco_live:
        for besides in ("formula", "pair", "cap", "running", "curve"):
            for limit in (1.0, limit_s):
                size = (f"EaCO sharing to 1 %, 4 share, {besides}, limit {limit:g} s", jobs, "jobs")
                options = {"gap": SHARING_GAP, "jobs": jobs, "most": 4, "besides": besides}
                options |= {"limit_s": limit}
                yield Row(*size, "exact", "eaco:live", options, limit_s, is_ours=True)
    types = 10 if sizes is QUICK else 50
    for jobs in sizes.eaco_typed:
        size = (f"EaCO sharing to 1 %, 4 share, {types} types", jobs, "jobs")
        options = named | {"jobs": jobs, "most": 4, "types": types}
        yield Row(*size, "exact", "eaco:solve", options, limit_s, is_ours=True)


def budgets(sizes: Sizes) -> Iterator[Row]:
    """BOA: all budgets in one sort beside LPs for one budget, and a bundled instance."""
    for phases in sizes.phases:
        size = ("BOA frontier", phases, "phases")
        yield Row(*size, "frontier", "boa:frontier", {"phases": phases}, 60.0, is_ours=True)
        if phases in sizes.lp_phases:
            for form, name in (("delta", "HiGHS, one row"), ("choice", "HiGHS, interior point")):
                limit_s = 3 * sizes.peer_limit_s
                options = {"phases": phases, "form": form, "limit_s": limit_s}
                yield Row(*size, name, "boa:linear_program", options, limit_s)
    named = {"gap": PROVEN_GAP, "limit_s": sizes.limit_s}
    for phases in sizes.proven_phases:
        size = ("BOA mixed widths, one budget, with proof", phases, "phases")
        options = named | {"phases": phases}
        yield Row(*size, "exact", "boa:mixed", options, sizes.limit_s, is_ours=True)
    size = ("BOA integer widths, with proof", 182, "phases")
    for method, name in ((None, "exact"), ("milp", "milp (Pyomo + HiGHS)")):
        options = named | {"method": method}
        yield Row(*size, name, "boa:instance", options, sizes.limit_s, is_ours=method is None)
    size, options = ("BOA offers, with proof", 100, "classes"), named | {"classes": 100}
    yield Row(*size, "exact", "boa:offered", options, sizes.limit_s, is_ours=True)
    for seed in sizes.offer_draws:
        size = (f"BOA offers, draw {seed}, with proof", 100, "classes")
        drawn = options | {"seed": seed}
        yield Row(*size, "exact", "boa:offered", drawn, sizes.limit_s, is_ours=True)


def rollouts(sizes: Sizes, philly: str | None) -> Iterator[Row]:
    """BOA's policy on Philly's jobs; and the engine beside SimPy."""
    file = {} if philly is None else {"file": philly}
    for jobs in sizes.jobs:
        options = {"jobs": jobs} | file
        size = ("rollout, BOA with autoscaling", jobs, "jobs")
        yield Row(*size, "boa", "rollout:boa", options, 120.0, is_ours=True)
    for jobs in sizes.jobs:
        options = {"jobs": jobs} | file
        size = ("rollout, first in, first out", jobs, "jobs")
        yield Row(*size, "fifo, best fit", "rollout:fifo", options, 120.0, is_ours=True)
        yield Row(*size, "SimPy, no nodes", "rollout:simpy", options, 120.0, ("simpy",))
    for jobs in sizes.saved:
        size = ("rollout, first in, first out, a checkpoint half-way", jobs, "jobs")
        for method in ("save", "load"):
            options = {"jobs": jobs, "is_saved": method == "save"} | file
            ours = method == "save"
            yield Row(*size, method, "rollout:checkpoint", options, 120.0, is_ours=ours)


def bounds(sizes: Sizes, philly: str | None) -> Iterator[Row]:
    """Bounds of generated jobs, and of Philly's published ones."""
    for jobs in sizes.bounded:
        size, options = ("bound of mean JCT, with proof", jobs, "jobs"), {"jobs": jobs}
        yield Row(*size, "prices", "bounds:generated", options, 120.0, is_ours=True)
    if PHILLY_JOBS in sizes.bounded:
        size = ("bound of mean JCT, published jobs", PHILLY_JOBS, "jobs")
        options = {} if philly is None else {"file": philly}
        yield Row(*size, "prices", "bounds:published", options, 120.0, is_ours=True)


def sia(sizes: Sizes) -> Iterator[Row]:
    """Sia's round: ours beside the integer program of its artifact."""
    for gpus in sizes.sia:
        size = ("Sia's round", gpus, "GPUs")
        options = {"gpus": gpus, "gap": SIA_GAP}
        for method, warm in (("choice, warm", True), ("choice, cold", False)):
            named = options | {"warm": warm}
            yield Row(*size, method, "sia:ours", named, 60.0, is_ours=warm)
        if gpus not in sizes.sia_peers:
            continue
        for solver, needs in SIA_PEERS.items():
            named = options | {"solver": solver, "limit_s": sizes.peer_limit_s}
            yield Row(*size, NAMES[solver], "sia:peer", named, sizes.peer_limit_s, needs)


def tight_rounds(sizes: Sizes) -> Iterator[Row]:
    """Yield rounds of unlike jobs, which HiGHS proves, too, and calls of the policy `sia`."""
    for share in (0.5, 0.25):
        for jobs in sizes.unlike:
            options = {"jobs": jobs, "capacity": share, "gap": PROVEN_GAP}
            size = (f"round of unlike jobs, capacities {share:.0%}", jobs, "jobs")
            yield Row(*size, "choice", "tight_rounds:ours", options, 120.0, is_ours=True)
            limited = options | {"limit_s": sizes.peer_limit_s}
            yield Row(*size, NAMES["scipy"], "tight_rounds:peer", limited, 6 * sizes.peer_limit_s)
    for name, jobs in (("philly-small", 20), ("boa-cloud", 170)):
        size = (f"policy sia on {name}", jobs, "jobs")
        options = {"name": name, "jobs": jobs}
        yield Row(*size, "sia", "tight_rounds:calls", options, 120.0, is_ours=True)


def _tree(gpus: int) -> dict[str, Any]:
    gap = TREE_GAPS.get(gpus, EXACT_GAP)
    return {"gpus": gpus, "fanouts": TREES.get(gpus, []), "gap": gap}


def _equal_nodes(gpus: int) -> dict[str, Any]:
    gap = EQUAL_NODE_GAPS[gpus]
    return {"gpus": gpus, "jobs": round(JOBS_PER_GPU * gpus), "gap": gap}

"""Primal heuristics (Berthold, TU Berlin 2006) of the exact method: what finds plans, by name.

No proof rests on them: the search takes a plan only if it keeps the rules, and bounds come from the
duals of the tree (`solver`, `lagrangian_bound`). Each is loaded when it is first called.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from optsched.registry import loaded


class PrimalHeuristic(NamedTuple):
    """A named way to better plans; `entry` is "module:function", `when` says who calls it."""

    name: str
    when: str
    summary: str
    source: str
    entry: str

    def __call__(self, *arguments: Any) -> Any:
        """Call the function of the entry."""
        return loaded(self.entry)(*arguments)


TABLE = (
    PrimalHeuristic(
        "greedy",
        "at first",
        "the better one of two greedy plans over all levels of the topology",
        "docs/math/pal.md, greedy rules",
        "optsched.pal.greedy.pal_rules:quick_start",
    ),
    PrimalHeuristic(
        "smallest first",
        "at first, where the slowest GPU counts most",
        "the smallest gangs on the fastest GPUs, which is optimal for jobs of equal cost",
        "docs/math/pal.md, sorted slowdowns",
        "optsched.pal.exact.smallest_first:solve_by_sorting",
    ),
    PrimalHeuristic(
        "repair",
        "after a previous epoch",
        "its plan for the jobs of now; new ones where it is cheapest",
        "warm starts: Gamrath et al., SEA 2015",
        "optsched.pal.exact.rounding:repaired",
    ),
    PrimalHeuristic(
        "previous duals",
        "after a previous epoch",
        "those of its duals that prove most now; they save the root",
        "warm starts: Gamrath et al., SEA 2015",
        "optsched.pal.exact.warm_start:best_duals",
    ),
    PrimalHeuristic(
        "warm start",
        "for the next epoch",
        "what stays in memory beside plan and certificate",
        "warm starts: Gamrath et al., SEA 2015",
        "optsched.pal.exact.warm_start:warm_start",
    ),
    PrimalHeuristic(
        "prices first",
        "before the root, where options are many",
        "prices by ascent on the smoothed dual; then the jobs that gangs are asked for by most, in "
        "turn, and those of some nodes again",
        "Nesterov, Math. Programming 2005; Dillenberger et al., EJOR 1994",
        "optsched.pal.dual_ascent.prices_first:prove_by_prices",
    ),
    PrimalHeuristic(
        "any plan",
        "without a plan",
        "a tree in which nothing costs but a job that is left out",
        "phase one: Dantzig 1963",
        "optsched.pal.exact.feasibility:find_any",
    ),
    PrimalHeuristic(
        "rounding",
        "at the root, and at nodes",
        "whole jobs by running sums, their GPUs by a maximum flow; then reinsertion",
        "Ford and Fulkerson, Canadian J. Math. 1956",
        "optsched.pal.exact.rounding:rounded",
    ),
    PrimalHeuristic(
        "diving",
        "at the root",
        "counts below the root of the topology are rounded up step by step",
        "Berthold, TU Berlin 2006",
        "optsched.pal.exact.diving:dive",
    ),
    PrimalHeuristic(
        "worst removal",
        "at the root; after a previous epoch",
        "jobs that pay far more than the duals ask for are placed again, with what is in their way",
        "Ropke and Pisinger, Transportation Science 2006",
        "optsched.pal.exact.worst_removal:remove_worst_at",
    ),
    PrimalHeuristic(
        "large neighbourhood search",
        "at the root, and after worst removal",
        "some jobs at a time are placed again on their GPUs and the idle ones",
        "Shaw, CP 1998",
        "optsched.pal.exact.large_neighbourhood_search:run_lns",
    ),
    PrimalHeuristic(
        "restricted MIP",
        "at the root",
        "HiGHS' branch and bound on options that are nearly cheapest",
        "RINS: Danna et al., Math. Programming 2005",
        "optsched.pal.exact.restricted_mip:offer_near",
    ),
)
HEURISTICS = {heuristic.name: heuristic for heuristic in TABLE}

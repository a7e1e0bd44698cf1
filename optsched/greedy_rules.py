"""The greedy rules after an exact method that left a gap open: their plans may close it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.verification import closed, relative_gap

if TYPE_CHECKING:
    from optsched.instance import Document
    from optsched.registry import Problem
    from optsched.search import Search

LEAST_GREEDY_S, GREEDY_SHARE = 2.0, 0.5
"""CPU seconds for greedy plans after an exact method: at least; and as a share of its own."""


def try_greedy(
    entry: Problem, search: Search, certificate: Document | None, worked_s: float
) -> None:
    """Offer the greedy plans, those of cheap rules first, until the gap is closed.

    Parameters
    ----------
    worked_s
        CPU seconds of the method. Without a time limit, the rules get half of it; what they take
        is estimated from sizes, so that small instances have the same results wherever they run.
    """
    bound, scale = getattr(certificate, "bound", None), entry.gap_scale(search.instance)
    unit, expected = entry.greedy_s(search.instance), 0.0
    rules = sorted((m for m in entry.methods if m.kind == "greedy"), key=lambda m: m.effort)
    for number, rule in enumerate(rules):
        if closed(relative_gap(search.objective, bound, scale), search.gap):
            return
        expected += unit * rule.effort
        if search.deadline is None:
            is_over = expected > max(LEAST_GREEDY_S, GREEDY_SHARE * worked_s)
        else:
            is_over = search.out_of_time() or unit * rule.effort > (search.seconds_left() or 0.0)
        if is_over:
            search.skipped = tuple(rule.name for rule in rules[number:])
            return
        search.enter("greedy rules")
        rule(search.instance, search)

"""BOA within a budget of what is billed: widths at a price that follows a ledger.

Source: docs/math/boa.md, Widths at a price, after EPEW'24, arXiv 2406.15560.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.budgets.ledgered import BudgetedOptions, Ledgered
from optsched.rollout.policies.budgets.shared_nodes import SharedNodes
from optsched.rollout.policies.budgets.typed_budgets import BudgetedOnTypes
from optsched.rollout.policy_options import OptionError, takes

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario


class Budgeted(Ledgered, SharedNodes):
    """Widths at a price of a ledger (`Ledgered`), on nodes of one type (`SharedNodes`).

    At the price mu a job gets the widths of least time + mu x GPU time billed (`priced_plan`).
    """

    changing = tuple(dict.fromkeys((*Ledgered.changing, *SharedNodes.changing)))

    def width(self, view: View, job: int) -> int:
        """Return the width that a job wants in its phase, at the price of the moment."""
        plan = self.plan(view, job)
        width = plan.width(self.phase(view, job), self.held.width(job))
        assert isinstance(width, int), "GPUs are of one type"
        return width


@takes(BudgetedOptions, draws=True)
def boa_budgeted(scenario: Scenario, seed: int, options: BudgetedOptions) -> Ledgered:
    """Give jobs widths at a price that keeps what is billed within the budget."""
    several = len(set(scenario.node_types)) > 1
    if options.notice_s and (several or scenario.rented is None):
        text = f"nodes of scenario '{scenario.name}' are not rented ones of one type"
        raise OptionError(f"option 'notice_s': {text}, and only of these it orders some early")
    made = BudgetedOnTypes if several else Budgeted
    return made("boa-budgeted", scenario, seed, options)

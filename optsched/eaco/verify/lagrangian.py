"""The verifier of EaCO: the Lagrangian bound (Geoffrion, Math. Programming Study 2, 1974).

Any prices of the right signs prove something. So those of a certificate are first rounded to whole
multiples of a power of two, and what these prove is then added up: exactly, but for costs, which
are rounded down.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import compress, islice
from typing import TYPE_CHECKING

from optsched.eaco.plan import NodesUsed, Rounded
from optsched.eaco.verify.group_costs import per_j
from optsched.eaco.verify.group_energy import JOULES_PER_KWH
from optsched.eaco.verify.group_enumeration import GroupOptions
from optsched.eaco.verify.limits import LIMITS, ceil_at, floor_at
from optsched.eaco.verify.reduced_costs import OptionTable, ScaledPrices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.certificates.bound_tree import PathStep
    from optsched.eaco.instance import EacoInstance, Nodes
    from optsched.eaco.plan import Leaf, Prices, Together
    from optsched.eaco.verify.group_enumeration import Option
    from optsched.eaco.verify.limits import WorkBudget
    from optsched.eaco.verify.reduced_costs import Counted

    Rule = Together | Rounded | NodesUsed


class LagrangianBound:
    """Values of prices on one instance.

    Parameters
    ----------
    is_infeasibility
        Whether only jobs that find no place cost something, one each.
    bits
        Values are multiples of 2**-bits.
    budget
        What groups are counted on, when they are looked at and at the prices of each leaf.

    Attributes
    ----------
    limit
        What has to be proven, rounded up.
    """

    def __init__(
        self,
        instance: EacoInstance,
        rules: Sequence[Rule],
        *,
        is_infeasibility: bool,
        bits: int,
        budget: WorkBudget,
    ) -> None:
        self.instance, self.rules, self.is_infeasibility = instance, rules, is_infeasibility
        self._bits, self._budget = bits, budget
        self.groups = GroupOptions(instance, is_free=is_infeasibility, bits=bits, budget=budget)
        self.limit = 0
        self._set_of = {name: n for n, e in enumerate(self.groups.equal) for name in e.jobs}
        self._needs = [self._need(rule) for rule in rules]
        self._counts: list[Counted] = []  # by rule
        self._nodes = {nodes.id: n for n, nodes in enumerate(instance.nodes)}
        self._places = {place.id: n for n, place in enumerate(instance.running)}
        self._waiting = [self._least_waiting(n) for n in range(len(self.groups.equal))]
        self._per_j = Fraction(0) if is_infeasibility else per_j(instance)

    def gather(self, prices: Prices | None, stated: float) -> None:
        """Collect the options that may matter to a proof of what is stated.

        A plan with any other costs at least that much already at these prices.
        """
        self.limit = ceil_at(stated, self._bits)
        if prices is None:
            options = [o for block in self._blocks(self.groups.options()) for o in block]
            self._budget.keep(len(options))
        else:
            options = self._near(prices)
        self._table = self._tabled(options)
        self._counts = [self._counted(number, self._table) for number in range(len(self.rules))]

    def _blocks(self, options: Iterator[Option]) -> Iterator[list[Option]]:
        """Yield options that are looked at, some at once."""
        while block := list(islice(options, LIMITS.options_at_once)):
            self._budget.spend(len(block))
            yield block

    def _near(self, prices: Prices) -> list[Option]:
        """Return the options whose reduced cost does not make up for the limit by itself."""
        jobs, gpus, _, watt = self._scaled(prices)
        base = self._base(prices)
        gpu_prices = dict(zip(self._nodes, gpus, strict=True))
        threshold = max(0, self.limit - base) + (abs(self.limit) >> 30)
        most = len(self.instance.jobs)
        while True:
            least, near = 0, []
            for block in self._blocks(self.groups.below(jobs, gpu_prices, threshold, watt)):
                below, lowest = self._below(block, prices, threshold)
                self._budget.keep(len(below))
                near += below
                least = min(least, lowest)
            wider = self.limit - base - most * least
            if wider <= threshold:
                return near
            threshold = wider

    def _below(
        self, options: list[Option], prices: Prices, threshold: int
    ) -> tuple[list[Option], int]:
        """Return the options of less reduced cost than a threshold, and the least one below 0."""
        scaled, cuts = self._scaled(prices), [(c.rule, self._fixed(c.price)) for c in prices.cuts]
        counted: list[tuple[int, Counted]] = []
        for charges in ([], cuts) if cuts else ([],):  # cuts only add to it, and take long to count
            table = self._tabled(options)
            counted = [(price, self._counted(rule, table)) for rule, price in charges]
            sums = table.sums(scaled, counted, threshold)
            options = list(compress(options, sums.are_negative().tolist()))
        return options, min(0, sums.least() + threshold)

    def value(self, leaf: Leaf, path: list[PathStep]) -> int:
        """Return what prices prove at the leaf at the end of a path."""
        charges: Counter[int] = Counter()
        prices = self._scaled(leaf.prices)
        self._budget.spend(len(self._table.options) + len(leaf.prices.jobs) + len(path))
        total = self._base(leaf.prices, path, [self._fixed(price) for price in leaf.split_prices])
        for cut in leaf.prices.cuts:
            charges[cut.rule] += self._fixed(cut.price)
        for step, price in zip(path, leaf.split_prices, strict=True):
            charges[step.split.rule] += -self._fixed(price) if step.side else self._fixed(price)
        counted = [(charge, self._counts[number]) for number, charge in charges.items() if charge]
        least = self._table.sums(prices, counted).least()
        return total + len(self.instance.jobs) * min(0, least)

    def _fixed(self, price: float) -> int:
        """Return a price as what it counts as; of the same sign, or 0."""
        over, under = price.as_integer_ratio()
        return (over << self._bits) // under

    # --- all but groups ------------------------------------------------------------------------

    def _tabled(self, options: list[Option]) -> OptionTable:
        sets, bits = len(self.groups.equal), self.groups.watt_bits
        return OptionTable(options, sets, self._nodes, self._places, bits)

    def _scaled(self, prices: Prices) -> ScaledPrices:
        return ScaledPrices(
            [self._fixed(price) for price in prices.jobs],
            [self._fixed(price) for price in prices.gpus],
            [self._fixed(price) for price in prices.locations],
            self._fixed(prices.watt),
        )

    def _base(
        self, prices: Prices, path: Sequence[PathStep] = (), split_prices: Sequence[int] = ()
    ) -> int:
        """Return the value but for the groups: what jobs pay, less what is bought at most."""
        jobs, gpus, places, watt = self._scaled(prices)
        total = -sum(places)
        for n, equal in enumerate(self.groups.equal):
            wait = self._waiting[n]
            paid = jobs[n] if wait is None else jobs[n] + min(0, wait - jobs[n])
            total += len(equal.jobs) * paid
        for cut in prices.cuts:
            total -= self._fixed(cut.price) * self._most(cut.rule)
        on, wake = dict.fromkeys(self._nodes, 0), dict.fromkeys(self._nodes, 0)
        for step, price in zip(path, split_prices, strict=True):
            signed = -price if step.side else price
            total -= signed * (step.split.at_most + step.side)
            rule = self.rules[step.split.rule]
            if isinstance(rule, NodesUsed):
                (wake if rule.asleep else on)[rule.nodes] += signed
        cap = self.instance.power_cap_w
        if watt and cap is not None:
            headroom = Fraction(cap) - self.instance.idle_floor_w
            total += int(-watt * headroom // 1)  # down
        for nodes in self.instance.nodes:
            price = gpus[self._nodes[nodes.id]]
            total += self._least_nodes(nodes, price, watt, on[nodes.id], wake[nodes.id])
        return total

    def _least_nodes(self, nodes: Nodes, gpu_price: int, watt: int, on: int, wake: int) -> int:
        """Return the least cost of nodes in use, some of them woken, less what groups pay."""
        power = self.groups.figures.gpus[nodes.gpu].power
        watts = Fraction(nodes.power.base_w) - Fraction(nodes.power.sleep_w)
        watts += nodes.gpus * Fraction(power.bare_w)
        each, one = Fraction(on - gpu_price * nodes.gpus) + watt * watts, 1 << self._bits
        if self.instance.objective == "epoch":
            each += Fraction(self.instance.epoch_s or 0) * watts * self._per_j * one
        woken = wake + self.groups.figures.wake_j(nodes) * self._per_j * one
        asleep = nodes.count - nodes.awake
        corners = (
            Fraction(0),
            each * nodes.awake,
            each * nodes.count + woken * asleep,
            (each + woken) * asleep,
        )
        return int(min(corners) // 1)  # down

    def _least_waiting(self, n: int) -> int | None:
        """Return the cost of a job that waits; None if it must not."""
        job = self.groups.equal[n].job
        if self.is_infeasibility:
            return 1 << self._bits if job.waiting_penalty_kwh is None else 0
        if job.waiting_penalty_kwh is None:
            return None
        kwh = Fraction(job.waiting_penalty_kwh)
        if self.instance.objective == "eaco":  # no job waits; were one to, it would cost nothing
            return 0
        if self.instance.objective == "run-to-completion":
            kwh += self.groups.figures.later_j(job) / JOULES_PER_KWH
        return floor_at(kwh * self.instance.per_kwh, self._bits)

    # --- rules ---------------------------------------------------------------------------------

    def _need(self, rule: Rule) -> Counter[int]:
        """Return the sets of equal jobs that a rule names, and how often."""
        if isinstance(rule, NodesUsed):
            return Counter()
        return Counter(self._set_of[name] for name in rule.jobs)

    def _most(self, number: int) -> int:
        """Return how often a cut's rule counts all jobs."""
        rule, need = self.rules[number], self._needs[number]
        assert isinstance(rule, Rounded)
        jobs = sum(times * len(self.groups.equal[n].jobs) for n, times in need.items())
        return jobs // rule.divisor

    def _is_counted(self, rule: Together, need: Counter[int], option: Option) -> bool:
        """Tell whether a rule counts an option."""
        if any(option.members.count(n) < times for n, times in need.items()):
            return False
        fits = rule.nodes is None or rule.nodes == option.nodes
        fits &= rule.gpus is None or rule.gpus == option.gpus
        fits &= rule.level is None or rule.level == (option.level or "")
        return fits and (rule.location is None or rule.location == (option.place or ""))

    def _counted(self, number: int, table: OptionTable) -> Counted:
        """Return the options that a rule counts, and how often."""
        rule, need = self.rules[number], self._needs[number]
        self._budget.spend(1 + len(table.options) // LIMITS.rows_per_term)
        if isinstance(rule, NodesUsed):
            return table.only([])
        if isinstance(rule, Rounded):
            return table.rounded(need, rule.divisor)
        among = table.holding(need)
        self._budget.spend(len(among) // LIMITS.counts_per_term)
        options = table.options
        return table.only([n for n in among if self._is_counted(rule, need, options[n])])

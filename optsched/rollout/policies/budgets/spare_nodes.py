"""Nodes for jobs to come: those that are announced, and spare ones for the others.

Spare nodes are a stock, whose orders take as long as nodes take to start, or as much of it as no
notice is given.

Source: docs/math/boa.md, Widths at a price.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from optsched.rollout.policies.budgets.ledger import LULL
from optsched.rollout.policies.budgets.priced_jobs import PricedJobs
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from optsched.rollout.policies.budgets.arrival_rates import Key
    from optsched.rollout.policies.budgets.ledgered import BudgetedOptions
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

STEPS_OF_GAP = 2  # of each factor 2: gaps between jobs are rounded to them, so that stocks are kept


class Spares(NamedTuple):
    """Nodes for jobs to come.

    Attributes
    ----------
    ordered
        So many are ordered beyond those that jobs are on or wait for.
    kept
        So many are not given back when they fall empty; `ordered` at least.
    """

    ordered: int
    kept: int


class SpareNodes(PricedJobs):
    """Jobs at a price, and nodes for those to come as far as these are worth theirs.

    Attributes
    ----------
    every_epoch
        Whether nodes are rented for jobs to come: at each epoch it is seen whether they still are.
    """

    changing: ClassVar[tuple[str, ...]] = (*PricedJobs.changing, "every_epoch")

    def __init__(self, name: str, scenario: Scenario, seed: int, options: BudgetedOptions) -> None:
        super().__init__(name, scenario, seed, options)
        self.every_epoch = False
        self.lead_us = round(min(options.notice_s, self.provision_s) * US)
        self._stocks: dict[tuple[int, int], Spares] = {}
        self._arrivals_us: list[int] = []
        self._classes: list[Key] = []

    def prepare(self, trace: Trace) -> None:
        """Take down which jobs are announced, and when they come."""
        super().prepare(trace)
        if self.lead_us:
            order = sorted(range(len(trace)), key=trace.submit_us.__getitem__)
            self._arrivals_us = [int(trace.submit_us[job]) for job in order]
            self._classes = [self.sums.key(trace.model[job], int(trace.gpus[job])) for job in order]

    def announced(self, now_us: int) -> list[int]:
        """Return the widths that jobs will want which come before a node ordered now is ready.

        None are known beyond the notice. They are taken to be as the mean job of their class.
        """
        first = bisect_right(self._arrivals_us, now_us)
        last = bisect_right(self._arrivals_us, now_us + self.lead_us)
        return [self._first_width(key) for key in self._classes[first:last]]

    def renewed(self) -> None:
        """Forget stocks for streams as they were."""
        super().renewed()
        self._stocks.clear()

    def spares(self) -> Spares:
        """Return how many nodes to have for jobs to come.

        None in a lull, as nobody may come any more, and none without jobs: there is no call before
        the next one comes, so that nodes would be billed until then, however long that is.
        """
        mean_s, gap_s = PricedJobs.gap_s(self), self.gap_s()
        if not (mean_s and self.wanted) or gap_s > LULL * mean_s:
            return Spares(0, 0)
        rarer = round(STEPS_OF_GAP * math.log2(gap_s / mean_s))
        if (self.step, rarer) not in self._stocks:
            jobs = self._jobs_to_come(2.0 ** (-rarer / STEPS_OF_GAP))
            nodes = self.held.cluster.nodes
            self._stocks[self.step, rarer] = stock(jobs, self.mu, self.node_gpus, nodes)
        return self._stocks[self.step, rarer]

    def with_spares(self, needed: int, rented: int, soon_free: Callable[[], int]) -> int:
        """Return how many nodes to rent if so many are needed and rented, and some soon empty."""
        spares = self.spares()
        nodes = needed + spares.ordered
        if nodes > rented:
            nodes = max(nodes - soon_free(), rented)
        nodes = min(max(nodes, min(rented, needed + spares.kept)), self.held.cluster.nodes)
        self.every_epoch = nodes > needed or self.lead_us > 0
        return nodes

    def _jobs_to_come(self, share: float) -> dict[int, float]:
        """Return by GPUs billed how many jobs come on average, unannounced, while a node starts."""
        jobs: dict[int, float] = {}
        unknown_s = self.provision_s - self.lead_us / US
        for key, stream in self.streams.items():
            width = self._first_width(key)
            gpus = -(-width // self.node_gpus) * self.node_gpus if width > self.node_gpus else width
            come = share * stream.rate_per_h / 3600 * unknown_s
            jobs[gpus] = jobs.get(gpus, 0.0) + come
        return jobs

    def _first_width(self, key: Key) -> int:
        """Return what the mean job of a class wants at first, at the price of the moment."""
        width = self.plan_at(key, 1.0, self.step).width(0, 0)
        assert isinstance(width, int), "GPUs are of one type"
        return width


def stock(jobs: Mapping[int, float], price: float, node_gpus: int, nodes: int) -> Spares:
    """Return the numbers of spare nodes that save most, less what is billed for them.

    If what jobs take of the stock is ordered at once, a job that comes finds of it what those that
    came while a node starts have left. It starts at once if that is enough.

    Parameters
    ----------
    jobs
        By GPUs that they want, how many jobs come while a node starts: means of Poisson numbers.
    price
        Of a GPU-second, in seconds of JCT.
    node_gpus
        GPUs of a node.
    nodes
        The most nodes.

    Returns
    -------
    Spares
        The least numbers that are best. Of a stock that is ordered a job that it serves saves the
        wait; of one that is not given back, also the bill of the nodes while others would start.
    """
    upto = _AskedFor(jobs)
    best, most = [0, 0], [0.0, 0.0]
    idle = 0.0  # GPUs, on average
    values = [{w: come * (1 + kept * price * w) for w, come in jobs.items()} for kept in (0, 1)]
    for count in range(1, nodes + 1):
        gpus = count * node_gpus
        idle += sum(upto(n) for n in range(gpus - node_gpus, gpus))
        saved = [
            sum(value * upto(gpus - w) for w, value in each.items() if w <= gpus) for each in values
        ]
        for which in (0, 1):
            if saved[which] - price * idle > most[which]:
                best[which], most[which] = count, saved[which] - price * idle
        # one node more costs this at least, and all that can be saved yet is the rest
        if sum(values[1].values()) - saved[1] <= price * node_gpus * upto(gpus):
            break
    return Spares(best[0], max(best))


class _AskedFor:
    """The law of how many GPUs jobs ask for while a node starts: a compound Poisson number.

    By Panjer's recursion: n P(n) = sum over widths w of E[jobs of w] w P(n - w). Where so many jobs
    come (745 and more) that the chance of none is 0 in floating point, all are: no stock pays then.
    """

    def __init__(self, jobs: Mapping[int, float]) -> None:
        self._weights = [(w, w * come) for w, come in jobs.items()]
        self._chances = [math.exp(-sum(jobs.values()))]
        self._upto = list(self._chances)

    def __call__(self, gpus: int) -> float:
        """Return the chance that no more than so many are asked for."""
        chances, upto = self._chances, self._upto
        for n in range(len(chances), gpus + 1):
            asked = sum(weight * chances[n - w] for w, weight in self._weights if w <= n) / n
            chances.append(asked)
            upto.append(min(upto[-1] + asked, 1.0))
        return upto[gpus]

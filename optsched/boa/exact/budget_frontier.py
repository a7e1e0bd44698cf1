"""Parametric linear programme of the budget by hulls, in one sort (Sinha & Zoltners, OR 1979).

The whole frontier of cost and JCT, mixed widths without rescaling.

Every phase's points (cost, time) = (rho k / s, rho / s) have a lower-left hull; a step from one
vertex to the next buys time at the exchange rate of its slope. Taking the steps of all phases by
falling rate gives the optimum of the linear programme for every budget at once (docs/math/boa.md,
Budget frontier): after each step the budget spent, the mean jobs in the system (lambda times mean
JCT), and the rate, which is the price mu of a GPU there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.arrays import arrival_rates
from optsched.boa.exact.hull import by_rent, hull_vertices
from optsched.boa.instance import BoaInstance
from optsched.boa.options import option_curves
from optsched.boa.settings import SETTINGS
from optsched.instance import as_instance

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.instance import Instance


@dataclass(frozen=True, repr=False)
class BudgetFrontier:
    """Least mean jobs in the system for every budget.

    Attributes
    ----------
    gpus
        Shape (steps + 1,): time-average GPUs rented, ascending; the first is the least possible.
    jobs
        Shape (steps + 1,): mean jobs in the system, lambda times mean JCT, descending.
    price
        Shape (steps,): -d jobs / d gpus on each step, descending: mu.
    arrival_rate_per_s
        lambda, which turns jobs into mean JCT.
    rent_unit
        In what budgets are counted; with offers "USD/h" takes the place of GPUs everywhere.
    """

    gpus: Floats
    jobs: Floats
    price: Floats
    arrival_rate_per_s: float = 1.0
    rent_unit: str = "GPUs"

    def jobs_at(self, budget_gpus: ArrayLike) -> Floats:
        """Return the least mean jobs in the system at each budget; NaN below the least budget."""
        budgets = np.asarray(budget_gpus, float)
        return np.asarray(np.interp(budgets, self.gpus, self.jobs, left=np.nan))

    def mean_jct_s(self, budget_gpus: ArrayLike) -> Floats:
        """Return the least mean JCT in seconds at each budget; NaN below the least budget."""
        jobs = self.jobs_at(budget_gpus)
        jobs /= self.arrival_rate_per_s
        return jobs

    def price_at(self, budget_gpus: ArrayLike) -> Floats:
        """Return the price mu, in jobs per GPU, at each budget; NaN below the least budget."""
        budgets = np.asarray(budget_gpus, float)
        steps = np.searchsorted(self.gpus, budgets, side="left") - 1
        prices = np.append(self.price, 0.0)[np.maximum(steps, 0)]
        return np.where(budgets < self.gpus[0], np.nan, prices)

    def frame(self) -> pd.DataFrame:
        """Return one row per corner: budget_gpus (or _usd_per_h), mean_jct_s, price to the next."""
        import pandas as pd

        jct = self.jobs / self.arrival_rate_per_s
        price = np.append(self.price, 0.0)
        budget = "budget_gpus" if self.rent_unit == "GPUs" else "budget_usd_per_h"
        return pd.DataFrame({budget: self.gpus, "mean_jct_s": jct, "price": price})

    def knee(self) -> float | None:
        """Return the budget at which the curve bends most; None if it is straight.

        It is the corner farthest from the chord between the ends, as of `optsched.Frontier.knee`.
        """
        width, height = self.gpus[-1] - self.gpus[0], self.jobs[0] - self.jobs[-1]
        if not (width > 0 and height > 0):
            return None
        depth = (self.jobs[0] - self.jobs) / height - (self.gpus - self.gpus[0]) / width
        deepest = int(depth.argmax())
        return float(self.gpus[deepest]) if depth[deepest] > 1e-9 else None

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the least mean JCT at each budget, with the knee; by default on a new figure."""
        from optsched.results.drawing import COLOURS, axes, plain

        ax = axes(ax)
        ax.plot(self.gpus, self.jobs / self.arrival_rate_per_s, color=COLOURS[0], lw=2.2)
        if (knee := self.knee()) is not None:
            label = f"knee, {knee:,.6g} {self.rent_unit}\n{self.mean_jct_s(knee):,.6g} s"
            ax.plot(knee, self.mean_jct_s(knee), "*", ms=11, color=COLOURS[3], label=label)
            ax.legend(fontsize=8, frameon=False)
        ax.set(
            xlabel=f"budget ({self.rent_unit})", ylabel="least mean JCT (s)", title="mixed widths"
        )
        plain(ax)
        return ax

    def __repr__(self) -> str:
        least, most = self.gpus[0], self.gpus[-1]
        span = f"{least:,.6g} to {most:,.6g} {self.rent_unit}"
        return f"<BudgetFrontier: {len(self.gpus)} corners from {span}>"


class Steps(NamedTuple):
    """Steps along hulls: what each buys and costs; and what the beginnings of hulls add up to."""

    jobs: Floats
    gpus: Floats
    rate: Floats
    first_jobs: float
    first_gpus: float


def frontier(source: Instance | str | Path) -> BudgetFrontier:
    """Return the whole frontier of an instance for mixed widths, in floats: it proves nothing.

    Of integer widths it is the mixed frontier, which lies below theirs.

    Raises
    ------
    ValueError
        If rescaling takes time (the frontier then has to be swept) or widths are continuous.

    Examples
    --------
    >>> import optsched
    >>> curve = optsched.boa.frontier("boa/hand")
    >>> curve.mean_jct_s([2, 3, 4]).round(4).tolist()
    [2.0, 0.8889, 0.8333]
    """
    instance = as_instance(source)
    if not isinstance(instance, BoaInstance):
        raise TypeError(f"expected a BoaInstance, found {type(instance).__name__}")
    if instance.widths == "continuous":
        raise ValueError(
            f"{instance.name}: the frontier in one sort needs widths that can be counted; "
            "set widths='mixed', or solve budget by budget"
        )
    if any(instance.charges_starts(c) and c.arrival_rate_per_h for c in instance.classes):
        raise ValueError(
            f"{instance.name}: the frontier in one sort needs free rescaling and starts; "
            "set rescale_s of classes and start_s, stop_s, least_billed_s of offers to 0, "
            "or solve budget by budget"
        )
    rates = arrival_rates(instance)
    pairs = zip(instance.classes, rates, strict=True)
    load = np.array([rate * phase.work_gpu_s for c, rate in pairs for phase in c.phases])
    phases = [(job_class, phase) for job_class in instance.classes for phase in job_class.phases]
    parts = [
        part
        for rows, _, rents, speedup in option_curves(instance, phases)
        for part in hull_steps(load[rows], *by_rent(rents, speedup))
    ]
    whole = _merged(parts, float(instance.arrival_rate_per_s))
    return replace(whole, rent_unit=instance.rent_unit)


def frontier_of_arrays(load: ArrayLike, widths: ArrayLike, speedup: ArrayLike) -> BudgetFrontier:
    """Return the whole frontier of phases that share their widths.

    Parameters
    ----------
    load
        Shape (phases,): rho, the mean GPUs that a phase keeps busy at speedup 1.
    widths
        Shape (widths,), ascending, positive.
    speedup
        Shape (phases, widths), positive; neither concave nor monotone in general.
    """
    load, widths = np.asarray(load, float), np.asarray(widths, float)
    return _merged(hull_steps(load, widths, np.asarray(speedup, float)), 1.0)


def hull_steps(load: Floats, widths: Floats, speedup: Floats) -> list[Steps]:
    """Return the steps along the hulls, block by block; `frontier_of_arrays` tells the shapes."""
    size = SETTINGS.block_phases
    parts = [slice(start, start + size) for start in range(0, len(load), size)]
    with ThreadPoolExecutor(SETTINGS.threads) as pool:
        return list(pool.map(lambda part: _block(load[part], widths, speedup[part]), parts))


def _block(load: Floats, widths: Floats, speedup: Floats) -> Steps:
    vertices = hull_vertices(widths, np.ascontiguousarray(speedup.T))
    at = np.flatnonzero(vertices.T)  # row by row, so neighbours are vertices of one hull
    row, column = np.divmod(at.astype(np.uint32), np.uint32(len(widths)))
    jobs = load[row] / speedup.ravel()[at]
    gpus = jobs * widths[column]
    first = np.r_[True, row[1:] != row[:-1]]
    step = np.flatnonzero(~first)
    bought, cost = jobs[step - 1] - jobs[step], gpus[step] - gpus[step - 1]
    firsts = np.array([jobs[first].sum(), gpus[first].sum()])
    if not (cost > 0).all():
        free = _free(row[step], cost)
        firsts += -bought[free].sum(), cost[free].sum()
        bought, cost = bought[~free], cost[~free]
    return Steps(bought, cost, bought / cost, *firsts.tolist())


def _free(row: NDArray[np.uint32], cost: Floats) -> Bools:
    """Mark the steps that belong to the beginning of their hull: what they buy costs nothing.

    Such are all steps up to the last one of a row that costs nothing or, by rounding, less: where a
    speedup grows in proportion to the width, and where a phase has no load.
    """
    last = np.full(int(row[-1]) + 1, -1)
    np.maximum.at(last, row[cost <= 0], np.flatnonzero(cost <= 0))
    return np.arange(len(cost)) <= last[row]


def _merged(parts: list[Steps], arrival_rate_per_s: float) -> BudgetFrontier:
    """Take all steps by falling rate: first into pieces that fit the cache, then piece by piece."""
    count = sum(len(part.rate) for part in parts)
    gpus, jobs, rate = np.empty(count + 1), np.empty(count + 1), np.empty(count)
    gpus[0] = sum(part.first_gpus for part in parts)
    jobs[0] = sum(part.first_jobs for part in parts)
    with ThreadPoolExecutor(SETTINGS.threads) as pool:
        pieces = _pieces(parts, count, pool)
        ends = np.cumsum([sum(map(len, piece)) for piece in pieces]).tolist()

        def take(piece: list[Indices], end: int) -> None:
            rates = np.concatenate([p.rate[i] for p, i in zip(parts, piece, strict=True)])
            order = _falling(rates)
            out, after = slice(end - len(rates), end), slice(end - len(rates) + 1, end + 1)
            rate[out] = rates[order]
            for total, name in ((gpus, "gpus"), (jobs, "jobs")):
                steps = [getattr(p, name)[i] for p, i in zip(parts, piece, strict=True)]
                total[after] = np.concatenate(steps)[order]

        list(pool.map(take, pieces, ends))
    np.cumsum(gpus, out=gpus)
    np.negative(jobs[1:], out=jobs[1:])
    np.cumsum(jobs, out=jobs)
    return BudgetFrontier(gpus, jobs, rate, arrival_rate_per_s)


# The bits of positive floats order as the floats do, and numpy sorts 16-bit integers by radix, many
# times faster than floats. So rates are sorted by 16 of their bits at a time.


def _pieces(parts: list[Steps], count: int, pool: ThreadPoolExecutor) -> list[list[Indices]]:
    """Return pieces of about equal size, by falling rate: for each part the steps in it."""
    if not count:
        return []
    bits = [part.rate.view(np.uint64) for part in parts if len(part.rate)]
    highest = max(part.max() for part in bits)
    spread = int(highest - min(part.min() for part in bits))
    shift = np.uint64(max(0, spread.bit_length() - 16))

    def sort(part: Steps) -> tuple[NDArray[np.uint16], Indices]:
        keys = ((highest - part.rate.view(np.uint64)) >> shift).astype(np.uint16)
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    coarse = list(pool.map(sort, parts))
    sample = np.sort(np.concatenate([keys[::97] for keys, _ in coarse]))
    inner = np.linspace(
        0, len(sample), count // SETTINGS.piece_steps + 1, endpoint=False, dtype=int
    )[1:]
    limits = np.unique(sample[inner])
    cuts = [[0, *np.searchsorted(keys, limits).tolist(), len(keys)] for keys, _ in coarse]
    return [
        [order[cut[n] : cut[n + 1]] for (_, order), cut in zip(coarse, cuts, strict=True)]
        for n in range(len(limits) + 1)
    ]


def _falling(rate: Floats) -> Indices:
    """Return the order of falling rates, equal ones in the order of their index.

    The 32 bits that tell the rates apart best are sorted in two passes; a stable sort then puts
    right what the bits below decide, quickly, since hardly any do.
    """
    if not len(rate):
        return np.empty(0, np.intp)
    bits = rate.view(np.uint64)
    down = bits.max() - bits
    down >>= np.uint64(max(0, int(down.max()).bit_length() - 32))
    order = np.argsort(down.astype(np.uint16), kind="stable")
    down >>= np.uint64(16)
    order = order[np.argsort(down.astype(np.uint16)[order], kind="stable")]
    return order[np.argsort(-rate[order], kind="stable")]

"""The fluid bound: least energy of any schedule that shares GPUs only in allowed groups.

Hours in each group are free, so jobs may be split and moved at no cost: no schedule, whatever it
does over time, takes less. The prices of the jobs are a bill in which no group pays more than it
draws. Source: eaco.md 3.1, O3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from optsched import highs
from optsched.eaco.energy import Book, gang_fits
from optsched.eaco.groups import Enumeration, job_classes, memory_fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optsched.eaco.groups import JobClass
    from optsched.eaco.instance import EacoInstance

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


class Fluid(NamedTuple):
    """The fluid bound in kWh, and each job's share of it by its id; the shares add up to it."""

    bound_kwh: float
    energy_kwh: dict[str, float]


class _Patterns(NamedTuple):
    """Groups of one size: members, work per second of each at the speeds stated, and watts."""

    members: Indices
    pace: Floats
    watts: Floats


def fluid(instance: EacoInstance) -> Fluid:
    """Return the least energy to do all work in allowed groups, and what each job pays of it.

    GPUs, and the share of nodes that goes with them; no waking, no migration, and as many nodes as
    are useful. Groups are those of the instance; a schedule that forms others is not bounded.

    Raises
    ------
    TooManyGroupsError
        If there are too many groups.
    """
    classes = job_classes(instance)
    work = np.array([len(c.jobs) * c.job.work_s for c in classes])
    parts = list(_patterns(instance, classes))
    watts = np.concatenate([part.watts for part in parts])
    rows, columns, values, first = [], [], [], 0
    for part in parts:
        count, size = part.members.shape
        rows.append(part.members.ravel())
        columns.append(first + np.repeat(np.arange(count), size))
        values.append(part.pace.ravel())
        first += count
    entries = (np.concatenate(rows), np.concatenate(columns))
    matrix = csr_array((np.concatenate(values), entries), shape=(len(classes), first))
    matrix.sum_duplicates()
    outcome = highs.solve(
        highs.Program(
            cost=watts / 1000,
            offset=0.0,
            lower=np.zeros(first),
            upper=np.full(first, np.inf),
            integer=np.zeros(first, dtype=bool),
            matrix=matrix,
            row_lower=work / 3600,
            row_upper=np.full(len(classes), np.inf),
        )
    )
    assert outcome.row_duals is not None
    prices = np.maximum(outcome.row_duals, 0.0)
    drawn = prices @ matrix
    prices *= min(1.0, float((watts / 1000 / np.maximum(drawn, 1e-300)).min()))  # none overpays
    bills = {
        name: float(prices[n]) * c.job.work_s / 3600
        for n, c in enumerate(classes)
        for name in c.jobs
    }
    return Fluid(sum(bills.values()), bills)


def _patterns(instance: EacoInstance, classes: list[JobClass]) -> Iterator[_Patterns]:
    """Yield groups by gang, GPU type, nodes, size and power level."""
    book = Book(instance)
    for gpu in instance.gpu_types:
        speed = np.array([book.types[c.job.type].speeds.get(gpu.id, 1.0) for c in classes])
        for gang in sorted({c.job.gpus for c in classes}):
            among = [
                n
                for n, c in enumerate(classes)
                if c.job.gpus == gang and memory_fits(book, c.jobs[:1], gpu.id)
            ]
            shares = [
                float(book.node_share_w(nodes))
                for nodes in instance.nodes
                if nodes.gpu == gpu.id and gang_fits(gang, nodes)
            ]
            if not among or not shares:
                continue
            found = Enumeration(instance, classes, among, gpu)
            levels = [(1.0, 1.0, np.inf), *((v.rate, v.power, v.limit_w) for v in gpu.levels)]
            for size, groups in enumerate(found.sizes, start=1):
                at = found.sets.levels[size]
                for rate, power, limit in levels:
                    watts = np.minimum(at.watts[groups.sets] * power, limit) + min(shares)
                    pace = at.rates[groups.sets] * rate * speed[groups.members]
                    yield _Patterns(groups.members, pace, gang * watts)

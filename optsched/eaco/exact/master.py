"""The restricted master program of the set partitioning (Balas & Padberg, SIAM Review 18, 1976).

Rows: every class of jobs is placed or waits; the GPUs of a pool's nodes in use; nodes that are
woken; locations that are kept; the power cap. Source: docs/math/eaco.md, set partitioning.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from optsched.eaco.group_figures import JOULES_PER_KWH, TypeFigures
from optsched.mip import highs
from optsched.mip.incremental_lp import LinearProgram

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.groups.columns import Columns
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance
    from optsched.mip.incremental_lp import Solved

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


class Frame(NamedTuple):
    """What an instance asks for besides its groups, in the unit of the objective.

    Attributes
    ----------
    copies, waiting
        Shape (classes,): jobs; cost of one that waits, infinite where none may.
    must
        Shape (classes,): whether no plan leaves the jobs out.
    gpus, number, awake
        Shape (pools,): GPUs of a node, nodes, nodes that are on.
    node_cost, wake_cost, node_w
        Shape (pools,): cost and watts of a node in use, with bare GPUs, and cost of waking one.
    places
        Shape (running,): 1 for each location, which one group may keep.
    headroom_w
        Watts that the power cap leaves above the idle floor; infinite without a cap.
    most_groups
        More groups cannot be: the number of jobs.
    gross
        What costs are differences of, where they are: all GPUs at their peak for an epoch.
    """

    copies: Floats
    waiting: Floats
    must: NDArray[np.bool_]
    gpus: Floats
    number: Floats
    awake: Floats
    node_cost: Floats
    wake_cost: Floats
    node_w: Floats
    places: Floats
    headroom_w: float
    most_groups: int
    gross: float

    def matters(self, pool: int, *, asleep: bool) -> bool:
        """Tell whether it matters how many nodes of a pool are used, or woken."""
        if asleep:
            return bool(self.wake_cost[pool] > 0)
        capped = np.isfinite(self.headroom_w) and self.node_w[pool] > 0
        return bool(self.node_cost[pool] > 0 or capped)


def frame(instance: EacoInstance, classes: list[JobClass]) -> Frame:
    """Return the frame of an instance."""
    figures, nodes = TypeFigures(instance), instance.nodes
    weight = {"eaco": instance.energy_weight or 0.0}.get(instance.objective, 1.0)
    unit = weight * float(instance.per_kwh) / JOULES_PER_KWH
    bare = [n.gpus * figures.gpus[n.gpu].power.bare_w for n in nodes]
    on_w = [n.power.base_w - n.power.sleep_w + b for n, b in zip(nodes, bare, strict=True)]
    seconds = (instance.epoch_s or 0.0) if instance.objective == "epoch" else 0.0
    peak_w = max(gpu.power.peak_w for gpu in instance.gpu_types)
    cap = instance.power_cap_w
    waiting = np.array([_waiting(figures, c) for c in classes])
    return Frame(
        copies=np.array([float(len(c.jobs)) for c in classes]),
        waiting=waiting,
        must=np.isinf(waiting),
        gpus=np.array([float(n.gpus) for n in nodes]),
        number=np.array([float(n.count) for n in nodes]),
        awake=np.array([float(n.awake) for n in nodes]),
        node_cost=np.array(on_w) * seconds * unit,
        wake_cost=np.array([float(figures.wake_j(n)) for n in nodes]) * unit,
        node_w=np.array(on_w),
        places=np.ones(len(instance.running)),
        headroom_w=np.inf if cap is None else cap - float(instance.idle_floor_w),
        most_groups=len(instance.jobs),
        gross=unit * seconds * peak_w * sum(job.gpus for job in instance.jobs),
    )


def _waiting(figures: TypeFigures, jobs: JobClass) -> float:
    penalty = jobs.job.waiting_penalty_kwh
    if penalty is None:
        return np.inf
    later = 0.0
    if figures.instance.objective == "run-to-completion":
        later = float(figures.later_j(jobs.job) / JOULES_PER_KWH)
    return (later + penalty) * float(figures.instance.per_kwh)


class Duals(NamedTuple):
    """Duals of the rows of a frame: of jobs any, the others at least 0."""

    jobs: Floats
    pools: Floats
    places: Floats
    watt: float

    def reduced(self, columns: Columns) -> Floats:
        """Return the costs of columns, less what their jobs pay, with what they use up."""
        reduced = columns.cost - _paid(self.jobs, columns.members)
        reduced += self.pools[columns.pool] * columns.gang
        if len(self.places):
            reduced += np.append(self.places, 0.0)[columns.place]
        return np.asarray(reduced + self.watt * columns.watts if self.watt else reduced)

    def summands(self, columns: Columns) -> Floats:
        """Return the sizes, added up, of all that the reduced costs of columns are the sum of."""
        sizes = Duals(*(np.abs(part) for part in self))  # type: ignore[arg-type]
        summed = np.abs(columns.cost) + _paid(sizes.jobs, columns.members)
        summed += sizes.pools[columns.pool] * columns.gang
        if len(sizes.places):
            summed += np.append(sizes.places, 0.0)[columns.place]
        return np.asarray(summed + sizes.watt * np.abs(columns.watts))


def _paid(jobs: Floats, members: Indices) -> Floats:
    """Return what the jobs of columns pay in all: numpy sums short rows slowly."""
    padded = np.append(jobs, 0.0)
    paid = padded[members[:, 0]]
    for n in range(1, members.shape[1]):
        paid += padded[members[:, n]]
    return np.asarray(paid)


def least_shares(frame: Frame, pool: Columns) -> Duals:
    """Return duals by which each job pays its least share of a group, or what waiting costs."""
    size = (pool.members < len(frame.waiting)).sum(axis=1)
    share = np.append(np.where(np.isfinite(frame.waiting), frame.waiting, np.inf), 0)
    each = np.repeat((pool.cost / size)[:, None], pool.members.shape[1], axis=1)
    np.minimum.at(share, pool.members.ravel(), each.ravel())
    share[np.isinf(share)] = 0.0
    return Duals(share[:-1], 0 * frame.gpus, 0 * frame.places, 0.0)


class Master(LinearProgram):
    """The linear program of a frame, at first without any group.

    Parameters
    ----------
    penalty
        Cost of leaving a job out where it may not wait, and of missing a lower bound of a rule.
    """

    def __init__(self, frame: Frame, penalty: float, seed: int) -> None:
        self.frame = frame
        self.classes, self.pools = len(frame.copies), len(frame.gpus)
        self.first_pool = self.classes
        self.first_wake = self.classes + self.pools
        self.first_place = self.classes + 2 * self.pools
        self.cap_row = self.first_place + len(frame.places)
        self._penalty = penalty
        self._misses = np.flatnonzero(np.isinf(frame.waiting))
        super().__init__(self._program(penalty), seed=seed)

    def _program(self, penalty: float) -> highs.Program:
        frame, pools, classes = self.frame, self.pools, self.classes
        count = classes + 2 * pools
        used, woken = classes + np.arange(pools), classes + pools + np.arange(pools)
        n, p = np.arange(classes), np.arange(pools)
        entries = [
            (n, n, np.ones(classes)),
            (self.first_pool + p, used, -frame.gpus),
            (self.first_wake + p, used, np.ones(pools)),
            (self.first_wake + p, woken, -np.ones(pools)),
        ]
        has_cap = np.isfinite(frame.headroom_w)
        if has_cap:
            entries.append((np.full(pools, self.cap_row), used, frame.node_w / self.watt_scale))
        rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
        height = self.cap_row + int(has_cap)
        upper = [frame.copies, 0 * p, frame.awake, frame.places]
        lower = np.full(height, -np.inf)
        lower[:classes] = frame.copies
        if has_cap:
            upper.append(np.array([frame.headroom_w / self.watt_scale]))
        waiting = np.where(np.isfinite(frame.waiting), frame.waiting, penalty)
        return highs.Program(
            cost=np.concatenate([waiting, frame.node_cost, frame.wake_cost]),
            offset=0.0,
            lower=np.zeros(count),
            upper=np.concatenate(
                [np.full(classes, np.inf), frame.number, frame.number - frame.awake]
            ),
            integer=np.zeros(count, dtype=bool),
            matrix=csr_array((values, (rows, columns)), shape=(height, count)),
            row_lower=lower,
            row_upper=np.concatenate(upper),
        )

    @property
    def watt_scale(self) -> float:
        """Watts by which the row of the power cap is divided."""
        return max(self.frame.headroom_w, 1.0)

    def add_groups(self, columns: Columns, rules: csr_array) -> None:
        """Add columns of groups.

        Parameters
        ----------
        rules
            Shape (rows beyond the frame's, columns): how often each counts a group.
        """
        self.add_columns(columns.cost, vstack([self._frame_rows(columns), rules]).tocsc())

    def _frame_rows(self, columns: Columns) -> csr_array:
        """Return the coefficients of groups in the frame's rows."""
        many, width = columns.members.shape
        own = np.arange(many)
        real = columns.members < self.classes
        kept = np.flatnonzero(columns.place >= 0)
        entries = [
            (columns.members[real], np.repeat(own, width)[real.ravel()], np.ones(real.sum())),
            (self.first_pool + columns.pool, own, columns.gang.astype(float)),
            (self.first_place + columns.place[kept], kept, np.ones(len(kept))),
        ]
        height = self.cap_row
        if np.isfinite(self.frame.headroom_w):
            entries.append((np.full(many, height), own, columns.watts / self.watt_scale))
            height += 1
        rows, at, values = (np.concatenate(part) for part in zip(*entries, strict=True))
        matrix = csr_array((values, (rows, at)), shape=(height, many))
        matrix.sum_duplicates()
        return matrix

    def whole(self, columns: Columns) -> highs.Program:
        """Return the integer program of the frame and some groups."""
        frame, base = self.frame, self._program(self._penalty)
        many = len(columns.cost)
        groups = self._frame_rows(columns)
        most = np.full(many, float(frame.copies.max(initial=1.0)))
        return replace(
            base,
            cost=np.append(base.cost, columns.cost),
            lower=np.append(base.lower, np.zeros(many)),
            upper=np.append(base.upper, most),
            integer=np.ones(len(base.cost) + many, dtype=bool),
            matrix=hstack([base.matrix, groups]).tocsr(),
        )

    def add_rule(self, where: Indices, counts: Floats) -> int:
        """Add a row that counts columns of the program, bounds to come; return its number."""
        self._misses = np.append(self._misses, self.columns)
        return self.add_elastic_row(where, self._penalty, counts)

    def missed(self, solved: Solved) -> float:
        """Return by how much in all a point misses what it may only miss at the penalty."""
        return float(solved.x[self._misses].sum())

    def allow_misses(self, most: float) -> None:
        """Bound each miss."""
        self.bound_columns(self._misses, most)

    def duals(self, solved: Solved) -> Duals:
        """Return the duals of the frame's rows, with signs that the verifier accepts."""
        rows = solved.row_duals
        watt = 0.0
        if np.isfinite(self.frame.headroom_w):
            watt = max(0.0, -float(rows[self.cap_row])) / self.watt_scale
        return Duals(
            jobs=rows[: self.classes],
            pools=np.maximum(0, -rows[self.first_pool : self.first_wake]),
            places=np.maximum(0, -rows[self.first_place : self.cap_row]),
            watt=watt,
        )

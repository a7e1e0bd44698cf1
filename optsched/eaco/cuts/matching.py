"""Maximum weight matching by blossoms (Edmonds, J. Res. National Bureau of Standards 69B, 1965).

It starts from duals and pairs that are at hand; trees grow one at a time, from one free job after
the other, in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.documents.arrays import Bools, Floats, Indices

    Whole = NDArray[np.int64]
    Link = tuple[int, int]

FAR = 2**60
FREE = -1  # the mate of a job on its own


@dataclass
class Blossom:
    """An odd cycle of jobs and blossoms, the one that holds its base first.

    Attributes
    ----------
    links
        Pairs of jobs: of a child and the next one, of the last and the first.
    dual
        What every pair inside pays.
    """

    children: list[int]
    links: list[Link]
    jobs: Indices
    dual: int = 0


class Matching:
    """A matching that grows, with duals under which no pair and no single job is too cheap.

    Nodes are jobs and, from their number on, blossoms. A tree grows from a node that is on its own:
    jobs of its outer nodes have sign 1, of its inner ones -1, others 0.

    Parameters
    ----------
    ends
        Shape (2, pairs): jobs.
    slack
        Shape (pairs,): reduced costs, even whole numbers.
    alone
        Shape (jobs,): reduced costs of jobs on their own, even whole numbers.
    """

    def __init__(self, ends: Indices, slack: Whole, alone: Whole) -> None:
        self.ends, self.slack, self.alone = ends, slack, alone
        self.jobs = len(alone)
        self.mate = [FREE] * self.jobs
        self._top = np.arange(self.jobs)
        self._blossoms: dict[int, Blossom] = {}
        self._bases = list(range(self.jobs))
        self._sign = np.zeros(self.jobs, dtype=np.int64)
        self._kind: dict[int, int] = {}
        self._entry: dict[int, Link] = {}  # of inner nodes: from the outer one

    def start(self, likely: Floats) -> None:
        """Pair jobs whose pairs have no slack, the likely ones first."""
        tight = np.flatnonzero((self.slack == 0) & (likely > 0))
        for n in tight[np.argsort(-likely[tight], kind="stable")].tolist():
            a, b = self.ends[:, n].tolist()
            if self.mate[a] == self.mate[b] == FREE:
                self.mate[a], self.mate[b] = b, a

    def solve(self) -> None:
        """Grow the matching until it is optimal."""
        for job in range(self.jobs):
            if self.mate[job] == FREE and self.alone[job] > 0:
                self._sign[:] = 0
                self._kind, self._entry = {}, {}
                self._mark(int(self._top[job]), 1)
                while not self._step():
                    pass

    @property
    def priced(self) -> list[Blossom]:
        """Blossoms that have a dual, those inside others, too."""
        return [blossom for blossom in self._blossoms.values() if blossom.dual > 0]

    def share_a_blossom(self, ends: Indices) -> Bools:
        """Tell which pairs of jobs, shape (2, pairs), are inside the same blossom."""
        a, b = self._top[ends]
        return np.asarray(a == b)

    # --- one tree ------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Change duals until something is tight, and use it; return whether a path was flipped."""
        a, b = self.ends
        total = np.where(self._top[a] == self._top[b], 0, self._sign[a] + self._sign[b])
        step = np.where(total > 0, self.slack // np.maximum(total, 1), FAR)
        pair = int(step.argmin()) if len(step) else -1
        ends = np.where(self._sign > 0, self.alone, FAR)
        job = int(ends.argmin())
        inner = [node for node, kind in self._kind.items() if kind < 0 and node >= self.jobs]
        thin = min(inner, key=lambda node: self._blossoms[node].dual, default=-1)
        steps = (
            int(ends[job]),
            FAR if pair < 0 else int(step[pair]),
            FAR if thin < 0 else self._blossoms[thin].dual // 2,
        )
        self._change(min(steps), total)
        if steps[0] == min(steps):
            self._flip(job, FREE)
            return True
        if steps[2] == min(steps):
            self._expand(thin)
            return False
        u, v = int(a[pair]), int(b[pair])
        return self._use(u, v) if self._sign[u] > 0 else self._use(v, u)

    def _change(self, amount: int, total: Whole) -> None:
        self.alone -= amount * self._sign
        self.slack -= amount * total
        for node, kind in self._kind.items():
            if node >= self.jobs:
                self._blossoms[node].dual += 2 * amount * kind

    def _use(self, u: int, v: int) -> bool:
        """Use a tight pair from an outer node; return whether it ends at a node on its own."""
        if self._sign[v] > 0:
            self._contract(u, v)
            return False
        node = int(self._top[v])
        mate = self.mate[self._bases[node]]
        if mate == FREE:
            self._rebase(node, v)
            self.mate[v] = u
            self._flip(u, v)
            return True
        self._entry[node] = (u, v)
        self._mark(node, -1)
        self._mark(int(self._top[mate]), 1)
        return False

    def _mark(self, node: int, kind: int) -> None:
        self._kind[node] = kind
        self._sign[self._held(node)] = kind

    def _held(self, node: int) -> Indices | list[int]:
        return self._blossoms[node].jobs if node >= self.jobs else [node]

    def _flip(self, job: int, mate: int) -> None:
        """Give a job of an outer node a mate, or none, and change mates up to the root."""
        while True:
            node = int(self._top[job])
            above = self.mate[self._bases[node]]
            self._rebase(node, job)
            self.mate[job] = mate
            if above == FREE:
                return
            node = int(self._top[above])
            job, mate = self._entry[node]
            self._rebase(node, mate)
            self.mate[mate] = job

    # --- blossoms ------------------------------------------------------------------------------

    def _rebase(self, node: int, job: int) -> None:
        """Pair the jobs of a node but for one of them."""
        self._bases[node] = job
        if node < self.jobs:
            return
        blossom = self._blossoms[node]
        at = next(n for n, child in enumerate(blossom.children) if job in self._held(child))
        blossom.children = blossom.children[at:] + blossom.children[:at]
        blossom.links = blossom.links[at:] + blossom.links[:at]
        self._rebase(blossom.children[0], job)
        for n in range(1, len(blossom.children), 2):
            a, b = blossom.links[n]
            self._rebase(blossom.children[n], a)
            self._rebase(blossom.children[n + 1], b)
            self.mate[a], self.mate[b] = b, a

    def _upwards(self, node: int) -> tuple[list[int], list[Link]]:
        """Return the nodes up to the root, and the links between them."""
        nodes = [node]
        links: list[Link] = []
        while True:
            if self._kind[node] > 0:
                base = self._bases[node]
                if self.mate[base] == FREE:
                    return nodes, links
                links.append((base, self.mate[base]))
            else:
                links.append(self._entry[node][::-1])
            node = int(self._top[links[-1][1]])
            nodes.append(node)

    def _contract(self, u: int, v: int) -> None:
        """Make a blossom of the cycle that a pair of outer nodes closes."""
        left, down = self._upwards(int(self._top[u]))
        right, up = self._upwards(int(self._top[v]))
        while len(left) > 1 and len(right) > 1 and left[-2] == right[-2]:
            left.pop()
            right.pop()
        depth, other = len(left) - 1, len(right) - 1
        children = [*left[::-1], *right[:-1]]
        links = [*(link[::-1] for link in down[:depth][::-1]), (u, v), *up[:other]]
        jobs = np.concatenate([self._held(child) for child in children])
        node = len(self._bases)
        self._bases.append(self._bases[left[-1]])
        self._blossoms[node] = Blossom(children, links, jobs)
        for child in children:
            del self._kind[child]
        self._top[jobs] = node
        self._mark(node, 1)

    def _expand(self, node: int) -> None:
        """Take an inner blossom apart; the even path from its entry to its base stays."""
        blossom = self._blossoms.pop(node)
        del self._kind[node]
        self._sign[blossom.jobs] = 0
        for child in blossom.children:
            self._top[self._held(child)] = child
        entry, count = self._entry.pop(node), len(blossom.children)
        at = blossom.children.index(int(self._top[entry[1]]))
        step = 1 if at % 2 else -1
        while True:
            child = blossom.children[at % count]
            self._entry[child] = entry
            self._mark(child, -1)
            if at % count == 0:
                return
            self._mark(blossom.children[(at + step) % count], 1)
            at += 2 * step
            entry = blossom.links[at - 1] if step > 0 else blossom.links[at][::-1]

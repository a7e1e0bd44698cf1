"""First in, first out with best fit: called at events, it touches only what has changed."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from optsched.rollout.checkpoints.restorable import RestorablePolicy
from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.free_nodes import ALL, MOST_STAGES, FreeNodes
from optsched.rollout.policies.relaxing import Relaxing
from optsched.rollout.policy_options import NonNegative, Options, takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

    Gpus = tuple[int, ...]
    Key = tuple[str, int]


class GangOptions(Options):
    """What gangs do while they wait."""

    relax_s: NonNegative = Field(
        default=0.0,
        description="Seconds of waiting after which a gang accepts a worse place, again and again; "
        "0: any place at once.",
    )
    backfill: bool = Field(
        default=False, description="Whether gangs of another size may overtake one that waits."
    )


class Gangs(RestorablePolicy):
    """Waiting gangs in the order of submission, each by best fit; running ones keep theirs.

    A gang that does not fit holds up those behind it: all of them, or with `backfill` those of its
    size. One that its queue has no quota for holds up its queue, or with `backfill` its size.

    With `relax_s` a gang at first wants as few nodes as hold it, in a domain of the lowest level
    that is large enough; then twice as many nodes and one level more, and so on.
    """

    changing: ClassVar[tuple[str, ...]] = (
        "nodes",
        "held",
        "lines",
        "relaxing",
        "_used",
        "_in_vain",
        "usable",
    )

    def __init__(
        self,
        name: str,
        scenario: Scenario,
        options: GangOptions,
        is_spread: bool = False,
        doubles: bool = True,
    ) -> None:
        self.name = name
        self.relax_us = round(options.relax_s * US)
        self.every_epoch = self.relax_us > 0
        self.backfill = options.backfill
        self.quotas, self.lends = dict(scenario.quotas), scenario.lends_quotas
        self.nodes_change = scenario.nodes_change
        self.nodes = FreeNodes(Cluster(scenario), is_spread, doubles)
        self.held: dict[int, Gpus] = {}
        self.lines: dict[Key, deque[int]] = {}
        self._used = dict.fromkeys(self.quotas, 0)
        self._in_vain: dict[tuple[int, int], int] = {}
        self.usable = ALL
        self.relaxing = Relaxing(self.nodes, self.relax_us)

    def decide(self, view: View) -> Decision:
        """Place the waiting jobs that fit."""
        self.update(view)
        if not self.lines:
            return NOTHING
        places = self.place_waiting(view)
        accepts = self.relaxing.news(view.now_us, view.demand)
        return Decision(place=places, accepts=accepts) if places or accepts else NOTHING

    # --- what has happened --------------------------------------------------------------------

    def update(self, view: View) -> None:
        """Take note of what happened since the last call."""
        for job in view.ended:
            self.release(view, job)
        for job in view.failed:
            self.release(view, job)
        for job in view.arrived:
            self.release(view, job)
            self.arrive(view, job)
        if self.nodes_change:
            self._look_at_nodes(view)

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait in its line."""
        line = self.lines.setdefault(self.line_of(view, job), deque())
        if not line or job > line[-1]:
            line.append(job)
        else:
            line.insert(bisect_left(line, job), job)
        self.relaxing.enter(job, view.now_us - view.waited_us(job))

    def line_of(self, view: View, job: int) -> Key:
        """Return the line in which a job waits: that of its queue, with `backfill` of its size."""
        return view.queue(job) if self.quotas else "", view.demand(job) if self.backfill else 0

    def release(self, view: View, job: int) -> None:
        """Take back the GPUs that a job held, if any."""
        gpus = self.held.pop(job, None)
        if gpus is None:
            return
        self.nodes.release(gpus)
        if self.quotas and view.queue(job) in self._used:
            self._used[view.queue(job)] -= len(gpus)

    def hold(self, view: View, job: int, gpus: Gpus) -> None:
        """Take note of the GPUs that a job gets."""
        self.held[job] = gpus
        self.nodes.take(gpus)
        if self.quotas and view.queue(job) in self._used:
            self._used[view.queue(job)] += len(gpus)

    def _look_at_nodes(self, view: View) -> None:
        usable = sum(1 << node for node, ready in enumerate(view.ready) if ready)
        if usable != self.usable:
            self.usable = usable
            self._in_vain.clear()

    # --- placing ------------------------------------------------------------------------------

    def place_waiting(self, view: View) -> dict[int, Gpus]:
        """Return GPUs for jobs at the heads of the lines, the earliest first, and hold them."""
        places: dict[int, Gpus] = {}
        heads = [(line[0], key) for key, line in self.lines.items()]
        heapify(heads)
        while heads:
            job, key = heads[0]
            if not self.is_due(view, job):
                if not self.backfill:
                    break
                heappop(heads)
                continue
            size = view.demand(job)
            if self.quotas and not self.has_quota(view, job, size):
                heappop(heads)
                continue
            gpus = self.find(view, job, size)
            if gpus is None:
                if not self.backfill:
                    break
                heappop(heads)
                continue
            places[job] = gpus
            self.hold(view, job, gpus)
            line = self.lines[key]
            line.popleft()
            self.relaxing.leave(job)
            if line:
                heapreplace(heads, (line[0], key))
            else:
                heappop(heads)
                del self.lines[key]
        return places

    def is_due(self, view: View, job: int) -> bool:
        """Tell whether a waiting job is looked at now."""
        return True

    def has_quota(self, view: View, job: int, size: int) -> bool:
        """Tell whether a job's queue may hold so many GPUs more; idle ones may be borrowed."""
        return self.lends or self.is_within_quota(view.queue(job), size)

    def is_within_quota(self, queue: str, size: int) -> bool:
        """Tell whether a queue has a right to so many GPUs more."""
        return queue not in self._used or self._used[queue] + size <= self.quotas[queue]

    def stage(self, view: View, job: int) -> int:
        """Return how often a job has relaxed its wishes so far."""
        if not self.relax_us:
            return MOST_STAGES
        return min(MOST_STAGES, self.relaxing.stage(self.waited_us(view, job), view.demand(job)))

    def waited_us(self, view: View, job: int) -> int:
        """Return for how long a job has waited."""
        return view.waited_us(job)

    def find(self, view: View, job: int, size: int) -> Gpus | None:
        """Return GPUs for a job, or None; what was in vain is not tried again too soon."""
        stage = self.stage(view, job)
        if self._in_vain.get((size, stage), -1) == self.nodes.released:
            return None
        gpus = self.search(size, stage)
        if gpus is None:
            self._in_vain[size, stage] = self.nodes.released
        return gpus

    def search(self, size: int, stage: int) -> Gpus | None:
        """Return GPUs for a gang at a stage of relaxing."""
        return self.among(self.usable, size, stage)

    def among(self, nodes: int, size: int, stage: int) -> Gpus | None:
        """Return GPUs for a gang on some nodes."""
        if stage == MOST_STAGES:
            return self.nodes.gang(size, nodes & self.usable)
        return self.nodes.gang(size, nodes & self.usable, *self.nodes.worst_place(size, stage))


@takes(GangOptions)
def fifo(scenario: Scenario, seed: int, options: GangOptions) -> Gangs:
    """First in, first out with best fit."""
    return Gangs("fifo", scenario, options)

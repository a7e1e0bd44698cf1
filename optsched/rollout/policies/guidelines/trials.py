"""Guideline: gangs are tried on one GPU first, which shows early what fails on one GPU, too.

Source: Jeon et al., ATC'19, section 5: "even running multi-GPU jobs on a single GPU will catch
such errors before they run on larger shared clusters".
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.free_nodes import ALL

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.fifo import Gpus
    from optsched.rollout.policies.philly import Philly


class Trials(Restorable):
    """Trials of gangs, which keep their places in their lines meanwhile.

    A trial begins as soon as a GPU is idle that nobody in line can use now. If a gang's turn comes
    before it has stood its trial, the GPUs that it would get are kept for it; if the trial has not
    begun, it begins on one of them. So a trial that finds nothing lets nobody pass.

    Parameters
    ----------
    gangs
        The policy that this is a part of.
    length_us
        Of a trial; 0: there are none.
    pool
        Most trials at once.

    Attributes
    ----------
    on
        By job in a trial the GPU that it has besides those that are kept for it, if any.
    untried
        Gangs that wait for their trials.
    passed
        Jobs that have stood theirs.
    kept
        By job the GPUs that are kept for it.
    since
        By gang that waits and is tried in between, when that wait began.
    """

    changing = ("on", "untried", "passed", "kept", "since")

    def __init__(self, gangs: Philly, length_us: int, pool: int) -> None:
        self.gangs, self.length_us, self.pool = gangs, length_us, pool
        self.on: dict[int, Gpus] = {}
        self.untried: set[int] = set()
        self.passed: set[int] = set()
        self.kept: dict[int, Gpus] = {}
        self.since: dict[int, int] = {}

    def __contains__(self, job: int) -> bool:
        """Tell whether a job has GPUs without running on them."""
        return job in self.kept

    def waited_us(self, view: View, job: int) -> int:
        """Return for how long a job has waited, its trial included."""
        since = self.since.get(job)
        return view.waited_us(job) if since is None else view.now_us - since

    # --- what has happened --------------------------------------------------------------------

    def enter(self, view: View, job: int) -> None:
        """Take note of a job that has come into its line."""
        if view.demand(job) > 1 and job not in self.passed:
            self.untried.add(job)
            self.since[job] = view.now_us - view.waited_us(job)

    def returns(self, view: View, job: int) -> bool:
        """Take note of a job that is back in the queue; return whether it has stood its trial."""
        if job not in self.on:
            return False
        self._end(view, job)
        self.passed.add(job)
        if job in self.kept:
            self.gangs.hold(view, job, self.kept[job])
        else:
            self.gangs.relaxing.enter(job, self.since[job])
        return True

    def fail(self, view: View, job: int) -> None:
        """Take note of a job that failed, on one GPU or as a gang."""
        if job not in self.on:
            return
        self._end(view, job)
        self.since.pop(job)
        if self.kept.pop(job, None) is None:
            self.gangs.take_from_line(view, job)

    def _end(self, view: View, job: int) -> None:
        gpus = self.on.pop(job)
        if gpus:
            self.gangs.nodes.release(gpus)
            self.gangs.count_quota(view, job, -1)

    # --- what is decided ----------------------------------------------------------------------

    def start(self, view: View) -> dict[int, Gpus]:
        """Return the kept GPUs of gangs that have stood their trials."""
        places = {}
        for job, gpus in list(self.kept.items()):
            if job in self.on:
                continue
            if not all(view.ready[self.gangs.nodes.node_of[gpu]] for gpu in gpus):
                del self.kept[job]
                self.gangs.release(view, job)
                self.gangs.line_up(view, job)
                self.gangs.relaxing.enter(job, self.since[job])
            elif job not in self.untried:
                places[job] = gpus
                del self.kept[job], self.since[job]
        return places

    def keep(self, places: dict[int, Gpus]) -> None:
        """Keep GPUs for gangs that have not stood their trials, and do not start these."""
        for job in list(places):
            if job in self.untried or job in self.on:
                self.kept[job] = places.pop(job)
            else:
                self.since.pop(job, None)

    def begin(self, view: View) -> dict[int, Gpus]:
        """Return a GPU for each trial that begins: first of gangs that keep others waiting."""
        begun: dict[int, Gpus] = {}
        slots = self.pool - len(self.on)
        for job in nsmallest(slots, self.untried, key=lambda job: (job not in self.kept, job)):
            if job in self.kept:
                self.on[job], begun[job] = (), self.kept[job][:1]
            elif not self.gangs.has_quota(view, job, 1):
                continue
            else:
                gpus = self.gangs.among(ALL, 1, 0)
                if gpus is None:
                    break
                self.gangs.nodes.take(gpus)
                self.gangs.count_quota(view, job, 1)
                self.gangs.relaxing.leave(job)
                self.on[job] = begun[job] = gpus
            self.untried.remove(job)
        return begun

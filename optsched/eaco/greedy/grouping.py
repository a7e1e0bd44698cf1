"""Groups while greedy rules form them: who is with whom, and what is free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.greedy import node_packing
from optsched.eaco.greedy.group_costs import Draft
from optsched.eaco.plan import EacoPlan, Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from optsched.eaco.greedy.group_costs import GroupCosts


class Grouping:
    """Groups that keep every rule but the power cap, and the jobs that wait.

    Parameters
    ----------
    drafts
        Groups to start from.
    """

    def __init__(self, estimates: GroupCosts, drafts: Iterable[Draft] = ()) -> None:
        self.estimates = estimates
        self.drafts = list(drafts)
        self.waiting: list[int] = []

    @classmethod
    def from_scratch(cls, estimates: GroupCosts, drafts: Iterable[Draft] = ()) -> Grouping:
        """Return groups to start from, and alone those jobs that must stay where they run.

        Those would end too late wherever they were moved.
        """
        grouping = cls(estimates, drafts)
        for n in estimates.staying:
            home = estimates.home(n)
            assert home is not None
            draft = Draft((n,), home[1], home[0])
            if home[0] not in grouping._taken() and estimates.allowed(draft):
                grouping.drafts.append(draft)
        return grouping

    @classmethod
    def running(cls, estimates: GroupCosts) -> Grouping:
        """Return the groups that run now; of one that breaks a rule, the first jobs that do not.

        Jobs that must stay where they run come first.
        """
        grouping = cls(estimates)
        number = {job.id: n for n, job in enumerate(estimates.jobs)}
        for place in estimates.instance.running:
            stay: Draft | None = None
            inside = [number[name] for name in place.jobs]
            home = estimates.home(inside[0])
            assert home is not None
            if len(inside) > 1:
                inside.sort(key=lambda n: (n not in estimates.staying, n))
            for n in inside:
                jobs = tuple(sorted((*stay.jobs, n))) if stay else (n,)
                wider = Draft(jobs, home[1], place.id)
                stay = wider if estimates.allowed(wider) else stay
            if stay is not None:
                grouping.drafts.append(stay)
        return grouping

    def queue(self) -> list[int]:
        """Return the jobs that are in no group and do not wait, in the order of the instance."""
        known = {n for draft in self.drafts for n in draft.jobs} | set(self.waiting)
        return [n for n in range(len(self.estimates.jobs)) if n not in known]

    def alone(self, job: int) -> Draft | None:
        """Return a new group of one job: on its own GPUs if it runs, else on the fastest ones."""
        return next(self.new_groups(job), None)

    def new_groups(self, job: int) -> Iterator[Draft]:
        """Yield the groups of one job for which there are GPUs."""
        home = self.estimates.home(job)
        if home is not None and home[0] not in self._taken():
            yield from self._if_it_fits(Draft((job,), home[1], home[0]))
        for pool in self.estimates.hosts[job]:
            yield from self._if_it_fits(Draft((job,), pool))

    def _if_it_fits(self, draft: Draft) -> Iterator[Draft]:
        others = [*self.drafts, draft]
        if self.estimates.allowed(draft) and node_packing.fits(self.estimates, others, draft.nodes):
            yield draft

    def beside(self, draft: Draft, job: int) -> Draft | None:
        """Return a group with one more job, or None if that is not allowed.

        A group on new GPUs takes over those of the job, if it runs on such ones.
        """
        jobs = tuple(sorted((*draft.jobs, job)))
        home = self.estimates.home(job)
        if draft.location is None and home and home[1] == draft.nodes:
            wider = Draft(jobs, draft.nodes, home[0], draft.level)
            if home[0] not in self._taken() and self.estimates.allowed(wider):
                others = [other for other in self.drafts if other != draft]
                if node_packing.fits(self.estimates, [*others, wider], draft.nodes):
                    return wider
        wider = draft._replace(jobs=jobs)
        return wider if self.estimates.allowed(wider) else None

    def _taken(self) -> set[str | None]:
        return {draft.location for draft in self.drafts}

    def replace(self, old: Draft, new: Draft) -> None:
        """Put a group in the place of another."""
        self.drafts[self.drafts.index(old)] = new

    def wait(self, jobs: Iterable[int]) -> None:
        """Let jobs wait."""
        self.waiting += jobs

    def may_wait(self) -> bool:
        """Tell whether every job that waits is allowed to."""
        jobs = self.estimates.jobs
        return all(jobs[n].waiting_penalty_kwh is not None for n in self.waiting)

    def plan(self) -> EacoPlan | None:
        """Return the plan, or None if a job waits that must not or groups find no nodes."""
        numbers = node_packing.pack(self.estimates, self.drafts)
        if numbers is None or not self.may_wait():
            return None
        groups = (self._group(d, n) for d, n in zip(self.drafts, numbers, strict=True))
        names = [job.id for job in self.estimates.jobs]
        return EacoPlan(groups=tuple(groups), waiting=tuple(names[n] for n in sorted(self.waiting)))

    def _group(self, draft: Draft, node: int) -> Group:
        level = self.estimates.level(draft)
        return Group.trusted(
            jobs=tuple(self.estimates.jobs[n].id for n in draft.jobs),
            nodes=self.estimates.pool(draft).id,
            node=node,
            level=None if level is None else level.id,
            location=draft.location,
        )

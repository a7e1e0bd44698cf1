"""Warm start by dual ascent (Erlenkotter, Operations Research 26, 1978), all groups listed.

Duals and cuts of the previous epoch go with their jobs. Work that was done makes nearly all groups
cheaper, so duals go down with it. Then the dual of one job after the other is set as high as the
others allow: what that proves is close to the optimum of
the relaxation, and costs one look at each job's groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.cuts.cuts_and_branching import Rank1CutRow
from optsched.eaco.exact.lp_solution import Point, Proof, priced
from optsched.eaco.exact.master import Duals
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.cuts.cuts_and_branching import Rule
    from optsched.eaco.exact.relaxation import Relaxation
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance

    Floats = NDArray[np.float64]


class WarmStartDuals(NamedTuple):
    """What a proof leaves to the next epoch.

    Attributes
    ----------
    duals, work_s
        By job: its dual and its work.
    gpus
        By pool of nodes: the dual of a GPU.
    cuts
        Names of jobs, divisor and dual of each cut.
    """

    duals: dict[str, float]
    work_s: dict[str, float]
    gpus: dict[str, float]
    cuts: list[tuple[tuple[str, ...], int, float]]

    @classmethod
    def of(cls, instance: EacoInstance, classes: list[JobClass], proof: Proof) -> WarmStartDuals:
        """Return what the proof of a root leaves."""
        cuts = [
            (tuple(classes[c].jobs[0] for c in rule.classes), rule.divisor, dual)
            for rule, dual in proof.cuts.items()
            if isinstance(rule, Rank1CutRow)
        ]
        each = zip(classes, proof.duals.jobs.tolist(), strict=True)
        pools = zip((n.id for n in instance.nodes), proof.duals.pools.tolist(), strict=True)
        return cls(
            duals={name: dual for c, dual in each for name in c.jobs},
            work_s={job.id: job.work_s for job in instance.jobs},
            gpus=dict(pools),
            cuts=cuts,
        )

    def resumed(
        self, instance: EacoInstance, classes: list[JobClass], relaxation: Relaxation
    ) -> Point | None:
        """Return what old duals prove; None if too few of the jobs were there.

        The cuts whose jobs are all there are put into the relaxation.
        """
        known = sum(c.jobs[0] in self.duals for c in classes)
        if known < SETTINGS.least_share * max(len(classes), 1):
            return None
        cuts = _cuts(self, classes)
        relaxation.add_cuts(cuts)
        duals = Duals(
            jobs=_duals(self, instance, classes),
            pools=np.array([self.gpus.get(nodes.id, 0.0) for nodes in instance.nodes]),
            places=np.zeros(len(instance.running)),
            watt=0.0,
        )
        raised = duals._replace(jobs=_raised(duals, cuts, relaxation))
        proof, value = relaxation.proven((), Proof(raised, (), cuts))
        return priced(proof, value)


def _cuts(last: WarmStartDuals, classes: list[JobClass]) -> dict[Rule, float]:
    at = {name: n for n, c in enumerate(classes) for name in c.jobs}
    cuts: dict[Rule, float] = {}
    for names, divisor, dual in last.cuts:
        if all(name in at for name in names):
            rule = Rank1CutRow(tuple(sorted(at[name] for name in names)), divisor)
            cuts[rule] = max(dual, cuts.get(rule, 0.0))
    return cuts


def _duals(last: WarmStartDuals, instance: EacoInstance, classes: list[JobClass]) -> Floats:
    """Return duals of jobs: as much for their work as before; of new ones, as for others."""
    is_lasting = instance.objective == "epoch"  # which pays for time, however much work is left
    rates = [
        last.duals[c.jobs[0]] / (1.0 if is_lasting else last.work_s[c.jobs[0]])
        if c.jobs[0] in last.duals
        else np.nan
        for c in classes
    ]
    complete: Floats = np.nan_to_num(np.array(rates), nan=float(np.nanmedian(rates)))
    work: Floats = np.array([1.0 if is_lasting else c.job.work_s for c in classes])
    return complete * work


def _raised(duals: Duals, cuts: dict[Rule, float], relaxation: Relaxation) -> Floats:
    """Return duals of jobs, each one as high as its groups and waiting allow, in turn."""
    frame, reduced = relaxation.frame, relaxation.reduced(duals, cuts)
    jobs = duals.jobs.copy()
    for _ in range(SETTINGS.ascent_passes):
        for c in range(len(jobs)):
            held, times = relaxation.counts.columns_of(c)
            slack = float((reduced[held] / times).min(initial=np.inf))
            most = max(0.0, float(frame.waiting[c] - jobs[c]))
            step = min(slack, most) if slack > 0 else slack
            if np.isfinite(step):
                jobs[c] += step
                reduced[held] -= times * step
    return jobs

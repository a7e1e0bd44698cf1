r"""BOA, the specification: how many GPUs to rent for each job, within a budget.

Problem (3) of EPEW'24 ("How to Rent GPUs on a Budget", arXiv 2406.15560), with finitely many widths
for each phase of a job, as a linear or mixed-integer linear program.

Sets, parameters and variables:

=============================  ==================================================================
:math:`i \in I`                job classes
:math:`e = 0, 1, \dots`        phases (training epochs) of class i
:math:`k \in K_{ie}`           widths, in GPUs, that phase e of class i allows
-----------------------------  ------------------------------------------------------------------
:math:`\lambda_i`              arrival rate of class i, 1/s; :math:`\lambda = \sum_i \lambda_i`
:math:`x_{ie}`                 mean work of a phase, in seconds on a GPU of speedup 1
:math:`s_{ie}(k)`              speedup; :math:`\tau_{iek} = x_{ie} / s_{ie}(k)` is the time in s
:math:`R_i`                    rescaling time at the start of a job and at each change of width, s
:math:`b`                      budget: GPUs that may be rented, on average over time
:math:`T_0`                    target of the mean job completion time (JCT), s
-----------------------------  ------------------------------------------------------------------
:math:`w_{iek}`                share of class i that runs phase e at width k
:math:`y_{iek}`                share that comes to width k in phase e, if :math:`R_i > 0`
=============================  ==================================================================

A2, widths "mixed". A linear program: the optimum over all mixtures of widths.

.. math::

    \min_w \quad & \frac{1}{\lambda} \sum_i \lambda_i \sum_{e,k} \tau_{iek} w_{iek}
                 && \quad \text{(mean\_jct\_s)} \\
    \text{s.t.} \quad & \sum_k w_{iek} = 1 \quad \forall i, e && \quad \text{(one\_width)} \\
    & \sum_i \lambda_i \sum_{e,k} k\, \tau_{iek} w_{iek} \le b && \quad \text{(budget)} \\
    & 0 \le w_{iek} \le 1

A3, widths "integer". The same with :math:`w_{iek} \in \{0, 1\}`: a multiple-choice knapsack.

A4, with rescaling. In both sums :math:`\tau_{iek} w_{iek}` becomes
:math:`\tau_{iek} w_{iek} + R_i y_{iek}`, because GPUs are paid for while a job rescales, and

.. math::

    y_{i0k} & \ge w_{i0k} \quad \forall i, k && \quad \text{(starts)} \\
    y_{iek} & \ge w_{iek} - w_{i,e-1,k} \quad \forall i, e \ge 1, k && \quad \text{(changes)}

where :math:`w_{i,e-1,k}` is 0 if phase e - 1 does not allow width k. For binary w the best y is
binary by itself. For real w the program is exact as well: shares of single phases are shares of
jobs that follow whole sequences of widths, such that as many jobs as possible keep their width
from one phase to the next; then :math:`\max(0, w_{iek} - w_{i,e-1,k})` come to width k.

A5, a target. The least budget that reaches a mean JCT: the two sums change places, GPUs rented are
minimised, and the mean JCT is at most :math:`T_0` (target).

A6, offers. Where GPUs of several types and markets are offered, :math:`k` stands for an option: an
offer o and a width. :math:`K_{ie}` holds the widths of all offers on which the phase runs; in the
sum of the budget k becomes the rent :math:`p_o k` in USD/h, for the price :math:`p_o` of a
GPU-hour, or :math:`p_o n_o \lceil k / n_o \rceil` where whole nodes of :math:`n_o` GPUs are
billed, and b is in USD/h; :math:`s_{ie}(k)` is the speedup on the offer's type times what
interruptions leave of the time,

.. math::

    \frac{1 - Q L_i}{1 + Q (D_o + R_i)}, \qquad Q = q_o \lceil k / n_o \rceil,

with :math:`q_o` interruptions per second of a node, :math:`L_i` half the time
between checkpoints, and :math:`D_o` the time until a node is replaced. Only options with
:math:`Q L_i \le 1/2` are allowed.

A7, orders of nodes. Where a node is ready :math:`S_o` seconds after its order, is billed for
:math:`E_o` seconds after a job has left it, and for :math:`M_o` seconds at least, a job waits for
:math:`R_i + S_o` in place of :math:`R_i` in both sums of A4, and the sum of the budget has the rent
of option k once more for :math:`\max(E_o, M_o - R_i - S_o)` seconds of each :math:`y_{iek}`. No
distribution of work with the means :math:`x_{ie}` is billed more where each job has nodes of its
own (docs/math/boa.md, Orders of nodes).
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo

from optsched.boa.plan import BoaPlan, ClassPlan, WidthSequence
from optsched.boa.speedup_curves import curve

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance, JobClass, Phase
    from optsched.boa.offers import Offer

# In a plan, shares are counted in units of 2**-40: they sum to one exactly, as floats too.
UNITS = 2**40

# A width, or with offers such as "8 x a100-spot".
Option = int | str


def build(instance: BoaInstance) -> pyo.ConcreteModel:
    """Write down the model of an instance: A2 to A7 of this module's docstring, whichever apply.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With variables ``w[class, phase, width]`` and ``y[class, phase, width]``. The objective is
        mean JCT in seconds, or the rent on average, in GPUs or USD/h, where a mean JCT is the
        target.

    Raises
    ------
    ValueError
        If widths are continuous: a linear model needs finitely many.

    Notes
    -----
    Source: EPEW'24, arXiv 2406.15560, problem (3).
    """
    if instance.widths == "continuous":
        raise ValueError(
            f"{instance.name}: method 'milp' and export need widths 'integer' or 'mixed'; "
            "widths 'continuous' are for method 'exact'"
        )
    rate = {c.id: c.arrival_rate_per_h / 3600 for c in instance.classes}
    tau = {
        (c.id, e): _seconds(instance, c, phase)
        for c in instance.classes
        for e, phase in enumerate(c.phases)
    }
    nodes = [(i, e, k) for i, e in tau for k in tau[i, e]]
    started = {c.id: c for c in instance.classes if instance.charges_starts(c)}
    start = {n: _start_s(instance, started[n[0]], n[2]) for n in nodes if n[0] in started}

    m = pyo.ConcreteModel(name="boa")
    m.w = pyo.Var(nodes, domain=pyo.Binary if instance.widths == "integer" else pyo.UnitInterval)
    m.y = pyo.Var(list(start), domain=pyo.UnitInterval)

    @m.Expression(nodes)
    def jobs(m: Any, i: str, e: int, k: Option) -> Any:  # mean number there (Little)
        starting = start[i, e, k][0] * m.y[i, e, k] if i in started else 0
        return rate[i] * (tau[i, e][k] * m.w[i, e, k] + starting)

    m.mean_jct_s = pyo.Expression(expr=sum(m.jobs[n] for n in nodes) / sum(rate.values()))
    rent = sum(_rent(instance, n[2]) * m.jobs[n] for n in nodes)
    idle = {n: rate[n[0]] * _rent(instance, n[2]) * paid for n, (_, paid) in start.items() if paid}
    m.mean_rent = pyo.Expression(expr=rent + sum(each * m.y[n] for n, each in idle.items()))

    @m.Constraint(list(tau))
    def one_width(m: Any, i: str, e: int) -> Any:
        return sum(m.w[i, e, k] for k in tau[i, e]) == 1

    @m.Constraint([(i, e, k) for i, e, k in m.y if e == 0])
    def starts(m: Any, i: str, e: int, k: Option) -> Any:
        return m.y[i, e, k] >= m.w[i, e, k]

    @m.Constraint([(i, e, k) for i, e, k in m.y if e > 0])
    def changes(m: Any, i: str, e: int, k: Option) -> Any:
        before = m.w[i, e - 1, k] if k in tau[i, e - 1] else 0
        return m.y[i, e, k] >= m.w[i, e, k] - before

    if instance.budget is not None:
        m.objective = pyo.Objective(expr=m.mean_jct_s)
        m.budget = pyo.Constraint(expr=m.mean_rent <= float(instance.budget))
    else:
        m.objective = pyo.Objective(expr=m.mean_rent)
        m.target = pyo.Constraint(expr=m.mean_jct_s <= instance.target_mean_jct_s)
    return m


def extract(model: pyo.ConcreteModel, instance: BoaInstance) -> BoaPlan:
    """Read the plan off a solved model.

    Parameters
    ----------
    model
        As `build` made it, its variables set by any solver; shares may be off by its tolerances.

    Returns
    -------
    BoaPlan
        Allowed widths, and shares that sum to one exactly. Because of a solver's tolerances it may
        still exceed the budget or target by a rounding; `optsched.check` tells.

    Raises
    ------
    ValueError
        If a variable has no value.
    """
    total = 1 if instance.widths == "integer" else UNITS
    plans = []
    for c in instance.classes:
        phases = []
        for e, phase in enumerate(c.phases):
            options = [
                option_name(curve.offer, k)
                for curve in instance.offered(c, phase)
                for k in curve.widths
            ]
            shares = {k: pyo.value(model.w[c.id, e, k]) for k in options}
            phases.append(_counted(shares, total))
        sequences = tuple(
            _sequence(count / total, options)
            for options, count in sorted(_sequences(phases).items())
        )
        plans.append(ClassPlan(id=c.id, sequences=sequences))
    return BoaPlan(classes=tuple(plans))


def option_name(offer: Offer | None, gpus: int) -> Option:
    """Return the index of an option: its width, with its offer if there are several."""
    return gpus if offer is None else f"{gpus} x {offer.id}"


def _named(option: Option) -> tuple[int, str | None]:
    """Return width and offer of an option."""
    if isinstance(option, int):
        return option, None
    gpus, _, offer = option.partition(" x ")
    return int(gpus), offer


def _rent(instance: BoaInstance, option: Option) -> float:
    """Return what an option costs by time: GPUs, or with offers USD/h."""
    gpus, name = _named(option)
    offers = {offer.id: offer for offer in instance.offers or ()}
    if name is None:
        return gpus
    offer = offers[name]
    nodes = -(-gpus // offer.gpus_per_node)
    paid = nodes * offer.gpus_per_node if offer.bills == "nodes" else gpus
    return paid * offer.usd_per_gpu_h


def _start_s(instance: BoaInstance, job_class: JobClass, option: Option) -> tuple[float, float]:
    """Return the seconds that a start takes, and those that are billed beside it."""
    for offer in instance.offers or ():
        if offer.id == _named(option)[1]:
            took = job_class.rescale_s + offer.start_s
            return took, max(offer.stop_s, offer.least_billed_s - took)
    return job_class.rescale_s, 0.0


def _sequence(share: float, options: tuple[Option, ...]) -> WidthSequence:
    gpus, names = zip(*map(_named, options), strict=True)
    offers = None if None in names else names
    return WidthSequence(share=share, gpus=gpus, offers=offers)


def _seconds(instance: BoaInstance, job_class: JobClass, phase: Phase) -> dict[Option, float]:
    """Return tau: for every option of a phase, its mean time in seconds, with interruptions."""
    seconds: dict[Option, float] = {}
    for offered in instance.offered(job_class, phase):
        offer = offered.offer
        times = (phase.work_gpu_s / curve(offered.speedup)[1]).tolist()
        for k, time in zip(offered.widths, times, strict=False):
            seconds[option_name(offer, k)] = time * _slowdown(offer, job_class, k)
    return seconds


def _slowdown(offer: Offer | None, job_class: JobClass, gpus: int) -> float:
    """Return how much longer work takes because of interruptions."""
    if offer is None:
        return 1.0
    often = offer.interruptions_per_node_h * -(-gpus // offer.gpus_per_node) / 3600
    lost = (job_class.checkpoint_s or 0.0) / 2
    return (1 + often * (offer.restart_s + job_class.rescale_s)) / (1 - often * lost)


def _counted(shares: dict[Option, float], total: int) -> dict[Option, int]:
    """Round shares to counts that sum to `total`; the largest share takes up the rounding."""
    counts = {k: max(0, round(share * total)) for k, share in shares.items()}
    largest = max(shares, key=lambda k: shares[k])
    counts[largest] += total - sum(counts.values())
    return {k: count for k, count in counts.items() if count}


def _sequences(phases: list[dict[Option, int]]) -> dict[tuple[Option, ...], int]:
    """Follow jobs from phase to phase: who can keeps its width, the others take what is left."""
    sequences: dict[tuple[Option, ...], int] = {(k,): count for k, count in phases[0].items()}
    for phase in phases[1:]:
        vacant = dict(phase)
        followed: dict[tuple[Option, ...], int] = {}
        leaving = []
        for gpus, count in sequences.items():
            k = gpus[-1]
            staying = min(count, vacant.get(k, 0))
            if staying:
                followed[*gpus, k] = staying
                vacant[k] -= staying
            leaving.append((gpus, count - staying))
        for gpus, count in leaving:
            for k in vacant:
                moving = min(count, vacant[k])
                if moving:
                    followed[*gpus, k] = moving
                    vacant[k] -= moving
                    count -= moving
        sequences = followed
    return sequences

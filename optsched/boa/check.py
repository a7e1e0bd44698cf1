"""The judge of BOA: rules of a plan, exact figures, and the proof of a bound.

Integers and fractions only, no tolerances; it shares no code with the methods. Quantities are
enclosed between multiples of 2**-192; only where such an enclosure cannot decide are the exact
fractions added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import NamedTuple

from optsched.boa.instance import Amdahl, BoaInstance, JobClass, Phase, Power, Speedup, Table
from optsched.boa.plan import BoaCertificate, BoaPlan, WidthSequence
from optsched.check import BrokenRule

SCALE_BITS = 192
SCALE = 1 << SCALE_BITS
MAX_LABELS = 5_000_000
_DECIMAL = Context(prec=60)
_DECIMAL_ERROR = Fraction(1, 10**58)  # relative; `decimal` promises 10**-59


# --- rules of a plan --------------------------------------------------------------------------


def violations(instance: BoaInstance, plan: BoaPlan) -> list[BrokenRule]:
    """Return every rule that the plan breaks; an empty list means that it is feasible."""
    broken = list(_structure(instance, plan))
    return broken or list(_limits(instance, plan))


def _structure(instance: BoaInstance, plan: BoaPlan) -> Iterator[BrokenRule]:
    known = {c.id: c for c in instance.classes}
    planned = [c.id for c in plan.classes]
    for name in dict.fromkeys(planned):
        if name not in known:
            yield BrokenRule("known-class", f"the instance has no class '{name}'")
        if planned.count(name) > 1:
            yield BrokenRule("one-plan-per-class", f"class '{name}' is planned more than once")
    for name in known:
        if name not in planned:
            yield BrokenRule("every-class", f"class '{name}' has no plan")
    for class_plan in plan.classes:
        if class_plan.id in known:
            yield from _sequences(instance, known[class_plan.id], class_plan.sequences)


def _sequences(
    instance: BoaInstance, job_class: JobClass, sequences: tuple[WidthSequence, ...]
) -> Iterator[BrokenRule]:
    where = f"class '{job_class.id}'"
    if instance.widths == "integer" and len(sequences) > 1:
        text = f"{where} has {len(sequences)} width sequences; widths 'integer' allow one"
        yield BrokenRule("one-width-per-phase", text)
    for sequence in sequences:
        if sequence.share < 0:
            yield BrokenRule("share-not-negative", f"{where}: share {sequence.share}")
        if len(sequence.gpus) != len(job_class.phases):
            count = len(job_class.phases)
            text = f"{where} has {count} phases, but {len(sequence.gpus)} widths are given"
            yield BrokenRule("one-width-per-phase", text)
            continue
        for e, (phase, gpus) in enumerate(zip(job_class.phases, sequence.gpus, strict=True)):
            fault = _width_fault(phase.speedup, gpus, instance.widths == "continuous")
            if fault:
                yield BrokenRule("allowed-width", f"{where}, phase {e}: {gpus} GPUs, but {fault}")
    total = sum((Fraction(sequence.share) for sequence in sequences), Fraction(0))
    if total != 1:
        yield BrokenRule("shares-sum-to-one", f"{where}: the shares sum to {float(total)!r}")


def _width_fault(speedup: Speedup, gpus: float, continuous: bool) -> str | None:
    widths = speedup.widths
    if continuous:
        if not widths[0] <= gpus <= widths[-1]:
            return f"widths from {widths[0]} to {widths[-1]} are possible"
    elif gpus not in widths:
        listed = f"from {widths[0]} to {widths[-1]}" if isinstance(widths, range) else f"{widths}"
        return f"only the widths {listed} are possible"
    return None


def _limits(instance: BoaInstance, plan: BoaPlan) -> Iterator[BrokenRule]:
    use = [term for term in _plan_terms(instance, plan)]
    if instance.budget is not None:
        if not _at_most([(t.gpus_low, t.gpus_high) for t in use], instance.budget):
            spent = float(sum(t.gpus_high for t in use))
            text = f"the plan rents {spent!r} GPUs on average, the budget is "
            yield BrokenRule("budget", text + repr(float(instance.budget)))
    elif instance.target_mean_jct_s is not None:
        limit = Fraction(instance.target_mean_jct_s) * instance.arrival_rate_per_s
        if not _at_most([(t.jobs_low, t.jobs_high) for t in use], limit):
            mean = float(sum(t.jobs_high for t in use) / instance.arrival_rate_per_s)
            text = f"the mean JCT is {mean!r} s, the target {instance.target_mean_jct_s!r} s"
            yield BrokenRule("target", text)


def _at_most(terms: list[tuple[Fraction, Fraction]], limit: Fraction) -> bool:
    """Decide whether the sum of the enclosed terms is surely at most the limit."""
    room = _floor(limit)
    if sum(_ceil(high) for _, high in terms) <= room:
        return True
    if sum(_floor(low) for low, _ in terms) > room:
        return False
    return sum((high for _, high in terms), Fraction(0)) <= limit


# --- exact figures of a plan ------------------------------------------------------------------


class Term(NamedTuple):
    """Mean jobs in one phase, or rescaling for it, and mean GPUs that they hold; enclosed."""

    gpus: Fraction
    jobs_low: Fraction
    jobs_high: Fraction

    @property
    def gpus_low(self) -> Fraction:
        """Lower end of the mean GPUs held."""
        return self.gpus * self.jobs_low

    @property
    def gpus_high(self) -> Fraction:
        """Upper end of the mean GPUs held."""
        return self.gpus * self.jobs_high


class Performance(NamedTuple):
    """Figures of a plan, each the float nearest to the exact value.

    With Poisson arrivals the rented GPUs have the given variance (EPEW'24: classes are M/G/infinity
    tandems, insensitive to the distribution of sizes).
    """

    mean_jct_s: float
    mean_gpus: float
    mean_jobs: float
    variance_gpus: float


def performance(instance: BoaInstance, plan: BoaPlan) -> Performance:
    """Return the figures of a plan that breaks no rule of structure.

    Source: EPEW'24 lemmas 2 and 3: E[T] = (1/lambda) sum rho/s, cost = sum rho k/s.
    """
    jobs = gpus = variance = 0
    for term in _plan_terms(instance, plan):
        middle = _floor((term.jobs_low + term.jobs_high) / 2)
        jobs += middle
        gpus += _floor(term.gpus * Fraction(middle, SCALE))
        variance += _floor(term.gpus**2 * Fraction(middle, SCALE))
    return Performance(
        mean_jct_s=float(Fraction(jobs, SCALE) / instance.arrival_rate_per_s),
        mean_gpus=float(Fraction(gpus, SCALE)),
        mean_jobs=float(Fraction(jobs, SCALE)),
        variance_gpus=float(Fraction(variance, SCALE)),
    )


def objective(instance: BoaInstance, plan: BoaPlan) -> float:
    """Return mean JCT in seconds, or mean GPUs where the JCT is the target."""
    figures = performance(instance, plan)
    return figures.mean_jct_s if instance.target_mean_jct_s is None else figures.mean_gpus


def _plan_terms(instance: BoaInstance, plan: BoaPlan) -> Iterator[Term]:
    classes = {c.id: c for c in instance.classes}
    for class_plan in plan.classes:
        job_class = classes[class_plan.id]
        rate = Fraction(job_class.arrival_rate_per_h) / 3600
        for sequence in class_plan.sequences:
            jobs_per_s = rate * Fraction(sequence.share)
            before = None
            for phase, width in zip(job_class.phases, sequence.gpus, strict=True):
                gpus = Fraction(width)
                low, high = speedup_enclosure(phase.speedup, gpus)
                work = jobs_per_s * Fraction(phase.work_gpu_s)
                yield Term(gpus, work / high, work / low)
                if gpus != before and job_class.rescale_s:
                    rescaling = jobs_per_s * Fraction(job_class.rescale_s)
                    yield Term(gpus, rescaling, rescaling)
                before = gpus


def speedup_enclosure(speedup: Speedup, gpus: Fraction) -> tuple[Fraction, Fraction]:
    """Return rational numbers below and above the speedup at a width (equal where it is rational).

    Parameters
    ----------
    gpus
        A width within the range of the curve; between measured widths a table is interpolated.
    """
    if isinstance(speedup, Table):
        value = _interpolated(speedup, gpus)
        return value, value
    if isinstance(speedup, Amdahl):
        fraction = Fraction(speedup.parallel_fraction)
        value = 1 / (1 - fraction + fraction / gpus)
        return value, value
    return _power_enclosure(gpus, Fraction(speedup.exponent))


def _interpolated(table: Table, gpus: Fraction) -> Fraction:
    points = list(zip(table.gpus, table.speedup, strict=True))
    for k, value in points:
        if k == gpus:
            return Fraction(value)
    above = next(n for n, (k, _) in enumerate(points) if k > gpus)
    (k0, s0), (k1, s1) = points[above - 1], points[above]
    return Fraction(s0) + (gpus - k0) * (Fraction(s1) - Fraction(s0)) / (k1 - k0)


def _power_enclosure(base: Fraction, exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose base ** exponent for a base >= 1 and an exponent in [0, 1]."""
    root = _root(base, exponent.denominator)
    if root is not None:
        return root**exponent.numerator, root**exponent.numerator
    quotient = _DECIMAL.divide(Decimal(base.numerator), Decimal(base.denominator))
    power = _DECIMAL.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    value = Fraction(_DECIMAL.power(quotient, power))
    # Relative errors: of the quotient, of the exponent times ln(base), and of the power itself.
    error = _DECIMAL_ERROR * (3 + base.numerator.bit_length())
    return max(Fraction(1), value * (1 - error)), value * (1 + error)


def _root(base: Fraction, degree: int) -> Fraction | None:
    """Return the root of a rational number where it is rational; the degree is a power of two."""
    if base == 1:
        return base
    while degree > 1:
        roots = isqrt(base.numerator), isqrt(base.denominator)
        if (roots[0] ** 2, roots[1] ** 2) != (base.numerator, base.denominator):
            return None
        base, degree = Fraction(*roots), degree // 2
    return base


def _floor(value: Fraction) -> int:
    return (value.numerator << SCALE_BITS) // value.denominator


def _ceil(value: Fraction) -> int:
    return -((-value.numerator << SCALE_BITS) // value.denominator)


# --- proof of a bound -------------------------------------------------------------------------

# A node is one (phase, width): its lower bounds on the objective's total ("value") and on the use
# of the limited resource, as multiples of 2**-192. Where GPUs are limited, value is mean jobs in
# the system and use is mean GPUs; where the JCT is the target, the two change places.


class Node(NamedTuple):
    """Value and use of one phase at one width, or of one rescaling; rounded down."""

    value: int
    use: int

    def priced(self, price: Fraction) -> int:
        """Value plus price times use, as a multiple of 2**-192 / price.denominator: exact."""
        return self.value * price.denominator + price.numerator * self.use


class Chain(NamedTuple):
    """A class: for every phase its nodes by width, and the rescaling node of every width."""

    phases: list[dict[int, Node]]
    rescaling: dict[int, Node]


def prove(instance: BoaInstance, certificate: BoaCertificate) -> list[BrokenRule]:
    """Return every reason why the certificate does not prove what it states.

    For any price the Lagrangian value (least priced total minus price times limit) is a lower bound
    on the objective of every plan within the limit. For integer widths it is sharpened: all partial
    plans whose priced completion stays below the stated bound are enumerated, and none of them may
    end within the limit and below the bound.
    """
    if certificate.kind == "least":
        return _prove_least(instance, certificate)
    price = Fraction(certificate.price)
    total, unit = priced_total(instance, price), SCALE * price.denominator
    broken = []
    if str(total // price.denominator) != certificate.priced_total:
        text = f"is {total // price.denominator} at the price {certificate.price!r}, not as stated"
        broken.append(BrokenRule("priced-total", text))
    if certificate.bound is None:
        return [*broken, BrokenRule("bound", "the certificate states none")]
    stated = Fraction(certificate.bound) * objective_divisor(instance)
    if stated <= max(Fraction(total, unit) - price * limit(instance), Fraction(0)):
        return broken
    lagrangian = (Fraction(total, unit) - price * limit(instance)) / objective_divisor(instance)
    text = f"the price proves only {float(lagrangian)!r}, {certificate.bound!r} is stated"
    if instance.widths != "integer":
        return [*broken, BrokenRule("bound", text)]
    reason = _counterexample(_chains(instance), price, limit(instance), stated)
    if reason:
        broken.append(BrokenRule("bound", f"{text}; {reason}"))
    return broken


def _prove_least(instance: BoaInstance, certificate: BoaCertificate) -> list[BrokenRule]:
    """Prove that no plan keeps within the limit."""
    least = least_use(instance)
    if str(_floor(least)) != certificate.priced_total:
        return [BrokenRule("priced-total", f"the least use is {_floor(least)}, not as stated")]
    if least <= limit(instance):
        text = f"a plan within the limit may exist: the least use is {float(least)!r}"
        return [BrokenRule("infeasible", text)]
    stated = certificate.least
    if stated is None or Fraction(stated) * limit_divisor(instance) > least:
        return [BrokenRule("infeasible", f"the least use is below the stated {stated!r}")]
    return []


def limit(instance: BoaInstance) -> Fraction:
    """Return the limit on the use: GPUs, or jobs in the system where the JCT is the target."""
    if instance.budget is not None:
        return instance.budget
    return Fraction(instance.target_mean_jct_s or 0) * instance.arrival_rate_per_s


def objective_divisor(instance: BoaInstance) -> Fraction:
    """Return what the value is divided by to give the objective: lambda for JCT (Little's law)."""
    return instance.arrival_rate_per_s if instance.budget is not None else Fraction(1)


def limit_divisor(instance: BoaInstance) -> Fraction:
    """Return what the use is divided by to give the limited resource in the instance's unit."""
    return Fraction(1) if instance.budget is not None else instance.arrival_rate_per_s


def priced_total(instance: BoaInstance, price: Fraction) -> int:
    """Return the least priced total over all plans, rounded down.

    Parameters
    ----------
    price
        Price of one unit of the limited resource; its denominator must be a power of two.

    Returns
    -------
    int
        A multiple of 2**-192 / price.denominator.
    """
    if instance.widths == "continuous":
        return sum(
            _least_priced_share(c, phase, instance.budget is not None, price)
            for c in instance.classes
            for phase in c.phases
        )
    return sum(_completions(chain, price)[0] for chain in _chains(instance))


def least_use(instance: BoaInstance) -> Fraction:
    """Return a lower bound on the use of every plan, sharp to 2**-192 for each term."""
    if instance.widths == "continuous":
        jobs, gpus = (1, 0) if instance.budget is None else (0, 1)
        shares = [
            _least_share(c, phase, jobs, gpus) for c in instance.classes for phase in c.phases
        ]
        return sum(shares, Fraction(0))
    total = sum(
        _completions(Chain(*_swapped(chain)), Fraction(0))[0] for chain in _chains(instance)
    )
    return Fraction(total, SCALE)


def _swapped(chain: Chain) -> tuple[list[dict[int, Node]], dict[int, Node]]:
    phases = [{k: Node(n.use, n.value) for k, n in phase.items()} for phase in chain.phases]
    return phases, {k: Node(n.use, n.value) for k, n in chain.rescaling.items()}


def _chains(instance: BoaInstance) -> list[Chain]:
    flipped = instance.budget is None
    chains = []
    for job_class in instance.classes:
        rate = Fraction(job_class.arrival_rate_per_h) / 3600
        phases = []
        for phase in job_class.phases:
            work = rate * Fraction(phase.work_gpu_s)
            nodes = {}
            for k in phase.speedup.widths:
                jobs = work / speedup_enclosure(phase.speedup, Fraction(k))[1]
                nodes[k] = _node(jobs, k, flipped)
            phases.append(nodes)
        rescaling = rate * Fraction(job_class.rescale_s)
        widths = {k for nodes in phases for k in nodes}
        chains.append(Chain(phases, {k: _node(rescaling, k, flipped) for k in widths}))
    return chains


def _node(jobs: Fraction, gpus: int, flipped: bool) -> Node:
    pair = _floor(jobs), _floor(gpus * jobs)
    return Node(*(reversed(pair) if flipped else pair))


def _completions(chain: Chain, price: Fraction) -> tuple[int, list[dict[int, int]]]:
    """Return the least priced way through a chain, and from after each node to its end."""
    after: list[dict[int, int]] = [dict.fromkeys(chain.phases[-1], 0)]
    for nodes, earlier in zip(chain.phases[:0:-1], chain.phases[-2::-1], strict=True):
        stay = {k: node.priced(price) + after[0][k] for k, node in nodes.items()}
        switch = min(cost + chain.rescaling[k].priced(price) for k, cost in stay.items())
        after.insert(0, {k: min(switch, stay.get(k, switch)) for k in earlier})
    first = chain.phases[0]
    least = min(
        first[k].priced(price) + chain.rescaling[k].priced(price) + after[0][k] for k in first
    )
    return least, after


Labels = list[tuple[int, int]]  # (use, value) of partial plans, none worse than another in both


def _counterexample(
    chains: list[Chain], price: Fraction, limit: Fraction, stated: Fraction
) -> str | None:
    """Look for a plan within the limit whose value is below `stated`; None if there is none."""
    unit = SCALE * price.denominator
    ceiling = stated * unit + price.numerator * SCALE * limit  # on value + price * use
    cutoff = -((-ceiling.numerator) // ceiling.denominator)
    least, after = zip(*(_completions(chain, price) for chain in chains), strict=True)
    labels: Labels = [(0, 0)]
    count = 0
    for position, chain in enumerate(chains):
        rest = sum(least[position + 1 :])
        entering, staying = labels, dict[int, Labels]()
        for e, nodes in enumerate(chain.phases):
            leaving = {}
            for k, node in nodes.items():
                room = cutoff - rest - after[position][e][k]
                extended = _extended(entering, node, chain.rescaling[k], price, room)
                extended += _extended(staying.get(k, []), node, Node(0, 0), price, room)
                if extended:
                    leaving[k] = _undominated(extended)
                    count += len(extended)
            if count > MAX_LABELS:
                return f"more than {MAX_LABELS} partial plans would have to be followed"
            staying = leaving
            entering = _undominated([label for part in leaving.values() for label in part])
        labels = entering
    for use, value in labels:
        if Fraction(use, SCALE) <= limit and Fraction(value, SCALE) < stated:
            return "a plan that may lie within the limit has a smaller objective"
    return None


def _extended(labels: Labels, node: Node, switch: Node, price: Fraction, room: int) -> Labels:
    """Append a node to each partial plan; keep those whose priced value stays below `room`."""
    use, value = node.use + switch.use, node.value + switch.value
    m, d = price.numerator, price.denominator
    room -= value * d + m * use
    return [(u + use, v + value) for u, v in labels if v * d + m * u < room]


def _undominated(labels: Labels) -> Labels:
    kept: Labels = []
    for use, value in sorted(labels):
        if not kept or value < kept[-1][1]:
            kept.append((use, value))
    return kept


# --- continuous widths ------------------------------------------------------------------------


def _least_priced_share(job_class: JobClass, phase: Phase, gpus_limited: bool, price: Fraction) -> int:
    jobs, gpus = (Fraction(1), price) if gpus_limited else (price, Fraction(1))
    least = _least_share(job_class, phase, jobs, gpus)
    scaled = least * SCALE * price.denominator
    return scaled.numerator // scaled.denominator


def _least_share(
    job_class: JobClass, phase: Phase, jobs: Fraction | int, gpus: Fraction | int
) -> Fraction:
    """Return a lower bound on rho * min over k of (jobs + gpus * k) / s(k), over real widths k."""
    rho = Fraction(job_class.arrival_rate_per_h) / 3600 * Fraction(phase.work_gpu_s)
    return rho * _least_ratio(phase.speedup, Fraction(jobs), Fraction(gpus))


def _least_ratio(speedup: Speedup, a: Fraction, c: Fraction) -> Fraction:
    """Return a lower bound on min over k of (a + c k) / s(k)."""
    first, last = Fraction(speedup.widths[0]), Fraction(speedup.widths[-1])

    def at(k: Fraction) -> Fraction:
        return (a + c * k) / speedup_enclosure(speedup, k)[1]

    if isinstance(speedup, Table):  # linear pieces: the ratio is monotone on each
        return min(at(Fraction(k)) for k in speedup.widths)
    if isinstance(speedup, Power):
        alpha = Fraction(speedup.exponent)
        if alpha == 1 or c == 0:
            return at(last)
        return at(min(max(a * alpha / (c * (1 - alpha)), first), last))
    f = Fraction(speedup.parallel_fraction)
    if f == 1 or c == 0:
        return at(last)
    square = a * f / (c * (1 - f))
    if square <= first**2:
        return at(first)
    if square >= last**2:
        return at(last)
    root = Fraction(isqrt(int(a * f * c * (1 - f) * SCALE**2)), SCALE)
    return a * (1 - f) + c * f + 2 * root

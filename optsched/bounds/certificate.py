"""Files of bounds and their certificates: prices of GPU time, of work and of money."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from optsched.bounds.schedules import Schedules  # noqa: TC001 - a field
from optsched.documents.base import Document, Items

if TYPE_CHECKING:
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

Moment = Annotated[int, Field(ge=0, lt=1 << 36)]
Price = Annotated[int, Field(ge=0, lt=1 << 40)]
Figure = Annotated[float, Field(allow_inf_nan=False)]
MOST_PRICE_UW: Final = 10**15


class JctCertificate(Document):
    """Prices of GPU time: whatever they are, they prove what they prove.

    Source: mean busy times of preemptive schedules (Goemans; Goemans, Queyranne, Schulz, Skutella
    and Wang, SIAM J. Discrete Math. 15, 2002), with the capacity relaxed by prices.
    """

    kind: Literal["mean-busy-time"] = "mean-busy-time"
    unit_us: Annotated[int, Field(ge=1, le=10**12, description="Microseconds in a unit of time.")]
    price_bits: Annotated[
        int, Field(ge=16, le=60, description="A price of 1 is 2 to the power of so many.")
    ]
    edges: Items[Moment] = Field(
        min_length=1, description="Where slots begin and end, ascending; GPUs are free outside."
    )
    prices: Items[Price] = Field(
        description="Of each slot, in units of time of all jobs' JCT per GPU and unit of time."
    )
    thresholds: Items[Moment] = Field(
        description="By job: it takes the time at which moment and price together cost less; 0 for "
        "a job whose bound is its earliest end."
    )


class GangCertificate(Document):
    """Prices of a gang's time by its width: whatever they are, they prove what they prove.

    Source: Lagrangian relaxation of the time-indexed formulation with completions in it, and of
    which gangs fit together (configurations; Gilmore and Gomory, Operations Research 9, 1961).
    """

    kind: Literal["completion-by-gangs"] = "completion-by-gangs"
    unit_us: Annotated[int, Field(ge=1, le=10**12, description="Microseconds in a unit of time.")]
    price_bits: Annotated[
        int, Field(ge=16, le=60, description="A price of 1 is 2 to the power of so many.")
    ]
    edges: Items[Moment] = Field(
        min_length=1, description="Where slots begin and end, ascending; GPUs are free outside."
    )
    widths: Items[Annotated[int, Field(ge=1, le=1 << 20)]] = Field(
        description="Of gangs that have prices, ascending; jobs of others count until their "
        "earliest end alone."
    )
    prices: Items[Items[Price]] = Field(
        description="By width and slot, in units of time of all jobs' JCT per gang and unit of "
        "time."
    )


class MakespanCertificate(Document):
    """Values of a gang's time by its width: whatever they are, they prove what they prove.

    Source: the linear programming dual of which gangs fit together (configurations; Gilmore and
    Gomory, Operations Research 9, 1961).
    """

    kind: Literal["gangs-at-once"] = "gangs-at-once"
    since_us: Annotated[
        int, Field(ge=0, lt=1 << 62, description="Jobs that are released then or later count.")
    ]
    widths: Items[Annotated[int, Field(ge=1, le=1 << 20)]] = Field(
        min_length=1, description="Of gangs that are worth something, ascending."
    )
    values: Items[Price] = Field(description="By width, what a gang is worth while it is held.")


class EnergyCertificate(Document):
    """Prices of work by type of job, a bill of its energy: whatever they are, they prove something.

    Source: the linear programming dual of groups that may change at any time (fluid schedules).
    """

    kind: Literal["price-of-work"] = "price-of-work"
    prices_uw: Items[Annotated[int, Field(ge=0, le=MOST_PRICE_UW)]] = Field(
        description="Microwatts of each GPU while its job gets on as if alone, by type of job: by "
        "model, or by utilisation where the scenario knows no model; in the order of the trace."
    )


class TradeCertificate(Document):
    """Prices of GPU time, each with the line that it proves of mean JCT by GPU-hours.

    Source: the Lagrangian dual of BOA (arXiv 2602.01404) on the sample path: with a price on GPU
    time each job is by itself.
    """

    kind: Literal["price-of-gpu-time"] = "price-of-gpu-time"
    prices_ppm: Items[Annotated[int, Field(ge=0, le=MOST_PRICE_UW)]] = Field(
        description="Millionths of a second of all jobs' JCT for each GPU-second."
    )
    jct_mean_s: Items[Figure] = Field(
        description="By price, a bound of the mean JCT and the priced GPU time of a job."
    )

    def jct_mean_s_at(self, gpu_hours: float, jobs: int) -> float:
        """Return what the mean JCT of so many jobs is at least with so many GPU-hours, in s."""
        return max((jct_s for jct_s, _ in self._lines_at(gpu_hours, jobs)), default=0.0)

    def price_ppm_at(self, gpu_hours: float, jobs: int) -> int:
        """Return the price above 0 whose line is the greatest there; 0 if there is none."""
        priced = [line for line in self._lines_at(gpu_hours, jobs) if line[1]]
        return max(priced, default=(0.0, 0))[1]

    def _lines_at(self, gpu_hours: float, jobs: int) -> list[tuple[float, int]]:
        spent_s = gpu_hours * 3600 / max(1, jobs)
        lines = zip(self.prices_ppm, self.jct_mean_s, strict=True)
        return [(jct_s - ppm / 1e6 * spent_s, ppm) for ppm, jct_s in lines]


class StartsCertificate(Document):
    """What a node that is ready is worth more than none, by time, with the line that it proves.

    Source: prices of GPU time that move with time, so that no rent of a node earns its start;
    docs/math/bounds.md, starts of nodes.
    """

    kind: Literal["worth-of-ready-nodes"] = "worth-of-ready-nodes"
    price_ppm: Annotated[int, Field(ge=0, le=MOST_PRICE_UW)] = Field(
        description="Millionths of a second of all jobs' JCT for each GPU-second that is billed."
    )
    since_us: Annotated[int, Field(ge=0, lt=1 << 62, description="The first edge of a slot.")]
    slot_us: Annotated[int, Field(ge=1, le=10**12, description="Microseconds in a slot.")]
    worth_us: Items[Price] = Field(
        min_length=2,
        description="At the edges of slots, microseconds of all jobs' JCT for each GPU of a ready "
        "node; linear between them, and 0 at both ends and outside.",
    )
    jct_mean_s: Figure = Field(
        description="A bound of the mean JCT and the priced bill of a job, in seconds."
    )


class Bounds(Document):
    """What no schedule of a class can be below, with certificates.

    Examples
    --------
    >>> import optsched
    >>> bounds = optsched.bound("pal-64")
    >>> bounds.class_of_schedules
    'preemptive, clairvoyant; no trials; every job retried to its end'
    """

    schema_id: Literal["optsched/bound/1"] = Field(default="optsched/bound/1", alias="schema")
    scenario: str
    scenario_sha256: str
    trace: str
    trace_sha256: str
    jobs: Annotated[int, Field(ge=0)]
    seed: Annotated[int, Field(ge=0)] = Field(default=0, description="That drew the trace.")
    schedules: Schedules
    class_of_schedules: str = Field(description="In words.")
    jct_mean_s: Figure | None = Field(description="No schedule's mean JCT is below; None if none.")
    makespan_s: Figure = Field(description="No schedule's makespan is below.")
    energy_kwh: Figure | None = Field(
        default=None,
        description="No schedule's energy is below, PUE included; None without watts, and where "
        "jobs of too many types share GPUs.",
    )
    rented_gpu_hours: Figure | None = Field(
        default=None,
        description="No schedule pays for fewer GPU-hours; None where jobs of too many types "
        "share GPUs.",
    )
    cost_usd: Figure | None = Field(
        default=None, description="No schedule costs less; None without prices."
    )
    jct: Annotated[JctCertificate | GangCertificate, Field(discriminator="kind")] | None = None
    makespan: MakespanCertificate | None = Field(
        default=None, description="None where earliest ends and GPU time prove as much."
    )
    trade: TradeCertificate | None = Field(
        default=None, description="Mean JCT by GPU-hours; None where no job is elastic."
    )
    starts: Items[StartsCertificate] = Field(
        default=(), description="More of mean JCT by GPU-hours that are billed for rented nodes."
    )
    energy: EnergyCertificate | None = None

    def jct_mean_s_at_bill(self, gpu_hours: float) -> float:
        """Return what the mean JCT is at least where so many GPU-hours are billed, in s."""
        spent_s = gpu_hours * 3600 / max(1, self.jobs)
        lines = [line.jct_mean_s - line.price_ppm / 1e6 * spent_s for line in self.starts]
        trade = 0.0 if self.trade is None else self.trade.jct_mean_s_at(gpu_hours, self.jobs)
        return max(*lines, trade, self.jct_mean_s or 0.0, 0.0)


def scenario_digest(scenario: Scenario) -> str:
    """Return the digest of a scenario's document, its trace aside: that has a digest of its own."""
    document = scenario.model_dump(mode="json", by_alias=True, exclude={"trace"})
    return hashlib.sha256(repr(_sorted(document)).encode()).hexdigest()


def trace_digest(trace: Trace) -> str:
    """Return the digest of what bounds depend on in a trace."""
    digest = hashlib.sha256()
    for numbers in (trace.submit_us, trace.gpus, trace.run_us, trace.status):
        digest.update(repr(numbers.tolist()).encode())
    digest.update(repr((trace.ids, trace.model, trace.queue)).encode())
    for job in sorted(trace.failures):
        digest.update(repr((job, [(f.reason, f.run_us) for f in trace.failures[job]])).encode())
    return digest.hexdigest()


def _sorted(document: Any) -> Any:
    if isinstance(document, dict):
        return [(key, _sorted(value)) for key, value in sorted(document.items())]
    return [_sorted(value) for value in document] if isinstance(document, list) else document

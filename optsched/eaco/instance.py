"""Data of the EaCO problem: GPUs and nodes with their watts, jobs, interference and tolerances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from optsched.cluster.power import GpuPower, NodePower, Share
from optsched.documents.base import Entries, Items
from optsched.eaco.faults import instance_faults
from optsched.eaco.interference import GroupRates, Interference, Name
from optsched.eaco.kept_by_tables import KeptByTables
from optsched.instance import Document, Fault, Instance, NonNegative, Positive

Count = Annotated[int, Field(ge=1, le=100_000)]
Rate = Annotated[float, Field(ge=0.001, le=1, allow_inf_nan=False)]
Slowdown = Annotated[float, Field(ge=1, le=1e6, allow_inf_nan=False)]
Moment = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]

MOST_JOBS_PER_GPU = 8

_RATES = KeptByTables(most_tables=4, most_figures=1_000)


class PowerLevel(Document):
    """A power limit of a GPU, with what it does to speed and watts.

    That it acts alike on jobs alone and side by side is an assumption: no measurements of groups
    under power limits are public. Single jobs: ml-energy/zeus @75a8b939.
    """

    id: Name
    limit_w: Positive = Field(description="Watts that one GPU does not exceed.")
    rate: Rate = Field(description="Speed relative to full power; all rates are multiplied by it.")
    power: Rate = Field(description="Watts relative to full power, before the limit.")


class GpuType(Document):
    """A kind of GPU."""

    id: Name
    memory_gb: Positive
    power: GpuPower
    levels: Items[PowerLevel] = Field(
        default=(), description="Power limits that a group may run at, besides full power."
    )


class Nodes(Document):
    """Equal nodes, numbered from 0; the first `on` of them are on now."""

    id: Name
    gpu: Name = Field(description="Id of the GPU type.")
    gpus: Count = Field(description="GPUs of each node.")
    count: Count = Field(description="How many nodes there are.")
    on: Annotated[int, Field(ge=0, le=100_000)] | None = Field(
        default=None, description="How many are on now, all if not given; others must be woken."
    )
    power: NodePower

    @property
    def awake(self) -> int:
        """How many nodes are on now."""
        return self.count if self.on is None else self.on


class JobType(Document):
    """An application as it runs alone; interference is known by the types of a group."""

    id: Name
    utilisation: Share = Field(description="Mean utilisation of each of its GPUs, alone.")
    memory_gb: NonNegative = Field(default=0.0, description="Memory on each of its GPUs.")
    speeds: Entries[Name, Positive] = Field(
        default={},
        description="By GPU type the speed alone, relative to the GPU that `work_s` is stated for; "
        "1 where not given.",
    )


class Job(Document):
    """A gang job; jobs of a group share the same GPUs, so they have equal gang sizes."""

    id: Name
    type: Name
    gpus: Count = Field(default=1, description="Size of the gang.")
    work_s: Positive = Field(description="Seconds that are left to run, alone at full power.")
    max_slowdown: Slowdown | None = Field(
        default=None, description="Greatest slowdown by sharing and power limits; any if not given."
    )
    deadline_s: Moment | None = Field(
        default=None,
        description="Seconds from now within which it must end, if all of its group ran on "
        "throughout. If it cannot even alone at full power, wherever it is put, it is due at the "
        "earliest end that it can have alone, and reported late.",
    )
    migration_s: NonNegative = Field(
        default=62.0,
        description="If it runs now: seconds, alone, that a move to other GPUs adds to its work. "
        "62 is the mean that Tiresias measured.",
    )
    waiting_penalty_kwh: Positive | None = Field(
        default=None, description="Cost of waiting for one epoch; if not given, it must not wait."
    )
    work_credit_w: Positive | None = Field(
        default=None,
        description="Objective 'epoch': joules that a second of its work is worth; if not given, "
        "what it takes alone.",
    )
    training_epoch_s: Positive | None = Field(
        default=None, description="Objective 'eaco': seconds of one training epoch, alone."
    )


class Running(Document):
    """A set of GPUs on which jobs run now; each of them may stay or be moved."""

    id: Name
    nodes: Name
    node: Annotated[int, Field(ge=0, description="Number of the node, the first of several.")] = 0
    jobs: Items[Name] = Field(min_length=1)


class EacoInstance(Instance):
    """Which jobs share GPUs: least energy to finish the work, within every tolerance.

    A plan parts the jobs into groups, each on GPUs of its own. **Rates** in a group are those of
    `interference`, times the level's. The **slowdown** of a job is 1 / its rate while all of its
    group run: relative to running alone on such GPUs at full power. A job's work takes work_s /
    speed on a GPU type, plus `migration_s` if it runs now and is moved. All jobs of a group start
    at once and go on, as each ends, as the smaller group: in a **phase** with active jobs A every
    job runs at its rate in A until the first ends. If the rates of A are not known, rates and watts
    stay as in the phase before. The **run time** of a group is the sum of its phases. **Watts** of
    each of its GPUs in a phase: as measured for the types of A, else by the power model at the
    utilisation measured for A, else at the sum over A of utilisation x rate; at a level, times its
    `power`, but at most its `limit_w`. Waking a node costs energy, but no job's time.

    Groups of two or more keep `max_jobs_per_gpu`, `memory_headroom` and `utilisation_limit`.
    Tolerances bind every group; a job alone at full power has slowdown 1.

    All energies are above those of a cluster whose nodes all sleep. Objectives:

    - ``run-to-completion``: the **energy** of a group is the sum over its phases of seconds x gang
      size x (watts of a GPU + (base_w - sleep_w) / GPUs of a node): it pays for its share of the
      node while it runs. To that come the energy of waking nodes, wake_s x (wake_w - sleep_w), and
      for a waiting job its least energy alone (moved, if it runs now) and its penalty.
    - ``epoch``: the energy of the next `epoch_s` seconds, all groups whole throughout: GPUs, nodes
      in use with base_w - sleep_w and their empty GPUs with bare_w, waking; less for each job
      work_credit_w x the work it gets done; plus penalties. Not meant for jobs that end before.
    - ``eaco``: equation (1) of the paper, energy_weight x (kWh as in run-to-completion) +
      (1 - energy_weight) x (mean hours per training epoch, training_epoch_s x slowdown / speed).

    In kWh; with a price or carbon intensity, in USD or grams of CO2.

    Source: Haghshenas and Hashemi, "EaCO", arXiv 2412.08294, for problem and equation (1).

    Examples
    --------
    >>> import optsched
    >>> four = optsched.read("eaco/paper-four")
    >>> strict = four.changed({"jobs.*.max_slowdown": 1.0})  # nobody may be slowed down
    >>> [round(optsched.solve(instance).objective, 2) for instance in (four, strict)]
    [93.66, 161.67]
    """

    problem: ClassVar[str] = "eaco"
    example: ClassVar[str] = "eaco/paper-four"

    schema_id: Literal["optsched/eaco/1"] = Field(default="optsched/eaco/1", alias="schema")
    objective: Literal["run-to-completion", "epoch", "eaco"] = "run-to-completion"
    epoch_s: Positive | None = Field(default=None, description="Objective 'epoch': its length.")
    energy_weight: Share | None = Field(
        default=None, description="Objective 'eaco': weight of a kWh; alpha in the paper."
    )
    price_usd_per_kwh: Positive | None = None
    carbon_g_per_kwh: Positive | None = None
    max_jobs_per_gpu: Annotated[int, Field(ge=1, le=MOST_JOBS_PER_GPU)] = 4
    memory_headroom: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = Field(
        default=0.0,
        description="Share of a GPU's memory that a group of two or more leaves free; estimates "
        "add up to within 17 %.",
    )
    utilisation_limit: Positive | None = Field(
        default=None, description="Greatest utilisation of a group of two or more."
    )
    power_cap_w: Positive | None = Field(
        default=None, description="Greatest watts of the whole cluster, at any time."
    )
    gpu_types: Items[GpuType] = Field(min_length=1)
    nodes: Items[Nodes] = Field(min_length=1)
    types: Items[JobType] = Field(min_length=1)
    jobs: Items[Job] = Field(min_length=1)
    running: Items[Running] = ()
    interference: Interference = Interference()

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the faults that concern several fields."""
        parts: list[tuple[tuple[str | int, ...], type[Any], Any]] = [
            (("interference",), Interference, document.get("interference"))
        ]
        for key, part in (("gpu_types", GpuPower), ("nodes", NodePower)):
            entries = document.get(key)
            for n, entry in enumerate(entries if isinstance(entries, list | tuple) else ()):
                if isinstance(entry, Mapping):
                    parts.append(((key, n, "power"), part, entry.get("power")))
        for path, part, inner in parts:
            if isinstance(inner, Mapping):
                faults = part.document_faults(inner)
                yield from (((*path, *tail), text) for tail, text in faults)
        yield from instance_faults(document)

    @property
    def unit(self) -> str:
        """Unit of the objective."""
        if self.objective == "eaco":
            return "weighted kWh and h"
        if self.price_usd_per_kwh is not None:
            return "USD"
        return "kWh" if self.carbon_g_per_kwh is None else "g CO2"

    @property
    def per_kwh(self) -> Fraction:
        """What one kWh costs in the unit of the objective."""
        price = self.price_usd_per_kwh
        return Fraction((price if price is not None else self.carbon_g_per_kwh) or 1)

    @property
    def idle_floor_w(self) -> Fraction:
        """Watts of the cluster while all of its nodes sleep; no power cap below can be kept."""
        return sum((n.count * Fraction(n.power.sleep_w) for n in self.nodes), Fraction(0))

    @cached_property
    def rates(self) -> dict[str, GroupRates]:
        """Rates of the groups, by GPU type; remembered for other jobs on the same tables, too."""
        kept = _RATES.of(self.interference, self.types, self.gpu_types).of()
        utilisation = {t.id: t.utilisation for t in self.types}
        for gpu in self.gpu_types:
            if gpu.id not in kept:
                kept[gpu.id] = GroupRates(self.interference, gpu.id, utilisation)
        return kept

    @cached_property
    def location_of(self) -> dict[str, Running]:
        """Where each running job is now, by its id."""
        return {job: place for place in self.running for job in place.jobs}

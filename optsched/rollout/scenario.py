"""Scenarios: a cluster, the jobs that come to it, and what running them costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from optsched.boa.instance import ByType, Phase
from optsched.cluster.power import GpuPower, NodePower, Share
from optsched.cluster.profile import Profile
from optsched.cluster.topology import Name, Topology
from optsched.documents.base import Entries, Items
from optsched.eaco.interference import Interference
from optsched.instance import (
    CheckedDocument,
    Document,
    Fault,
    NamedDocument,
    NonNegative,
    Positive,
    html_rows,
)
from optsched.rollout.batch_sizes import BatchSizes
from optsched.rollout.downtime import Downtime
from optsched.rollout.faults import scenario_faults
from optsched.rollout.node_groups import ONLY_TYPE, NodeGroup, pool_of
from optsched.rollout.scenario_parts import (
    Beliefs,
    Costs,
    Estimates,
    Events,
    Neighbours,
    PowerModel,
    Rented,
    Retries,
    Sharing,
)
from optsched.rollout.spread import Ladder, Spread

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class Model(Document):
    """What is trained: how its speed depends on width, place, GPU and neighbours."""

    application_class: Name | None = Field(
        default=None, description="A class of the profile; if none, all GPUs are alike to it."
    )
    locality: Items[Positive] = Field(
        default=(),
        description="Factor on its iteration time where its GPUs meet at each level, from the "
        "lowest up; the scenario's if not given.",
    )
    phases: Items[Phase] = Field(
        default=(),
        description="Stretches of its work with speedups by width, as in BOA; a job of the trace "
        "does all of them, scaled to its run time. If none, its width is fixed. Speedups by type "
        "name the same types in all phases.",
    )
    gpu_speeds: Entries[Name, Positive] = Field(
        default={},
        description="By GPU type its speed there, in any unit that all share; it cannot run on "
        "those left out. If none, and phases have no speedups by type, all types are alike to it.",
    )
    batches: BatchSizes | None = Field(
        default=None,
        description="Batch sizes. If given, the speedups of `phases` are of throughput, and a job "
        "gets on at goodput; if none, it gets on at the speedups given.",
    )
    rescale_s: NonNegative | None = Field(
        default=None, description="Seconds lost at a start or change of width; else `costs`."
    )
    utilisation: Share = Field(default=1.0, description="Of each of its GPUs, alone.")
    memory_gb: NonNegative = Field(default=0.0, description="Memory on each of its GPUs.")
    max_slowdown: Positive | None = Field(
        default=None, description="Greatest slowdown by sharing that its users bear."
    )

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """The types of GPUs that it runs on; empty if all are alike to it."""
        if self.phases and isinstance(self.phases[0].speedup, ByType):
            return tuple(self.phases[0].speedup.of_type)
        return tuple(self.gpu_speeds)


class TraceSource(Document):
    """Where the jobs come from: a generator with a seed, or a file."""

    generator: Name | None = Field(default=None, description="See `optsched trace generate`.")
    jobs: Count | None = None
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    options: Entries[str, float | int | str | bool] = Field(
        default={}, description="Of the generator, such as `load`; or the format, such as `map`."
    )
    file: Name | None = Field(default=None, description="Relative to the scenario's file.")
    format: Name | None = Field(default=None, description="See `optsched trace import`.")
    workload: int | Name | None = Field(default=None, description="Of several in one file.")
    drop_larger: bool = Field(
        default=False,
        description="Leave out the jobs that ask for more GPUs than they can ever have: than there "
        "are, or than the quota of their queue.",
    )


class Scenario(NamedDocument):
    """A cluster, a trace of jobs and the physics between them: everything of a rollout but policy.

    Source of the world it imitates: Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters
    for DNN Training Workloads", USENIX ATC 2019.

    Examples
    --------
    >>> import optsched
    >>> scenario = optsched.read_scenario("philly-small").changed({"trace.jobs": 50})
    >>> optsched.simulate(scenario, "fifo").metrics["jobs"]
    50
    """

    schema_id: Literal["optsched/scenario/1"] = Field(default="optsched/scenario/1", alias="schema")
    description: str = Field(default="", description="What it imitates, in a sentence or two.")
    policies: Items[Name] = Field(
        default=("fifo",), description="Those that `compare` runs if none is named."
    )
    nodes: Count | Items[NodeGroup] | None = Field(
        default=None,
        description="How many equal nodes, with gpus_per_node; or groups of nodes of unlike sizes.",
    )
    gpus_per_node: Count | None = None
    topology: Topology | None = Field(default=None, description="Instead of the two above.")
    reference_gpu_type: Name | None = Field(
        default=None,
        description="GPU type that run times of the trace are told of; if none, that of the first "
        "group of nodes.",
    )
    profile: Profile | None = Field(
        default=None, description="What GPUs are like; policies are told so, but for `beliefs`."
    )
    events: Events | None = Field(default=None, description="Passing slowdowns of nodes.")
    locality: Items[Positive] = Field(
        default=(), description="Default factor at each level, from the lowest up; 1 if none."
    )
    spread: Spread | None = Field(
        default=None,
        description="Speed by the number of servers; {} is that of ATC'19. No effect if none.",
    )
    reference_place: Literal["best", "one-node", "recorded"] = Field(
        default="best",
        description="Where run times of the trace are told of, which `locality` and `spread` are "
        "relative to: the best place that so many GPUs can have in this cluster; or one node, as "
        "in simulators where a gang that is larger than a node always pays; or where the jobs ran "
        "when they were recorded: then run times stay as they are, and distance and neighbours "
        "lower only how much GPUs compute.",
    )
    recorded_speed: Ladder | None = Field(
        default=None,
        description="By GPUs asked for, at what speed the jobs ran when their busy shares were "
        "recorded, relative to alone at the best place: so much more, at most 1, they are busy "
        "there. As recorded if none.",
    )
    neighbours: Neighbours = Neighbours()
    sharing: Sharing = Sharing()
    models: Entries[Name, Model] = Field(default={}, description="By name, as the trace has them.")
    trace: TraceSource
    epoch_s: Positive = Field(default=60.0, description="A policy is called every such interval,")
    decide_on: Items[Literal["arrival", "finish"]] = Field(
        default=("arrival", "finish"), description="and after these events."
    )
    finish_at_epochs: bool = Field(
        default=False,
        description="Whether a job that is done keeps its GPUs, and its JCT runs, to the end of "
        "the epoch, as in round-based simulators.",
    )
    costs: Costs = Costs()
    retries: Retries = Retries()
    downtime: Items[Downtime] = Field(
        default=(), description="Planned drains and outages of nodes that are not rented."
    )
    rented: Rented | None = Field(default=None, description="If none, all nodes are there.")
    budget_gpus: Positive | None = Field(
        default=None, description="Time-average GPUs that may be rented, for policies of BOA."
    )
    price_usd_per_gpu_h: NonNegative = 0.0
    budget_usd_per_h: Positive | None = Field(
        default=None,
        description="Time-average of what may be billed, where groups of nodes have prices.",
    )
    quotas: Entries[str, Count] = Field(
        default={}, description="GPUs that each queue (virtual cluster) may hold at once."
    )
    lends_quotas: bool = Field(default=False, description="Whether queues lend idle ones.")
    priorities: Entries[str, Annotated[float, Field(allow_inf_nan=False)]] = Field(
        default={},
        description="Of the jobs of each queue, for policies that know priorities: higher comes "
        "first; 0 where none is given.",
    )
    power: PowerModel | None = None
    estimates: Estimates = Estimates()
    beliefs: Beliefs = Field(
        default=Beliefs(), description="What policies believe of it, where that is not the truth."
    )
    steady_s: Annotated[
        tuple[NonNegative, NonNegative] | None,
        Field(
            description="Window of the metrics `steady_...`, from and to; if none, from the first "
            "submission to the last."
        ),
    ] = None
    end_s: Positive | None = Field(
        default=None, description="The rollout stops then; jobs that have not ended are unfinished."
    )

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the faults that concern several fields; bears fields of wrong types."""
        parts: dict[tuple[str, ...], type[CheckedDocument]] = {
            ("topology",): Topology,
            ("profile",): Profile,
            ("beliefs", "profile"): Profile,
            ("sharing", "interference"): Interference,
            ("power", "gpu"): GpuPower,
            ("power", "node"): NodePower,
        }
        for path, part in parts.items():
            inner: Any = document
            for key in path:
                inner = inner.get(key) if isinstance(inner, Mapping) else None
            if isinstance(inner, Mapping):
                yield from (((*path, *tail), text) for tail, text in part.document_faults(inner))
        yield from scenario_faults(document)

    @cached_property
    def gpus(self) -> int:
        """How many GPUs the cluster has, at most."""
        if self.topology is not None:
            return len(self.topology.gpus)
        return sum(self.node_sizes)

    @property
    def nodes_change(self) -> bool:
        """Whether there are times when some node cannot be used."""
        return self.rented is not None or bool(self.downtime)

    @property
    def has_prices(self) -> bool:
        """Whether groups of nodes have prices of their own."""
        return any(group.usd_per_gpu_h is not None for group in self.node_groups)

    @property
    def node_groups(self) -> Sequence[NodeGroup]:
        """Groups of nodes; none where these are told by their number, or by a topology."""
        return () if isinstance(self.nodes, int) or self.nodes is None else self.nodes

    @cached_property
    def node_sizes(self) -> list[int]:
        """GPUs of each node of a cluster without a topology."""
        if isinstance(self.nodes, int):
            return [self.gpus_per_node or 0] * self.nodes
        return [group.gpus for group in self.node_groups for _ in range(group.count)]

    @cached_property
    def node_types(self) -> list[str]:
        """Type of the GPUs of each node; those on spot are a pool of another name (`pool_of`)."""
        if self.topology is not None:
            return [ONLY_TYPE] * len(set(self.topology.ancestors[:, 0].tolist()))
        if isinstance(self.nodes, int) or self.nodes is None:
            return [ONLY_TYPE] * (self.nodes or 0)
        pools = ((pool_of(g.gpu_type or ONLY_TYPE, g.market), g.count) for g in self.node_groups)
        return [pool for pool, count in pools for _ in range(count)]

    @property
    def pool_types(self) -> dict[str, str]:
        """By name of `node_types` the type of the GPUs, whatever their market."""
        known = ((g.gpu_type or ONLY_TYPE, g.market) for g in self.node_groups)
        return {pool_of(*each): each[0] for each in known} or {ONLY_TYPE: ONLY_TYPE}

    def _repr_html_(self) -> str:
        trace = self.trace.generator or self.trace.file or ""
        rows = {
            "scenario": self.name,
            "GPUs": str(self.gpus),
            "trace": trace,
            "epoch": f"{self.epoch_s:g} s",
            "what it is": self.description,
        }
        return html_rows(rows)

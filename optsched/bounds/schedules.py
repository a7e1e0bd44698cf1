"""The class of schedules that a bound holds for, and the physics that it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from optsched.documents.base import Document

if TYPE_CHECKING:
    from optsched.rollout.scenario import Scenario

PHYSICS: Final = {
    "scenario": {
        *("nodes", "gpus_per_node", "topology", "profile", "events", "locality", "spread"),
        *("reference_place", "neighbours", "sharing", "models", "trace", "epoch_s", "decide_on"),
        *("finish_at_epochs", "costs", "retries", "downtime", "rented", "quotas", "lends_quotas"),
        "power",
    },
    "models": {
        *("application_class", "locality", "phases", "rescale_s"),
        *("utilisation", "memory_gb", "max_slowdown"),
    },
    "nodes": {"count", "gpus", "domain"},
    "sharing": {"max_jobs_per_gpu", "memory_gb", "interference"},
    "costs": {
        *("start_s", "restore_s", "checkpoint_s", "rescale_s", "checkpoint_every_s"),
        "stop_loses_work",
    },
    "retries": {"delay_s", "limits"},
    "neighbours": {"shared_server"},
    "rented": {"provision_s", "at_start"},
    "power": {"gpu", "node", "idle_nodes", "pue", "price_usd_per_kwh"},
    "events": {"application_class", "mean_between_s", "mean_length_s", "factor"},
    "spread": {"servers", "domains"},
}
"""By part of a scenario the fields that a bound was thought through for."""

WITHOUT_EFFECT: Final = {
    "scenario": {
        *("schema_id", "name", "description", "source", "policies", "recorded_speed", "priorities"),
        *("budget_gpus", "price_usd_per_gpu_h", "estimates", "steady_s", "end_s"),
    },
}
"""Those that change nothing that is bounded: names, money, and what policies are told."""


class UnknownPhysics(ValueError):
    """A scenario has something of which nobody has thought through what it does to bounds."""


class Schedules(Document):
    """Which schedules a bound is of: all that the engine allows in a scenario, and no others.

    Every schedule may stop, move and resume jobs, knows the future, and ends all jobs. Elastic
    jobs may have any of their widths, and jobs may share GPUs, where the scenario lets them.

    Attributes
    ----------
    trials
        Whether schedules may try gangs on one GPU first, as `pre_run` of a decision does.
    gives_up
        Whether they may leave a job that failed as it is, with a retry left.
    within_slowdowns
        Whether no job is ever beside others that make it slower than its users bear, as the
        `max_slowdown` of its model has it.
    moves
        Whether running jobs may move to as many other GPUs, by which they could cut the overhead
        of a start or of a change of width short.
    """

    trials: bool = False
    gives_up: bool = False
    within_slowdowns: bool = False
    moves: bool = True

    def words(self, scenario: Scenario) -> str:
        """Return in words which schedules they are in a scenario."""
        parts = ["preemptive, clairvoyant"]
        if any(model.phases for model in scenario.models.values()):
            parts.append("any width of elastic jobs")
        most = scenario.sharing.max_jobs_per_gpu
        if most > 1:
            parts.append(f"up to {most} jobs on a GPU")
        if self.within_slowdowns:
            parts.append("no job slower beside others than its users bear")
        if scenario.rented is not None:
            parts.append("any number of the nodes that may be rented")
        if not self.moves:
            parts.append("no moves to as many other GPUs")
        parts.append("with trials on one GPU" if self.trials else "no trials")
        parts.append("jobs given up" if self.gives_up else "every job retried to its end")
        return "; ".join(parts)


def moves_matter(scenario: Scenario) -> bool:
    """Return whether a move could cut short what a start or a change of width costs a job.

    Without a `rescale_s` of its model a start costs a restore at most, and a move no less.
    """
    costs = scenario.costs
    own = (model.rescale_s for model in scenario.models.values() if model.rescale_s is not None)
    return max(own, default=0.0) > costs.restore_s + costs.checkpoint_s


def refuse_unknown_physics(scenario: Scenario) -> None:
    """Refuse a scenario with fields that the bounds do not know; nothing is ignored.

    Raises
    ------
    UnknownPhysics
        With the first field.
    """
    for where, part in _parts(scenario):
        place = where.partition("[")[0]
        known = PHYSICS[place] | WITHOUT_EFFECT.get(place, set())
        for name, field in type(part).model_fields.items():
            value = getattr(part, name)
            if name not in known and value != field.get_default(call_default_factory=True):
                path = name if where == "scenario" else f"{where}.{name}"
                raise UnknownPhysics(
                    f"scenario '{scenario.name}': no bound is known for worlds with `{path}`"
                )


def _parts(scenario: Scenario) -> list[tuple[str, Document]]:
    parts: list[tuple[str, Document]] = [("scenario", scenario)]
    parts += [(f"models[{name}]", model) for name, model in scenario.models.items()]
    if not isinstance(scenario.nodes, int):
        parts += [(f"nodes[{n}]", group) for n, group in enumerate(scenario.nodes or ())]
    for name in (
        "sharing",
        "costs",
        "retries",
        "neighbours",
        "rented",
        "events",
        "spread",
        "power",
    ):
        part = getattr(scenario, name)
        if part is not None:
            parts.append((name, part))
    return parts

"""Whether a decision may be applied, and what of it is a change."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, NamedTuple

from optsched.rollout.engine.decision import InvalidDecision
from optsched.rollout.engine.rules.gpu_rules import GpuRules
from optsched.rollout.engine.state import DELAYED, ENDED, RUNNING, TRIAL, WAITING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from optsched.rollout.engine.decision import Decision
    from optsched.rollout.engine.state import Relocation, State
    from optsched.rollout.physics.physics import Physics
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

    Gpus = tuple[int, ...]


MAY_BE_PLACED = (WAITING, RUNNING)
EXPECTED = "Decision(place={job: [GPU, ...]}, stop=[job, ...], rent=nodes)"


class Changes(NamedTuple):
    """What a valid decision changes: jobs in the order in which it names them.

    Attributes
    ----------
    are_checked
        Whether the GPUs are known to be free. If not, `Exchange` tells.
    """

    stops: list[int]
    places: list[Relocation]
    trials: list[tuple[int, Gpus]]
    are_checked: bool

    @property
    def wanted(self) -> list[tuple[int, Gpus]]:
        """The GPUs that jobs are to have."""
        return [*((job, gpus) for job, gpus, _, _ in self.places), *self.trials]


class DecisionRules:
    """The rules of a scenario. None of the checks changes anything.

    `held` is kept by others: the GPUs that each queue with a quota holds now.
    """

    def __init__(
        self,
        scenario: Scenario,
        trace: Trace,
        state: State,
        physics: Physics,
        held: Mapping[str, int],
    ) -> None:
        self.state, self.physics, self.trace = state, physics, trace
        self.gpus = GpuRules(scenario, trace, state, physics)
        self._job = self.gpus.named
        self.quotas, self.held = dict(scenario.quotas), held
        self.lends = scenario.lends_quotas
        self.is_rented = scenario.rented is not None
        sharing = scenario.sharing
        self.is_shared = sharing.max_jobs_per_gpu > 1
        self.asks_physics = self.is_shared or sharing.memory_gb is not None
        self.types = types = state.cluster.types
        self.widths: dict[tuple[str, str], Collection[int]] = {
            (name, kind): {n for phase in types.phases(name, kind) for n in phase.curve.widths}
            for name in scenario.models
            for kind in types.runs_on(name)
        }

    def changes(self, decision: Decision) -> Changes:
        """Return what a decision changes, if it breaks no rule that `Exchange` does not see.

        Raises
        ------
        InvalidDecision
            If it breaks a rule, or its parts are not of their types.
        """
        asks = self.state.closed > 0 or bool(decision.pre_run)
        try:
            return self._changes(decision, are_checked=asks)
        except (InvalidDecision, TypeError, AttributeError):
            return self.checked(decision)  # which names the first rule that is broken

    def checked(self, decision: Decision) -> Changes:
        """Return what a decision changes, if it breaks no rule at all.

        Raises
        ------
        InvalidDecision
            If it breaks a rule, or its parts are not of their types.
        """
        try:
            return self._changes(decision, are_checked=True)
        except (TypeError, AttributeError) as error:
            text = f"expected {EXPECTED}, all of them whole numbers; {error}"
            raise InvalidDecision("types", text) from error

    def _changes(self, decision: Decision, are_checked: bool) -> Changes:
        state = self.state
        demand, status, submitted = state.demand, state.status, state.submitted
        models, widths, kind = self.trace.model, self.widths, self.types.reference
        are_several, place_of = self.types.are_several, self.gpus.place
        stops = [self._stopped(job) for job in decision.stop]
        places = []
        for job, gpus in decision.place.items():
            if not (0 <= job < submitted and status[job] in MAY_BE_PLACED):
                self._status(job)
            place = _, chosen, comes, leaves = place_of(job, gpus, are_checked)
            if not (comes or leaves):
                continue
            if are_several:
                kind = self._type(job, chosen)
            width = len(chosen)
            if width != demand[job] and width not in widths.get((models[job], kind), ()):
                raise self._wrong_width(job, width, kind)
            places.append(place)
        trials = [self._trial(job, gpus, decision) for job, gpus in decision.pre_run.items()]
        if stops or trials:
            self._check_named_once(decision)
        if decision.accepts:
            self._check_accepts(decision)
        changes = Changes(stops, places, trials, are_checked)
        if self.quotas and not self.lends:
            self._check_quotas(changes)
        if decision.rent is not None:
            self._check_rent(decision.rent)
        if are_checked and (places or trials):
            if not self.is_shared:
                self.gpus.check_free(changes)
            if self.asks_physics:
                self.gpus.check_sharing(changes)
        return changes

    # --- jobs ---------------------------------------------------------------------------------

    def _status(self, job: int) -> int:
        if not 0 <= job < len(self.state.status):
            raise InvalidDecision("unknown-job", f"there is no job {job}")
        if job >= self.state.submitted:
            raise InvalidDecision("not-submitted", f"{self._job(job)} has not been submitted")
        status = self.state.status[job]
        if status == ENDED:
            raise InvalidDecision("not-active", f"{self._job(job)} has ended")
        if status == DELAYED:
            raise InvalidDecision("not-active", f"{self._job(job)} failed and is not back yet")
        if status == TRIAL:
            raise InvalidDecision("not-active", f"{self._job(job)} is in a trial")
        return status

    def _stopped(self, job: int) -> int:
        if self._status(job) != RUNNING:
            raise InvalidDecision("not-running", f"{self._job(job)} holds no GPUs to give up")
        return index(job)

    def _trial(self, job: int, gpus: Sequence[int], decision: Decision) -> tuple[int, Gpus]:
        if self._status(job) != WAITING:
            raise InvalidDecision("not-waiting", f"{self._job(job)} runs: no trial of it")
        if decision.pre_run_us <= 0:
            raise InvalidDecision("pre-run-range", f"a trial of {decision.pre_run_us} us")
        chosen = self.gpus.place(job, gpus, True)[1]
        if len(chosen) != 1:
            text = f"a trial of {self._job(job)} takes 1 GPU, not {len(chosen)}"
            raise InvalidDecision("gang-size", text)
        if self.types.are_several:
            self._type(job, chosen)
        return job, chosen

    def _check_accepts(self, decision: Decision) -> None:
        for job, place in decision.accepts.items():
            starts = job in decision.place or job in decision.pre_run
            if starts or (self._status(job) != WAITING and job not in decision.stop):
                raise InvalidDecision("not-waiting", f"{self._job(job)} waits for no place")
            nodes, level = map(index, place)
            if nodes < 1 or level < 0:
                text = f"{self._job(job)} accepts {nodes} nodes in a domain of level {level}"
                raise InvalidDecision("accepts-range", text)

    def _check_named_once(self, decision: Decision) -> None:
        named = len(decision.stop) + len(decision.place) + len(decision.pre_run)
        distinct = {*decision.stop, *decision.place, *decision.pre_run}
        if len(distinct) != named:
            raise InvalidDecision("repeated-job", "a job is named twice")

    def _type(self, job: int, gpus: Gpus) -> str:
        """Return the one type of GPUs that a job runs on."""
        kind, model = self.state.cluster.type_of(gpus), self.trace.model[job]
        if kind is None:
            raise InvalidDecision("gpu-type", f"{self._job(job)} gets GPUs of several types")
        if kind not in self.types.runs_on(model):
            text = f"{self._job(job)} gets GPUs of type '{kind}', on which '{model}' cannot run"
            raise InvalidDecision("gpu-type", text)
        return kind

    def _wrong_width(self, job: int, width: int, kind: str) -> InvalidDecision:
        text = f"{self._job(job)} needs {self.state.demand[job]} GPUs, not {width}"
        if self.widths.get((self.trace.model[job], kind)):
            text = f"{self._job(job)} cannot run on {width} GPUs: no phase of its model has it"
        return InvalidDecision("gang-size", text)

    # --- limits -------------------------------------------------------------------------------

    def _check_quotas(self, changes: Changes) -> None:
        state, queue = self.state, self.trace.queue
        gained: dict[str, int] = {}
        for job in changes.stops:
            gained[queue[job]] = gained.get(queue[job], 0) - state.width[job]
        for job, gpus in changes.wanted:
            gained[queue[job]] = gained.get(queue[job], 0) + len(gpus) - state.width[job]
        for name, more in gained.items():
            if more > 0 and name in self.quotas:
                self._check_quota(name, self.held[name] + more)

    def _check_quota(self, name: str, wanted: int) -> None:
        if wanted > self.quotas[name]:
            text = f"queue '{name}' would hold {wanted} of its {self.quotas[name]} GPUs"
            raise InvalidDecision("quota", text)

    def _check_rent(self, rent: int | Mapping[str, int]) -> None:
        if not self.is_rented:
            raise InvalidDecision("rent-range", "this cluster is not rented")
        if self.types.are_several != isinstance(rent, Mapping):
            text = "expected nodes by type" if self.types.are_several else "expected a number"
            raise InvalidDecision("rent-range", f"{text}, found {rent!r}")
        for name, nodes in rent.items() if isinstance(rent, Mapping) else [("", rent)]:
            of_node = self.types.of_node
            most = of_node.count(name) if name else len(of_node)
            if not 0 <= nodes <= most:
                of_type = f" of type '{name}'" if name else ""
                raise InvalidDecision("rent-range", f"{nodes} nodes{of_type}: there are {most}")

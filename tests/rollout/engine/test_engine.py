"""The engine on cases small enough to be worked out by hand."""

import numpy as np
import pytest

from optsched.rollout.engine.decision import Decision, InvalidDecision, SolveRecord
from optsched.rollout.engine.engine import Engine
from optsched.rollout.engine.waiting import KINDS
from optsched.rollout.results.decision_log import EpochLog
from optsched.rollout.results.record import EpochRecord
from optsched.traces.trace import US, Failure
from tests.support.builders.rollout_parts import Fifo, Script, scenario, trace

PASSED, KILLED, FAILED, ACTIVE = 0, 1, 2, -1
OOM = "CPU out of memory"
SHOWN = "Semantic error"  # by one GPU of a gang, too


def place(*pairs, **parts):
    return Decision(place={job: tuple(gpus) for job, gpus in pairs}, **parts)


def run(world, jobs, decisions=None, **options):
    """The record, and the policy that was run: a script, or FIFO if there is none."""
    policy = Fifo() if decisions is None else Script(decisions, **options)
    return Engine(world, jobs, policy, 0, keep_intervals=True).run(), policy


def seconds(array):
    return [value / US if value >= 0 else -1 for value in np.asarray(array).tolist()]


# --- time and calls ---------------------------------------------------------------------------


def test_jobs_one_after_another():
    record, _ = run(scenario(1, 2), trace((0, 2, 5.0), (1, 1, 4.0), (2, 1, 2.5)))
    assert seconds(record.jobs.first_start_us) == [0, 5, 5]
    assert seconds(record.jobs.end_us) == [5, 9, 7.5]
    assert record.end_us == 9 * US
    assert record.busy_gpu_us == (10 + 4 + 2.5) * US
    assert record.available_gpu_us == record.spent_gpu_us == 18 * US
    assert record.events == 6
    assert record.intervals == (
        (0, 0, 5_000_000, (0, 1)),
        (2, 5_000_000, 7_500_000, (1,)),
        (1, 5_000_000, 9_000_000, (0,)),
    )


def test_all_events_of_a_moment_come_before_one_call():
    jobs = trace((0, 1, 5), (0, 1, 5), (5, 2, 1))
    record, policy = run(
        scenario(1, 2),
        jobs,
        {0: place((0, [0]), (1, [1])), 5: place((2, [0, 1]))},
    )
    assert policy.calls == [
        (0, True, [0, 1], []),
        (5, False, [2], [0, 1]),
        (6, False, [], [2]),
    ]
    assert seconds(record.jobs.end_us) == [5, 5, 6]


def test_epochs_in_which_nothing_changed_are_skipped():
    jobs = trace((0, 1, 45), (47, 1, 5))
    world = scenario(1, 1, decide_on=())
    record, policy = run(world, jobs, {0: place((0, [0])), 50: place((1, [0]))})
    assert [call[0] for call in policy.calls] == [0, 50]
    assert policy.calls[1] == (50, True, [1], [0])
    assert seconds(record.jobs.end_us) == [45, 55]


def test_policies_that_ask_for_it_are_called_at_every_epoch_while_there_are_jobs():
    jobs = trace((0, 1, 25), (100, 1, 5))
    decisions = {0: place((0, [0])), 100: place((1, [0]))}
    _, policy = run(scenario(1, 1, decide_on=()), jobs, decisions, every_epoch=True)
    assert [call[0] for call in policy.calls] == [0, 10, 20, 30, 100]


@pytest.mark.parametrize(
    ("decide_on", "times"),
    [
        (("arrival", "finish"), [0, 3, 7, 12]),
        (("arrival",), [0, 3, 7, 20]),
        (("finish",), [0, 7, 12]),
        ((), [0, 10]),
    ],
)
def test_what_triggers_a_call(decide_on, times):
    """Arrivals at 0, 3 and 7, job 0 ends at 7, job 1 never starts, job 2 ends at 12."""
    jobs = trace((0, 1, 7), (3, 1, 50), (7, 1, 5))
    starts = {0: place((0, [0])), 7: place((2, [1]))}
    _, policy = run(scenario(1, 2, decide_on=decide_on), jobs, starts)
    assert [call[0] for call in policy.calls] == times


def test_a_rollout_in_which_nothing_can_happen_ends():
    record, policy = run(scenario(1, 1), trace((0, 1, 5), (2, 1, 5)), {})
    assert [call[0] for call in policy.calls] == [0, 2]
    assert record.jobs.outcome.tolist() == [ACTIVE] * 2
    assert record.end_us == 2 * US
    idle, policy = run(scenario(1, 1), trace((0, 1, 5)), {}, every_epoch=True)
    assert len(policy.calls) == 10_001
    assert idle.jobs.end_us.tolist() == [-1]


def test_end_of_the_rollout_censors():
    jobs = trace((0, 1, 100), (1, 1, 100), (60, 1, 1))
    record, _ = run(scenario(1, 1, end_s=50.0), jobs)
    assert record.end_us == 50 * US
    assert record.jobs.outcome.tolist() == [ACTIVE] * 3
    assert seconds(record.jobs.running_us) == [50, 0, 0]
    assert seconds(record.jobs.waiting_us) == [0, 49, 0]
    assert seconds(record.jobs.useful_gpu_us) == [50, 0, 0]


def test_done_jobs_keep_their_gpus_to_the_end_of_the_epoch():
    world = scenario(1, 1, decide_on=(), finish_at_epochs=True)
    record, _ = run(world, trace((0, 1, 12), (1, 1, 10)))
    assert seconds(record.jobs.end_us) == [20, 30]
    assert seconds(record.jobs.useful_gpu_us) == [12, 10]
    assert seconds(record.jobs.overhead_gpu_us) == [8, 0]


def test_jobs_without_work_end_at_once():
    record, policy = run(scenario(1, 1), trace((0, 1, 3), (0, 1, 0), (0, 1, 0)))
    assert seconds(record.jobs.end_us) == [3, 3, 3]
    assert len(policy.queue) == 0


def test_progress_is_told():
    shares = []
    engine = Engine(scenario(1, 1), trace(*[(n, 1, 1) for n in range(4)]), Fifo(), 0)
    engine.run(shares.append)
    assert shares == [0.25, 0.5, 0.75, 1.0, 1.0]


# --- changes by the policy ----------------------------------------------------------------------


def test_gpus_freed_by_stops_and_moves_can_be_used_in_the_same_decision():
    jobs = trace((0, 1, 10), (0, 1, 10), (0, 1, 10))
    swap = place((0, [1]), (2, [0]), stop=(1,))
    decisions = {0: place((0, [0]), (1, [1])), 4: swap}
    record, _ = run(scenario(1, 2, epoch_s=4.0), jobs, decisions, every_epoch=True)
    assert record.jobs.migrations.tolist() == [1, 0, 0]
    assert record.jobs.preemptions.tolist() == [0, 1, 0]
    assert (0, 4 * US, 10 * US, (1,)) in record.intervals
    assert (2, 4 * US, 14 * US, (0,)) in record.intervals


def test_two_jobs_change_places():
    jobs = trace((0, 1, 10), (0, 1, 10))
    decisions = {0: place((0, [0]), (1, [1])), 4: place((0, [1]), (1, [0]))}
    record, _ = run(scenario(1, 2, epoch_s=4.0), jobs, decisions, every_epoch=True)
    assert record.jobs.migrations.tolist() == [1, 1]
    assert seconds(record.jobs.end_us) == [10, 10]


def test_equal_gpus_in_any_order_change_nothing():
    jobs = trace((0, 2, 10))
    costs = {"restore_s": 3.0}
    decisions = {0: place((0, [1, 0])), 4: place((0, [1, 0])), 8: place((0, [0, 1]))}
    record, _ = run(scenario(1, 2, epoch_s=4.0, costs=costs), jobs, decisions, every_epoch=True)
    assert seconds(record.jobs.end_us) == [10]
    assert record.jobs.migrations.tolist() == [0]
    assert [epoch.changes for epoch in record.epochs] == [1, 0, 0, 0]


COSTS = {"start_s": 2.0, "restore_s": 3.0, "checkpoint_s": 0.5, "rescale_s": 1.0}


def test_overheads():
    """Start 2 s, move 3.5 s, start after a stop 3.5 s."""
    decisions = {
        0: place((0, [0])),
        10: place((0, [1])),
        20: Decision(stop=(0,)),
        30: place((0, [0])),
    }
    record, _ = run(scenario(1, 2, costs=COSTS), trace((0, 1, 50)), decisions, every_epoch=True)
    # work: 8 s of the first 10, 6.5 s of the next, and the other 35.5 s from 33.5 on
    assert seconds(record.jobs.end_us) == [69.0]
    assert seconds(record.jobs.overhead_gpu_us) == [9.0]
    assert seconds(record.jobs.useful_gpu_us) == [50.0]
    assert seconds(record.jobs.waiting_us) == [10.0]
    counts = (record.jobs.attempts, record.jobs.preemptions, record.jobs.migrations)
    assert [int(count[0]) for count in counts] == [2, 1, 1]


def test_a_stop_may_lose_the_work_since_the_last_checkpoint():
    costs = {"checkpoint_every_s": 4.0, "stop_loses_work": True}
    decisions = {0: place((0, [0])), 10: Decision(stop=(0,)), 20: place((0, [0]))}
    record, _ = run(scenario(1, 1, costs=costs), trace((0, 1, 15)), decisions, every_epoch=True)
    assert seconds(record.jobs.redone_gpu_us) == [2.0]
    assert seconds(record.jobs.end_us) == [20 + 15 - 8]


AMDAHL = {"kind": "amdahl", "parallel_fraction": 1.0, "max_gpus": 4}
TABLE = {"kind": "table", "gpus": [1, 2], "speedup": [1.0, 1.5]}
ELASTIC = {
    "e": {
        "phases": [{"work_gpu_s": 10, "speedup": AMDAHL}, {"work_gpu_s": 10, "speedup": TABLE}],
        "rescale_s": 1.0,
    }
}


def test_widths_and_phases():
    """20 s at one GPU, half in each phase: 1 s start, 2.5 s on 4 GPUs, then 1 s and 10 s on one."""
    world = scenario(1, 4, models=ELASTIC)
    decisions = {0: place((0, [0, 1, 2, 3])), 3.5: place((0, [2]))}
    record, policy = run(world, trace((0, 1, 20), model=["e"]), decisions)
    assert [call[0] for call in policy.calls] == [0, 3.5, 14.5]
    assert seconds(record.jobs.end_us) == [14.5]
    assert record.jobs.rescales.tolist() == [1]
    assert seconds(record.jobs.overhead_gpu_us) == [5.0]
    assert seconds(record.jobs.useful_gpu_us) == [20.0]


def test_jobs_that_go_on_to_their_next_phase_are_news():
    seen = []

    class Noting(Fifo):
        def decide(self, view):
            seen.append((view.now_us / US, list(view.advanced), [view.phase(0)]))
            return super().decide(view)

    Engine(scenario(1, 1, models=ELASTIC), trace((0, 1, 20), model=["e"]), Noting(), 0).run()
    assert seen == [(0, [], [0]), (11, [0], [1]), (21, [], [1])]


# --- failures -----------------------------------------------------------------------------------


def failing(*failures, status="passed", run_s=10.0):
    return trace((0, 1, run_s), status=[status], failures=[failures])


def test_a_failure_loses_all_work_without_checkpoints():
    record, _ = run(scenario(1, 1), failing(Failure(OOM, 4 * US)))
    assert seconds(record.jobs.end_us) == [14]
    assert seconds(record.jobs.redone_gpu_us) == [4]
    assert record.jobs.failures.tolist() == [1]
    assert record.jobs.attempts.tolist() == [2]


def test_a_failure_loses_what_came_after_the_last_checkpoint():
    world = scenario(1, 1, costs={"checkpoint_every_s": 3.0})
    record, _ = run(world, failing(Failure(OOM, 7 * US)))
    assert seconds(record.jobs.redone_gpu_us) == [1]
    assert seconds(record.jobs.end_us) == [7 + 4]


def test_time_to_failure_is_of_running_and_goes_on_after_a_stop():
    world = scenario(1, 1, costs={"start_s": 1.0, "restore_s": 2.0})
    decisions = {
        0: place((0, [0])),
        5: Decision(stop=(0,)),
        10: place((0, [0])),
        15: place((0, [0])),
    }
    jobs = failing(Failure(OOM, 6 * US), run_s=20.0)
    # 4 s of running, a stop, 2 s of overhead, and 2 s more: the failure is at 14
    record, policy = run(
        world.model_copy(update={"epoch_s": 5.0}), jobs, decisions, every_epoch=True
    )
    assert (0, 10 * US, 14 * US, (0,)) in record.intervals
    assert (14, False, [0], []) in policy.calls
    assert seconds(record.jobs.redone_gpu_us) == [6]


def test_work_that_is_done_first_is_done():
    record, _ = run(scenario(1, 1), failing(Failure(OOM, 10 * US), status="failed"))
    assert (record.jobs.outcome[0], record.jobs.failures[0]) == (PASSED, 0)


def test_the_last_failure_of_a_failed_job_ends_it():
    jobs = failing(Failure(OOM, 2 * US), Failure(OOM, 3 * US), status="failed")
    record, policy = run(scenario(1, 1), jobs)
    assert (record.jobs.outcome[0], record.jobs.failures[0]) == (FAILED, 2)
    assert seconds(record.jobs.end_us) == [5]
    assert seconds(record.jobs.redone_gpu_us) == [5]
    assert not policy.queue


def test_failed_and_killed_jobs_without_failures_end_when_their_work_is_done():
    jobs = trace((0, 1, 3), (0, 1, 4), status=["failed", "killed"])
    record, _ = run(scenario(1, 2), jobs)
    assert record.jobs.outcome.tolist() == [FAILED, KILLED]
    assert seconds(record.jobs.end_us) == [3, 4]


def test_retries_have_limits_by_reason_and_a_delay():
    twice = (Failure(OOM, US), Failure("Semantic error", US), Failure(OOM, US))
    retries = {"delay_s": 5.0, "limits": {OOM: 1}}
    record, _ = run(scenario(1, 1, retries=retries), failing(*twice))
    assert record.jobs.outcome.tolist() == [FAILED]
    assert seconds(record.jobs.end_us) == [1 + 5 + 1 + 5 + 1]
    assert seconds(record.jobs.waiting_us) == [10]
    assert seconds(record.jobs.back_off_us) == [10]
    assert seconds(record.jobs.fragmentation_us) == seconds(record.jobs.fair_share_us) == [0]


def test_a_policy_may_give_up():
    asked = []

    class GivesUp(Fifo):
        def retries(self, view, job, reason):
            asked.append((view.now_us, job, reason, list(view.failures(job))))
            return len(asked) < 2

    jobs = failing(*[Failure(OOM, US)] * 5)
    record = Engine(scenario(1, 1), jobs, GivesUp(), 0).run()
    assert asked == [(US, 0, OOM, [OOM]), (2 * US, 0, OOM, [OOM, OOM])]
    assert (record.jobs.outcome[0], record.jobs.failures[0]) == (FAILED, 2)


def test_trials():
    """One gang fails in its trial, the other one stands it."""
    fails = [[Failure(SHOWN, 3 * US)], [Failure(SHOWN, 7 * US)]]
    jobs = trace((0, 2, 10), (0, 2, 10), failures=fails)
    try_both = Decision(pre_run={0: (0,), 1: (1,)}, pre_run_us=5 * US)
    record, policy = run(scenario(1, 2), jobs, {0: try_both, 5: place((0, [0, 1]))})
    assert policy.calls[:3] == [(0, True, [0, 1], []), (3, False, [0], []), (5, False, [1], [])]
    assert record.jobs.failures.tolist() == [1, 0]
    assert record.jobs.attempts.tolist() == [2, 0]
    assert seconds(record.jobs.pre_run_gpu_us) == [3, 5]
    assert seconds(record.jobs.end_us) == [15, -1]


# --- rented nodes -------------------------------------------------------------------------------


def rented(nodes=3, **parts):
    return scenario(nodes, 2, rented={"provision_s": 5.0, **parts})


def test_nodes_are_paid_from_the_request_and_ready_later():
    decisions = {0: Decision(rent=2), 5: place((0, [2, 3])), 15: Decision(rent=0)}
    jobs = trace((0, 2, 10), (20, 2, 1))
    record, policy = run(rented(), jobs, decisions)
    assert [call[0] for call in policy.calls] == [0, 5, 15, 20]
    assert record.spent_gpu_us == 2 * 2 * 15 * US
    assert record.available_gpu_us == 2 * 2 * 10 * US
    assert [epoch.rented_nodes for epoch in record.epochs] == [2, 2, 0, 0]


def test_nodes_with_jobs_stay_and_starting_ones_are_cancelled_first():
    """Node 0 works, node 1 is empty, node 2 is starting."""
    jobs = trace((0, 2, 30), (2, 1, 1), (4, 1, 1))
    decisions = {0: place((0, [0, 1]), rent=3), 2: Decision(rent=2), 4: Decision(rent=0)}
    engine = Engine(rented(at_start=2), jobs, Script(decisions), 0)
    states = []
    for _ in range(3):
        engine.step()
        states.append(list(engine.world.state.node_state))
    assert states == [[2, 2, 1], [2, 2, 0], [2, 0, 0]]
    record = engine.run()
    assert seconds(record.jobs.end_us) == [30, -1, -1]


def test_an_empty_node_is_kept_if_the_decision_places_a_job_on_it():
    decisions = {0: place((0, [2, 3]), rent=1)}
    record, _ = run(rented(at_start=2), trace((0, 2, 10)), decisions)
    assert record.epochs[0].rented_nodes == 1
    assert record.spent_gpu_us == 2 * 10 * US


# --- why jobs wait ------------------------------------------------------------------------------


def kinds(record, job):
    """Seconds of each kind for which a job waited."""
    found = {kind: int(getattr(record.jobs, f"{kind}_us")[job]) // US for kind in KINDS}
    return {kind: time for kind, time in found.items() if time}


def test_waiting_is_for_capacity_while_gpus_are_too_few_and_else_for_place_or_turn():
    jobs = trace((0, 1, 10), (0, 1, 20), (2, 2, 5), (2, 1, 5))
    decisions = {0: place((0, [0]), (1, [2])), 20: place((2, [0, 1]), (3, [2]))}
    record, _ = run(scenario(2, 2), jobs, decisions)
    # 2 of 4 GPUs are free from 0 on, none in one node; no job has said that it needs one
    assert [kinds(record, job) for job in range(4)] == [{}, {}, {"order": 18}, {"order": 18}]
    one_node = Decision(accepts={2: (1, 0)})
    record, _ = run(scenario(2, 2), jobs, decisions | {2: one_node})
    # job 0 ends at 10 s: from then on there is a node for job 2, and it is not placed
    assert kinds(record, 2) == {"fragmentation": 8, "order": 10}
    assert kinds(record, 3) == {"order": 18}
    late = trace((0, 3, 10), (2, 2, 5))
    record, _ = run(scenario(2, 2), late, {0: place((0, [0, 1, 2])), 15: Decision()})
    assert kinds(record, 1)["capacity"] == 8
    assert not record.jobs.fair_share_us.any()
    assert not record.jobs.fragmentation_us.any()


def test_what_is_free_to_a_queue_is_in_its_quota():
    jobs = trace((0, 2, 10), (0, 1, 5), (0, 1, 5), queue=["a", "a", "b"])
    decisions = {0: place((0, [0, 1])), 10: place((1, [0]), (2, [1]))}
    record, _ = run(scenario(1, 4, quotas={"a": 2}), jobs, decisions)
    assert seconds(record.jobs.fair_share_us) == [0, 10, 0]
    assert seconds(record.jobs.order_us) == [0, 0, 10]


def test_above_its_quota_a_job_waits_for_fair_share_only_while_nothing_is_idle_to_borrow():
    """Queue a has 2 of 4 GPUs by right and all of them lent until 10 s; b has one of them then."""
    jobs = trace((0, 4, 10), (0, 1, 20), (0, 2, 5), queue=["a", "b", "a"])
    world = scenario(1, 4, quotas={"a": 1, "b": 2}, lends_quotas=True)
    decisions = {0: place((0, [0, 1, 2, 3])), 10: place((1, [0])), 30: place((2, [1, 2]))}
    record, _ = run(world, jobs, decisions)
    assert kinds(record, 1) == {"capacity": 10}
    assert kinds(record, 2) == {"fair_share": 10, "order": 20}


def test_a_start_is_delayed_by_the_kind_in_which_it_waited_longest_if_by_more_than_a_minute():
    jobs = trace((0, 2, 100), (1, 2, 5), (50, 1, 5), failures=[(), (Failure(OOM, 2 * US),), ()])
    world = scenario(1, 2, retries={"delay_s": 70.0})
    starts = {0: place((0, [0, 1])), 100: place((1, [0, 1])), 102: place((2, [0]))}
    starts |= {172: place((1, [0, 1]))}
    record, _ = run(world, jobs, starts)
    assert kinds(record, 1) == {"capacity": 99, "back_off": 70}
    assert kinds(record, 2) == {"capacity": 52}
    delays = {k: getattr(record.jobs, f"{k}_delays").tolist() for k in KINDS}
    once = ("back_off", "capacity")
    assert delays == {kind: [0, int(kind in once), 0] for kind in KINDS}


# --- physics and energy ---------------------------------------------------------------------------


def test_neighbours_slow_each_other_while_they_are_there():
    """0.5 of the speed beside the other gang: 4 s alone, 8 s for 4 s of work, then alone."""
    world = scenario(1, 4, neighbours={"shared_server": 0.5})
    record, _ = run(world, trace((0, 2, 20), (4, 2, 4)))
    assert seconds(record.jobs.end_us) == [4 + 8 + 12, 12]


def test_jobs_that_share_gpus():
    interference = {"partner_slowdown": 1.0, "saturation_slope": 0.0}
    world = scenario(1, 1, sharing={"max_jobs_per_gpu": 2, "interference": interference})
    decisions = {0: place((0, [0]), (1, [0]))}
    record, _ = run(world, trace((0, 1, 10), (0, 1, 4)), decisions)
    assert seconds(record.jobs.end_us) == [8 + 6, 8]
    assert record.busy_gpu_us == 14 * US
    assert seconds(record.jobs.allocated_gpu_us) == [14, 8]


def test_energy():
    """An idle node of 2 GPUs draws 100 + 2 x 10 W; a job adds 290 W; asleep it draws 5 W."""
    power = {
        "gpu": {"bare_w": 10, "context_w": 20, "peak_w": 300},
        "node": {"base_w": 100, "sleep_w": 5},
    }
    jobs = trace((0, 1, 4))
    on, _ = run(scenario(2, 2, power=power), jobs)
    assert on.energy_j == 4 * (240 + 290)
    asleep, _ = run(scenario(2, 2, power={**power, "idle_nodes": "sleep"}), jobs)
    assert asleep.energy_j == 4 * (410 + 5)
    assert [epoch.power_w for epoch in asleep.epochs] == [415, 10]
    assert [epoch.energy_j for epoch in asleep.epochs] == [0, 4 * 415]


def test_nodes_that_are_not_rented_draw_nothing():
    power = {
        "gpu": {"bare_w": 0, "context_w": 20, "peak_w": 300},
        "node": {"base_w": 100, "sleep_w": 5},
    }
    world = scenario(2, 1, power=power, rented={"provision_s": 3.0})
    decisions = {0: Decision(rent=1), 3: place((0, [0]))}
    record, _ = run(world, trace((0, 1, 10)), decisions)
    assert record.energy_j == 3 * 100 + 10 * 400


# --- decisions that break a rule ----------------------------------------------------------------


BROKEN = {
    "unknown-job": place((9, [2])),
    "not-submitted": place((5, [2])),
    "not-active": place((0, [2])),
    "not-running": Decision(stop=(3,)),
    "unknown-gpu": place((3, [4])),
    "repeated-gpu": place((3, [2, 2])),
    "repeated-job": place((1, [2]), stop=(1,)),
    "overcommit": place((3, [1, 2])),
    "gang-size": place((3, [2])),
    "rent-range": Decision(rent=1),
    "quota": place((2, [0]), (3, [2, 3])),
    "pre-run-range": Decision(pre_run={3: (2,)}),
    "not-waiting": Decision(pre_run={1: (2,)}, pre_run_us=1),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_named_and_nothing_is_applied(rule):
    """At 2 s: job 0 has ended, 1 runs on GPU 1, 2 and 3 wait (3 wants two), 4 is to come at 3 s."""
    jobs = trace((0, 1, 1), (0, 1, 9), (1, 1, 9), (2, 2, 9), (3, 1, 9), (3, 1, 9), queue=["q"] * 6)
    decisions = {0: place((0, [0]), (1, [1])), 2: BROKEN[rule]}
    engine = Engine(scenario(1, 4, quotas={"q": 3}), jobs, Script(decisions), 0)
    engine.step()
    engine.step()
    with pytest.raises(InvalidDecision, match=rf"^{rule}: ") as error:
        engine.step()
    assert error.value.rule == rule
    state = engine.world.state
    assert state.gpus_of == [(), (1,), (), (), (), ()]
    assert state.jobs_on == [(), (1,), (), ()]
    assert sorted(state.waiting) == [2, 3]


def test_messages_name_the_job_and_the_contradiction():
    jobs = trace((0, 2, 1), ids=["bert"])
    with pytest.raises(InvalidDecision) as error:
        run(scenario(1, 4), jobs, {0: place((0, [0, 1, 2]))})
    assert str(error.value) == "gang-size: job 0 ('bert') needs 2 GPUs, not 3"


def test_a_half_valid_decision_is_not_applied_at_all():
    jobs = trace((0, 1, 5), (0, 1, 5), (0, 1, 5))
    engine = Engine(scenario(1, 2), jobs, Script({0: place((0, [0]))}), 0)
    engine.step()
    with pytest.raises(InvalidDecision, match="overcommit"):
        engine.world.apply(place((1, [1]), (2, [1]), stop=(0,)))
    assert engine.world.state.gpus_of == [(0,), (), ()]
    assert seconds(engine.run().jobs.end_us) == [5, -1, -1]


def test_nodes_must_be_ready():
    with pytest.raises(InvalidDecision, match="node-not-ready: job 0"):
        run(rented(), trace((0, 1, 1)), {0: place((0, [0]))})
    with pytest.raises(InvalidDecision, match="rent-range: 4 nodes: there are 3"):
        run(rented(), trace((0, 1, 1)), {0: Decision(rent=4)})


def test_widths_must_be_in_a_table_of_the_model():
    world, jobs = scenario(1, 8, models=ELASTIC), trace((0, 8, 20), model=["e"])
    with pytest.raises(InvalidDecision, match=r"gang-size: .*no phase of its model"):
        run(world, jobs, {0: place((0, range(5)))})
    record, _ = run(world, jobs, {0: place((0, range(8)))})
    assert record.jobs.outcome.tolist() == [PASSED]


@pytest.mark.parametrize(
    ("gpus", "rule"),
    [
        ((0, 1, 2, 3.0), "types"),
        ((0.0, 1, 2), "types"),
        (("0", 1, 2, 3), "types"),
        ((0, 1, 2, 2), "repeated-gpu"),
        ((0, 1, 2, 8), "unknown-gpu"),
        ((0, 1, 2, -1), "unknown-gpu"),
        ((0, 1, 2, 4), "overcommit"),
    ],
)
def test_a_job_that_keeps_its_gpus_comes_to_others_by_the_same_rules(gpus, rule):
    world = scenario(1, 8, models={"e": {"phases": [{"work_gpu_s": 10, "speedup": AMDAHL}]}})
    jobs = trace((0, 3, 20), (0, 1, 20), (1, 1, 20), model=["e"] * 3)
    decisions = {0: place((0, (0, 1, 2)), (1, (4,))), 1: place((0, gpus))}
    with pytest.raises(InvalidDecision, match=f"^{rule}: "):
        run(world, jobs, decisions)


@pytest.mark.parametrize(
    ("limit", "rule"), [(1, "overcommit"), (2, "sharing-limit"), (3, "memory")]
)
def test_sharing(limit, rule):
    models = {"m": {"memory_gb": 7.0, "utilisation": 0.1}}
    world = scenario(1, 1, sharing={"max_jobs_per_gpu": limit, "memory_gb": 16.0}, models=models)
    jobs = trace(*[(0, 1, 10)] * 3, model=["m"] * 3)
    with pytest.raises(InvalidDecision, match=f"^{rule}: "):
        run(world, jobs, {0: place((0, [0]), (1, [0]), (2, [0]))})


# --- view and record ----------------------------------------------------------------------------


def test_view():
    seen = {}

    class Looking(Fifo):
        def decide(self, view):
            if view.now_us == 4 * US:
                seen.update(
                    free=view.free.tolist(),
                    pending=view.pending.tolist(),
                    running=view.running.tolist(),
                    attained=view.attained_gpu_us([0, 1]).tolist(),
                    remaining=view.remaining_us([0, 1]).tolist(),
                    waited=[view.waited_us(0), view.waited_us(1)],
                    free_gpus=[view.free_gpus(0), view.free_gpus(1)],
                    job=(view.demand(1), view.model(1), view.queue(1), view.submit_us(1)),
                    gpus=(view.gpus_of(0), view.gpus_of(1), tuple(view.jobs_on(1))),
                )
                with pytest.raises(LookupError, match="job 3 has not been submitted"):
                    view.demand(3)
            return super().decide(view)

    jobs = trace((0, 3, 10), (1, 2, 5), (4, 1, 1), (9, 1, 1), queue=["a", "b", "", ""])
    Engine(scenario(2, 2), jobs, Looking(), 0).run()
    assert seen == {
        "free": [0, 1],
        "pending": [1, 2],
        "running": [0],
        "attained": [12 * US, 0],
        "remaining": [6 * US, 5 * US],
        "waited": [0, 3 * US],
        "free_gpus": [[], [3]],
        "job": (2, "", "b", US),
        "gpus": ((0, 1, 2), (), (0,)),
    }


def test_solves_are_in_the_record_and_the_log_reads_as_epoch_records():
    solve = SolveRecord("optimal", 1.0, 1.0, 0.5)
    decisions = {0: place((0, [0]), solves=[solve])}
    record, _ = run(scenario(1, 2), trace((0, 1, 4), (1, 1, 1)), decisions)
    first, last = record.epochs[0], record.epochs[-1]
    assert first == EpochRecord(0, 0, 1, 1, 1, 1, 0.0, 1, (solve,))
    assert last == EpochRecord(4 * US, 1, 0, 0, 2, 1, 0.0, 0, (), 4 * US, 8 * US, 8 * US, 0.0)
    assert record.epochs.column("now_us").tolist() == [0, US, 4 * US]
    assert record.epochs[1:] == (record.epochs[1], last)
    assert record.epochs == list(record.epochs)
    assert record.epochs != EpochLog()


def test_a_record_can_be_asked_for_on_the_way():
    engine = Engine(scenario(1, 1), trace((0, 1, 4), (1, 1, 4)), Fifo(), 0, keep_intervals=True)
    engine.step()
    engine.step()
    early = engine.record()
    assert seconds(early.jobs.running_us) == [1, 0]
    assert early.intervals == ((0, 0, US, (0,)),)
    assert len(early.epochs) == 2
    record = engine.run()
    assert seconds(record.jobs.end_us) == [4, 8]
    assert len(early.epochs) == 2


@pytest.mark.parametrize(("found", "words"), [(None, "nothing"), ({}, "an object of type dict")])
def test_a_policy_that_decides_no_decision_is_told_so(found, words):
    class Odd:
        name = "odd"

        def decide(self, view):
            return found

    engine = Engine(scenario(), trace((0, 1, 1)), Odd(), 0)
    with pytest.raises(InvalidDecision, match=rf"decide\(\) of policy 'odd' returned {words}; exp"):
        engine.run()

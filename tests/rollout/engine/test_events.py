"""The queue of events: whoever has a new event each time he moves leaves nothing behind."""

import random

from optsched.rollout.checkpoints.plain_data import of_json, to_json
from optsched.rollout.engine.events import ARRIVAL, DOWNTIME, FAILURE, FINISH, NODE, EventQueue

NODES = 3


def test_events_come_by_time_kind_and_number_whatever_was_forgotten_in_between():
    draw = random.Random(7)
    for _ in range(60):
        queue, now = EventQueue(NODES), 0
        known = {}  # (time, kind, number, subject), the plain way: all that is not forgotten
        for number in range(1, 120):
            kind = draw.choice((FINISH, FINISH, FINISH, FAILURE, ARRIVAL, NODE, DOWNTIME))
            time, subject = now + draw.randint(0, 6), draw.randrange(NODES)
            is_node = kind in (NODE, DOWNTIME)
            if is_node:
                queue.add_of_node(time, kind, subject)
            else:
                queue.set_all([(time, kind, subject)])
            key = ("node", subject, number) if is_node else ("job", subject)
            known[key] = (time, kind, number, subject)
            if draw.random() < 0.2:
                job = draw.randrange(NODES)
                queue.forget(job)
                known.pop(("job", job), None)
            if draw.random() < 0.1:
                node = draw.randrange(NODES)
                queue.forget_node(node)
                known = {key: of for key, of in known.items() if key[:2] != ("node", node)}
            if draw.random() < 0.1:
                saved, queue = of_json(to_json(queue.snapshot())), EventQueue(NODES)
                queue.restore(saved)
            if draw.random() < 0.5 and known:
                now = queue.next_time()
                assert now == min(known.values())[0]
                while (popped := queue.pop_at(now)) is not None:
                    key, first = min(known.items(), key=lambda item: item[1])
                    assert popped == (first[1], first[3])
                    del known[key]
                assert all(of[0] > now for of in known.values())
        assert (queue.next_time() is None) == (not known)


def test_a_job_that_is_moved_again_and_again_had_an_entry_in_the_heap_for_each_move():
    queue = EventQueue(NODES)
    for later in range(1_000):
        queue.set_all([(10 + later, FINISH, 5)])
    assert len(queue.heap) == 1
    assert queue.next_time() == 1_009
    assert queue.pop_at(1_009) == (FINISH, 5)
    assert queue.next_time() is None

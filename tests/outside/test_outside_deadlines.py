"""Deadlines that a job cannot keep even alone: it counts as due at its earliest end alone."""

import copy
import math
from fractions import Fraction

from hypothesis import settings

import optsched
from tests.support.outside.eaco_groups import Cluster, due_s
from tests.support.outside.instances import LARGEST
from tests.support.outside.instances_eaco import eaco_late
from tests.support.outside.laws import Truth, instance_of, methods, solved

COUNT = min(settings().max_examples, 400)


def late(seed):
    """Ids of the jobs that cannot keep their deadlines even alone, and the document."""
    document = eaco_late(seed)
    cluster, names = Cluster(document), []
    for job in document["jobs"]:
        due = due_s(cluster, job["id"])
        if due is not None and due > Fraction(job["deadline_s"]):
            names.append(job["id"])
    return names, document


def test_a_job_that_is_late_alone_is_due_at_its_earliest_end_alone():
    seeds = [seed for seed in range(12 * COUNT) if late(seed)[0]][: COUNT // 2]
    assert len(seeds) > COUNT // 4
    for seed in seeds:
        truth = Truth("eaco", late(seed)[1])
        for method in ("exact", methods("eaco", "greedy")[seed % 10]):
            _, false = solved(truth, method)
            assert not false, (seed, method)


def test_a_deadline_out_of_reach_allows_nothing_that_one_at_its_earliest_end_forbids():
    for seed in [seed for seed in range(12 * COUNT) if late(seed)[0]][: COUNT // 4]:
        names, document = late(seed)
        kept, cluster = copy.deepcopy(document), Cluster(document)
        for job in kept["jobs"]:
            if job["id"] in names:
                due = due_s(cluster, job["id"])
                job["deadline_s"] = float(due)
                if job["deadline_s"] < due:
                    job["deadline_s"] = math.nextafter(job["deadline_s"], math.inf)
        if any(job.get("deadline_s", 0.0) > LARGEST for job in kept["jobs"]):
            continue  # no file may say so
        late_one, on_time = (optsched.solve(instance_of("eaco", d)) for d in (document, kept))
        assert on_time.status != "infeasible" or late_one.status == "infeasible", seed
        if late_one.objective is not None and on_time.bound is not None:
            assert late_one.objective >= on_time.bound, seed

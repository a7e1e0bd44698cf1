"""Accounts of GPU time in arrays: as written down job by job, and priorities as tuples sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.checkpoints.plain_data import of_json, to_json
from optsched.rollout.policies.gavel.ledger import TimeLedger
from tests.support.strategies.common import law

TYPES = ("t", "a", "m")
FEW = st.sampled_from([0.0, 0.25, 1.0])


class ByJob:
    """The same, with a row of numbers for each job."""

    def __init__(self):
        self.shares, self.received, self.owed, self.runs = {}, {}, {}, {}

    def count(self, passed):
        for job, name in self.runs.items():
            if job in self.received:
                self.received[job][TYPES.index(name)] += passed

    def renew(self, jobs, shares, since):
        none = [0.0] * len(TYPES)
        of = [{job: rows.get(job, none) for job in jobs}
              for rows in (self.owed, self.shares, self.received)]  # fmt: skip
        self.owed = {
            job: [a + b * since - c for a, b, c in zip(*(rows[job] for rows in of), strict=True)]
            for job in jobs
        }
        self.shares = dict(zip(jobs, shares.tolist(), strict=True))
        self.received = {job: list(none) for job in jobs}

    def ranked(self, jobs, speed):
        ranked = []
        for row, job in enumerate(jobs):
            for n, name in enumerate(TYPES):
                share, received = self.shares[job][n], self.received[job][n]
                priority = share / received if received else np.inf if share else 0.0
                key = -priority, -self.owed[job][n], -share, -speed[row][n], job, name
                ranked.append((key, (row, n)))
        return [pair for (*_, job, name), pair in sorted(ranked) if speed[pair[0]][pair[1]]]


@law(300)
@given(st.data())
def test_the_ledger_is_that_of_each_job_also_when_it_goes_on_from_plain_data(data):
    ledger, known = TimeLedger(TYPES), ByJob()
    some, values = st.sets(st.integers(0, 4), min_size=1), st.lists(FEW, min_size=3, max_size=3)
    for _ in range(data.draw(st.integers(1, 4))):
        jobs = sorted(data.draw(some))
        shares, speed = (np.array([data.draw(values) for _ in jobs]) for _ in range(2))
        since_s = data.draw(FEW)
        ledger.renew(jobs, shares, since_s)
        known.renew(jobs, shares, since_s)
        known.runs = {job: data.draw(st.sampled_from(TYPES)) for job in data.draw(some)}
        ledger.run_on(known.runs)
        for passed_s in data.draw(values):
            if data.draw(st.booleans()):
                saved, ledger = to_json(ledger.snapshot()), TimeLedger(TYPES)
                ledger.restore(of_json(saved))
            ledger.count(passed_s)
            known.count(passed_s)
            assert ledger.ranked(speed) == known.ranked(jobs, speed.tolist())
            left = data.draw(some)
            ledger.leave(left)
            known.runs = {job: name for job, name in known.runs.items() if job not in left}
    assert ledger.received_s.tolist() == list(known.received.values())
    assert ledger.owed_s.tolist() == list(known.owed.values())

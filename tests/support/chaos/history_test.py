#!/usr/bin/env python3
"""The checker of histories finds what breaks a promise, and takes a number of steps that is linear in what
it reads."""

import unittest

import history

BATCHES = 100
JOBS = 50
REPEATS = 20  # batches of the coordinator itself, whose jobs may expire


class CountedDict(dict):
    """Counts the keys and values that are visited one after the other."""

    visits = 0

    def counted(self, items):
        for item in items:
            CountedDict.visits += 1
            yield item

    def __iter__(self):
        return self.counted(super().__iter__())

    def keys(self):
        return self.counted(super().keys())

    def values(self):
        return self.counted(super().values())

    def items(self):
        return self.counted(super().items())


def entries(jobs=JOBS):
    """A history in which every batch finished."""
    for batch in range(1, BATCHES + 1):
        yield {"op": "submit", "id": batch, "jobs": JOBS, "tag": ""}
        yield {"op": "accepted", "id": batch, "batch": batch, "first": 0, "jobs": JOBS}
    for batch in range(1, BATCHES + REPEATS + 1):
        code = "ok" if batch <= BATCHES else "EXPIRED"
        rows = [[index + 1, index, "", code, True, "digest"] for index in range(jobs)]
        yield {"op": "outcomes", "batch": batch, "after": 0, "rows": rows}
        yield {"op": "finished", "batch": batch, "jobs": JOBS}


def judge(told):
    checker = history.Check()
    for name, value in vars(checker).items():
        if type(value) is dict:
            setattr(checker, name, CountedDict())
    for entry in told:
        checker.see(entry | {"where": "here"})
    return checker.verdict()


class HistoryTest(unittest.TestCase):
    def test_a_good_history_takes_linear_time(self):
        CountedDict.visits = 0
        counts = judge(entries())
        self.assertEqual(counts["outcomes"], (BATCHES + REPEATS) * JOBS)
        self.assertLess(CountedDict.visits, 2 * counts["outcomes"])

    def test_a_missing_outcome_is_found(self):
        with self.assertRaisesRegex(history.Violation, "I1: batch 1 job 49"):
            judge(entries(jobs=JOBS - 1))

    def test_a_batch_with_too_few_outcomes_is_found(self):
        told = [*entries(), {"op": "finished", "batch": 7, "jobs": JOBS + 1}]
        with self.assertRaisesRegex(history.Violation, "I2: batch 7 finished with 51 jobs and 50 outc"):
            judge(told)

    def test_only_the_coordinators_own_jobs_may_expire(self):
        rows = [[1, 0, "", "EXPIRED", True, "digest"]]
        told = [*entries(), {"op": "outcomes", "batch": 3, "after": 0, "rows": rows}]
        with self.assertRaisesRegex(history.Violation, "batch 3 job 0 failed: EXPIRED"):
            judge(told)


if __name__ == "__main__":
    unittest.main()

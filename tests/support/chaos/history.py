"""Checks the promises I1, I2 and I4 of docs/ARCHITECTURE.md by what clients saw of a coordinator under
faults. The histories are those of loopfleet-recording-client; the last is an audit, which read every batch
after all faults had stopped."""

import collections
import json
import sqlite3


class Violation(AssertionError):
    """A broken promise, and the lines that show it."""


def read(paths):
    """All entries of the files, each file in order. The last line of a killed client may be incomplete."""
    entries = []
    for path in paths:
        lines = path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines):
            try:
                entries.append(json.loads(line) | {"where": f"{path.name}:{number + 1}"})
            except json.JSONDecodeError:
                if number < len(lines) - 1:
                    raise
    return entries


class Check:
    """Takes every entry (see), then gives the verdict."""

    def __init__(self, may_fail=()):
        self.may_fail = may_fail  # failure codes that the faults explain
        self.requests = {}  # request id -> its submit entry
        self.accepted = {}  # request id -> (batch, first index, jobs)
        self.accepted_batches = set()
        self.tags = {}  # (batch, index) -> the job's tag
        self.outcomes = {}  # (batch, index) -> (sequence, tag, code, right, digest)
        self.outcomes_of = collections.Counter()  # batch -> how many of them
        self.index_at = {}  # (batch, sequence) -> index
        self.finished = {}  # batch -> jobs
        self.observations = 0

    def see(self, entry):
        getattr(self, "see_" + entry["op"])(entry)

    def see_submit(self, entry):
        self.requests.setdefault(entry["id"], entry)

    def see_refused(self, entry):
        pass  # nothing was promised

    def see_no_answer(self, entry):
        pass

    def see_accepted(self, entry):
        answer = (entry["batch"], entry["first"], entry["jobs"])
        known = self.accepted.setdefault(entry["id"], answer)
        if known != answer:
            raise Violation(f"I4: one request, two answers: {known} and {answer} ({entry['where']})")
        self.accepted_batches.add(entry["batch"])
        submit = self.requests[entry["id"]]
        if entry["jobs"] != submit["jobs"]:
            raise Violation(f"I1: {submit['jobs']} jobs were sent and {entry['jobs']} accepted "
                            f"({entry['where']})")
        if submit["tag"]:
            stem, index = json.loads(submit["tag"]).rsplit(".", 1)
            for i in range(entry["jobs"]):
                self.tags[entry["batch"], entry["first"] + i] = f'"{stem}.{int(index) + i}"'

    def see_outcomes(self, entry):
        batch = entry["batch"]
        expected = entry["after"]
        for sequence, index, tag, code, right, digest in entry["rows"]:
            self.observations += 1
            expected += 1
            if sequence != expected:
                raise Violation(f"I2: sequence {sequence} where {expected} should be ({entry['where']})")
            if code == "ok" and not right:
                raise Violation(f"I3: batch {batch} job {index}: the result of another job "
                                f"({entry['where']})")
            # The coordinator's own repeated measurements expire when no worker had time for them.
            is_own = code == "EXPIRED" and batch not in self.accepted_batches
            if code != "ok" and code not in self.may_fail and not is_own:
                raise Violation(f"batch {batch} job {index} failed: {code} ({entry['where']})")
            seen = (sequence, tag, code, right, digest)
            if (batch, index) not in self.outcomes:
                self.outcomes[batch, index] = seen
                self.outcomes_of[batch] += 1
            known = self.outcomes[batch, index]
            if known != seen:
                raise Violation(f"I2: batch {batch} job {index} was {known}, and now {seen} "
                                f"({entry['where']})")
            at = self.index_at.setdefault((batch, sequence), index)
            if at != index:
                raise Violation(f"I2: outcome {sequence} of batch {batch} was of job {at}, and now is of "
                                f"{index} ({entry['where']})")

    def see_finished(self, entry):
        self.finished[entry["batch"]] = entry["jobs"]

    def verdict(self):
        """After the audit: nothing acknowledged is missing. Returns the counts."""
        for batch, first, jobs in self.accepted.values():
            for index in range(first, first + jobs):
                if (batch, index) not in self.outcomes:
                    raise Violation(f"I1: batch {batch} job {index} was accepted and has no outcome")
            if batch not in self.finished:
                raise Violation(f"I6: batch {batch} was accepted and never finished")
        for job, tag in self.tags.items():
            if self.outcomes[job][1] != tag:
                raise Violation(f"I3: job {job} was sent as {tag} and answered as {self.outcomes[job][1]}")
        for batch, jobs in self.finished.items():
            have = self.outcomes_of[batch]
            if have != jobs:
                raise Violation(f"I2: batch {batch} finished with {jobs} jobs and {have} outcomes")
        return {"requests": len(self.requests), "accepted": len(self.accepted),
                "batches": len(self.finished), "outcomes": len(self.outcomes),
                "observations": self.observations,
                "failed": sum(seen[2] != "ok" for seen in self.outcomes.values())}


def check(paths, database, may_fail=()):
    """Checks the histories, then that the database agrees with them. Returns the counts."""
    checker = Check(may_fail)
    for entry in read(paths):
        checker.see(entry)
    counts = checker.verdict()
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        rows = connection.execute(
            'SELECT batch, "index", tag, status FROM v_results ORDER BY batch, "index"').fetchall()
        sequences = connection.execute("SELECT batch, sequence FROM outcomes").fetchall()
        jobs = {tuple(job) for job in connection.execute("SELECT batch, idx FROM jobs")}
        # The coordinator's own batches (repeated measurements): one may begin after the audit.
        own = {of for of, in connection.execute("SELECT id FROM batches WHERE client = zeroblob(16)")}
    connection.close()
    rows = [row for row in rows if row[:2] in checker.outcomes or row[0] not in own]
    jobs = {job for job in jobs if job in checker.outcomes or job[0] not in own}
    if len(rows) != len({row[:2] for row in rows}) or len(sequences) != len(set(sequences)):
        raise Violation("I2: a job has two rows")
    if {row[:2] for row in rows} != set(checker.outcomes):
        raise Violation(f"I2: {len(rows)} rows on disk, {len(checker.outcomes)} outcomes seen")
    if jobs != {row[:2] for row in rows}:
        raise Violation(f"I1: {len(jobs)} jobs on disk, {len(rows)} outcomes")
    for batch, index, tag, status in rows:
        seen = checker.outcomes[batch, index]
        if tag != seen[1] or (status == "ok") != (seen[2] == "ok"):
            raise Violation(f"I2: batch {batch} job {index}: on disk {tag} {status}, seen {seen}")
    return counts

"""The messages that a session sends and when, without a coordinator: with a fake clock and scripted answers."""

import pytest

import loopfleet
from loopfleet import _core
from loopfleet.batch import Batch
from loopfleet.session import Limits, Session

MM = "benchmark://mm-v0/mm8_8_8"
BUSY = ("BUSY", "the table is full", None, 200, True)


class Line:
    """A session, its clock, and the coordinator's end. Answers are given decoded, as decode_reply() returns them."""

    def __init__(self, monkeypatch, **limits):
        self.now = 100.0
        self.session = Session("here", "a test", Limits(**limits))
        self._answers = {}
        monkeypatch.setattr(_core, "decode_reply", self._answers.get)

    def ask(self):
        """Sends a request; returns its number and the list that receives its reply or error."""
        told = []
        number = self.session.request(lambda number: b"%d" % number, self.now, lambda *reply: told.append(reply),
                                      told.append)
        return number, told

    def answer(self, number, kind, content):
        self._answers[b"x"] = (number, kind, content)
        self.session.receive(b"x", self.now)

    def welcome(self, incarnation=bytes(16), minor=4):
        self.answer(max(self.session._hellos), "welcome", ("coordinator", 1, incarnation, minor))

    def said(self, after=0.0):
        """The frames sent within a time."""
        end = self.now + after
        while (soonest := self.session.tick(self.now)) <= end and soonest > self.now:
            self.now = soonest
        self.now = end
        self.session.tick(self.now)
        frames = list(self.session.outbox)
        self.session.outbox.clear()
        return frames


@pytest.fixture
def line(monkeypatch):
    return Line(monkeypatch, busy=10.0)


def test_what_is_refused_for_now_is_asked_again_when_it_was_told(line):
    number, told = line.ask()
    line.welcome()
    line.said()
    for _ in range(5):
        line.answer(number, "refused", BUSY)
        assert line.said(after=0.19) == [] and line.said(after=0.02) == [b"%d" % number]
    line.answer(number, "workers", "them")
    assert told == [("workers", "them")]


def test_a_refusal_that_does_not_pass_in_time_is_the_answer(line):
    number, told = line.ask()
    line.welcome()
    line.answer(number, "refused", BUSY)
    line.said(after=10.0)
    line.answer(number, "refused", BUSY)
    assert told == [("refused", BUSY)]


def test_what_a_request_is_refused_with_for_now_can_be_told(line):
    number, _ = line.ask()
    line.answer(max(line.session._hellos), "refused", BUSY)
    assert line.session.last_refusal(number) == "BUSY: the table is full; try again in 0.2 s"
    line.said(after=1.1)
    line.welcome()
    line.answer(number, "refused", ("QUOTA_EXCEEDED", "too many jobs", None, 0, True))
    assert line.session.last_refusal(number) == "QUOTA_EXCEEDED: too many jobs"
    line.said(after=0.2)
    line.answer(number, "workers", "them")
    assert line.session.last_refusal(number) == ""


def test_a_greeting_that_is_refused_for_now_is_said_again_and_not_at_once(line):
    number, told = line.ask()
    line.said()
    for _ in range(5):
        line.answer(max(line.session._hellos), "refused", BUSY)
        line.answer(number, "refused", ("UNAUTHENTICATED", "say hello", None, 0, False))
        assert line.said(after=0.19) == []
        assert line.said(after=0.02) == [b"%d" % number]
        line.answer(number, "refused", ("UNAUTHENTICATED", "say hello", None, 0, False))
        assert len(line.said()) == 2, "a hello and the request"
    line.welcome()
    line.answer(number, "workers", "them")
    assert told == [("workers", "them")]
    number, told = line.ask()
    line.said(after=10.0)
    line.answer(max(line.session._hellos), "refused", BUSY)
    assert [type(error) for error in told] == [loopfleet.Refused]


def test_another_database_ends_every_request(line):
    number, _ = line.ask()
    line.welcome(b"a" * 16)
    line.answer(number, "workers", "them")
    number, told = line.ask()
    line.said()
    line.answer(number, "refused", ("UNAUTHENTICATED", "say hello", None, 0, False))
    line.welcome(b"b" * 16)
    line.answer(number, "workers", "of others")
    assert [type(error) for error in told] == [loopfleet.CoordinatorReplaced]
    _, told = line.ask()
    assert [type(error) for error in told] == [loopfleet.CoordinatorReplaced]


def test_a_restart_or_an_upgrade_replaces_no_database(line):
    for incarnation in (bytes(16), b"a" * 16, b"a" * 16, bytes(16)):
        number, told = line.ask()
        line.said()
        if not line.session._hellos:
            line.answer(number, "refused", ("UNAUTHENTICATED", "say hello", None, 0, False))
        line.welcome(incarnation)
        line.answer(number, "workers", "them")
        assert told == [("workers", "them")]


class Submitted:
    """A batch of jobs on a line."""

    def __init__(self, line, count):
        self.line = line
        self.ended = []
        self.batch = Batch(line.session, lambda: line.now, [_core.Job.simple(MM, []) for _ in range(count)],
                           lambda rows: None, self.ended.append)
        self.batch.start()
        if line.session._hellos:
            line.welcome()

    @property
    def newest(self):
        return max(self.line.session._pending)


@pytest.mark.parametrize("minor", [0, 1])
def test_a_job_that_the_coordinator_would_misread_fails_unsent(line, monkeypatch, minor):
    jobs = [loopfleet.job(MM, min_grade="B"), loopfleet.job(MM), loopfleet.job(MM, min_grade="A")]
    submitted, rows, ended = [], [], []
    monkeypatch.setattr(_core, "encode_submit", lambda number, request, batch, part, more: submitted.append(part) or b"")
    batch = Batch(line.session, lambda: line.now, list(jobs), rows.extend, ended.append)
    batch.start()
    assert submitted == [], "its version is not known yet"
    line.welcome(minor=minor)
    line.answer(max(line.session._pending), "welcome", ("coordinator", 1, bytes(16), minor))
    assert submitted == ([[jobs[1]]] if minor == 0 else [jobs]) and ended == []
    assert [(place, outcome.status) for place, outcome in rows] == ([(2, "UNSUPPORTED"), (0, "UNSUPPORTED")] if minor == 0 else [])
    for only in (jobs[:1], jobs[1:2]):
        Batch(line.session, lambda: line.now, list(only), rows.extend, ended.append).start()
    assert len(submitted) == (2 if minor == 0 else 3) and ended == ([None] if minor == 0 else [])
    assert all("speaks 1.0: upgrade it" in outcome.message for _, outcome in rows)


def test_a_batch_that_waits_for_the_version_tells_what_is_refused(line):
    ended = []
    batch = Batch(line.session, lambda: line.now, [loopfleet.job(MM, min_grade="B")], lambda rows: None, ended.append)
    batch.start()
    line.answer(max(line.session._pending), "refused", BUSY)
    assert "BUSY" in batch.last_refusal
    batch.cancel()
    assert ended == [None]


def test_a_batch_outlives_a_busy_fetch(line):
    one = Submitted(line, 1)
    line.answer(one.newest, "accepted", (7, 0, 1))
    fetch = one.newest
    line.answer(fetch, "refused", BUSY)
    line.said(after=0.2)
    assert one.ended == [] and one.newest == fetch
    line.answer(fetch, "outcomes", ({"state": "done", "finished": 0, "job_count": 0}, []))
    assert one.ended == [None]


def test_a_batch_that_is_cancelled_before_it_is_accepted_is_cancelled_when_it_is(line, monkeypatch):
    cancelled = []
    monkeypatch.setattr(_core, "encode_cancel", lambda number, batch: cancelled.append(batch) or b"cancel")
    most = _core.MAX_JOBS_PER_MESSAGE
    one = Submitted(line, most + 1)
    first = one.newest
    one.batch.cancel()
    assert one.ended == [] and cancelled == []
    line.answer(first, "accepted", (7, 0, most))
    assert cancelled == [7] and len(line.session._pending) == 1, "and no further part is sent"
    one.batch.cancel()
    assert cancelled == [7]
    line.answer(one.newest, "cancelled", {})
    assert one.ended == [None] and line.session.idle


def test_a_batch_that_is_refused_for_now_is_taken_back_when_it_is_cancelled(line):
    one = Submitted(line, 1)
    line.answer(one.newest, "refused", BUSY)
    one.batch.cancel()
    assert one.ended == [None] and line.session.idle
    one = Submitted(line, 1)
    number = one.newest
    line.said(after=1.0)  # two copies are in flight
    line.answer(number, "refused", BUSY)
    one.batch.cancel()
    assert one.ended == [], "the other one may have been accepted"

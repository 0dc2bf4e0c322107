"""Client: submits jobs to a coordinator and returns their outcomes, with blocking calls. See also
AsyncClient."""

from __future__ import annotations

import hashlib
import itertools
import numbers
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout  # the builtin one from Python 3.11 on
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from ._core import Job, LoopTree, Outcome, counted
from .batch import Batch
from .best_schedule import BestSchedule
from .bitcode import read_bitcode, uri_of
from .confirmation import REPEATS, Confirmation, Winners
from .errors import ClientClosed, DeadlineExceeded, LoopfleetError, Refused, of_ticket
from .io_thread import IoThread
from .jobs import Actions, JobFields, JobLike, job, jobs_of, make_jobs
from .observed_blob import in_full
from .profile import Level, Profile, profile_job
from .results import ResultBatch
from .session import Limits
from .settings import find_address, find_keys

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Following(NamedTuple):
    """A batch that a call waits for."""

    cancel: Callable[[], None]  # what has not run yet
    refusal: Callable[[], str]  # what the coordinator refuses for now, and why; "": nothing


class Client:
    """A connection to a coordinator. Safe from several threads.

    ``address`` comes from the argument, LOOPFLEET_ADDRESS, the configuration file, the newest running
    LocalCluster of this process, or is tcp://127.0.0.1:5570. Nothing is sent before the first call.

    A restart of the coordinator is waited out: unanswered requests are sent again. Since each
    submission carries its own id, this never submits twice. A silence longer than
    ``silence_limit`` seconds (``connect_limit`` before the first answer) raises
    CoordinatorUnavailable. Requests refused temporarily (BUSY, QUOTA_EXCEEDED, STORAGE_FULL,
    SHUTTING_DOWN) are repeated for ``busy_limit`` seconds.
    """

    def __init__(self, address: str | None = None, *, keys: str | os.PathLike | None = None,
                 timeout: float | None = None, connect_limit: float = 10.0, silence_limit: float = 60.0,
                 busy_limit: float = 600.0, program: str = f"loopfleet-python {_core.__version__}"):
        self.address = find_address(address)
        self.timeout = timeout  # seconds, default for calls; None: no limit
        self._keys = find_keys(keys, self.address)
        self._program = program
        self._limits = Limits(connect=connect_limit, silence=silence_limit, busy=busy_limit)
        self._lock = threading.Lock()
        self._io: IoThread | None = None
        self._closed = False
        self._finalizer: Any = None
        self._arrived: queue.SimpleQueue = queue.SimpleQueue()
        self._tickets = itertools.count()
        self._expected = 0  # of send(): neither received nor reserved by a waiting recv()

    def __repr__(self) -> str:
        return f"<Client of {self.address}{', closed' if self._closed else ''}>"

    # ---- jobs

    def evaluate(self, benchmark: str | None = None, actions: Actions = (), *, timeout: float | None = None,
                 **fields: Unpack[JobFields]) -> Outcome:
        """Measures one schedule and waits for it. Check ``outcome.ok``: a failed job does not
        raise."""
        given = {"benchmark": benchmark} if benchmark is not None else {}
        return self.evaluate_many([{**given, "actions": actions, **fields}], timeout=timeout).outcomes[0]

    def evaluate_many(self, jobs: Iterable[JobLike], *, timeout: float | None = None,
                      on_outcome: Callable[[int, Outcome], None] | None = None) -> ResultBatch:
        """Measures many schedules and waits for all. Rows are in the order of ``jobs``; failed
        rows carry the reason.

        ``on_outcome(place, outcome)`` is called in the caller's thread as each finishes.
        TypeError: ``jobs`` is one job.
        """
        outcomes: dict[int, Outcome] = {}
        for place, outcome in self._stream(jobs_of(jobs), timeout):
            outcomes[place] = outcome
            if on_outcome is not None:
                on_outcome(place, outcome)
        return ResultBatch([outcomes[place] for place in range(len(outcomes))])

    def as_completed(self, jobs: Iterable[JobLike], *, timeout: float | None = None
                     ) -> Iterator[tuple[int, Outcome]]:
        """Yields (index in ``jobs``, outcome) as each finishes. Leaving the loop early cancels the
        rest."""
        return self._stream(jobs_of(jobs), timeout)

    def confirm(self, jobs: Iterable[JobLike], results: Sequence[Outcome], *, most: int = 5, repeats: int = REPEATS,
                timeout: float | None = None) -> Confirmation:
        """Measures the ``most`` quickest kernels of each benchmark and hardware class ``repeats``
        times more, in turns, and waits for it; on a busy host more often, until so many figures have
        grade A or B, for 2 s or a little more. Shows by how much their first figures were too good.

        ``results`` is what evaluate_many(jobs) returned; ValueError if it is of other jobs. Trees
        with the same machine code are one kernel; a figure of grade D does not win."""
        winners = Winners(jobs, results, most)
        turns = winners.turns(repeats)
        deadline = self._deadline(timeout)
        turns.measure(lambda jobs: self.evaluate_many(jobs, timeout=time_left(deadline)), deadline)
        return winners.confirmed(turns.outcomes)

    def profile(self, benchmark: JobLike | None = None, actions: Actions = (), *, level: Level = "lines",
                timeout: float | None = None, **fields: Unpack[JobFields]) -> Profile:
        """Where the time of a kernel goes: by roots of its tree, loops, or lines. Waits for it.

        ``benchmark``: a URI, or a job, whose tree is profiled; `fresh=True` for a new profile where one is
        stored. Check ``profile.ok``: a failed job does not raise. print() shows it beside the tree."""
        asked = profile_job(benchmark, actions, level, fields)
        return Profile.of(asked, self.evaluate_many([asked], timeout=timeout).outcomes[0])

    def submit(self, benchmark: str | None = None, actions: Actions = (), **fields: Unpack[JobFields]
               ) -> Future[Outcome]:
        """Starts one job. Jobs submitted in quick succession form one batch."""
        given = {"benchmark": benchmark} if benchmark is not None else {}
        return self.submit_job({**given, "actions": actions, **fields})

    def submit_job(self, job: JobLike) -> Future[Outcome]:
        return self.submit_jobs([job])[0]

    def submit_jobs(self, jobs: Iterable[JobLike]) -> list[Future[Outcome]]:
        """Starts many jobs, sent as one batch."""
        made, places, failed = make_jobs(jobs)
        futures: list[Future[Outcome]] = [Future() for _ in range(len(made) + len(failed))]
        for future in futures:
            future.set_running_or_notify_cancel()
        for place, outcome in failed:
            futures[place].set_result(outcome)
        if made:
            self._thread().submit([(job, futures[place].set_result, futures[place].set_exception)
                                   for job, place in zip(made, places)])
        return futures

    def send(self, jobs: Iterable[JobLike]) -> list[int]:
        """Starts jobs whose outcomes recv() returns; returns their tickets."""
        futures = self.submit_jobs(jobs)
        tickets = [next(self._tickets) for _ in futures]
        with self._lock:
            self._expected += len(futures)
        for ticket, future in zip(tickets, futures):
            future.add_done_callback(lambda done, ticket=ticket: self._arrived.put((ticket, done)))
        return tickets

    def recv(self, min_n: int = 1, *, timeout: float | None = None) -> list[tuple[int, Outcome]]:
        """Returns (ticket, outcome) of at least ``min_n`` jobs of send(), and of all others that
        have arrived.

        If a job has no outcome (the coordinator is unreachable), its error is raised with its
        ``ticket``; another call returns the others. Nothing is lost on a timeout."""
        with self._lock:
            need_on_the_way(min_n, self._expected)
            self._expected -= min_n
        promised = min_n  # reserved for this call; other threads wait for others
        deadline = self._deadline(timeout)
        got: list[tuple[int, Future[Outcome]]] = []
        try:
            while True:
                if len(got) < promised:
                    try:
                        ticket, future = self._arrived.get(timeout=time_left(deadline))
                    except queue.Empty:
                        raise DeadlineExceeded(f"{len(got)} of {counted(min_n, 'outcome', 'outcomes')} arrived in time") from None
                else:
                    with self._lock:
                        if not self._expected:
                            break
                        try:
                            ticket, future = self._arrived.get_nowait()
                        except queue.Empty:
                            break
                        self._expected -= 1
                        promised += 1
                if (error := future.exception()) is not None:
                    promised -= 1  # raising it counts as receiving it
                    raise of_ticket(ticket, error)
                got.append((ticket, future))
        except BaseException:
            with self._lock:
                self._expected += promised
            for each in got:
                self._arrived.put(each)
            raise
        return [(ticket, future.result()) for ticket, future in got]

    # ---- the fleet

    def workers(self, *, timeout: float | None = None) -> list[dict[str, Any]]:
        """The coordinator's workers, with the fields of ``loopfleet worker list --json`` and the measured
        ``peak_gflops``."""
        return self._ask(_core.encode_list_workers, "workers", timeout)

    devices = workers

    def batches(self, most: int = 100, *, timeout: float | None = None) -> list[dict[str, Any]]:
        """The newest batches of all clients; older unfinished ones take up to half of the places."""
        return self._ask(lambda number: _core.encode_list_batches(number, most), "batches", timeout)

    def outcomes(self, batch: int, *, timeout: float | None = None) -> Iterator[Outcome]:
        """The outcomes of any batch so far, in the order of finishing."""
        if isinstance(batch, bool) or not isinstance(batch, numbers.Integral) or not 1 <= batch < 2**63:
            raise ValueError(f"{batch!r:.60} is no batch's number")
        batch, after = int(batch), 0
        while True:
            info, page = self._ask(lambda number, after=after: _core.encode_fetch(number, batch, after, 0),
                                   "outcomes", timeout)
            yield from page
            if not page:
                return
            after = page[-1].sequence

    def find_best(self, benchmark: str | LoopTree | None = None, *, limit: int = 1, hardware_class: str = "",
                  timeout: float | None = None, **fields: Unpack[JobFields]) -> list[BestSchedule]:
        """The fastest known schedules of a program, the fastest first; empty: none is known. The
        program is a benchmark's, a LoopTree's (whose loops do not matter), or given as ``ir=``. Of
        the other job fields ``threads``, ``cache``, ``dialect`` and ``device`` count.
        ``hardware_class``: measured by workers of this class; "": of any. At most 64."""
        if isinstance(benchmark, LoopTree):
            fields["ir"], benchmark = benchmark.serialize(), None
        asked = job(benchmark, **fields)
        found = self._ask(lambda number: _core.encode_find_best(number, asked, hardware_class, limit), "jobs", timeout)
        return [BestSchedule(*each) for each in found]

    def add_program(self, program: str | os.PathLike | bytes, *, timeout: float | None = None) -> str:
        """Sends LLVM bitcode (a file's, or bytes) to the coordinator; returns its benchmark,
        "bitcode://sha256/…". At most 16 MiB. What a broken call has sent already is not sent
        again. ValueError: it is no bitcode, or too large. Refused: INVALID_BENCHMARK, another
        client keeps sending other bytes as this program; BUSY, others' programs take its room; QUOTA_EXCEEDED,
        this client's own do, and all are in use (docs/SECURITY.md, "Quotas")."""
        bitcode = read_bitcode(program)
        uri = uri_of(bitcode)
        sha256 = uri.rpartition("/")[2]
        deadline = self._deadline(timeout)

        def put(offset: int, piece: bytes) -> int:
            return self._ask(lambda number: _core.encode_put_blob(number, sha256, len(bitcode), offset, piece),
                             "blob_held", time_left(deadline))

        held, setbacks = -1, 0  # -1: unknown, so the first message asks
        while held < len(bitcode):
            piece = b"" if held < 0 else bitcode[held:held + _core.MAX_BLOB_PIECE_BYTES]
            wrong = None
            try:
                now_held = put(max(held, 0), piece)
            except Refused as error:
                if error.code != "INVALID_BENCHMARK":
                    raise
                now_held, wrong = 0, error
            # Another client sent a part that was not of this program, or others' programs took its room.
            if wrong or now_held <= held:
                setbacks += 1
            if setbacks == 3:
                raise wrong or Refused("BUSY", "the coordinator dropped what came of the program, to make room for "
                                       "others (--uploads-size)", True)
            held = now_held
        return uri

    def get_blob(self, sha256: str, *, timeout: float | None = None) -> bytes:
        """The bytes of an observed value that is too large for an outcome, by the "sha256" that stands there.
        Refused: NOT_FOUND, the coordinator keeps it no more, and a job with ``fresh=True`` observes it again; BUSY, many
        clients ask at once."""
        deadline = self._deadline(timeout)
        got, total = b"", 1
        while len(got) < total:
            offset = len(got)
            total, piece = self._ask(lambda number: _core.encode_get_blob(number, sha256, offset), "blob_piece", time_left(deadline))
            if total == 0:
                raise Refused("NOT_FOUND", f"the coordinator does not keep the blob {sha256} (any more); fresh=True observes it again")
            if not piece:
                raise LoopfleetError(f"the blob {sha256} came with a gap")
            got += piece
        if hashlib.sha256(got).hexdigest() != sha256:
            raise LoopfleetError(f"the blob {sha256} came with another hash")
        return got

    def observed(self, outcome: Outcome, *, timeout: float | None = None) -> dict[str, Any]:
        """``outcome.observed`` in full: large values are brought from the coordinator, and Bitcode and Programl are
        bytes. Refused: NOT_FOUND, as get_blob()."""
        deadline = self._deadline(timeout)

        def get_blob(sha256: str) -> bytes:
            return self.get_blob(sha256, timeout=time_left(deadline))

        return {name: in_full(name, value, get_blob) for name, value in (outcome.observed or {}).items()}

    def peak_gflops(self, *, timeout: float | None = None) -> float:
        """The highest measured peak of the ready workers; 0: unknown."""
        return max((w["peak_gflops"] for w in self.workers(timeout=timeout) if w["state"] == "ready"), default=0.0)

    # ---- life

    def close(self) -> None:
        """Ends every waiting call with ClientClosed. Submitted jobs continue at the
        coordinator. Waits for up to a second until those of calls that ended early are cancelled."""
        with self._lock:
            self._closed = True
            io, self._io = self._io, None
        if io is not None:
            self._finalizer.detach()
            _stop(io)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process is an independent client.
        return {"address": self.address, "keys": self._keys, "timeout": self.timeout,
                "limits": (self._limits.connect, self._limits.silence, self._limits.busy), "program": self._program}

    def __setstate__(self, state: dict[str, Any]) -> None:
        connect, silence, busy = state["limits"]
        self.__init__(state["address"], keys=state["keys"], timeout=state["timeout"], connect_limit=connect,
                      silence_limit=silence, busy_limit=busy, program=state["program"])
        self._keys = state["keys"]  # None, too: the environment of the other process does not count

    def _thread(self) -> IoThread:
        with self._lock:
            if self._closed:
                raise ClientClosed("the client is closed")
            if self._io is not None and (self._io.pid != os.getpid() or not self._io.is_alive()):
                # A forked process has no such thread, and the inherited socket belongs to the
                # parent.
                self._io = None
            if self._io is None:
                self._io = IoThread(self.address, self._keys, self._program, self._limits)
                self._io.start()
                self._finalizer = weakref.finalize(self, _stop, self._io)
            return self._io

    def _deadline(self, timeout: float | None) -> float | None:
        chosen = self.timeout if timeout is None else timeout
        return None if chosen is None else time.monotonic() + chosen

    def _ask(self, encode: Callable[[int], bytes], kind: str, timeout: float | None) -> Any:
        io = self._thread()
        future: Future[Any] = Future()

        def on_reply(got: str, content: Any) -> None:
            if got == kind:
                future.set_result(content)
            elif got == "refused":
                future.set_exception(Refused(content[0], content[1], content[4], content[3]))
            else:
                future.set_exception(LoopfleetError(f"the coordinator answered with '{got}', not '{kind}'"))

        asked: list[int] = []

        def ask() -> None:
            try:
                asked.append(io.session.request(encode, time.monotonic(), on_reply, future.set_exception))
            except Exception as error:  # arguments that cannot be encoded
                future.set_exception(error)

        io.post(ask)
        try:
            return future.result(time_left(self._deadline(timeout)))
        except FutureTimeout as error:
            if future.done():
                raise
            raise deadline_exceeded("no answer in the given time",
                                    io.session.last_refusal(asked[0]) if asked else "") from error

    def _stream(self, given: list[JobLike], timeout: float | None) -> Iterator[tuple[int, Outcome]]:
        jobs, places, failed = make_jobs(given)
        yield from failed
        if not jobs:
            return
        deadline = self._deadline(timeout)
        arrived: queue.SimpleQueue = queue.SimpleQueue()
        following = self._follow(jobs, arrived.put)
        ended = False
        try:
            while True:
                try:
                    item = arrived.get(timeout=time_left(deadline))
                except queue.Empty:
                    raise deadline_exceeded("timed out; jobs that had not run were cancelled", following.refusal()) from None
                if isinstance(item, list):
                    for place, outcome in item:
                        yield places[place], outcome
                    continue
                ended = True
                if item is not None:
                    raise item
                return
        finally:
            if not ended:
                following.cancel()

    def _follow(self, jobs: list[Job], put: Callable[[Any], None]) -> Following:
        """Starts one batch. ``put`` is called in the client's thread with lists of (index,
        outcome), and at the end with None or the error that ended the batch."""
        io = self._thread()
        started: list[Batch] = []
        io.post(lambda: started.append(io.start_batch(jobs, put, put)))

        def cancel() -> None:
            try:
                io.post(lambda: started[0].cancel())
            except ClientClosed:
                pass

        return Following(cancel, lambda: started[0].last_refusal if started else "")


def need_on_the_way(min_n: int, expected: int) -> None:
    """ValueError: recv(min_n) would wait for jobs that were never sent."""
    if min_n < 0:
        raise ValueError(f"min_n must be at least 0, not {min_n}")
    if min_n > expected:
        raise ValueError(f"{counted(min_n, 'outcome', 'outcomes')} wanted, but only {counted(expected, 'job is', 'jobs are')} on the way")


def time_left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def deadline_exceeded(what: str, refusal: str) -> DeadlineExceeded:
    return DeadlineExceeded(f"{what}; the coordinator said {refusal}" if refusal else what)


def _stop(io: IoThread) -> None:
    if io.pid == os.getpid() and io.is_alive():
        io.stop()
        if threading.current_thread() is not io:
            io.join(5)

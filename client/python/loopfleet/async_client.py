"""AsyncClient: the methods of Client as coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._core import LoopTree, Outcome
from .best_schedule import BestSchedule
from .client import Client, deadline_exceeded, need_on_the_way, time_left
from .confirmation import REPEATS, Confirmation, Winners
from .errors import DeadlineExceeded, of_ticket
from .jobs import Actions, JobFields, JobLike, make_jobs
from .profile import Level, Profile, profile_job
from .results import ResultBatch

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass
class _Taking:
    """The progress of one recv()."""

    promised: int  # outcomes reserved for it; other tasks wait for others
    got: list[tuple[int, asyncio.Future[Outcome]]] = field(default_factory=list)
    failed: list[tuple[int, asyncio.Future[Outcome]]] = field(default_factory=list)  # at most one; it ends the recv()


class AsyncClient:
    """A Client for one event loop, with the same arguments. A thread of its own does the I/O, so a
    busy loop does not delay requests or replies."""

    def __init__(self, address: str | None = None, **options: Any):
        self._client = Client(address, **options)
        self._arrived: asyncio.Queue = asyncio.Queue()
        self._tickets = itertools.count()
        self._expected = 0  # of send(): neither received nor reserved by a waiting recv()

    def __repr__(self) -> str:
        return f"<AsyncClient of {self.address}>"

    @property
    def address(self) -> str:
        return self._client.address

    def submit(self, benchmark: str | None = None, actions: Actions = (), **fields: Unpack[JobFields]
               ) -> asyncio.Future[Outcome]:
        return asyncio.wrap_future(self._client.submit(benchmark, actions, **fields))

    def submit_job(self, job: JobLike) -> asyncio.Future[Outcome]:
        return asyncio.wrap_future(self._client.submit_job(job))

    def submit_jobs(self, jobs: Iterable[JobLike]) -> list[asyncio.Future[Outcome]]:
        return [asyncio.wrap_future(future) for future in self._client.submit_jobs(jobs)]

    async def evaluate(self, benchmark: str | None = None, actions: Actions = (), *,
                       timeout: float | None = None, **fields: Unpack[JobFields]) -> Outcome:
        if timeout is None and self._client.timeout is None:
            return await self._within(self.submit(benchmark, actions, **fields), None)  # in one batch with others
        given = {"benchmark": benchmark} if benchmark is not None else {}
        return (await self.evaluate_many([{**given, "actions": actions, **fields}], timeout=timeout)).outcomes[0]

    async def evaluate_many(self, jobs: Iterable[JobLike], *, timeout: float | None = None,
                            on_outcome: Callable[[int, Outcome], None] | None = None) -> ResultBatch:
        outcomes: dict[int, Outcome] = {}
        async with contextlib.aclosing(self.as_completed(jobs, timeout=timeout)) as finished:
            async for place, outcome in finished:
                outcomes[place] = outcome
                if on_outcome is not None:
                    on_outcome(place, outcome)
        return ResultBatch([outcomes[place] for place in range(len(outcomes))])

    async def as_completed(self, jobs: Iterable[JobLike], *, timeout: float | None = None
                           ) -> AsyncGenerator[tuple[int, Outcome], None]:
        """Yields (index in ``jobs``, outcome) as each finishes. Leaving the loop early cancels the
        rest: when the event loop closes this generator, or at once with contextlib.aclosing()."""
        made, places, failed = make_jobs(jobs)
        for each in failed:
            yield each
        if not made:
            return
        deadline = self._client._deadline(timeout)
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue = asyncio.Queue()

        def put(item: Any) -> None:
            try:
                loop.call_soon_threadsafe(arrived.put_nowait, item)
            except RuntimeError:  # the loop is closed, so nothing waits
                pass

        following = self._client._follow(made, put)
        ended = False
        try:
            while not ended:
                item = await self._until(arrived.get(), deadline, following.refusal)
                if isinstance(item, list):
                    for place, outcome in item:
                        yield places[place], outcome
                    continue
                ended = True
                if item is not None:
                    raise item
        finally:
            if not ended:
                following.cancel()

    async def confirm(self, jobs: Iterable[JobLike], results: Sequence[Outcome], *, most: int = 5,
                      repeats: int = REPEATS, timeout: float | None = None) -> Confirmation:
        winners = Winners(jobs, results, most)
        turns = winners.turns(repeats)
        deadline = self._client._deadline(timeout)
        turns.add(await self.evaluate_many(turns.jobs(), timeout=time_left(deadline)))
        with contextlib.suppress(DeadlineExceeded):  # the figures that there are, are enough
            while (pause := turns.pause()) is not None:
                await asyncio.sleep(pause if deadline is None else min(pause, time_left(deadline)))
                turns.add(await self.evaluate_many(turns.jobs(), timeout=time_left(deadline)))
        return winners.confirmed(turns.outcomes)

    async def profile(self, benchmark: JobLike | None = None, actions: Actions = (), *, level: Level = "lines",
                      timeout: float | None = None, **fields: Unpack[JobFields]) -> Profile:
        asked = profile_job(benchmark, actions, level, fields)
        return Profile.of(asked, (await self.evaluate_many([asked], timeout=timeout)).outcomes[0])

    async def send(self, jobs: Iterable[JobLike]) -> list[int]:
        """Starts jobs whose outcomes recv() returns; returns their tickets."""
        tickets = []
        for future in self.submit_jobs(jobs):
            tickets.append(next(self._tickets))
            self._expected += 1
            future.add_done_callback(lambda done, ticket=tickets[-1]: self._arrived.put_nowait((ticket, done)))
        return tickets

    async def recv(self, min_n: int = 1, *, timeout: float | None = None) -> list[tuple[int, Outcome]]:
        """Returns (ticket, outcome) of at least ``min_n`` jobs, and of all others that have
        arrived. Nothing is lost if recv() is cancelled, times out, or raises the error of one job
        (named by its ``ticket``)."""
        need_on_the_way(min_n, self._expected)
        self._expected -= min_n
        taking = _Taking(min_n)
        try:
            await self._within(self._take(taking), timeout)
            if taking.failed:
                ticket, done = taking.failed.pop()
                taking.promised -= 1  # raising it counts as receiving it
                raise of_ticket(ticket, done.exception())
        except BaseException:
            self._expected += taking.promised
            for each in taking.got + taking.failed:
                self._arrived.put_nowait(each)
            raise
        return [(ticket, done.result()) for ticket, done in taking.got]

    async def _take(self, taking: _Taking) -> None:
        while not taking.failed and (len(taking.got) < taking.promised
                                     or (self._expected and not self._arrived.empty())):
            if len(taking.got) == taking.promised:
                self._expected -= 1
                taking.promised += 1
            ticket, done = await self._arrived.get()
            (taking.got if done.exception() is None else taking.failed).append((ticket, done))

    async def workers(self, *, timeout: float | None = None) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._client.workers, timeout=timeout)

    devices = workers

    async def batches(self, most: int = 100, *, timeout: float | None = None) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._client.batches, most, timeout=timeout)

    async def outcomes(self, batch: int, *, timeout: float | None = None) -> AsyncIterator[Outcome]:
        rows = self._client.outcomes(batch, timeout=timeout)
        while (outcome := await asyncio.to_thread(next, rows, None)) is not None:
            yield outcome

    async def add_program(self, program: str | os.PathLike | bytes, *, timeout: float | None = None) -> str:
        return await asyncio.to_thread(self._client.add_program, program, timeout=timeout)

    async def get_blob(self, sha256: str, *, timeout: float | None = None) -> bytes:
        return await asyncio.to_thread(self._client.get_blob, sha256, timeout=timeout)

    async def observed(self, outcome: Outcome, *, timeout: float | None = None) -> dict[str, Any]:
        return await asyncio.to_thread(self._client.observed, outcome, timeout=timeout)

    async def find_best(self, benchmark: str | LoopTree | None = None, *, limit: int = 1, hardware_class: str = "",
                        timeout: float | None = None, **fields: Unpack[JobFields]) -> list[BestSchedule]:
        return await asyncio.to_thread(self._client.find_best, benchmark, limit=limit, hardware_class=hardware_class,
                                       timeout=timeout, **fields)

    async def peak_gflops(self, *, timeout: float | None = None) -> float:
        return await asyncio.to_thread(self._client.peak_gflops, timeout=timeout)

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _within(self, awaitable: Any, timeout: float | None) -> Any:
        return await self._until(awaitable, self._client._deadline(timeout))

    async def _until(self, awaitable: Any, deadline: float | None, refusal: Callable[[], str] = lambda: "") -> Any:
        """Not by asyncio.wait_for(), which loses a cancellation that comes together with the result
        (before Python 3.12)."""
        left = time_left(deadline)
        working = asyncio.ensure_future(awaitable)
        try:
            in_time, _ = await asyncio.wait({working}, timeout=left)
        except asyncio.CancelledError:
            working.cancel()
            raise
        if not in_time and working.cancel():
            await asyncio.wait({working})
            raise deadline_exceeded("no answer in the given time", refusal())
        return working.result()

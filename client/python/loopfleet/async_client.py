"""AsyncClient: the same names as Client, to be awaited."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable
from typing import Any

from ._core import Outcome
from .client import Client
from .errors import DeadlineExceeded, of_ticket
from .jobs import Actions, JobLike
from .results import ResultBatch


class AsyncClient:
    """A Client for one event loop. Takes the same arguments; its thread does the talking, so a busy loop
    delays nobody's heartbeat."""

    def __init__(self, address: str | None = None, **options: Any):
        self._client = Client(address, **options)
        self._arrived: asyncio.Queue = asyncio.Queue()
        self._tickets = itertools.count()
        self._expected = 0  # of send(), not yet received

    @property
    def address(self) -> str:
        return self._client.address

    def submit(self, benchmark: str | None = None, actions: Actions = (), **fields: Any
               ) -> asyncio.Future[Outcome]:
        return asyncio.wrap_future(self._client.submit(benchmark, actions, **fields))

    def submit_job(self, job: JobLike) -> asyncio.Future[Outcome]:
        return asyncio.wrap_future(self._client.submit_job(job))

    def submit_jobs(self, jobs: Iterable[JobLike]) -> list[asyncio.Future[Outcome]]:
        return [asyncio.wrap_future(future) for future in self._client.submit_jobs(jobs)]

    async def evaluate(self, benchmark: str | None = None, actions: Actions = (), *,
                       timeout: float | None = None, **fields: Any) -> Outcome:
        return await self._within(self.submit(benchmark, actions, **fields), timeout)

    async def evaluate_many(self, jobs: Iterable[JobLike], *, timeout: float | None = None) -> ResultBatch:
        futures = [self.submit_job(job) for job in jobs]
        return ResultBatch(await self._within(asyncio.gather(*futures), timeout))

    async def as_completed(self, jobs: Iterable[JobLike]) -> AsyncIterator[tuple[int, Outcome]]:
        """(place in ``jobs``, outcome) of each as it finishes."""
        arrived: asyncio.Queue = asyncio.Queue()
        count = 0
        for place, job in enumerate(jobs):
            self.submit_job(job).add_done_callback(lambda done, place=place: arrived.put_nowait((place, done)))
            count += 1
        for _ in range(count):
            place, done = await arrived.get()
            yield place, done.result()

    async def send(self, jobs: Iterable[JobLike]) -> list[int]:
        """Starts jobs whose outcomes recv() gives; their tickets."""
        tickets = []
        for future in self.submit_jobs(jobs):
            tickets.append(next(self._tickets))
            self._expected += 1
            future.add_done_callback(lambda done, ticket=tickets[-1]: self._arrived.put_nowait((ticket, done)))
        return tickets

    async def recv(self, min_n: int = 1, *, timeout: float | None = None) -> list[tuple[int, Outcome]]:
        """(ticket, outcome): at least ``min_n`` of them, and all that are there. Nothing is lost by a recv() that
        is cancelled, whose time is over, or that raises what became of one job (its ``ticket`` says which)."""
        if min_n > self._expected:
            raise ValueError(f"{min_n} outcomes wanted, but only {self._expected} jobs are on their way")
        return await self._within(self._gather(min_n), timeout)

    async def _gather(self, min_n: int) -> list[tuple[int, Outcome]]:
        got: list[tuple[int, asyncio.Future[Outcome]]] = []
        try:
            while len(got) < min_n or not self._arrived.empty():
                ticket, done = await self._arrived.get()
                self._expected -= 1
                if (error := done.exception()) is not None:
                    raise of_ticket(ticket, error)
                got.append((ticket, done))
        except BaseException:
            self._expected += len(got)
            for each in got:
                self._arrived.put_nowait(each)
            raise
        return [(ticket, done.result()) for ticket, done in got]

    async def workers(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._client.workers)

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _within(self, awaitable: Any, timeout: float | None) -> Any:
        limit = self._client.timeout if timeout is None else timeout
        try:
            return await asyncio.wait_for(awaitable, limit)
        except DeadlineExceeded:
            raise
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise DeadlineExceeded("no answer in the given time") from error

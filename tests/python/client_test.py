"""Client and AsyncClient against a real cluster."""

import asyncio
import json
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from processes import wait_until

import loopfleet
from loopfleet.client import Following
from loopfleet.jobs import JobFields
from loopfleet.rows import FIELDS

MM = "benchmark://mm-v0/mm16_16_16"
MAYBE_OK = {"ok", "UNSTABLE_TIMING"}  # UNSTABLE_TIMING: the host is too busy for a figure


def small_jobs(count):
    """`count` jobs with different trees."""
    return [(f"benchmark://mm-v0/mm{4 + i % 10}_{4 + i // 10 % 10}_{4 + i // 100}", []) for i in range(count)]


def test_one_job(client):
    outcome = client.evaluate(MM, ["down", "split_4"])
    assert outcome.ok and outcome.status == "ok" and outcome.gflops > 0
    assert outcome.flop_count == 2 * 16**3
    assert outcome.gflops == pytest.approx(outcome.flop_count / outcome.elapsed_ns)
    assert outcome.actions == ["down", "split_4"]
    assert outcome.to_dict()["gflop_per_second"] == pytest.approx(outcome.gflops)
    wait_until(lambda: client.evaluate(MM, "down,split_4").source == "stored", "it is not measured again")


def test_failed_jobs_are_rows_and_raise_nothing(client):
    batch = client.evaluate_many([
        MM, (MM, ["down", "splt_4"]), {"benchmark": "benchmark://mm-v0/mm0_1_1"}, (MM, ["up"]),
        {"benchmark": MM, "actions": [], "threds": 1}, (MM, ["down"])])
    assert [name in loopfleet.GRADES for name in batch.grade_names] == [True, False, False, False, False, True]
    assert batch.grade_names[1] == "" and batch.source_names[0] in loopfleet.SOURCES
    assert list(batch.status_names) == ["ok", "INVALID_ACTION", "INVALID_BENCHMARK", "INVALID_ACTION",
                                        "MALFORMED", "ok"]
    assert batch.ok.tolist() == [True, False, False, False, False, True]
    assert np.isnan(batch.gflops[1:5]).all() and np.isfinite(batch.gflops[[0, 5]]).all()
    assert "nearest: split_4" in batch[1].message and batch[1].action_index == 1
    assert batch[3].action_index == 0
    assert "threads" in batch[4].message


def test_every_grade_is_described():
    for grade in loopfleet.GRADES:
        for said in (FIELDS["grade"], loopfleet.Outcome.grade.__doc__):
            assert re.search(rf"\b{grade}\b", said)


def test_columns_frames_and_arrow(client):
    first = client.evaluate_many([(MM, ["bad"]), *small_jobs(2)])
    frame, table = first.to_pandas(), first.to_arrow()
    for name, values in (("index", [0, 1, 2]), ("status", list(first.status_names)),
                         ("grade", list(first.grade_names)), ("source", list(first.source_names))):
        assert list(frame[name]) == table[name].to_pylist() == values
    assert first.columns["index"].tolist() == [0, 1, 2] and first[1:].to_pandas()["index"].tolist() == [0, 1]
    batch = client.evaluate_many([*small_jobs(20), (MM, ["bad"])])
    assert len(batch) == 21 and batch.ok.sum() == 20
    assert batch.sample_offsets[-1] == len(batch.samples_ns) and len(batch.samples_of(20)) == 0
    for row in range(20):
        np.testing.assert_array_equal(batch.samples_of(row), batch[row].samples_ns)
        assert batch.elapsed_min_ns[row] <= batch.elapsed_ns[row]
    assert batch.samples_of(3).base is not None, "a view, not a copy"
    assert batch.gflops is batch.gflops, "made once"
    frame = batch.to_pandas()
    assert frame.loc[0, "benchmark"] == small_jobs(1)[0][0]
    assert frame["gflops"].isna().sum() == 1 and frame.loc[20, "status"] == "INVALID_ACTION"
    import pyarrow as pa
    table = pa.table(batch)
    assert table.num_rows == 21
    assert table["samples_ns"].to_pylist()[0] == batch.samples_of(0).tolist()
    assert table["tree_key"].to_pylist()[2].hex() == batch[2].tree_key
    assert pa.RecordBatchReader.from_stream(batch).read_all().num_rows == 21


def test_thousands_of_jobs_in_the_order_they_were_given(client):
    jobs = small_jobs(300) * 20  # answered from the store after the first 300, in two messages
    seen = []
    batch = client.evaluate_many(jobs, on_outcome=lambda place, outcome: seen.append(place))
    assert sorted(seen) == list(range(len(jobs)))
    assert batch.benchmark.tolist() == [benchmark for benchmark, _ in jobs]
    assert batch.ok.all()


def test_the_fields_of_a_job_are_those_of_a_job_line():
    source = (Path(os.environ["LOOPFLEET_SOURCE"]) / "common/job/job_fields.h").read_text(encoding="utf-8")
    fields = set(re.findall(r'FieldOf<&Spec::\w+>\{\s*\{"(\w+)"', source)) | {"tag", "ir"}
    assert set(JobFields.__annotations__) == fields
    given = {"rules": "loop_nest", "device": "any", "labels": ["quiet"], "cache": "cold", "min_grade": "B", "fresh": True}
    assert json.loads(loopfleet.job("benchmark://mm-v0/mm8_8_8", **given).line).items() >= given.items()
    with pytest.raises(loopfleet.JobError, match="min_grad"):
        loopfleet.job("benchmark://mm-v0/mm8_8_8", min_grad="B")


def test_clients_say_which_coordinator_they_are_of():
    client = loopfleet.Client("tcp://127.0.0.1:9")
    assert repr(client) == "<Client of tcp://127.0.0.1:9>"
    client.close()
    assert repr(client) == "<Client of tcp://127.0.0.1:9, closed>"


def test_futures_and_tickets(client):
    futures = [client.submit(benchmark, actions) for benchmark, actions in small_jobs(30)]
    assert [future.result(300).benchmark for future in futures] == [benchmark for benchmark, _ in small_jobs(30)]
    assert client.submit(MM, ["nonsense"]).result(1).status == "INVALID_ACTION"
    tickets = client.send([*small_jobs(10), (MM, ["nonsense"])])
    with pytest.raises(ValueError, match="12 outcomes wanted"):
        client.recv(12)
    got = {}
    while len(got) < 11:
        got.update(client.recv(min_n=min(3, 11 - len(got)), timeout=300))
    assert sorted(got) == tickets
    assert got[tickets[10]].status == "INVALID_ACTION"


def test_one_job_is_not_taken_for_many():
    client = loopfleet.Client("ipc:///nonexistent")
    for one in (MM, {"benchmark": MM}, loopfleet.job(MM)):
        for use in (client.evaluate_many, client.as_completed, client.submit_jobs, client.send):
            with pytest.raises(TypeError, match="jobs are a list, not one job"):
                use(one)


def test_outcomes_jobs_and_trees_go_to_other_processes(client):
    jobs = [loopfleet.job(MM, ["down", "split_4"], threads=1), (MM, ["splt_4"]), ("benchmark://mm-v0/mm8_8_8", [])]
    batch = client.evaluate_many(jobs)
    again = pickle.loads(pickle.dumps(batch))
    assert again.to_dicts() == batch.to_dicts() and again.status_names.tolist() == batch.status_names.tolist()
    np.testing.assert_array_equal(again.samples_ns, batch.samples_ns)
    assert [outcome.index for outcome in again] == [outcome.index for outcome in batch]
    assert pickle.loads(pickle.dumps(jobs[0])).line == jobs[0].line
    tree = loopfleet.LoopTree(MM).split("m", 4)
    assert pickle.loads(pickle.dumps(tree)).tree_key == tree.tree_key
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        plain = loopfleet.Client(client.address)  # the other process cannot import the fixture's class
        wait_until(lambda: pool.submit(plain.evaluate, MM, ["down", "split_4"]).result(300).source == "stored",
                   "the other process asks")


class Given:
    """Replaces a client's submit_jobs(); the test sets the outcomes."""

    def __init__(self, client):
        self.futures = []
        client.submit_jobs = self.submit_jobs

    def submit_jobs(self, jobs):
        self.futures += (made := [Future() for _ in jobs])
        return made


def test_recv_loses_nothing_when_a_job_has_no_outcome_or_time_is_over():
    client = loopfleet.Client("ipc:///nonexistent")
    given = Given(client)
    tickets = client.send("abcd")
    given.futures[0].set_result("A")
    with pytest.raises(loopfleet.DeadlineExceeded):
        client.recv(2, timeout=0.01)
    error = loopfleet.Refused("QUOTA_EXCEEDED", "full", True, 1500)
    given.futures[1].set_exception(error)
    given.futures[3].set_exception(error)
    with pytest.raises(loopfleet.Refused, match="^QUOTA_EXCEEDED: full") as caught:
        client.recv(2)
    assert caught.value.ticket == tickets[1] and caught.value.code == "QUOTA_EXCEEDED" and caught.value.retryable
    assert caught.value.retry_after_s == 1.5 and "try again in 1.5 s" in str(caught.value)
    with pytest.raises(loopfleet.Refused) as caught:
        client.recv(2)
    assert caught.value.ticket == tickets[3] and error.ticket is None
    given.futures[2].set_result("C")
    assert sorted(client.recv(2)) == [(tickets[0], "A"), (tickets[2], "C")]
    for wrong in (1, -1):
        with pytest.raises(ValueError):
            client.recv(wrong)


def test_two_threads_do_not_wait_for_one_outcome():
    client = loopfleet.Client("ipc:///nonexistent")
    given = Given(client)
    client.send("ab")
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(client.recv, 2)
        while client._expected:
            time.sleep(0.001)
        with pytest.raises(ValueError, match="only 0 jobs"):
            client.recv()
        with pytest.raises(ValueError, match="only 0 jobs"):
            client.recv(1, timeout=0.01)
        client.send("c")
        given.futures[2].set_result("C")
        # "C" alone is promised to no call yet, so a third recv() may wait for one outcome.
        third = threads.submit(client.recv)
        given.futures[0].set_result("A")
        given.futures[1].set_result("B")
        got = [outcome for future in (waiting, third) for _, outcome in future.result(60)]
    assert sorted(got) == ["A", "B", "C"]
    with pytest.raises(ValueError):
        client.recv()
    client.send("d")
    with pytest.raises(loopfleet.DeadlineExceeded):
        client.recv(1, timeout=0.001)
    given.futures[3].set_result("D")
    assert [outcome for _, outcome in client.recv(1)] == ["D"], "what was promised is given back"


def test_two_tasks_do_not_wait_for_one_outcome():
    async def work():
        client = loopfleet.AsyncClient("ipc:///nonexistent")
        given = Given(client._client)
        await client.send("ab")
        waiting = asyncio.create_task(client.recv(2))
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="only 0 jobs"):
            await client.recv()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        first, second = asyncio.create_task(client.recv()), asyncio.create_task(client.recv())
        await asyncio.sleep(0)
        given.futures[0].set_result("A")
        given.futures[1].set_result("B")
        got = await asyncio.wait_for(asyncio.gather(first, second), 60)
        assert sorted(outcome for received in got for _, outcome in received) == ["A", "B"]

    asyncio.run(work())


def test_an_asynchronous_recv_loses_nothing_either():
    async def work():
        client = loopfleet.AsyncClient("ipc:///nonexistent")
        given = Given(client._client)
        tickets = await client.send("abc")
        given.futures[0].set_result("A")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.recv(2), 0.01)
        with pytest.raises(loopfleet.DeadlineExceeded):
            await client.recv(2, timeout=0.01)
        given.futures[1].set_exception(loopfleet.CoordinatorUnavailable("gone"))
        with pytest.raises(loopfleet.CoordinatorUnavailable, match="gone") as caught:
            await client.recv(2)
        assert caught.value.ticket == tickets[1]
        given.futures[2].set_result("C")
        assert sorted(await client.recv(2)) == [(tickets[0], "A"), (tickets[2], "C")]
        with pytest.raises(ValueError):
            await client.recv()

    asyncio.run(work())


def held_jobs(count):
    """As small_jobs(). They wait for a worker that does not exist."""
    return [{"benchmark": benchmark, "actions": actions, "labels": ["held"]} for benchmark, actions in small_jobs(count)]


def test_as_completed_and_leaving_early(client):
    places = [place for place, _ in client.as_completed(small_jobs(40))]
    assert sorted(places) == list(range(40))
    client.evaluate(MM)
    stream = client.as_completed([MM, *held_jobs(200)])
    next(stream)
    stream.close()
    newest = lambda: client.batches(1)[0]  # noqa: E731
    wait_until(lambda: newest()["state"] == "cancelled", "the batch is cancelled")


@pytest.mark.parametrize("how", ["timeout", "break"])
def test_what_a_call_gave_up_is_cancelled_even_if_the_client_is_closed_at_once(cluster, client, how):
    client.evaluate(MM)
    jobs = [MM, *held_jobs(200)]
    before = client.batches(1)[0]["batch"]
    newest = lambda: client.batches(1)[0]  # noqa: E731
    for limit in (2, 8, 20):  # on a busy host a short one may pass before anything is sent
        with loopfleet.Client(cluster.address) as closing:
            closing.workers()  # it is connected
            if how == "break":
                next(closing.as_completed(jobs))
            else:
                with pytest.raises(loopfleet.DeadlineExceeded):
                    closing.evaluate_many(jobs, timeout=limit)
        if newest()["batch"] != before:
            break
    wait_until(lambda: newest()["batch"] != before and newest()["state"] == "cancelled", "the batch is cancelled")
    assert newest()["job_count"] == 201


def test_a_deadline_says_what_the_coordinator_has_been_answering(daemon, tmp_path):
    _, ready = daemon("loopfleet-coordinator", "--listen-clients", "tcp://127.0.0.1:0", "--listen-workers",
                      "tcp://127.0.0.1:0", "--http", "127.0.0.1:0", "--db", str(tmp_path / "x.db"),
                      "--max-jobs-per-client", "1", "--no-worker-grace", "600")
    limits = (1, 4, 16, 60)  # on a busy host a short one may pass before there is an answer
    answer = "the coordinator said QUOTA_EXCEEDED: "
    with loopfleet.Client(ready["clients"]) as client:
        client.submit(MM)
        wait_until(lambda: client.batches(1), "its job fills the quota")
        for limit in limits:
            with pytest.raises(loopfleet.DeadlineExceeded, match="cancelled") as caught:
                client.evaluate(MM, timeout=limit)
            if answer in str(caught.value):
                break
        assert f"cancelled; {answer}" in str(caught.value)

    async def late():
        async with loopfleet.AsyncClient(ready["clients"]) as asking:
            asking.submit(MM)
            while len(await asking.batches()) < 2:
                await asyncio.sleep(0.01)
            for limit in limits:
                with pytest.raises(loopfleet.DeadlineExceeded) as caught:
                    await asking.evaluate(MM, timeout=limit)
                if answer in str(caught.value):
                    break
            assert answer in str(caught.value)

    asyncio.run(late())


def test_a_deadline_is_a_typed_error(client):
    with pytest.raises(loopfleet.DeadlineExceeded):
        client.evaluate_many([(f"benchmark://mm-v0/mm200_{n}_200", []) for n in range(100, 400)], timeout=0.05)
    assert issubclass(loopfleet.DeadlineExceeded, TimeoutError)


def test_several_threads_share_a_client(client):
    results = {}

    def work(number):
        results[number] = len(client.evaluate_many(small_jobs(20)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: 20 for i in range(4)}


def test_the_workers_address_is_not_one_for_clients(cluster):
    with loopfleet.Client(cluster.worker_address) as lost:
        with pytest.raises(loopfleet.LoopfleetError, match=f"{cluster.worker_address} cannot be read.*address for clients"):
            lost.workers()


def test_a_silent_address_is_a_typed_error():
    with loopfleet.Client("tcp://127.0.0.1:1", connect_limit=0.3) as nobody:
        with pytest.raises(loopfleet.CoordinatorUnavailable, match="127.0.0.1:1"):
            nobody.evaluate(MM)
        with pytest.raises(loopfleet.CoordinatorUnavailable):
            nobody.workers()
    with pytest.raises(loopfleet.ClientClosed):
        nobody.evaluate(MM)
    with pytest.raises(loopfleet.LoopfleetError, match="tcp://HOST:PORT"):
        loopfleet.Client("nonsense").workers()


@pytest.mark.parametrize("call", [lambda c: c.workers(), lambda c: c.evaluate(MM), lambda c: c.submit(MM).result()],
                         ids=["ask", "batch", "single"])
@pytest.mark.parametrize("how, error", [("closed", loopfleet.ClientClosed), ("died", ZeroDivisionError)])
def test_nobody_waits_for_a_thread_that_has_ended(call, how, error):
    client = loopfleet.Client("ipc:///nonexistent")
    io = client._thread()
    held, gate = threading.Event(), threading.Event()
    begin_singles = io._start_singles

    def hold():
        begin_singles()
        held.set()
        gate.wait()
        if how == "died":
            raise ZeroDivisionError

    io._start_singles = hold
    io._wake()
    held.wait()
    raised = []

    def ask():
        try:
            call(client)
        except Exception as got:
            raised.append(got)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    wait_until(lambda: io._commands or io._singles, "it has asked")
    closing = threading.Thread(target=client.close if how == "closed" else lambda: None)
    closing.start()
    wait_until(lambda: io._stopping or how == "died", "it is to end")
    gate.set()
    asking.join(60)
    closing.join()
    assert [type(got) for got in raised] == [error]


def test_workers_say_what_they_are(client, cluster):
    # A noisy host may put the worker into quarantine for a while.
    wait_until(lambda: client.workers()[0]["state"] == "ready", "the worker is ready")
    (worker,) = client.workers()
    assert worker["device"] == "cpu" and worker["pid"] > 0
    # A worker may measure its peak again.
    wait_until(lambda: client.peak_gflops() == client.workers()[0]["peak_gflops"] > 0, "the peak is the worker's")


def test_a_client_survives_fork_and_pickle(client, cluster):
    assert client.evaluate(MM).ok
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, json.dumps([client.evaluate(MM).ok]).encode())
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert json.loads(os.read(read, 100)) == [True]
    os.close(read)
    os.close(write)
    assert client.evaluate(MM).ok
    with pickle.loads(pickle.dumps(client)) as copy:
        wait_until(lambda: copy.evaluate(MM).source == "stored", "the copy asks")


def test_async_client(cluster):
    async def work():
        async with loopfleet.AsyncClient(cluster.address, timeout=300) as client:
            batch = await client.evaluate_many([*small_jobs(10), (MM, ["nonsense"])])
            assert batch.benchmark.tolist() == [*(benchmark for benchmark, _ in small_jobs(10)), MM]
            assert set(batch.status_names[:10]) <= MAYBE_OK and batch[10].status == "INVALID_ACTION"
            assert (await client.evaluate(MM)).status in MAYBE_OK
            places = [place async for place, _ in client.as_completed(small_jobs(10))]
            assert sorted(places) == list(range(10))
            tickets = await client.send(small_jobs(5))
            got = []
            while len(got) < 5:
                got += await client.recv(2 if len(got) < 4 else 1)
            assert sorted(ticket for ticket, _ in got) == tickets
            assert [worker["device"] for worker in await client.workers()] == ["cpu"]
            with pytest.raises(loopfleet.DeadlineExceeded):
                await client.evaluate("benchmark://mm-v0/mm256_256_257", timeout=0.001)

    asyncio.run(work())


def test_the_asynchronous_client_has_every_name_of_the_other():
    def names(kind):
        return {name for name in dir(kind) if not name.startswith("_")}

    assert names(loopfleet.Client) <= names(loopfleet.AsyncClient)


def test_a_cancellation_that_comes_together_with_the_result_is_obeyed():
    async def race():
        async with loopfleet.AsyncClient("tcp://127.0.0.1:1") as asking:
            arrive = []
            asking._client._follow = lambda jobs, put: arrive.append(put) or Following(lambda: None, lambda: "")
            evaluating = asyncio.create_task(asking.evaluate(MM, timeout=60))
            await asyncio.sleep(0)
            arrive[0]([(0, "an outcome")])
            evaluating.cancel()
            with pytest.raises(asyncio.CancelledError):
                await evaluating

    asyncio.run(race())


def test_an_asynchronous_loop_that_is_left_cancels_the_rest(cluster, client):
    async def leave(how, many):
        async with loopfleet.AsyncClient(cluster.address, timeout=300) as asking:
            async def mine():
                """The batch of this case, by its size, because the previous one may be accepted late."""
                for batch in await asking.batches(5):
                    if batch["batch"] != before and batch["job_count"] == len(many):
                        return batch

            if how == "break":
                async for _ in asking.as_completed(many):
                    break
            elif how == "timeout":
                # On a busy host a short timeout may pass before anything is sent, with nothing to cancel.
                for limit in (0.01, 0.05, 0.2, 1.0):
                    with pytest.raises(loopfleet.DeadlineExceeded):
                        await asking.evaluate_many(many, timeout=limit)
                    if await mine():
                        break
            else:
                working = asyncio.create_task(asking.evaluate_many(many))
                while not await mine():
                    await asyncio.sleep(0.01)
                working.cancel()
            async with asyncio.timeout(60):
                while True:
                    newest = await mine()
                    if newest and newest["state"] in ("cancelled", "finished"):
                        break
                    await asyncio.sleep(0.01)
            return newest, [outcome async for outcome in asking.outcomes(newest["batch"])]

    client.evaluate(MM)
    held = held_jobs(1000)  # the others are answered at once
    for place, how in enumerate(("break", "timeout", "cancel")):
        many = [MM, *held[place:]]
        before = client.batches(1)[0]["batch"]
        newest, outcomes = asyncio.run(leave(how, many))
        assert newest["state"] == "cancelled" and newest["job_count"] == len(many), how
        assert "CANCELLED" in {outcome.status for outcome in outcomes}, how


def test_an_asynchronous_evaluation_that_is_late_is_cancelled(cluster, client):
    client.evaluate(MM)
    before = client.batches(1)[0]["batch"]

    async def wait():
        async with loopfleet.AsyncClient(cluster.address) as asking, asyncio.timeout(60):
            for limit in (0.5, 5.0, 30.0):  # on a busy host a short one may pass before anything is sent
                with pytest.raises(loopfleet.DeadlineExceeded):
                    await asking.evaluate(MM, labels=["held"], timeout=limit)
                if (await asking.batches(1))[0]["batch"] != before:
                    break
            while (await asking.batches(1))[0]["state"] != "cancelled":
                await asyncio.sleep(0.01)

    asyncio.run(wait())


def test_keys_as_the_security_page_says(tmp_path):
    program = os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet")

    def keygen(*arguments):
        subprocess.run([program, "keygen", *arguments], check=True, cwd=tmp_path, capture_output=True)

    keygen("--role", "coordinator", "--out", "keys")
    keygen("--role", "client", "--name", "alice", "--out", "alice-keys", "--authorize", "keys")
    coordinator = subprocess.Popen(
        [f"{program}-coordinator", "--keys", "keys", "--listen-clients", "tcp://127.0.0.1:0", "--listen-workers",
         "tcp://127.0.0.1:0", "--http", "127.0.0.1:0", "--db", "x.db"], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL)
    try:
        address = json.loads(coordinator.stdout.readline())["clients"]
        with loopfleet.Client(address, keys=tmp_path / "alice-keys", connect_limit=100) as alice:
            assert alice.workers() == []
            assert alice.evaluate(MM, ["nonsense"]).status == "INVALID_ACTION"
        with loopfleet.Client(address, connect_limit=1) as stranger:
            with pytest.raises(loopfleet.CoordinatorUnavailable):
                stranger.workers()
        (secret,) = (tmp_path / "alice-keys").glob("*.key_secret")
        secret.chmod(0o644)
        with pytest.raises(loopfleet.LoopfleetError, match="chmod 600"):
            loopfleet.Client(address, keys=tmp_path / "alice-keys").workers()
        with pytest.raises(loopfleet.LoopfleetError, match="0 files"):
            loopfleet.Client(address, keys=tmp_path).workers()
    finally:
        coordinator.kill()
        coordinator.wait()
        coordinator.stdout.close()


def test_a_killed_worker_costs_nothing_but_time():
    with loopfleet.LocalCluster(workers=2) as cluster, cluster.client(timeout=300) as client:
        victim = client.workers()[0]["pid"]
        killed = threading.Event()

        def kill(place, outcome):
            if not killed.is_set():
                os.kill(victim, signal.SIGKILL)
                killed.set()

        batch = client.evaluate_many(small_jobs(200), on_outcome=kill)
        assert killed.is_set() and len(batch) == 200
        assert set(batch.status_names) <= MAYBE_OK


def test_a_killed_coordinator_is_a_typed_error_within_the_limit():
    with loopfleet.LocalCluster(workers=1) as cluster, cluster.client(silence_limit=8.0) as client:
        assert client.evaluate(MM).status in MAYBE_OK
        os.kill(cluster.coordinator_pid, signal.SIGKILL)
        with pytest.raises(loopfleet.CoordinatorUnavailable):
            client.evaluate_many(small_jobs(50), timeout=60)


@pytest.mark.parametrize("wrong", [-1, 0, 2**63, "x", None, True])
def test_what_is_no_batch_is_refused(client, wrong):
    with pytest.raises(ValueError, match="is no batch's number"):
        list(client.outcomes(wrong))

"""Exports that follow: each row once, whole files, whatever is killed; from a file and from PostgreSQL."""

import json
import os
import queue
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from processes import wait_until

import loopfleet
from loopfleet.export import __main__ as export_command
from loopfleet.export import followed, outcome_feed
from loopfleet.export.followed import FollowedExport, follow
from loopfleet.export.outcome_feed import FileFeed, Position, PostgresFeed, open_feed
from loopfleet.rows import Restore, rows_of_batches, rows_of_file
from loopfleet.splits import Split

ROOT = Path(os.environ["LOOPFLEET_SOURCE"])
sys.path[:0] = [str(ROOT / "tests/integration"), str(ROOT / "tests/integration/postgres")]
from postgres_server import PostgresServer, programs  # noqa: E402

GOOD = [("benchmark://mm-v0/mm4_4_4", []), ("benchmark://mm-v0/mm8_8_8", ["down"]),
        ("benchmark://mm-v0/mm4_8_8", ["split_4"])]
AT_ONCE = [("benchmark://mm-v0/mm8_8_8", ["up"])]  # fails without a worker
UNTIMED_AT_ONCE = [("probe://nothing-v0", []), ("generator://csmith-v0/nothing", [])]  # the same
KILLS = 8


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with loopfleet.LocalCluster(workers=1, database=tmp_path_factory.mktemp("db") / "results.db") as running:
        yield running


@pytest.fixture(scope="module")
def outcomes(client):
    """Three batches; one of them has jobs that are not timed, and one an answer from the store."""
    client.evaluate_many([*GOOD, *AT_ONCE * 40])
    client.evaluate_many(GOOD)
    client.evaluate_many([("probe://peaks-v0", []), *UNTIMED_AT_ONCE, *AT_ONCE * 5])


def places(folder):
    """Every row's (coordinator, batch, index), as DuckDB reads the folder."""
    if not list(Path(folder).glob("day=*/*.parquet")):
        return []
    return duckdb.sql(f"SELECT coordinator, batch, index FROM '{folder}/day=*/*.parquet' ORDER BY ALL").fetchall()


def expected(database):
    rows = [(row["batch"], row["index"]) for row in rows_of_file(database) if row["status"] != "CANCELLED"]
    return sorted(rows)


def once(database, folder, most_rows=50_000):
    with FollowedExport(folder) as exported:
        return follow(lambda: open_feed(database), exported, threading.Event(), most_rows=most_rows, once=True)


def test_duckdb_reads_partitions_types_and_counts(cluster, outcomes, tmp_path):
    folder = tmp_path / "out"
    count = once(cluster.database, folder, most_rows=10)
    assert [place[1:] for place in places(folder)] == expected(cluster.database) and count == len(places(folder))
    assert once(cluster.database, folder) == 0  # nothing new
    rows = duckdb.sql(f"SELECT * FROM read_parquet('{folder}/*/*.parquet', hive_partitioning = true)")
    types = dict(zip(rows.columns, map(str, rows.types)))
    assert {name: types[name] for name in ("coordinator", "batch", "index", "actions", "elapsed_ns", "samples_ns", "part",
                                           "day")} == {
        "coordinator": "VARCHAR", "batch": "BIGINT", "index": "INTEGER", "actions": "VARCHAR[]", "elapsed_ns": "DOUBLE",
        "samples_ns": "DOUBLE[]", "part": "VARCHAR", "day": "DATE"}
    wrong = duckdb.sql(f"SELECT count(*) FROM read_parquet('{folder}/*/*.parquet', hive_partitioning = true) "
                       "WHERE day <> finished_at[:10]::DATE").fetchall()
    assert wrong == [(0,)]
    ours = {(row["batch"], row["index"]): row for row in rows_of_file(cluster.database)}
    for row in rows.fetchall():
        told = dict(zip(rows.columns, row))
        mine = ours[told["batch"], told["index"]]
        assert told["part"] == Split().part(mine)
        assert {name: told[name] for name in mine} == mine


def test_a_round_that_ends_anywhere_is_finished_or_done_again(cluster, outcomes, tmp_path, monkeypatch):
    """The process dies before its n-th step on the file system, for each n."""
    class Died(Exception):
        pass

    steps = {"rename": followed.Path.rename, "unlink": followed.Path.unlink, "mkdir": followed.Path.mkdir}
    whole = expected(cluster.database)
    reached = 0
    for dies_at in range(1, 200):
        folder = tmp_path / str(dies_at)
        left = [dies_at]

        def dying(name):
            def step(*arguments, **options):
                left[0] -= 1
                if left[0] == 0:
                    raise Died
                return steps[name](*arguments, **options)
            return step

        with monkeypatch.context() as patched:
            for name in steps:
                patched.setattr(followed.Path, name, dying(name))
            try:
                once(cluster.database, folder, most_rows=20)
                break
            except Died:
                reached += 1
        before = places(folder)
        assert len(before) == len(set(before))
        once(cluster.database, folder, most_rows=20)
        assert [place[1:] for place in places(folder)] == whole, f"died before step {dies_at}"
        assert list((folder / ".new").iterdir()) == []
    assert left[0] > 0 and reached > 8


def test_kills_while_the_data_set_grows_lose_and_repeat_nothing(cluster, client, outcomes, tmp_path):
    folder = tmp_path / "out"
    dice = random.Random(20261128)

    def start():
        return subprocess.Popen([sys.executable, "-m", "loopfleet.export", str(folder), "--follow", "--every", "0.05",
                                 "--rows", "7", "--db", str(cluster.database)], stderr=subprocess.PIPE,
                                text=True)

    for _ in range(KILLS):
        follower = start()
        try:
            client.evaluate_many(AT_ONCE * dice.randrange(1, 60))
            known = len(places(folder))
            end = time.monotonic() + 60
            while len(places(folder)) == known and follower.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(dice.uniform(0, 0.1))
        finally:
            follower.send_signal(signal.SIGKILL)
            _, said = follower.communicate()
        assert follower.returncode == -signal.SIGKILL, said
        seen = places(folder)
        assert len(seen) == len(set(seen)) > known
    client.evaluate_many(AT_ONCE)
    once(cluster.database, folder)
    assert [place[1:] for place in places(folder)] == expected(cluster.database)


def test_it_ends_when_told_and_a_second_one_is_refused(cluster, client, outcomes, tmp_path):
    folder = tmp_path / "out"
    command = [os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet"), "export", "--follow", "--format", "parquet", "--db",
               str(cluster.database), str(folder)]
    environment = {**os.environ, "LOOPFLEET_PYTHON": sys.executable}
    follower = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not places(folder) and time.monotonic() < end:
        time.sleep(0.05)
    second = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert second.returncode == 1 and f"another process follows into {folder}" in second.stderr
    follower.send_signal(signal.SIGTERM)
    said, _ = follower.communicate(timeout=60)
    assert follower.returncode == 0 and said == f"{folder}: {len(expected(cluster.database))} new rows\n"
    done = subprocess.run([*command, "--once"], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{folder}: 0 new rows\n")


@pytest.mark.parametrize("arguments, said", [
    (["--format", "parquet"], "go with --follow"), (["out"], "go with --follow"), (["--once"], "go with --follow"),
    (["--follow"], "--follow requires FOLDER"), (["--follow", "out"], "--follow requires --db"),
    (["--follow", "out", "--db", "x.db", "--benchmark", "mm"], "do not go with --follow"),
    (["--follow", "out", "--db", "x.db", "--after", "1.2"], "do not go with --follow")])
def test_flags_that_do_not_go_together(arguments, said):
    done = subprocess.run([os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet"), "export", *arguments], text=True,
                          capture_output=True)
    assert done.returncode == 2 and said in done.stderr


def test_a_folder_that_was_made_otherwise_is_left_alone(cluster, outcomes, tmp_path, capsys):
    folder = tmp_path / "out"
    once(cluster.database, folder)
    before = sorted(folder.rglob("*"))

    def refused(*arguments):
        assert export_command.main([*map(str, arguments), "--follow", "--once", "--db", str(cluster.database)]) == 1
        return capsys.readouterr().err

    assert "was made with format 'parquet', and not 'jsonl'" in refused(folder, "--format", "jsonl")
    assert "was made with split 'program', and not 'region'" in refused(folder, "--split", "region")
    with pytest.raises(loopfleet.LoopfleetError, match=r"shares \[0.8, 0.1, 0.1\], and not \[0.7, 0.1, 0.2\]"):
        FollowedExport(folder, split=Split(shares=(0.7, 0.1, 0.2)))
    position = folder / "_position.json"
    said = json.loads(position.read_text(encoding="utf-8"))
    del said["shares"]  # as earlier versions did
    position.write_text(json.dumps(said), encoding="utf-8")
    assert once(cluster.database, folder) == 0
    assert sorted(folder.rglob("*")) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    assert "is no followed export" in refused(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_other_formats(cluster, outcomes, tmp_path, format):
    assert export_command.main([str(tmp_path / "out"), "--follow", "--once", "--format", format, "--db",
                                str(cluster.database)]) == 0
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/out/*/*.{format}'").fetchall() == [(len(expected(cluster.database)),)]


# A restored snapshot ------------------------------------------------------------------------------


def restore(database, snapshot):
    """As docs/OPERATIONS.md has it."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{database}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(snapshot, database)


def take_snapshot(database, snapshot):
    subprocess.run([os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet"), "db", "snapshot", str(database), str(snapshot)],
                   check=True, capture_output=True)


def test_rows_come_once_through_restored_snapshots(tmp_path):
    database, folder = tmp_path / "results.db", tmp_path / "out"
    counts = []

    def start():
        return loopfleet.LocalCluster(workers=0, database=database)

    def wait_for(count):
        end = time.monotonic() + 60
        while len(places(folder)) < count and time.monotonic() < end:
            time.sleep(0.05)
        counts.append(len(places(folder)))

    with start() as first:
        with first.client() as asking:
            asking.evaluate_many(AT_ONCE * 5)
        follower = subprocess.Popen([sys.executable, "-m", "loopfleet.export", str(folder), "--follow", "--every", "0.05",
                                     "--db", str(database)], stderr=subprocess.PIPE, text=True)
        try:
            wait_for(5)
            with first.client() as asking:
                asking.evaluate_many(AT_ONCE * 3)
                wait_for(8)
                take_snapshot(database, tmp_path / "snapshot.db")
                asking.evaluate_many(AT_ONCE * 2)  # is lost
                wait_for(10)
            first.stop()
            restore(database, tmp_path / "snapshot.db")
            with start() as second:
                with second.client() as asking:
                    asking.evaluate_many(AT_ONCE * 4)
                    wait_for(14)
                take_snapshot(database, tmp_path / "snapshot_2.db")
        finally:
            follower.terminate()
            _, said = follower.communicate(timeout=60)
        assert follower.returncode == 0, said
    restore(database, tmp_path / "snapshot_2.db")
    with start() as third:
        with third.client() as asking:
            asking.evaluate_many(AT_ONCE * 6)
        assert once(database, folder) == 6
    counts.append(len(places(folder)))
    assert counts == [5, 8, 10, 14, 20]
    assert len({place[1:] for place in places(folder)}) == 20 and len({place[0] for place in places(folder)}) == 3


def test_a_batch_that_was_under_way_is_read_again_from_its_beginning():
    lost = Position(9, {4: 20, 7: 1})

    def inherited(first, last, unfinished):
        return outcome_feed._inherited(lost, Restore("first", first, last, unfinished))

    assert inherited(100, 0, {}) == Position(9, {4: 0, 7: 0})
    # A snapshot that is restored again: the numbers of both lives may meet.
    assert inherited(6, 0, {}) == Position(5, {4: 0})
    # What the snapshot had of a batch is the same in both lives. Batch 5 was over in the lost one.
    assert inherited(100, 11, {4: 12, 5: 3, 7: 2, 11: 0}) == Position(9, {4: 12, 5: 3, 7: 1})
    # Batch 4 had ended in the snapshot, with outcomes that were not read yet. Batch 7 began after it.
    assert inherited(100, 6, {5: 3}) == Position(9, {4: 20, 5: 3, 7: 0})
    assert outcome_feed._the_lost({"first": Position(lost=True), "second": lost}) == "second"
    with pytest.raises(outcome_feed.FeedMismatch, match="give a new folder"):
        outcome_feed._the_lost({"one": lost, "other": Position()})


def test_the_restore_of_the_lost_life_tells_what_both_have():
    first, second = Restore("first", 100, 9, {5: 3}), Restore("second", 200, 150, {120: 1})
    assert outcome_feed._restore_of("second", 200, [first, second]) == second
    assert outcome_feed._restore_of("first", 200, [first, second]) == first, "no look at the second life"
    # The snapshot from which the lost life began may have been another one than that of this life.
    assert outcome_feed._restore_of("another of first", 100, [first]) == Restore("first", 100, 0, {5: 3})
    # The last restore is not noted yet.
    assert outcome_feed._restore_of("second", 200, [first]) == Restore("", 200, 0, {})


@pytest.mark.parametrize("is_restored_twice", [False, True])
def test_a_batch_that_was_over_in_the_lost_life_is_read_from_where_the_snapshot_has_it(tmp_path, is_restored_twice):
    database, folder = tmp_path / "results.db", tmp_path / "out"

    def wait_for_all(asking):
        end = time.monotonic() + 60
        while (batch := asking.batches(1)[0])["finished"] < batch["job_count"]:
            assert time.monotonic() < end
            time.sleep(0.05)

    with loopfleet.LocalCluster(workers=0, database=database) as first, first.client() as asking:
        for _ in asking.as_completed([*AT_ONCE, *GOOD]):  # the others wait for a worker
            take_snapshot(database, tmp_path / "snapshot.db")
            break  # they are cancelled
        wait_for_all(asking)
        assert once(database, folder) == len(AT_ONCE)
    restore(database, tmp_path / "snapshot.db")
    with loopfleet.LocalCluster(workers=1, database=database) as second, second.client() as asking:
        wait_for_all(asking)
        if is_restored_twice:
            take_snapshot(database, tmp_path / "snapshot_2.db")
        else:
            assert once(database, folder) == len(GOOD)
    if is_restored_twice:
        restore(database, tmp_path / "snapshot_2.db")
        with loopfleet.LocalCluster(workers=0, database=database):
            assert once(database, folder) == len(GOOD), "of the life between, at which there was no look"
    assert len({place[1:] for place in places(folder)}) == len(places(folder)) == len(AT_ONCE) + len(GOOD)


def test_the_same_snapshot_is_restored_twice(tmp_path):
    database, folder = tmp_path / "results.db", tmp_path / "out"
    for life in range(3):
        if life:
            restore(database, tmp_path / "snapshot.db")
            assert once(database, folder) == 0, "before its coordinator starts"
        with loopfleet.LocalCluster(workers=0, database=database) as cluster, cluster.client() as asking:
            asking.evaluate_many(AT_ONCE * 3)
            if not life:
                take_snapshot(database, tmp_path / "snapshot.db")
            assert once(database, folder) == 3
    assert len(places(folder)) == 9


def test_a_file_that_is_still_copied_is_read_when_it_is_whole(tmp_path, capsys):
    database, folder = tmp_path / "results.db", tmp_path / "out"
    with loopfleet.LocalCluster(workers=0, database=database) as cluster, cluster.client() as asking:
        asking.evaluate_many(AT_ONCE * 3)
    whole = database.read_bytes()
    stop = threading.Event()
    steps = []

    class Copying(outcome_feed.FileFeed):
        def step(self, positions, most):
            steps.append(len(positions))
            if len(steps) == 2:  # half of the file, in place of the one that was read
                database.unlink()
                database.write_bytes(whole[:len(whole) // 2])
            try:
                return super().step(positions, most)
            finally:
                if len(steps) == 2:
                    database.write_bytes(whole)
                elif len(steps) > 2:
                    stop.set()

    guard = threading.Timer(120, stop.set)
    guard.daemon = True
    guard.start()
    with followed.FollowedExport(folder, format="jsonl") as exported:
        assert followed.follow(lambda: Copying(database), exported, stop, interval_s=0.01) == 3
    guard.cancel()
    assert "it is tried again" in capsys.readouterr().err


def test_the_command_finds_the_first_unfinished_batch_at_once_after_a_restore(tmp_path):
    def evaluate_in_batches(asking, count):
        """All at once: what waits for a worker does so for 30 s only."""
        ended = queue.SimpleQueue()
        for _ in range(count):
            asking._follow([loopfleet.job(*AT_ONCE[0])], ended.put)
        assert sum(ended.get(timeout=300) is None for _ in range(2 * count)) == count

    database = tmp_path / "results.db"
    command = [os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet"), "export", "--address"]
    with loopfleet.LocalCluster(workers=0, database=database) as first, first.client() as asking:
        asking.evaluate_many(AT_ONCE)
        take_snapshot(database, tmp_path / "snapshot.db")
    restore(database, tmp_path / "snapshot.db")
    with loopfleet.LocalCluster(workers=0, database=database) as second, second.client() as asking:
        evaluate_in_batches(asking, 1001)
        newest = asking.batches(1)[0]["batch"]
        assert newest > 1_000_000
        done = subprocess.run([*command, second.address], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stderr == f"1,002 outcomes; to go on later: --after {newest}.1\n", done.stderr
        asking.send(GOOD)  # waits for a worker
        wait_until(lambda: asking.batches(1)[0]["batch"] > newest, "it is accepted before the others")
        evaluate_in_batches(asking, 1010)
        (waiting,) = (info["batch"] for info in asking.batches(1000) if info["finished"] < info["job_count"])
        assert waiting < newest + 5, "older than the newest 1,000"
        done = subprocess.run([*command, second.address, "--after", f"{newest}.1"], capture_output=True, text=True, timeout=60)
        assert done.stderr == f"1,010 outcomes; to go on later: --after {waiting}.0\n", done.stderr


# PostgreSQL ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(cluster):
    if programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    with PostgresServer() as running:
        yield running


def mirror(database, server):
    done = subprocess.run([os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet-mirror"), "--db", str(database), "--once",
                           "--results", server.url], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_postgres_gives_the_rows_of_the_file(cluster, client, outcomes, server, tmp_path, capsys):
    mirror(cluster.database, server)
    feed = PostgresFeed(server.url)
    step = feed.step({}, 1_000_000)
    feed.close()
    theirs = {(row["batch"], row["index"]): row for _, row in step.rows}
    ours = list(rows_of_file(cluster.database))
    assert step.is_end and len(step.rows) == len(theirs) == len(ours)
    # Jobs that are not timed have no row, not even failed ones, from any source of rows.
    assert {row["benchmark"] for row in ours} == {benchmark for benchmark, _ in [*GOOD, *AT_ONCE]}
    told = {(row["batch"], row["index"]) for row in rows_of_batches(client, sorted({row["batch"] for row in ours}))}
    assert told == theirs.keys()
    for mine in ours:
        told = theirs[mine["batch"], mine["index"]]
        samples = {"samples_ns", "sample_flags"} if mine["source"] != "measured" else set()
        for name in mine.keys() - samples:
            assert told[name] == mine[name], name
    assert export_command.main([str(tmp_path / "parts"), "--db", server.url]) == 0
    assert "left out" in capsys.readouterr().out


def test_thinned_results_come_as_such(cluster, outcomes, server, tmp_path):
    database = tmp_path / "thinned.db"
    take_snapshot(cluster.database, database)
    time.sleep(1.1)  # they have to be a second old
    subprocess.run([os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet"), "db", "thin", str(database), "--older-than", "1s",
                    "--keep-every", "2"], check=True, capture_output=True)
    server.rows("CREATE DATABASE thinned")
    address = server.url.rsplit("/", 1)[0] + "/thinned"
    mirror(database, SimpleNamespace(url=address))
    feed = PostgresFeed(address)
    theirs = {(row["batch"], row["index"]): row for _, row in feed.step({}, 1_000_000).rows}
    feed.close()
    ours = list(rows_of_file(database))
    assert any(row["samples_before_thinning"] for row in ours if row["source"] == "measured")
    for mine in ours:
        told = theirs[mine["batch"], mine["index"]]
        assert told["samples_before_thinning"] == mine["samples_before_thinning"]
        if mine["source"] == "measured":
            assert told["samples_ns"] == mine["samples_ns"]


def test_it_follows_postgres_through_a_restart(cluster, client, outcomes, server, tmp_path):
    folder = tmp_path / "out"
    follower = subprocess.Popen([sys.executable, "-m", "loopfleet.export", str(folder), "--follow", "--every", "0.1",
                                 "--rows", "11", "--db", server.url], stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(3):
            end = time.monotonic() + 60
            while not places(folder) and time.monotonic() < end:  # it has to reach the server once
                time.sleep(0.1)
            client.evaluate_many(AT_ONCE * 30)
            mirror(cluster.database, server)
            server.kill()
            time.sleep(0.3)
            server.start()
            end = time.monotonic() + 60
            while [place[1:] for place in places(folder)] != expected(cluster.database):
                assert follower.poll() is None and time.monotonic() < end
                time.sleep(0.1)
    finally:
        follower.terminate()
        _, said = follower.communicate(timeout=60)
    assert follower.returncode == 0 and "it is tried again" in said, said


def test_two_coordinators_in_one_database_are_told_apart(cluster, outcomes, server, tmp_path):
    with loopfleet.LocalCluster(workers=0, database=tmp_path / "other.db") as other:
        with loopfleet.Client(other.address) as asking:
            asking.evaluate_many(AT_ONCE * 9)
    mirror(cluster.database, server)
    mirror(tmp_path / "other.db", server)
    once_from = tmp_path / "out"
    assert export_command.main([str(once_from), "--follow", "--once", "--rows", "13", "--db", server.url]) == 0
    counts = duckdb.sql(f"SELECT count(*) FROM '{once_from}/*/*.parquet' GROUP BY coordinator ORDER BY 1").fetchall()
    assert counts == sorted([(9,), (len(expected(cluster.database)),)])


def test_damaged_rows_and_missing_messages_are_those_of_the_file(tmp_path, server):
    with loopfleet.LocalCluster(workers=0, database=tmp_path / "results.db") as running, running.client() as asking:
        asking.evaluate_many(AT_ONCE * 2)
        take_snapshot(running.database, tmp_path / "damaged.db")
    database = sqlite3.connect(tmp_path / "damaged.db")
    database.execute("UPDATE outcomes SET attempts = 7 WHERE idx = 0")
    database.commit()
    database.close()
    mirror(tmp_path / "damaged.db", server)
    (coordinator,) = FileFeed(tmp_path / "damaged.db").step({}, 1).after
    feed = PostgresFeed(server.url)
    theirs = [row for name, row in feed.step({}, 1_000_000).rows if name == coordinator]
    feed.close()
    ours = list(rows_of_file(tmp_path / "damaged.db"))
    assert [row["status"] for row in ours] == ["STORAGE_CORRUPT", "INVALID_ACTION"] and ours[0]["finished_at"] is None
    for name in ("status", "message", "finished_at"):
        assert [row[name] for row in theirs] == [row[name] for row in ours], name
    server.rows(f"UPDATE loopfleet.outcomes SET message = '' WHERE benchmark = '{AT_ONCE[0][0]}'")
    feed = PostgresFeed(server.url)
    found = [row["message"] for name, row in feed.step({}, 1_000_000).rows if name == coordinator]
    feed.close()
    assert found[1] == "unknown action, or not legal at this point: see action_index", "as a file's row has it"


def test_what_is_wrong_is_said(server, tmp_path, capsys, monkeypatch):
    def refused(address):
        assert export_command.main([str(tmp_path / "x"), "--follow", "--once", "--db", address]) == 1
        return capsys.readouterr().err

    server.rows("CREATE DATABASE empty")
    assert "has no outcomes of loopfleet" in refused(server.url.replace("/postgres", "/empty").replace("://empty@", "://postgres@"))
    assert "secret" not in refused("postgresql://me:secret@127.0.0.1:1/x")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "pip install '.[postgres]'" in refused(server.url)


def test_the_position_is_readable(cluster, outcomes, tmp_path):
    once(cluster.database, tmp_path / "out")
    said = json.loads((tmp_path / "out" / "_position.json").read_text())
    feed = FileFeed(cluster.database)
    assert list(said["positions"]) == list(feed.step({}, 1).after)
    feed.close()

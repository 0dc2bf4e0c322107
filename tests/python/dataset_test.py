"""Exports from a file and from a coordinator; splits; campaigns."""

import csv
import hashlib
import itertools
import json
import os
import queue
import re
import sqlite3
import subprocess
import sys
import tracemalloc

import pandas as pd
import pyarrow.parquet as pq
import pytest

import loopfleet
from loopfleet import _core, campaign
from loopfleet.actions import LOOPTUNE_ACTIONS
from loopfleet.campaign import __main__ as campaign_command
from loopfleet.export import __main__ as export_command
from loopfleet.export import check, dataset, export
from loopfleet.jobs import make_job
from loopfleet.rows import FIELDS, program_of, row_of, rows_of_batches, rows_of_file
from loopfleet.splits import PARTS, Split

COORDINATORS = [name for name in FIELDS if name != "suspect"]
JOBS = [(f"benchmark://mm-v0/mm{4 + i % 12}_{4 + i // 12}_8", actions) for i in range(60)
        for actions in ([], ["down"], ["split_4"], ["down", "split_2048"])]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with loopfleet.LocalCluster(workers=1, database=tmp_path_factory.mktemp("db") / "results.db") as running:
        yield running


@pytest.fixture(scope="module")
def batch(client):
    return client.evaluate_many([*JOBS, ("benchmark://mm-v0/mm4_4_4", ["nonsense"])])


def parts_of(folder):
    return {part: pq.read_table(folder / "data" / f"{part}.parquet").to_pylist() for part in PARTS}


def test_a_file_and_a_coordinator_give_the_same_rows(cluster, client, batch):
    from_file = list(rows_of_file(cluster.database))
    numbers = sorted(info["batch"] for info in client.batches(1000))
    from_coordinator = list(rows_of_batches(client, numbers))
    assert len(from_file) == len(from_coordinator) >= len(JOBS)
    for ours, theirs in zip(from_file, from_coordinator):
        assert list(ours) == list(FIELDS) and list(theirs) == COORDINATORS
        for name in COORDINATORS:
            if isinstance(ours[name], float):
                assert ours[name] == pytest.approx(theirs[name], rel=1e-12), name
            else:
                assert ours[name] == theirs[name], name


def test_a_damaged_row_of_a_file_has_no_figures(cluster, batch, tmp_path):
    copy = tmp_path / "copy.db"
    subprocess.run([os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet"), "db", "snapshot", str(cluster.database),
                    str(copy)], check=True, capture_output=True)
    whole = list(rows_of_file(copy))
    # On a busy host the file also has jobs without a figure, which were repeated.
    assert {row["status"] for row in whole} - {"UNSTABLE_TIMING"} == {"ok", "INVALID_ACTION"}
    database = sqlite3.connect(copy)
    (result,) = database.execute("SELECT min(id) FROM results").fetchone()
    database.execute("UPDATE results SET elapsed_ns = elapsed_ns / 1000 WHERE id = ?", (result,))
    told = {place for place, in database.execute("SELECT idx FROM outcomes WHERE batch = 1 AND result = ?", (result,))}
    others = {row["index"] for row in whole if row["batch"] == 1} - told
    job, outcome = sorted(others)[:2]
    database.execute("UPDATE jobs SET actions = 'up' WHERE batch = 1 AND idx = ?", (job,))
    database.execute("UPDATE outcomes SET attempts = 7 WHERE batch = 1 AND idx = ?", (outcome,))
    database.commit()
    database.close()
    damaged = list(rows_of_file(copy))
    assert len(damaged) == len(whole)
    corrupt = {row["index"] for row in damaged if row["status"] == "STORAGE_CORRUPT" and row["batch"] == 1}
    assert corrupt == told | {job, outcome}
    for before, after in zip(whole, damaged):
        if after["status"] != "STORAGE_CORRUPT":
            assert before == after
            continue
        assert after["gflops"] is None and after["elapsed_ns"] is None and after["samples_ns"] == []
        known = (None, []) if (after["batch"], after["index"]) == (1, job) else (before["benchmark"], before["actions"])
        assert (after["benchmark"], after["actions"]) == known
        has_lost_its_time = (after["batch"], after["index"]) == (1, outcome)
        assert after["finished_at"] == (None if has_lost_its_time else before["finished_at"])


def test_doubts_are_those_of_the_view(cluster, batch, tmp_path):
    copy = tmp_path / "copy.db"
    subprocess.run([os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet"), "db", "snapshot", str(cluster.database),
                    str(copy)], check=True, capture_output=True)
    database = sqlite3.connect(copy)
    results = [each for each, in database.execute("SELECT DISTINCT result FROM outcomes WHERE result > 0 ORDER BY result")]
    for result in results[::3]:  # without its checksum, a doubt has another reason
        database.execute("INSERT INTO suspect_results (result, flagged_at, reason, checksum) VALUES (?, 1, 'test', 0)",
                         (result,))
    database.commit()
    doubted = {place for place in
               database.execute('SELECT batch, "index" FROM v_results WHERE suspect IS NOT NULL AND status = \'ok\'')}
    database.close()
    rows = list(rows_of_file(copy))
    assert {(row["batch"], row["index"]) for row in rows if row["suspect"]} == doubted
    assert 0 < len(doubted) < sum(row["status"] == "ok" for row in rows)


def test_rows_of_others_spoil_no_export(batch, tmp_path):
    row = next(row_of(outcome) for outcome in batch if outcome.ok)
    deep = '{"campaign": "c", "copies": %s}' % ("[" * 5000 + "]" * 5000)
    tags = ["run {4", '{"campaign": "c", "copies": "two"}', '{"campaign": "c", "copies": [2]}', '["copies"]', deep, None]
    rows = [{**row, "tag": tag, "finished_at": f"2026-01-0{day}T00:00:00Z"} for day, tag in enumerate(tags, 1)]
    rows.insert(2, {**row, "tag": '"copies"', "status": "STORAGE_CORRUPT", "finished_at": None})
    summary = export(rows, tmp_path / "data")
    assert summary.duplicates == 5, "none of them is a campaign's paired point"
    assert (summary.first, summary.last) == ("2026-01-01T00:00:00Z",) * 2
    told = export(rows, tmp_path / "all", dedup=False)
    assert (told.first, told.last) == ("2026-01-01T00:00:00Z", "2026-01-06T00:00:00Z")


def test_jobs_without_a_verdict_are_no_rows(batch, tmp_path):
    row = next(row_of(outcome) for outcome in batch if outcome.ok)
    cancelled, without_worker = ({**row, "status": status, "gflops": None, "elapsed_ns": None}
                                 for status in ("CANCELLED", "NO_MATCHING_WORKER"))
    summary = export([cancelled, without_worker, row, cancelled], tmp_path / "data")
    assert sum(summary.rows.values()) == 1 and set(summary.statuses) == {"ok"}


def test_parts_are_disjoint_by_program_and_stable_when_rows_are_added(batch, tmp_path):
    rows = [row_of(outcome) for outcome in batch]
    export(rows, tmp_path / "all")
    export(rows[:100], tmp_path / "some")
    everything, some = parts_of(tmp_path / "all"), parts_of(tmp_path / "some")
    programs = {part: {row["program"] for row in everything[part]} for part in PARTS}
    assert all(programs[part] for part in PARTS), "60 programs leave no part empty"
    assert not programs["train"] & programs["test"]
    assert not programs["train"] & programs["validation"]
    assert not programs["validation"] & programs["test"]
    where = {(row["benchmark"], tuple(row["actions"])): part for part in PARTS for row in everything[part]}
    for part in PARTS:
        for row in some[part]:
            assert where[row["benchmark"], tuple(row["actions"])] == part


def test_duplicates_are_left_out_and_failures_are_kept(batch, tmp_path):
    rows = [row_of(outcome) for outcome in batch]
    summary = export(rows + rows, tmp_path / "d")
    kept = [row for rows in parts_of(tmp_path / "d").values() for row in rows]
    measured = [row for row in kept if row["status"] == "ok"]
    # Moving the cursor changes no tree: [] and ["down"] are equal jobs.
    assert len(measured) == len({row["tree_key"] for row in rows if row["status"] == "ok"}) == 120
    failed = [row for row in kept if row["status"] != "ok"]
    assert {row["status"] for row in failed} == {"INVALID_ACTION"} and len(failed) == 61
    assert all(row["elapsed_ns"] is None and row["gflops"] is None and row["samples_ns"] == [] for row in failed)
    assert all(len(row["samples_ns"]) == len(row["sample_flags"]) > 0 for row in measured)
    assert summary.duplicates == 2 * len(rows) - len(kept)
    whole = export(rows + rows, tmp_path / "whole", dedup=False)
    assert sum(whole.rows.values()) == 2 * len(rows)


def test_a_figure_that_is_trusted_goes_before_one_that_is_not(batch, tmp_path):
    good = list({row["tree_key"]: {**row, "suspect": None} for row in map(row_of, batch) if row["status"] == "ok"}.values())[:3]
    doubted = [{**row, "suspect": "drift", "elapsed_ns": 1.0} for row in good]
    summary = export([doubted[0], good[1], good[0], doubted[0], doubted[1], doubted[2], doubted[2]], tmp_path / "d")
    kept = {row["tree_key"]: row for rows in parts_of(tmp_path / "d").values() for row in rows}
    assert [kept[row["tree_key"]]["suspect"] for row in good] == [None, None, "drift"]
    assert len(kept) == sum(summary.rows.values()) == 3 and summary.duplicates == 4


def test_a_measured_row_goes_before_a_copy_without_samples(batch, tmp_path):
    row = next({**row, "suspect": None} for row in map(row_of, batch) if row["status"] == "ok")
    copy = {**row, "source": "stored", "samples_ns": [], "sample_flags": []}  # as PostgreSQL gives it
    doubted = {**row, "suspect": "drift"}

    def kept(*rows):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        assert export(rows, folder).duplicates == len(rows) - 1
        return next(row for part in parts_of(folder).values() for row in part)

    assert kept(copy, row)["samples_ns"] == kept(row, copy)["samples_ns"] == row["samples_ns"]
    assert kept(copy, copy)["source"] == "stored", "there is no other"
    assert kept({**copy, "suspect": "drift"}, doubted)["samples_ns"] == row["samples_ns"]
    assert kept(doubted, copy)["suspect"] is None and kept(copy, doubted)["suspect"] is None


def test_a_point_that_was_drawn_with_and_without_copies_is_there_once(batch, tmp_path):
    alone = next(row_of(outcome) for outcome in batch if outcome.ok)
    paired = {**alone, "tag": '{"campaign":"c","copies":2}'}
    elsewhere = {**paired, "worker": "another"}
    for number, (rows, count) in enumerate((([alone, paired], 1), ([paired, alone], 1), ([paired, elsewhere], 2),
                                            ([alone, elsewhere], 2), ([elsewhere, paired, alone], 2))):
        summary = export(rows, tmp_path / str(number))
        assert (summary.rows.total(), summary.duplicates) == (count, len(rows) - count), number


def test_doubted_rows_are_not_held_in_memory(batch, tmp_path, monkeypatch):
    row = next(row_of(outcome) for outcome in batch if outcome.ok)
    monkeypatch.setattr(dataset, "_GROUP_ROWS", 10)
    many = ({**row, "tree_key": str(i), "suspect": "drift", "message": f"{i}" + "x" * 100_000} for i in range(300))
    tracemalloc.start()
    try:
        summary = export(many, tmp_path / "d", format="jsonl")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(summary.rows.values()) == 300 and peak < 10_000_000, "of 30,000,000"


def test_an_export_of_a_coordinator_has_every_batch(tmp_path):
    with loopfleet.LocalCluster(workers=1) as cluster, cluster.client(timeout=300) as client:
        client.evaluate("benchmark://mm-v0/mm4_4_4")
        ended = queue.SimpleQueue()
        for _ in range(1001):
            client._follow([loopfleet.job("benchmark://mm-v0/mm4_4_4")], ended.put)
        assert sum(ended.get(timeout=300) is None for _ in range(2002)) == 1001
        assert export_command.main([str(tmp_path / "d"), "--address", cluster.address, "--format", "jsonl",
                                    "--keep-duplicates"]) == 0
    rows = [json.loads(line) for part in PARTS
            for line in (tmp_path / f"d/data/{part}.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len({row["batch"] for row in rows}) == len(rows) == 1002


def test_equal_programs_are_equal_however_they_are_named():
    walk = loopfleet.Walk(benchmark="benchmark://mm-v0/mm64_64_64")
    by_name = program_of("benchmark://mm-v0/mm64_64_64", None)
    assert by_name == program_of("benchmark://mm64_256_16_range-v0/mm64_64_64", None)
    walk.apply("split_4")
    assert by_name == program_of(None, walk.observe("ir")), "whatever the schedule"
    other, region = program_of("benchmark://mm-v0/mm64_64_50", None)
    assert other != by_name[0] and region == by_name[1], "of one region"
    assert program_of("benchmark://mm-v0/mm64_64_65", None)[1] != region
    assert program_of("benchmark://nonsense/1", None) == (None, None)


def test_a_region_or_a_device_is_kept_together():
    rows = [{"program": str(i), "region": str(i // 10), "hardware_class": str(i // 500), "benchmark": None, "ir": None}
            for i in range(1000)]
    for kind, field in (("region", "region"), ("device", "hardware_class")):
        split = Split(kind, seed=3)
        parts = {}
        for row in rows:
            parts.setdefault(row[field], set()).add(split.part(row))
        assert all(len(found) == 1 for found in parts.values())
    shares = [Split("program").part(row) for row in rows].count("train") / len(rows)
    assert 0.75 < shares < 0.85
    assert [Split(seed=1).part(row) for row in rows] != [Split(seed=2).part(row) for row in rows]
    with pytest.raises(loopfleet.LoopfleetError, match="nearest: region"):
        Split("regio")


def test_every_format_holds_the_same(batch, tmp_path):
    rows = [row_of(outcome) for outcome in batch]
    for format in ("parquet", "jsonl", "csv"):
        export(rows, tmp_path / format, format=format, name="A test", source="a test")
        assert check(tmp_path / format) == []
    assert pd.read_parquet(tmp_path / "parquet" / "data").shape[0] == 181
    with open(tmp_path / "jsonl/data/train.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert lines == pq.read_table(tmp_path / "parquet/data/train.parquet").to_pylist()
    with open(tmp_path / "csv/data/train.csv", encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["tree_key"] for row in table] == [row["tree_key"] or "" for row in lines]
    assert json.loads(table[0]["samples_ns"]) == lines[0]["samples_ns"]
    card = (tmp_path / "parquet/README.md").read_text()
    assert card.startswith("---\npretty_name: \"A test\"") and "path: data/train.parquet" in card
    for name in FIELDS:
        assert (f"| `{name}` |" in card) == (name != "suspect")
    assert "there is no column `suspect`" in card
    export([{**row, "suspect": None} for row in rows], tmp_path / "file")
    assert "| `suspect` |" in (tmp_path / "file/README.md").read_text()
    assert pq.read_schema(tmp_path / "file/data/train.parquet").names == list(FIELDS)
    with pytest.raises(loopfleet.LoopfleetError, match="one data set"):
        export([rows[0], {**rows[-1], "suspect": None}], tmp_path / "mixed")
    facts = json.loads((tmp_path / "parquet/provenance.json").read_text())
    assert facts["statuses"]["INVALID_ACTION"] == 61 and facts["split"] == "program"
    with open(tmp_path / "csv/data/train.csv", "a", encoding="utf-8") as file:
        file.write("x")
    (tmp_path / "csv/data/test.csv").unlink()
    assert sorted(check(tmp_path / "csv")) == ["data/test.csv: missing", "data/train.csv: changed"]


@pytest.fixture(scope="module")
def exported(batch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("readers") / "data"
    export([row_of(outcome) for outcome in batch], folder)
    return folder


def best_of_each(folder, part):
    """A part's rows, failed rows, best GFLOP/s and total samples."""
    rows = parts_of(folder)[part]
    return (len(rows), sum(row["status"] != "ok" for row in rows),
            max((row["gflops"] for row in rows if row["status"] == "ok"), default=None),
            sum(len(row["samples_ns"]) for row in rows))


def test_pandas_reads_an_export(exported):
    for part in PARTS:
        frame = pd.read_parquet(exported / "data" / f"{part}.parquet")
        got = (len(frame), int((frame.status != "ok").sum()), frame.gflops.max(), int(frame.samples_ns.map(len).sum()))
        assert got == best_of_each(exported, part)
        assert frame.gflops.isna().sum() == got[1], "a failed row has no figure"


def test_polars_reads_an_export(exported):
    import polars
    for part in PARTS:
        frame = polars.read_parquet(exported / "data" / f"{part}.parquet")
        got = (frame.height, frame.filter(polars.col("status") != "ok").height, frame["gflops"].max(),
               frame["samples_ns"].list.len().sum())
        assert got == best_of_each(exported, part)


def test_duckdb_reads_an_export(exported):
    import duckdb
    for part in PARTS:
        (got,) = duckdb.connect().execute(
            "SELECT count(*), count(*) FILTER (status <> 'ok'), max(gflops), sum(len(samples_ns)) FROM read_parquet(?)",
            [str(exported / "data" / f"{part}.parquet")]).fetchall()
        assert (*got[:3], int(got[3] or 0)) == best_of_each(exported, part)


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_hugging_faces_datasets_reads_an_export(format, batch, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets
    folder = tmp_path / "data"
    summary = export([row_of(outcome) for outcome in batch], folder, format=format)
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {part: len(loaded[part]) for part in loaded} == dict(summary.rows), "the card names the parts"
    programs = {part: set(loaded[part]["program"]) for part in PARTS}
    assert not programs["train"] & programs["test"] and not programs["train"] & programs["validation"]
    assert loaded["train"].column_names == COORDINATORS


def test_an_export_appears_whole_or_not_at_all(tmp_path):
    def rows():
        raise RuntimeError("the source broke")
        yield

    with pytest.raises(RuntimeError):
        export(rows(), tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").mkdir()
    with pytest.raises(loopfleet.LoopfleetError, match="already exists"):
        export([], tmp_path / "there")
    with pytest.raises(loopfleet.LoopfleetError, match="nearest: parquet"):
        export([], tmp_path / "x", format="parqet")


def test_the_command(cluster, client, batch, tmp_path, capsys):
    assert export_command.main([str(tmp_path / "a"), "--db", str(cluster.database)]) == 0
    assert export_command.main([str(tmp_path / "b"), "--address", cluster.address, "--format", "jsonl"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.split(": ")[1] == second.split(": ")[1]
    assert export_command.main([str(tmp_path / "c"), "--db", str(tmp_path / "none.db")]) == 1
    for wrong in (["--db", str(cluster.database), "--batch", "1"], ["--address", cluster.address, "--batch", "-1"]):
        with pytest.raises(SystemExit):
            export_command.main([str(tmp_path / "c"), *wrong])
    assert "there is no file" in capsys.readouterr().err


# ---- campaigns

SPEC = """
name = "small"
points = 300
seed = 5
benchmarks = ["mm64_256_16_range-v0", "benchmark://mm-v0/mm8_8_8", "benchmark://loop_tool-cpu-v0/1000"]
max_length = 6
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "spec.toml").write_text(SPEC)
    return campaign.read_spec(tmp_path / "spec.toml")


def test_points_follow_from_the_specification(spec):
    first = list(campaign.points(spec))
    assert first == list(campaign.points(spec)) and len(first) == 300
    assert first[17] == campaign.points_at(spec, 17)[0], "each by itself"
    assert len({point.benchmark for point in first}) > 30
    assert {len(point.actions) for point in first} >= {0, 6}
    text = json.dumps([(point.benchmark, point.actions) for point in first])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "3e99921c8267776d", "a golden value: they never change"


def test_a_benchmark_that_cannot_be_measured_is_drawn_again():
    spec = campaign.Spec("conv", 200, ["benchmark://conv_test-v0"], max_length=1)
    drawn = {point.benchmark for point in campaign.points(spec)}
    refused = {_core.dataset_member("benchmark://conv_test-v0", member) for member in range(19)} - drawn
    assert drawn and not any(_core.failure_of(make_job(benchmark), replay=True) for benchmark in drawn)
    assert refused and all(_core.failure_of(make_job(benchmark), replay=True) for benchmark in refused)
    too_much = campaign.Spec("big", 10, ["benchmark://mm-v0/mm4096_4096_4096"])
    with pytest.raises(loopfleet.LoopfleetError, match="LIMIT_FLOPS"):
        campaign.check(too_much)


def test_a_bad_specification_names_the_nearest_key(tmp_path):
    for text, said in (("points = 1\nbenchmarks = ['x']\nnam = 'x'", "nearest: name"),
                       ("points = 1\nname = 'x'", "benchmarks"),
                       ("points = 0\nname = 'x'\nbenchmarks = ['mm-v0']", "at least 1"),
                       ("points = ", "spec.toml"),
                       ("points = 1\nname = 'x'\nbenchmarks = 'mm64_256_16_range-v0'", "benchmarks must be a list"),
                       ("points = 1\nname = 'x'\nbenchmarks = ['x']\nseed = 'a'", "seed must be a whole number"),
                       ("points = 1\nname = 'x'\nbenchmarks = ['x']\nseed = -1", "seed must be from 0"),
                       ("points = 1\nname = 'x'\nbenchmarks = ['x']\nactions = 'looptun'", "nearest: looptune"),
                       *((f"points = 1\nname = '{name}'\nbenchmarks = ['x']", "name must be one that a folder can have")
                         for name in ("", ".", "..", "../x", "/x")),
                       ("points = true\nname = 'x'\nbenchmarks = ['x']", "points must be a whole number")):
        (tmp_path / "spec.toml").write_text(text)
        with pytest.raises(loopfleet.LoopfleetError, match=said):
            campaign.read_spec(tmp_path / "spec.toml")


def test_actions_may_be_a_named_space(tmp_path):
    (tmp_path / "spec.toml").write_text("points = 1\nname = 'x'\nbenchmarks = ['mm-v0/mm8_8_8']\nactions = 'looptune'")
    assert campaign.read_spec(tmp_path / "spec.toml").actions == list(LOOPTUNE_ACTIONS)


class Null:
    """Answers at once, ``at_a_time`` outcomes per call, in its own order; is interrupted after ``limit``."""

    def __init__(self, limit=10**9, at_a_time=37):
        self.jobs = {}
        self.numbers = itertools.count(1)
        self.left = limit
        self.at_a_time = at_a_time

    def send(self, jobs):
        tickets = []
        for job in jobs:
            tickets.append(next(self.numbers))
            self.jobs[tickets[-1]] = job
        return tickets

    def recv(self, min_n, timeout):
        got = []
        for ticket in sorted(self.jobs, key=lambda t: t * 7919 % 1000)[:self.at_a_time]:
            job = self.jobs.pop(ticket)
            self.left -= 1
            got.append((ticket, loopfleet._core.failed_outcome("CUT", json.dumps(job["tag"]), None, 0,
                                                               job["benchmark"], job["actions"])))
        return got


def questions(folder):
    return [(row["point"], row["copy"], row["outcome"]["benchmark"], row["outcome"]["actions"])
            for row in campaign.outcomes(folder)]


def test_interrupted_five_times_it_has_the_rows_of_an_uninterrupted_one(tmp_path):
    total = 20_000
    spec = campaign.Spec("big", total, ["mm64_256_16_range-v0"], seed=1, max_length=3)
    campaign.run(spec, tmp_path / "once", Null())
    for interruption in range(5):
        client = Null(200 + 1500 * interruption)
        campaign.run(spec, tmp_path / "often", client, stop=lambda: client.left <= 0)
        with open(tmp_path / "often/outcomes.jsonl", "ab") as file:
            file.write(b'{"point": 12345, "copy": 0, "outc')  # killed in the middle of a line
    progress = campaign.run(spec, tmp_path / "often", Null())
    assert progress.done == total
    once = questions(tmp_path / "once")
    assert len(once) == total and once == questions(tmp_path / "often")


class WithoutWorkers(Null):
    """Has a worker for every third point."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def recv(self, min_n, timeout):
        got = super().recv(min_n, timeout)
        return [(ticket, outcome if json.loads(outcome.message)["point"] % 3 == 0
                 else loopfleet._core.failed_outcome("NO_MATCHING_WORKER", "")) for ticket, outcome in got]


def test_points_that_no_worker_could_run_are_asked_for_again(spec, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(campaign_command, "Client", lambda *_, **__: WithoutWorkers())
    confirming = campaign.Spec(**{**vars(spec), "confirm_share": 0.1})
    progress = campaign.run(confirming, tmp_path / "c", WithoutWorkers())
    assert (progress.done, progress.unanswered, progress.complete) == (100, {"NO_MATCHING_WORKER": 200}, False)
    assert not (tmp_path / "c/remeasured.jsonl").exists(), "its winners are not known yet"
    with open(tmp_path / "c/outcomes.jsonl", "ab") as file:  # as an earlier version did
        failed = loopfleet._core.failed_outcome("NO_MATCHING_WORKER", "").to_dict()
        file.write(json.dumps({"point": 1, "copy": 0, "outcome": failed}).encode() + b"\n")
    command = [str(tmp_path / "spec.toml"), "--out", str(tmp_path / "c")]
    assert campaign_command.main(["run", *command]) == 75
    said = capsys.readouterr()
    assert "200 points have no answer; the same command asks for them again:\n  200 NO_MATCHING_WORKER: " in said.err
    assert "100 of 300 points, 100 failed" in said.out and campaign.failures(tmp_path / "c") == {"CUT": 100}
    assert campaign.run(spec, tmp_path / "c", Null()).complete
    assert [row["point"] for row in campaign.outcomes(tmp_path / "c")] == list(range(300)), "each once"
    assert campaign.standing(spec, tmp_path / "c") == (300, 300)


class OneByOne(Null):
    """Returns one outcome per call, as a cluster with slow jobs does."""

    def workers(self):
        return []

    def recv(self, min_n, timeout):
        ticket = min(self.jobs)
        job = self.jobs.pop(ticket)
        return [(ticket, loopfleet._core.failed_outcome("CUT", "", None, 0, job["benchmark"], job["actions"]))]


def test_outcomes_that_come_one_by_one_end_no_campaign_early(tmp_path):
    spec = campaign.Spec("slow", 3000, ["benchmark://mm-v0/mm8_8_8"], max_length=1, paired_share=0.1)
    said = []
    progress = campaign.run(spec, tmp_path / "c", OneByOne(), on_progress=said.append)
    copies = sum(1 for _ in campaign.points(spec))
    assert progress.done == len(questions(tmp_path / "c")) == copies > 3200
    assert progress.total == copies, "each copy is counted once"
    assert all(each.total <= copies for each in said)
    again = campaign.run(spec, tmp_path / "c", OneByOne())
    assert (again.done, again.total) == (copies, copies)


class TwoHosts(Null):
    """A fleet of two suitable hosts and others."""

    def workers(self):
        fits = {"state": "ready", "device": "cpu", "max_threads": 1, "labels": ["quiet", "device=cpu"]}
        return [{**fits, "host": "b"}, {**fits, "host": "a"}, {**fits, "host": "a"},
                {**fits, "host": "c", "state": "draining"}, {**fits, "host": "d", "device": "cuda"},
                {**fits, "host": "e", "labels": []}]


def test_a_share_of_points_is_measured_on_several_hosts(tmp_path):
    spec = campaign.Spec("pairs", 400, ["mm64_256_16_range-v0"], seed=1, max_length=3, labels=["quiet"],
                         paired_share=0.25, paired_times=2)
    assert campaign.hosts_of(spec, TwoHosts().workers()) == ["a", "b"]
    by_point = {}
    for point in campaign.points(spec):
        by_point.setdefault(point.index, []).append(campaign.job_of(spec, point, ["a", "b"]))
    pairs = [jobs for jobs in by_point.values() if len(jobs) > 1]
    assert 60 < len(pairs) < 140 and all(len(jobs) == 2 for jobs in pairs)
    for first, second in pairs:
        assert {first["labels"][1], second["labels"][1]} == {"host=a", "host=b"}
        assert first["labels"][0] == second["labels"][0] == "quiet" and first["affinity"] != second["affinity"]
        assert (first["benchmark"], first["actions"]) == (second["benchmark"], second["actions"])
        assert second["fresh"], "a stored result is no second measurement"
    assert all("affinity" not in jobs[0] and jobs[0]["labels"] == ["quiet"] for jobs in by_point.values() if len(jobs) == 1)
    progress = campaign.run(spec, tmp_path / "c", TwoHosts())
    assert progress.done == 400 + len(pairs)


def test_a_folder_belongs_to_one_specification(spec, tmp_path):
    campaign.run(spec, tmp_path / "c", Null())
    other = campaign.Spec("small", 301, spec.benchmarks)
    with pytest.raises(loopfleet.LoopfleetError, match="another campaign"):
        campaign.run(other, tmp_path / "c", Null())


@pytest.mark.parametrize("mistake, said", [
    ({"benchmarks": ["mm64_256_16_range-v0", "mm64_256_16_rang-v0"]}, "unknown dataset"),
    ({"benchmarks": ["benchmark://mm-v0/mm8_8"]}, "mm8_8"), ({"rules": "loopnest"}, "loopnest"),
    ({"actions": ["splt_4"]}, "nearest: split_4"), ({"labels": ["a,b"]}, "a,b"), ({"device": "gpu"}, "gpu")])
def test_a_mistake_in_a_specification_takes_no_folder(tmp_path, mistake, said):
    good = {"name": "small", "points": 20, "benchmarks": ["benchmark://mm-v0/mm8_8_8"]}
    with pytest.raises(loopfleet.LoopfleetError, match=said):
        campaign.run(campaign.Spec(**{**good, **mistake}), tmp_path / "c", Null())
    assert not (tmp_path / "c").exists()
    assert campaign.run(campaign.Spec(**good), tmp_path / "c", Null()).done == 20


def test_a_folder_that_cannot_be_written_is_told_in_one_line(spec, cluster, tmp_path, capsys):
    (tmp_path / "file").touch()
    inside = str(tmp_path / "file/out")  # which not even root can make
    command = [str(tmp_path / "spec.toml"), "--out", inside]
    database = ["--db", str(cluster.database)]
    for done in (lambda: campaign_command.main(["run", *command, "--address", "tcp://127.0.0.1:9"]),
                 lambda: campaign_command.main(["show", *command]),
                 lambda: export_command.main([inside, *database]),
                 lambda: export_command.main([inside, *database, "--follow", "--once"])):
        assert done() == 1
        (said,) = capsys.readouterr().err.splitlines()
        assert said.startswith("loopfleet-") and "file" in said


def test_a_folder_without_answers_is_anybodys(spec, tmp_path):
    campaign.Log(tmp_path / "c", campaign.Spec("other", 1, spec.benchmarks)).close()
    assert campaign.standing(spec, tmp_path / "c") == (0, 0)
    assert campaign.run(spec, tmp_path / "c", Null()).done == 300
    with pytest.raises(loopfleet.LoopfleetError, match="another campaign"):
        campaign.Log(tmp_path / "c", campaign.Spec("other", 1, spec.benchmarks))


def test_one_process_at_a_time_has_a_campaign_and_show_only_reads(spec, tmp_path, capsys):
    show = ["show", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "c")]
    assert campaign_command.main(show) == 0 and "0 of 300 points" in capsys.readouterr().out
    assert not (tmp_path / "c").exists()
    failed = loopfleet._core.failed_outcome("CUT", "")
    log = campaign.Log(tmp_path / "c", spec)
    log.add(campaign.Point(0, 0, "b", []), failed)
    with open(tmp_path / "c/outcomes.jsonl", "ab") as file:
        file.write(b'{"point": 1, "cop')  # a line still being written
    before = (tmp_path / "c/outcomes.jsonl").read_bytes()
    assert campaign_command.main(show) == 0
    said = capsys.readouterr().out
    assert "1 of 300 points, 1 failed\n  1 CUT: " in said and len(said.splitlines()[1]) > len("  1 CUT: ")
    with pytest.raises(loopfleet.LoopfleetError, match="is running already"):
        campaign.run(spec, tmp_path / "c", Null())
    assert (tmp_path / "c/outcomes.jsonl").read_bytes() == before
    log.close()
    assert campaign.run(spec, tmp_path / "c", Null()).done == 300


def test_a_campaign_that_stands_still_says_what_it_waits_for(tmp_path, monkeypatch, capsys):
    (tmp_path / "spec.toml").write_text(SPEC.replace("300", "3"))
    monkeypatch.setattr(campaign_command, "_STALL_S", 0.5)
    with loopfleet.LocalCluster(workers=0) as alone:
        assert campaign_command.main(["run", str(tmp_path / "spec.toml"), "--address", alone.address, "--timeout", "4"]) == 75
    assert "no outcome for 0.5 s: no worker is there" in capsys.readouterr().err

    class Fleet:
        def __init__(self, *states):
            self.states = states

        def workers(self, timeout):
            return [{"state": state} for state in self.states]

    assert campaign_command.waiting_for(Fleet("draining", "lost")) == "no worker is ready (1 draining, 1 lost)"
    assert campaign_command.waiting_for(Fleet("ready", "ready")).startswith("2 ready workers; ")
    with loopfleet.Client("tcp://127.0.0.1:9", connect_limit=0.2) as nobody:
        assert campaign_command.waiting_for(nobody) == "the coordinator does not answer"


def test_a_campaign_on_a_cluster_by_its_command(cluster, tmp_path):
    (tmp_path / "spec.toml").write_text(SPEC.replace("300", "60"))
    loopfleet_command = [os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet"), "campaign"]
    environment = {**os.environ, "LOOPFLEET_PYTHON": sys.executable}

    def run(command, **environ):
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240,
                              env={**environment, **environ})

    late = run([*loopfleet_command, "run", "spec.toml", "--address", cluster.address, "--timeout", "1e-9"])
    assert late.returncode == 75 and "goes on where it was" in late.stderr, late.stderr
    done = run([*loopfleet_command, "run", "spec.toml", "--address", cluster.address])
    assert done.returncode == 0, done.stderr
    assert "60 of 60 points" in done.stdout
    rows = list(campaign.outcomes(tmp_path / "small"))
    assert {row["outcome"]["status"] for row in rows} <= {"ok", "failed"}
    assert sum(row["outcome"]["status"] == "ok" for row in rows) > 0
    again = run([sys.executable, "-m", "loopfleet.campaign", "run", "spec.toml", "--address", cluster.address])
    assert again.returncode == 0 and "60 of 60 points" in again.stdout
    shown = run([*loopfleet_command, "show", "spec.toml"])
    assert shown.returncode == 0 and "60 of 60 points" in shown.stdout

    for wrong, said in ((SPEC.replace("300", "0"), "points must be at least 1, not 0"),
                        (SPEC + 'labels = "x"', "labels must be a list of texts"),
                        (SPEC.replace("mm64_256_16_range-v0", "mm64_265_16_range-v0"), "nearest: ")):
        (tmp_path / "spec.toml").write_text(wrong)
        bad = run([*loopfleet_command, "run", "spec.toml", "--address", cluster.address])
        assert bad.returncode == 78, bad.stderr
        assert bad.stderr.startswith("loopfleet-campaign: spec.toml: ") and said in bad.stderr, bad.stderr
    without = run([*loopfleet_command, "show", "spec.toml"], PYTHONPATH="")
    assert without.returncode == 78 and "pip install" in without.stderr
    (tmp_path / "no/zmq").mkdir(parents=True)
    (tmp_path / "no/zmq/__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'zmq'\", name='zmq')")
    without = run([*loopfleet_command, "run", "spec.toml"],
                  PYTHONPATH=os.pathsep.join([str(tmp_path / "no"), os.environ["PYTHONPATH"]]))
    assert without.returncode == 78 and "the Python package 'zmq'" in without.stderr, without.stderr
    assert "Traceback" not in without.stderr
    nothing = run([*loopfleet_command, "show", "spec.toml"], LOOPFLEET_PYTHON="/nonexistent/python")
    assert nothing.returncode == 78 and "/nonexistent/python" in nothing.stderr


def test_the_card_says_what_a_figure_is_worth_and_how_points_were_drawn(batch, tmp_path):
    rows = [row_of(outcome) for outcome in batch]
    spec = campaign.Spec(name="walks", points=10, benchmarks=["mm64_256_16_range-v0"], max_length=7)
    rows[3]["tag"], rows[4]["tag"] = '{"campaign":"walks","point":1}', '{"campaign":"of others","point":1}'
    export(rows, tmp_path / "x", dedup=False, campaign=spec, licence="CC-BY-4.0")
    card = (tmp_path / "x/README.md").read_text(encoding="utf-8")
    facts = json.loads((tmp_path / "x/provenance.json").read_text())
    ok = [row for row in rows if row["status"] == "ok"]
    assert facts["grades"] == {grade: sum(row["grade"] == grade for row in ok) for grade in facts["grades"]}
    assert sum(facts["grades"].values()) == facts["statuses"]["ok"]
    assert f"({len(ok)} measured) of " in card
    assert min(row["gflops"] for row in ok) in facts["gflops_range"]
    for grade, count in facts["grades"].items():
        assert f"| {grade} | {count:,} |" in card
    assert f"points of this campaign: 1 of {len(rows)}." in card and facts["campaign_rows"] == 1
    assert "license: cc-by-4.0\n" in card and "max_length = 7\n" in card and facts["campaign"]["points"] == 10
    assert "| INVALID_ACTION | 61 | unknown action, or not legal at this point" in card
    program = re.search(r"^```python\n(.*?)^```", card, re.M | re.S)[1]
    said = subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "x", text=True, capture_output=True, check=True).stdout
    assert said.startswith("       count")
    export([row for row in rows if row["status"] != "ok"], tmp_path / "none")
    assert "No row has a figure." in (tmp_path / "none/README.md").read_text()


def test_only_an_export_is_replaced(batch, tmp_path):
    rows = [row_of(outcome) for outcome in batch]
    export(rows[:10], tmp_path / "x")
    with pytest.raises(loopfleet.LoopfleetError, match="already exists"):
        export(rows, tmp_path / "x")
    summary = export(rows, tmp_path / "x", replace=True)
    assert check(tmp_path / "x") == [] and [path.name for path in tmp_path.iterdir()] == ["x"]
    assert {part: len(found) for part, found in parts_of(tmp_path / "x").items()} == dict(summary.rows)
    (tmp_path / "mine").mkdir()
    with pytest.raises(loopfleet.LoopfleetError, match="is no export"):
        export(rows, tmp_path / "mine", replace=True)

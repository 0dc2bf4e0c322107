"""A campaign's paired points on two hosts: this one, and a worker in a namespace with another host name."""

import os
import shutil
import subprocess

import pyarrow.parquet as pq
import pytest
from processes import wait_until

import loopfleet
from loopfleet import campaign
from loopfleet.export import export
from loopfleet.rows import rows_of_file
from loopfleet.splits import PARTS

NAMESPACE = ["unshare", "--uts"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--uts"]
TWIN = [*NAMESPACE, "sh", "-c", 'hostname twin && exec "$@"', "sh"]


@pytest.fixture
def two_hosts(daemon, sockets, tmp_path):
    if shutil.which("unshare") is None or subprocess.run([*TWIN, "true"], capture_output=True).returncode != 0:
        pytest.skip("WITHOUT a second host: this system lets nobody name one (unshare --uts)")
    clients, workers = f"ipc://{sockets}/clients", f"ipc://{sockets}/workers"
    daemon("loopfleet-coordinator", "--listen-clients", clients, "--listen-workers", workers, "--http", "127.0.0.1:0", "--db", str(tmp_path / "x.db"))
    for within in ((), TWIN):
        daemon("loopfleet-worker", "--coordinator", workers, "--http", "127.0.0.1:0", within=within)
    with loopfleet.Client(clients) as client:
        wait_until(lambda: [worker["state"] for worker in client.workers()] == ["ready"] * 2, "both workers are ready")
        yield client


def test_each_is_measured_on_both(two_hosts, tmp_path):
    hosts = {worker["name"]: worker["host"] for worker in two_hosts.workers()}
    assert sorted(hosts.values()) == sorted({*hosts.values()}) and "twin" in hosts.values()
    spec = campaign.Spec("pairs", 30, ["benchmark://mm-v0/mm16_16_16", "benchmark://mm-v0/mm16_24_16"], seed=1,
                         max_length=4, paired_share=0.5)
    # An earlier measurement on one host does not count for the other.
    two_hosts.evaluate_many([campaign.job_of(spec, point) for point in campaign.points(spec) if point.copies == 1])
    progress = campaign.run(spec, tmp_path / "c", two_hosts)
    assert progress.done == progress.total > 30
    where, trees = {}, {}
    for row in campaign.outcomes(tmp_path / "c"):
        if row["outcome"]["status"] == "ok":
            where.setdefault(row["point"], []).append(hosts[row["outcome"]["worker"]])
            trees[row["point"]] = row["outcome"]["tree_key"]
    pairs = [point for point, found in where.items() if len(found) == 2]
    assert pairs and all(sorted(where[point]) == sorted(hosts.values()) for point in pairs)

    # An export keeps one figure of each host for paired points, whichever job it was measured for.
    summary = export(rows_of_file(tmp_path / "x.db"), tmp_path / "data")
    assert summary.duplicates > 0
    kept = {}
    for part in PARTS:
        for row in pq.read_table(tmp_path / "data/data" / f"{part}.parquet").to_pylist():
            if row["status"] == "ok":
                kept.setdefault(row["tree_key"], []).append(hosts[row["worker"]])
    assert all(sorted(kept[tree]) == sorted(hosts.values()) for tree in map(trees.get, pairs))

"""LocalCluster: a real one, which leaves nothing behind however it ends."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest
from processes import alive, wait_for_the_end_of

import loopfleet
from loopfleet import local_cluster

SCRIPT = """
import os, sys, loopfleet
cluster = loopfleet.LocalCluster(workers=1).start()
print(cluster.pid, cluster.coordinator_pid, *[w["pid"] for w in cluster.client().workers()], flush=True)
{end}
"""


def run(end):
    """Runs a process with a cluster that ends as `end` says; returns it and the cluster's pids."""
    process = subprocess.Popen([sys.executable, "-c", SCRIPT.format(end=end)], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 3, "the cluster started"
    return process, pids


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise RuntimeError()", "os._exit(0)", "os.abort()",
                                 "os.kill(os.getpid(), 9)"])
def test_nothing_is_left_however_the_interpreter_ends(end):
    process, pids = run(end)
    process.wait(60)
    process.stdout.close()
    wait_for_the_end_of(pids)


def test_nothing_is_left_of_a_killed_interpreter():
    process, pids = run("import time; time.sleep(1000)")
    assert all(alive(pid) for pid in pids)
    process.kill()
    process.wait(60)
    process.stdout.close()
    wait_for_the_end_of(pids)


def test_a_daemon_that_dies_is_told_of(capfd):
    with loopfleet.LocalCluster(workers=1) as cluster, cluster.client() as client:
        (worker,) = client.workers()
        os.kill(worker["pid"], signal.SIGKILL)
        said, end = "", time.monotonic() + 30
        while f"(pid {worker['pid']}) was ended by signal 9" not in said:
            assert time.monotonic() < end, said
            said += capfd.readouterr().err
            time.sleep(0.05)


def test_a_client_of_a_cluster_that_does_not_run_says_so():
    cluster = loopfleet.LocalCluster(workers=0)
    with pytest.raises(loopfleet.ClusterError, match="does not run: use `with LocalCluster"):
        cluster.client()
    with cluster:
        cluster.client().close()
    with pytest.raises(loopfleet.ClusterError, match="does not run: use `with LocalCluster"):
        cluster.client()


def test_a_cluster_may_start_again(tmp_path):
    cluster = loopfleet.LocalCluster(workers=0)
    files = set()
    for _ in range(2):
        with cluster:
            assert os.path.exists(cluster.database)
            files.add(cluster.database)
    assert len(files) == 2
    cluster = loopfleet.LocalCluster(workers=0, database=tmp_path / "kept.db")
    for _ in range(2):
        with cluster:
            assert os.path.samefile(cluster.database, tmp_path / "kept.db")


def test_a_block_ends_its_cluster_and_leaves_the_affinity_as_it_was(tmp_path):
    before = os.sched_getaffinity(0)
    with loopfleet.LocalCluster(workers=1, database=tmp_path / "kept.db") as cluster:
        with cluster.client() as client:
            (worker,) = client.workers()
        pids = [cluster.pid, cluster.coordinator_pid, worker["pid"]]
        assert os.sched_getaffinity(0) == before & os.sched_getaffinity(worker["pid"])
        if len(before) > 1:
            assert len(os.sched_getaffinity(0)) < len(before), "a core is the timing core's alone"
        inside = set()
        thread = threading.Thread(target=lambda: inside.update(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
        assert inside == os.sched_getaffinity(0)
        assert loopfleet.Client().address == cluster.address, "clients that are told nothing find it"
    assert os.sched_getaffinity(0) == before
    assert not any(alive(pid) for pid in pids)
    assert (tmp_path / "kept.db").exists()
    assert loopfleet.Client().address != cluster.address
    cluster.stop()  # a second stop is harmless


def test_the_users_keys_are_not_for_it(monkeypatch, tmp_path):
    config = tmp_path / "loopfleet.toml"
    config.write_text('[client]\nkeys = "/no/keys"\n')
    monkeypatch.setenv("LOOPFLEET_CONFIG", str(config))
    monkeypatch.setenv("LOOPFLEET_KEYS", str(tmp_path / "alice-keys"))
    with loopfleet.LocalCluster(workers=0) as cluster:
        for client in (cluster.client(), loopfleet.Client(), loopfleet.Client(cluster.address)):
            assert client.workers() == []
            client.close()
        assert loopfleet.Client("tcp://127.0.0.1:9")._keys == tmp_path / "alice-keys"
    assert pickle.loads(pickle.dumps(client))._keys is None, "nor for a copy in a process without a cluster"
    program = local_cluster.find_program()
    for keys in (str(tmp_path / "alice-keys"), ""):  # then those of the file
        monkeypatch.setenv("LOOPFLEET_KEYS", keys)
        done = subprocess.run([program, "local", "--workers", "0", "--", "sh", "-c",
                               f"loopfleet worker list --json && {sys.executable} -c "
                               "'import loopfleet; print(loopfleet.Client().workers())'"],
                              capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "[]\n[]\n"), done.stderr


def test_threads_that_start_meanwhile_get_the_cores_back():
    before = os.sched_getaffinity(0)
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    try:
        first, second = loopfleet.LocalCluster(workers=1).start(), loopfleet.LocalCluster(workers=1).start()
        inside = os.sched_getaffinity(0)
        thread.start()
        assert len(before) == 1 or os.sched_getaffinity(thread.native_id) == inside < before
        first.stop()
        second.stop()  # in the order in which they were started
        assert os.sched_getaffinity(0) == os.sched_getaffinity(thread.native_id) == before
    finally:
        end.set()
        thread.join()
        second.stop()
        first.stop()


def test_an_interrupted_start_leaves_no_thread_and_no_process(monkeypatch):
    class Interrupted:
        def readline(self):
            raise KeyboardInterrupt

        def close(self):
            pass

    started = []

    class Process(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.stdout.close()
            self.stdout = Interrupted()
            started.append(self.pid)

    monkeypatch.setattr(subprocess, "Popen", Process)
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        loopfleet.LocalCluster(workers=0).start()
    wait_for_the_end_of(started)
    assert set(threading.enumerate()) <= before, "a timer would keep the interpreter"


def test_a_thread_may_start_it_and_end():
    clusters = []
    thread = threading.Thread(target=lambda: clusters.append(loopfleet.LocalCluster(workers=1).start()))
    thread.start()
    thread.join()
    try:
        with clusters[0].client(timeout=300) as client:
            assert client.evaluate("benchmark://mm-v0/mm8_8_8").status in ("ok", "UNSTABLE_TIMING")
    finally:
        clusters[0].stop()


def test_a_forked_process_leaves_it_alone():
    with loopfleet.LocalCluster(workers=1) as cluster:
        pid = os.fork()
        if pid == 0:
            cluster.stop()
            os._exit(0)
        os.waitpid(pid, 0)
        with cluster.client(timeout=300) as client:
            assert client.evaluate("benchmark://mm-v0/mm8_8_8").status in ("ok", "UNSTABLE_TIMING")


def test_a_cluster_that_cannot_start_says_why(tmp_path):
    with pytest.raises(ValueError, match="workers must be at least 0, not -1"):
        loopfleet.LocalCluster(-1).start()
    with pytest.raises(loopfleet.ClusterError, match="no/such/folder"):
        loopfleet.LocalCluster(database="/no/such/folder/x.db").start()
    with pytest.raises(loopfleet.ClusterError, match="there is no program"):
        loopfleet.LocalCluster(programs=tmp_path).start()


def test_only_its_own_parent_can_be_named():
    done = subprocess.run([os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet"), "local", "--parent", "1"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--parent 1" in done.stderr


def test_threads_that_end_meanwhile_are_passed_over():
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    while os.path.exists(f"/proc/self/task/{ended.native_id}"):
        time.sleep(0.001)
    mine = threading.get_native_id()
    assert local_cluster._affinities([ended.native_id, mine]) == {mine: os.sched_getaffinity(mine)}

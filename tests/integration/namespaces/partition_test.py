"""A network partition longer than the tolerated silence, with the product's settings (a heartbeat a second,
three missed): once by a proxy that discards everything, once between network namespaces by pulling the link.
The coordinator notices during the partition and gives the jobs to other workers; afterwards the workers
return, and no job has two outcomes."""

import contextlib
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support/chaos"))

import arena  # noqa: E402
import fleet  # noqa: E402
import network_namespace  # noqa: E402
import tcp_proxy  # noqa: E402

HEARTBEAT_MS = 1000  # limits.h
HERE, THERE = "10.231.0.1", "10.231.0.2"


def count(log, event):
    return len(re.findall(rf"\b{re.escape(event)}\b", log.read_text(encoding="utf-8")))


class ProxyTest(unittest.TestCase):
    def test_silence(self):
        with arena.Arena(transport="tcp", stubs=False) as ring:
            host, port = ring.workers.removeprefix("tcp://").split(":")
            proxy = tcp_proxy.TcpProxy(host, int(port))
            self.addCleanup(proxy.stop)
            options = {"workers": 3, "credit": 4, "job_us": 20000, "heartbeat_ms": HEARTBEAT_MS}
            ring.start_stubs(proxy.endpoint, **options)
            ring.start_stubs(**options)
            ring.start_client(jobs=60)
            ring.await_progress()
            log = ring.dir / "coordinator.log"
            took = []
            for _ in range(2):
                lost = count(log, "worker.lost")
                proxy.swallow = frozenset(("up", "down"))
                begun = time.monotonic()
                fleet.wait_until(lambda lost=lost: count(log, "worker.lost") >= lost + 3, "the loss is noticed")
                took.append(time.monotonic() - begun)
                ring.await_progress(3)  # by the other workers
                back = count(log, "worker.reattached") + count(log, "worker.joined")
                proxy.heal()
                proxy.cut()  # discarded bytes leave half a frame behind
                fleet.wait_until(lambda: count(log, "worker.reattached") + count(log, "worker.joined") >= back + 3,
                                 "they are back")
                ring.await_progress(3)
            counts = ring.judge()
        print(f"noticed after {', '.join(f'{s:.1f} s' for s in took)}; {counts}")


class NamespacesTest(unittest.TestCase):
    """Two network namespaces, which end with the processes that hold them."""

    def setUp(self):
        try:
            self.connect()
        except network_namespace.Unavailable as why:
            self.skipTest(str(why))

    def connect(self):
        here, self.there = network_namespace.namespace_for(self), network_namespace.namespace_for(self)
        here.ip("link", "add", "near", "type", "veth", "peer", "name", "far")
        here.ip("link", "set", "far", "netns", str(self.there.pid))
        for namespace, address, device in ((here, HERE, "near"), (self.there, THERE, "far")):
            namespace.ip("addr", "add", f"{address}/24", "dev", device)
            namespace.ip("link", "set", device, "up")
        self.here = here.inside

    def test_a_cable_that_is_pulled(self):
        with fleet.Fleet(workers=0) as cluster:  # for its directory; its coordinator is replaced
            cluster.coordinator.stop()
            folder = cluster.dir
            keys = fleet.make_keys(folder, alice="client", near="worker", far="worker")
            database = folder / "keyed.db"
            log = folder / "keyed.log"
            cluster.coordinator = fleet.Daemon(
                [*self.here, fleet.program("loopfleet-coordinator"), "--keys", keys["coordinator"],
                 "--listen-clients", f"tcp://{HERE}:0", "--listen-workers", f"tcp://{HERE}:0", "--http",
                 "127.0.0.1:0", "--db", str(database), "--log-level", "info"], log)
            ready = cluster.coordinator.ready
            for inside, name in ((self.here, "near"), (self.there.inside, "far")):
                cluster.workers.append(fleet.Daemon(
                    [*inside, fleet.program("loopfleet-worker"), "--keys", keys[name],
                     "--coordinator", ready["workers"], "--http", "127.0.0.1:0"], folder / f"{name}.log"))
            environment = fleet.clean_environment(LOOPFLEET_ADDRESS=ready["clients"], LOOPFLEET_KEYS=keys["alice"])

            def command(*arguments, **options):
                return subprocess.run([*self.here, fleet.program("loopfleet"), *arguments], text=True,
                                      capture_output=True, env=environment, timeout=fleet.COMMAND_LIMIT_S,
                                      check=True, **options).stdout

            fleet.wait_until(lambda: count(log, "worker.joined") >= 2, "both workers are there")
            jobs = fleet.small_jobs(400)
            with open(folder / "jobs", "w+", encoding="utf-8") as source:
                source.write(fleet.lines(jobs))
                source.seek(0)
                waits = subprocess.Popen(
                    [*self.here, fleet.program("loopfleet"), "submit", "-", "--wait", "--jsonl"], stdin=source,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
            self.addCleanup(waits.kill)
            outcomes = [json.loads(waits.stdout.readline())]
            self.there.ip("link", "set", "far", "down")
            begun = time.monotonic()
            fleet.wait_until(lambda: count(log, "worker.lost") >= 1, "the loss is noticed")
            took = time.monotonic() - begun
            outcomes.append(json.loads(waits.stdout.readline()))  # by the other worker
            before = count(log, "worker.reattached") + count(log, "worker.joined")
            self.there.ip("link", "set", "far", "up")
            fleet.wait_until(lambda: count(log, "worker.reattached") + count(log, "worker.joined") > before,
                             "it is back")
            outcomes += map(json.loads, waits.stdout)
            waits.stdout.close()
            waits.wait()
            fleet.wait_until(lambda: [worker["state"] for worker in json.loads(
                command("worker", "list", "--json"))].count("ready") == 2, "both are ready", fleet.COMMAND_LIMIT_S)
            self.assertEqual(sorted(outcome["index"] for outcome in outcomes), list(range(len(jobs))))
            self.assertEqual([o for o in outcomes if o["status"] != "ok" and not fleet.is_unstable(o)], [])
            for daemon in (*cluster.workers, cluster.coordinator):
                self.assertEqual(daemon.stop(), 0)
            with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
                rows = connection.execute(
                    'SELECT count(*), count(DISTINCT "index") FROM v_results WHERE batch = 1').fetchone()
            self.assertEqual(rows, (len(jobs), len(jobs)))
        print(f"noticed after {took:.1f} s; {len(outcomes)} outcomes")


if __name__ == "__main__":
    fleet.main()

#!/usr/bin/env python3
"""Faults at random, for as long as is asked for, and then the judgement over all that clients saw:

    tests/integration/soak.py --bin build/release/bin --tests build/release/tests --minutes 60

Coordinator, worker fleet and clients are killed, stopped and let go on (SIGSTOP), and every connection goes
through a proxy that cuts, delays, swallows and reorders. Each minute a line tells the counts so far and the
memory and descriptors of the coordinator. LOOPFLEET_CHAOS_SEED=N chooses the same faults again. Exit status 0:
no promise was broken."""

import argparse
import pathlib
import random
import signal
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support/chaos")]

import arena  # noqa: E402
import fleet  # noqa: E402
import network_test  # noqa: E402
import tcp_proxy  # noqa: E402


class Soak:
    def __init__(self, ring, chance):
        self.ring = ring
        self.chance = chance
        self.done = {}
        self.proxies = {}
        for name, endpoint in (("workers", ring.workers), ("clients", ring.clients)):
            host, port = endpoint.removeprefix("tcp://").split(":")
            self.proxies[name] = tcp_proxy.TcpProxy(host, int(port), chance.random())
        self.start_stubs()
        self.clients = []

    def start_stubs(self):
        self.ring.start_stubs(self.proxies["workers"].endpoint, workers=8, credit=16, job_us=2000,
                              heartbeat_ms=100)

    def start_client(self):
        self.clients.append(self.ring.start_client(self.proxies["clients"].endpoint, jobs=80))

    def kill_coordinator(self):
        self.ring.kill_coordinator()
        self.ring.start_coordinator()

    def kill_workers(self):
        self.ring.stubs.process.kill()
        self.ring.stubs.process.wait()
        self.ring.stubs.process.stdout.close()
        self.start_stubs()

    def kill_client(self):
        self.ring.kill_client(self.clients.pop(0))
        self.start_client()

    def stand_still(self):
        process = self.chance.choice((self.ring.coordinator.process, self.ring.stubs.process))
        process.send_signal(signal.SIGSTOP)
        time.sleep(5 * self.chance.random())
        process.send_signal(signal.SIGCONT)

    def network(self):
        fault = self.chance.choice(network_test.FAULTS)
        for proxy in self.chance.choice((list(self.proxies.values()), [self.proxies["workers"]],
                                         [self.proxies["clients"]])):
            fault(proxy, self.chance)
            proxy.heal()

    FAULTS = (kill_coordinator, kill_workers, kill_client, stand_still, network, network)

    def once(self):
        fault = self.chance.choice(self.FAULTS)
        fault(self)
        self.done[fault.__name__] = self.done.get(fault.__name__, 0) + 1
        self.ring.await_progress()
        time.sleep(self.chance.random())

    def tell(self, minutes):
        pid = self.ring.coordinator.pid
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        rss = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
        descriptors = len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))
        print(f"{minutes:.1f} min: {self.done}; {self.ring.outcomes_seen()} pages; the coordinator: "
              f"{rss} KiB, {descriptors} descriptors", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--tests", required=True)
    parser.add_argument("--minutes", type=float, default=2)
    arguments = parser.parse_args()
    fleet.use_programs(arguments.bin, arguments.tests)
    begun = last_told = time.monotonic()
    with arena.Arena(transport="tcp", stubs=False) as ring:
        soak = Soak(ring, random.Random(arena.seed()))
        for _ in range(2):
            soak.start_client()
        ring.await_progress()
        while time.monotonic() < begun + 60 * arguments.minutes:
            soak.once()
            if time.monotonic() > last_told + 60:
                last_told = time.monotonic()
                soak.tell((last_told - begun) / 60)
        soak.tell((time.monotonic() - begun) / 60)
        counts = ring.judge(may_fail=("WORKER_LOST",))
        for proxy in soak.proxies.values():
            proxy.stop()
    print(f"no promise was broken: {counts}")


if __name__ == "__main__":
    main()

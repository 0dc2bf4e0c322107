"""Network faults on a coordinator's connections, through a proxy: cuts, silence in one or both directions,
delays, reordered connections. Nothing is lost or exists twice, and work continues afterwards."""

import os
import pathlib
import random
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support/chaos"))

import arena  # noqa: E402
import fleet  # noqa: E402
import tcp_proxy  # noqa: E402

SCENARIOS = int(os.environ.get("LOOPFLEET_CHAOS_SCENARIOS", "24"))


def cut(proxy, chance):
    for _ in range(chance.randrange(1, 4)):
        proxy.cut()
        time.sleep(0.1 * chance.random())


def refuse(proxy, chance):
    proxy.refuse = True
    time.sleep(0.7 * chance.random())


def silence(proxy, chance):
    proxy.swallow = frozenset(chance.choice((("up",), ("down",), ("up", "down"))))
    time.sleep(0.7 * chance.random())
    # Discarded bytes leave half a frame behind, so the connection is cut, as in reality.
    proxy.cut()


def stall(proxy, chance):
    proxy.stall = frozenset(chance.choice((("up",), ("down",), ("up", "down"))))
    time.sleep(0.7 * chance.random())


def delay(proxy, chance):
    proxy.delay_s = 0.3 * chance.random()
    time.sleep(0.7 * chance.random())


def half_close(proxy, chance):
    proxy.half_close(chance.choice(("up", "down")))


def reorder(proxy, chance):
    proxy.hold_new = True
    proxy.cut()
    time.sleep(0.3 + 0.3 * chance.random())


FAULTS = (cut, refuse, silence, stall, delay, half_close, reorder)


class NetworkTest(unittest.TestCase):
    def test_every_fault_on_either_side(self):
        chance = random.Random(arena.seed())
        with arena.Arena(transport="tcp", stubs=False) as ring:
            proxies = []
            try:
                for endpoint in (ring.workers, ring.clients):
                    host, port = endpoint.removeprefix("tcp://").split(":")
                    proxies.append(tcp_proxy.TcpProxy(host, int(port), chance.random()))
                to_workers, to_clients = proxies
                ring.start_stubs(to_workers.endpoint, workers=4, credit=8, job_us=2000, heartbeat_ms=100)
                for _ in range(2):
                    ring.start_client(to_clients.endpoint, jobs=60)
                ring.await_dispatching()
                for number in range(SCENARIOS):
                    fault = FAULTS[number % len(FAULTS)]
                    for proxy in ((to_workers,), (to_clients,), proxies)[number // len(FAULTS) % 3]:
                        fault(proxy, chance)
                        proxy.heal()
                    ring.await_progress()
                # A lease lost in flight three times counts as three lost workers.
                counts = ring.judge(may_fail=("WORKER_LOST",))
            finally:
                for proxy in proxies:
                    proxy.stop()
        print(f"{SCENARIOS} scenarios; {counts}; "
              f"connections: {to_workers.accepted} of workers, {to_clients.accepted} of clients")
        arena.expect_few_failed(counts)


if __name__ == "__main__":
    fleet.main()

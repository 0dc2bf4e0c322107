#!/usr/bin/env python3
"""A line between two network namespaces on which every packet takes a while and some are lost. Real packets of
the kernel's own TCP pass through two TUN devices, so it retransmits as over a wide area.

    distant_link.py PID_A ADDRESS_A PID_B ADDRESS_B --delay-ms 50 --loss 0.01 --seed 1

Says "ready" on a line of its own; ends with SIGTERM, after a JSON line of counts."""

import argparse
import collections
import ctypes
import fcntl
import json
import os
import random
import select
import signal
import struct
import subprocess
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MOST_BYTES = 65536
QUEUE = 20_000  # packets that the kernel keeps while this process is busy
TURN = 256      # packets read before others are sent on


def open_tun(pid, address):
    """A TUN device in the namespace of the process `pid`, where `address` is this end's."""
    with open(f"/proc/{pid}/ns/net", "rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"wan", IFF_TUN | IFF_NO_PI))
    for words in (f"address add {address}/24 dev wan", f"link set wan txqueuelen {QUEUE} up"):
        subprocess.run(["ip", *words.split()], check=True)
    return tun


class Line:
    def __init__(self, source, target, options, dice):
        self.source, self.target, self.dice = source, target, dice
        self.delay, self.loss = options.delay_ms / 1e3, options.loss
        self.on_the_way = collections.deque()  # (due, packet)
        self.sent = self.lost = 0

    def take(self, now):
        for _ in range(TURN):
            try:
                packet = os.read(self.source, MOST_BYTES)
            except BlockingIOError:
                return
            if self.dice.random() < self.loss:
                self.lost += 1
            else:
                self.on_the_way.append((now + self.delay, packet))

    def deliver(self, now):
        while self.on_the_way and self.on_the_way[0][0] <= now:
            _, packet = self.on_the_way.popleft()
            try:
                os.write(self.target, packet)
                self.sent += 1
            except OSError:  # its queue is full
                self.lost += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pid_a")
    parser.add_argument("address_a")
    parser.add_argument("pid_b")
    parser.add_argument("address_b")
    parser.add_argument("--delay-ms", type=float, default=50, help="of each packet, so a round trip takes twice as long")
    parser.add_argument("--loss", type=float, default=0.01, help="share of the packets")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    here, there = open_tun(options.pid_a, options.address_a), open_tun(options.pid_b, options.address_b)
    dice = random.Random(options.seed)
    lines = [Line(here, there, options, dice), Line(there, here, options, dice)]
    print("ready", flush=True)
    while not ended:
        due = min((line.on_the_way[0][0] for line in lines if line.on_the_way), default=float("inf"))
        wait = min(max(due - time.monotonic(), 0), 0.1)
        readable, _, _ = select.select([here, there], [], [], wait)
        now = time.monotonic()
        for line in lines:
            if line.source in readable:
                line.take(now)
            line.deliver(now)
    print(json.dumps({"packets": sum(line.sent for line in lines), "lost": sum(line.lost for line in lines)}), flush=True)


if __name__ == "__main__":
    main()

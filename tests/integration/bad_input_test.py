"""Any input gets a typed answer, nothing hangs, and other requests are served."""

import json
import os
import socket
import struct
import subprocess
import unittest

import fleet
from fleet import Fleet, small_jobs

GOOD = {"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": []}


class BadInputTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Fleet(workers=1, transport="tcp")

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def eval_error(self, *arguments):
        """The error of the single outcome of `eval`."""
        outcomes = self.cluster.json("eval", *arguments)
        self.assertEqual(len(outcomes), 1)
        self.assertEqual(outcomes[0]["status"], "failed")
        self.assertIsNone(outcomes[0]["gflop_per_second"])
        self.assertEqual(self.cluster.command("eval", *arguments).returncode, 1)
        return outcomes[0]["error"]

    def test_an_unknown_benchmark(self):
        for uri in ("benchmark://no-such-v0/1", "nonsense", "benchmark://mm-v0/mm4_4",
                    "benchmark://mm-v0/mm0_4_4", "benchmark://loop_tool-cpu-v0/0",
                    "benchmark://loop_tool-cpu-v0/-1", "benchmark://loop_tool-cpu-v0/8388608"):
            with self.subTest(uri=uri):
                error = self.eval_error(uri)
                self.assertEqual(error["code"], "INVALID_BENCHMARK")
                self.assertTrue(error["message"])

    def test_a_misspelt_action_names_the_nearest(self):
        error = self.eval_error("benchmark://mm-v0/mm8_8_8", "--actions", "down,splt_4")
        self.assertEqual(error["code"], "INVALID_ACTION")
        self.assertEqual(error["action_index"], 1)
        self.assertIn("split_4", error["message"])
        said = self.cluster.command("eval", "benchmark://mm-v0/mm8_8_8", "--actions", "splt_4")
        self.assertEqual(said.stdout, "", "talk belongs on standard error")
        self.assertIn("nearest: split_4", said.stderr)

    def test_an_illegal_action_is_rejected_or_skipped(self):
        illegal = ("benchmark://mm-v0/mm8_8_8", "--actions", "swap_up", "--rules", "loop_nest")
        error = self.eval_error(*illegal)
        self.assertEqual(error["code"], "INVALID_ACTION")
        self.assertEqual(error["action_index"], 0)
        skipped = self.cluster.json("eval", *illegal, "--on-illegal", "skip")
        self.assertEqual(skipped[0]["status"], "ok")

    def test_bad_lines_are_named_and_the_rest_runs(self):
        text = [GOOD, "", '{"benchmark": ', GOOD | {"actons": []}, "[]",
                GOOD | {"actions": ["splt_4"], "tag": "mine"}, GOOD | {"fresh": "yes"},
                GOOD | {"benchmark": "benchmark://mm-v0/mm8_8_9"}]
        done, outcomes = self.cluster.submit(text)
        self.assertEqual(done.returncode, 1)
        by_index = {outcome["index"]: outcome for outcome in outcomes}
        # Blank lines have a line number but no index.
        self.assertEqual(sorted(by_index), list(range(7)))
        codes = [by_index[i].get("error", {}).get("code") for i in range(7)]
        self.assertEqual(codes, [None, "MALFORMED", "MALFORMED", "MALFORMED", "INVALID_ACTION",
                                 "MALFORMED", None])
        self.assertEqual(by_index[4]["tag"], "mine")
        for number in (3, 4, 5, 6, 7):
            self.assertIn(f"-:{number}: ", done.stderr)
        self.assertIn("nearest: actions", done.stderr)

    def test_a_line_beyond_the_limit(self):
        done, outcomes = self.cluster.submit(['{"tag": "' + "x" * (2 << 20) + '"}', GOOD])
        self.assertEqual(done.returncode, 1)
        self.assertEqual({o["index"]: o["status"] for o in outcomes}, {0: "failed", 1: "ok"})

    def test_values_without_a_meaning_are_named_with_what_is_allowed(self):
        for field, value in (("precision", 2), ("precision", 1e-6), ("budget_ms", 1e9),
                             ("threads", 1025), ("priority", 101), ("priority", -101),
                             ("labels", ["a,b"]), ("labels", [""]), ("deadline_s", 1e9)):
            with self.subTest(field=field, value=value):
                done, outcomes = self.cluster.submit([GOOD | {field: value}, GOOD])
                self.assertEqual(done.returncode, 1, done.stderr)
                by_index = {outcome["index"]: outcome for outcome in outcomes}
                self.assertEqual(by_index[0]["error"]["code"], "MALFORMED")
                self.assertIn(field, by_index[0]["error"]["message"])
                self.assertEqual(by_index[1]["status"], "ok")

    def test_a_folder_is_no_file_of_jobs(self):
        for command in (("submit", "/"), ("eval", "--ir", "/")):
            with self.subTest(command=command):
                done = self.cluster.command(*command)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("cannot read '/'", done.stderr)
        for command, code in ((("submit", "-"), 2), (("eval", "--ir", "-"), 2), (("replay",), 1)):
            with self.subTest(command=command):
                folder = os.open("/", os.O_RDONLY)
                process = self.cluster.popen(*command, stdin=folder, stdout=subprocess.PIPE,
                                             stderr=subprocess.PIPE)
                os.close(folder)
                said = process.communicate(timeout=fleet.COMMAND_LIMIT_S)[1]
                self.assertEqual(process.returncode, code, said)
                self.assertRegex(said, "cannot (be )?read")

    def test_output_that_cannot_be_written_is_no_success(self):
        job = json.dumps(GOOD) + "\n"
        line = json.dumps({"uri": GOOD["benchmark"], "actions": []}) + "\n"
        for command, stdin in (
                (("eval", GOOD["benchmark"], "--json"), ""),
                (("submit", "-", "--wait", "--jsonl"), job),
                (("batch", "list", "--json"), ""), (("status",), ""), (("events",), ""),
                (("export",), ""), (("benchmark", "list", "--json"), ""), (("--help",), ""),
                (("replay", "--list-observations"), ""), (("replay",), line)):
            with self.subTest(command=command), open("/dev/full", "w") as full:
                process = self.cluster.popen(*command, stdin=subprocess.PIPE, stdout=full,
                                             stderr=subprocess.PIPE)
                said = process.communicate(stdin, timeout=fleet.COMMAND_LIMIT_S)[1]
                self.assertEqual(process.returncode, 1, said)
                self.assertIn("loopfleet: the output could not be written", said)
                self.assertNotIn("terminate", said)

    def test_bytes_that_are_not_the_protocol(self):
        host, port = self.cluster.address.removeprefix("tcp://").split(":")
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, b"\0" * 100, b"\xff"):
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(garbage)
        # A truncated frame: shorter than its size says.
        with zmtp_connection(host, int(port)) as connection:
            connection.sendall(b"\0\x64" + b"half of it")
        # A frame that claims to be huge.
        with zmtp_connection(host, int(port)) as connection:
            connection.sendall(b"\x02" + struct.pack(">Q", 1 << 40) + b"x")
        # A complete frame of nonsense is answered.
        with zmtp_connection(host, int(port)) as connection:
            connection.sendall(b"\0\x08nonsense")
            self.assertGreater(len(read_frame(connection)), 0)
        done, outcomes = self.cluster.submit(small_jobs(3))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(outcomes), 3)


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the other side closed")
        data += part
    return data


def read_frame(connection):
    """Reads one ZMTP frame or command; returns its body."""
    flags = read_exactly(connection, 1)[0]
    size = read_exactly(connection, 8 if flags & 2 else 1)
    return read_exactly(connection, int.from_bytes(size, "big"))


def zmtp_connection(host, port):
    """A connection after the handshake as a DEALER (ZMTP 3.0, mechanism NULL)."""
    connection = socket.create_connection((host, port), timeout=60)
    greeting = b"\xff" + b"\0" * 8 + b"\x7f" + b"\x03\0" + b"NULL".ljust(20, b"\0") + b"\0" * 32
    connection.sendall(greeting)
    read_exactly(connection, 64)
    properties = b"".join(bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
                          for name, value in ((b"Socket-Type", b"DEALER"), (b"Identity", b"")))
    ready = b"\x05READY" + properties
    connection.sendall(b"\x04" + bytes([len(ready)]) + ready)
    read_frame(connection)  # the other side's READY
    return connection


if __name__ == "__main__":
    fleet.main()

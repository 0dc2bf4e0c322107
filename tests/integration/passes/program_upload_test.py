"""Bitcode over the network: `loopfleet llvm add FILE`, a real coordinator that keeps it, workers that fetch it, and
kills in between."""

import hashlib
import json
import pathlib
import random
import struct
import sys
import tempfile
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support/chaos"))
import fleet  # noqa: E402
import tcp_proxy  # noqa: E402
from fleet import Fleet  # noqa: E402

MIB = 1 << 20
LARGE = 12 * MIB


def compiled(folder, source="int square(int x) { int y = x; return y * y; }\n"):
    code, made = folder / "square.c", folder / "square.bc"
    code.write_text(source)
    done = fleet.run(["clang-19", "-O1", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", str(code), "-o", str(made)])
    assert done.returncode == 0, done.stderr
    return made.read_bytes()


def enlarged(bitcode, seed, size=LARGE):
    """The same program in LLVM's wrapper, with random bytes behind it."""
    head = struct.pack("<5I", 0x0B17C0DE, 0, 20, len(bitcode), 0)
    return head + bitcode + random.Random(seed).randbytes(size - len(head) - len(bitcode))


class UploadTest(unittest.TestCase):
    def start(self, **options):
        self.fleet = Fleet(**options)
        self.addCleanup(self.fleet.__exit__, None, None, None)
        self.programs = pathlib.Path(f"{self.fleet.database}.uploads")
        self.bitcode = compiled(self.fleet.dir)
        return self.fleet

    def file(self, name, content):
        path = self.fleet.dir / name
        path.write_bytes(content)
        return path, f"bitcode://sha256/{hashlib.sha256(content).hexdigest()}"

    def add(self, path):
        done = self.fleet.command("llvm", "add", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def instructions(self, uri, *options):
        (outcome,) = self.fleet.json("eval", uri, "--passes", "mem2reg", "--observe", "IrInstructionCount", *options)
        self.assertEqual(outcome["status"], "ok", outcome)
        return outcome["observed"]["IrInstructionCount"]

    def failure(self, uri, *options):
        done = self.fleet.command("eval", uri, "--json", *options)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def metric(self, name):
        text = urllib.request.urlopen(f"http://{self.fleet.coordinator.ready['http']}/metrics", timeout=30).read().decode()
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[1])

    def parts(self, uri):
        return list(self.programs.glob(f"{uri.rsplit('/', 1)[1]}.*.part"))

    def part_size(self, uri):
        return sum(part.stat().st_size for part in self.parts(uri))

    def proxied(self):
        host, port = self.fleet.address.removeprefix("tcp://").split(":")
        proxy = tcp_proxy.TcpProxy(host, int(port))
        self.addCleanup(proxy.stop)
        return proxy

    def begin(self, proxy, path, uri):
        """An upload of which a part has arrived, and no more than half passes the proxy."""
        proxy.left = {"up": LARGE // 2}
        client = self.fleet.popen("--address", proxy.endpoint, "llvm", "add", str(path), stdout=-1, stderr=-1)
        fleet.wait_until(lambda: self.part_size(uri) > 0 or client.poll() is not None, "a part")
        self.assertIsNone(client.poll(), "it failed")
        return client

    def test_kills_in_the_middle_of_an_upload_cost_nothing_but_time(self):
        self.start(transport="tcp")
        proxy = self.proxied()
        path, uri = self.file("large.bc", enlarged(self.bitcode, 1))
        client = self.begin(proxy, path, uri)
        self.fleet.coordinator.kill()
        held = self.part_size(uri)
        self.assertTrue(0 < held < LARGE, held)
        proxy.cut()
        proxy.heal()
        self.fleet.start_coordinator()
        said, error = client.communicate(timeout=fleet.COMMAND_LIMIT_S)
        self.assertEqual((client.returncode, said.strip()), (0, uri), error)
        # What was held was not sent again.
        self.assertLessEqual(self.metric("loopfleet_blob_received_bytes_total"), LARGE - held + MIB)
        self.assertEqual((self.programs / uri.rsplit("/", 1)[1]).read_bytes(), path.read_bytes())
        # A client that is killed, and another one, which does not go on with its part.
        path, uri = self.file("other.bc", enlarged(self.bitcode, 2))
        before = self.metric("loopfleet_blob_received_bytes_total")
        client = self.begin(proxy, path, uri)
        client.kill()
        client.communicate()
        proxy.cut()
        self.assertEqual(self.add(path), uri)
        sent = self.metric("loopfleet_blob_received_bytes_total") - before
        self.assertTrue(LARGE <= sent <= LARGE + LARGE // 2 + MIB, sent)
        self.assertEqual(self.metric("loopfleet_blobs"), 2)
        self.assertEqual(self.parts(uri), [], "the whole stands for all")
        # The worker fetches it; a new worker of a new coordinator, too.
        self.assertEqual(self.instructions(uri), 2)
        self.fleet.coordinator.kill()
        for worker in self.fleet.workers:
            worker.kill()
        self.fleet.start_coordinator()
        self.fleet.start_worker()
        self.fleet.await_workers(1)
        self.assertEqual(self.instructions(uri, "--fresh"), 2)
        self.assertGreaterEqual(self.metric("loopfleet_blob_sent_bytes_total"), LARGE)

    def test_a_coordinator_that_is_gone_while_a_worker_fetches_is_waited_for(self):
        self.start()
        path, uri = self.file("large.bc", enlarged(self.bitcode, 3))
        self.add(path)
        job = self.fleet.popen("eval", uri, "--passes", "mem2reg", "--observe", "IrInstructionCount", "--json", stdout=-1,
                               stderr=-1)
        fleet.wait_until(lambda: self.metric("loopfleet_blob_sent_bytes_total") > 0, "a piece")
        self.fleet.coordinator.kill()
        self.fleet.start_coordinator()
        said, error = job.communicate(timeout=fleet.COMMAND_LIMIT_S)
        self.assertEqual(job.returncode, 0, error)
        self.assertEqual(json.loads(said)[0]["observed"]["IrInstructionCount"], 2)

    def test_a_part_that_was_damaged_is_dropped_and_the_program_sent_again(self):
        self.start(transport="tcp")
        proxy = self.proxied()
        path, uri = self.file("large.bc", enlarged(self.bitcode, 5))
        client = self.begin(proxy, path, uri)
        self.fleet.coordinator.kill()
        (part,) = self.parts(uri)
        part.write_bytes(bytes(part.stat().st_size))
        proxy.cut()
        proxy.heal()
        self.fleet.start_coordinator()
        said, error = client.communicate(timeout=fleet.COMMAND_LIMIT_S)
        self.assertEqual((client.returncode, said.strip()), (0, uri), error)
        self.assertGreater(self.metric("loopfleet_blob_received_bytes_total"), LARGE)
        self.assertEqual(self.instructions(uri), 2)

    def test_what_is_wrong_has_a_typed_error(self):
        empty = tempfile.TemporaryDirectory(prefix="lf-test-")
        self.addCleanup(empty.cleanup)
        self.start(worker_arguments=("--llvm-programs", empty.name))
        unknown = f"bitcode://sha256/{'0' * 64}"
        said = self.failure(unknown)
        self.assertIn("INVALID_BENCHMARK", said)
        self.assertIn("loopfleet llvm add FILE sends it there", said)
        self.assertIn(empty.name, said)
        # Bytes that are no sound program: the confined child finds out.
        path, uri = self.file("broken.bc", self.bitcode[:600])
        self.assertEqual(self.add(path), uri)
        self.assertIn("INVALID_BENCHMARK", self.failure(uri))
        # Bytes that changed on the coordinator's disk are no program.
        path, uri = self.file("good.bc", self.bitcode)
        self.add(path)
        kept = self.programs / uri.rsplit("/", 1)[1]
        damaged = bytearray(kept.read_bytes())
        damaged[100] ^= 1
        kept.write_bytes(damaged)
        self.assertIn("the coordinator has no such program", self.failure(uri))
        self.assertEqual(self.metric("loopfleet_blobs_damaged_total"), 1)
        self.assertEqual(self.add(path), uri)
        self.assertEqual(self.instructions(uri), 2)
        # Too large, and no bitcode.
        path, _ = self.file("huge.bc", enlarged(self.bitcode, 4, 16 * MIB + 1))
        done = self.fleet.command("llvm", "add", str(path))
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"at most {16 * MIB}", done.stderr)
        path, _ = self.file("text.bc", b"define void @f() { ret void }")
        self.assertIn("no LLVM bitcode", self.fleet.command("llvm", "add", str(path)).stderr)

    def test_the_longest_unused_program_makes_room(self):
        self.start(coordinator_arguments=("--uploads-size", "32MiB"))
        files = [self.file(f"{seed}.bc", enlarged(self.bitcode, seed)) for seed in (10, 11, 12)]
        for path, uri in files[:2]:
            self.assertEqual(self.add(path), uri)
        self.assertEqual(self.instructions(files[0][1]), 2)  # used later than the second
        self.add(files[2][0])
        self.assertEqual(self.metric("loopfleet_blobs_removed_total"), 1)
        self.assertLessEqual(self.metric("loopfleet_blob_kept_bytes"), 32 * MIB)
        self.assertIn("loopfleet llvm add FILE", self.failure(files[1][1]))
        self.assertEqual(self.instructions(files[2][1]), 2)


if __name__ == "__main__":
    fleet.main()

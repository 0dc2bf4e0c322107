"""Observed values that are too large for an outcome: kept by a real coordinator under their hash, and brought by
`loopfleet llvm get`."""

import hashlib
import pathlib
import sys
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fleet  # noqa: E402
from fleet import Fleet  # noqa: E402

MIB = 1 << 20
# Its text has about 4 MB after passes, its bitcode 1 MB.
SOURCE = "\n".join(f"int f{n}(int x) {{ int y = x * {n}; for (int i = 0; i < x; ++i) y ^= y * {n + 7} + i; return y; }}"
                   for n in range(3_000))


class ObservedBlob(unittest.TestCase):
    def start(self, **options):
        self.fleet = Fleet(**options)
        self.addCleanup(self.fleet.__exit__, None, None, None)
        self.uploads = pathlib.Path(f"{self.fleet.database}.uploads")
        source, bitcode = self.fleet.dir / "large.c", self.fleet.dir / "large.bc"
        source.write_text(SOURCE)
        made = fleet.run(["clang-19", "-O1", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", str(source), "-o", str(bitcode)])
        self.assertEqual(made.returncode, 0, made.stderr)
        added = self.fleet.command("llvm", "add", str(bitcode))
        self.assertEqual(added.returncode, 0, added.stderr)
        self.program = added.stdout.strip()

    def observe(self, *names, passes="mem2reg", options=()):
        (outcome,) = self.fleet.json("eval", self.program, "--passes", passes, "--observe", ",".join(names), *options)
        self.assertEqual(outcome["status"], "ok", outcome)
        return outcome["observed"]

    def get(self, sha256):
        path = self.fleet.dir / "value"
        done = self.fleet.command("llvm", "get", sha256, str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        return path.read_bytes()

    def metric(self, name):
        text = urllib.request.urlopen(f"http://{self.fleet.coordinator.ready['http']}/metrics", timeout=30).read().decode()
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[1])

    def test_large_values_are_files_and_equal_ones_are_one(self):
        self.start(transport="tcp")
        observed = self.observe("Ir", "Bitcode", "ModuleHash")
        text = observed["Ir"]
        self.assertEqual(set(text), {"sha256", "bytes"}, observed)
        self.assertEqual(set(observed["Bitcode"]), {"sha256", "bytes"}, observed)
        self.assertIsInstance(observed["ModuleHash"], str)
        value = self.get(text["sha256"])
        self.assertEqual((len(value), hashlib.sha256(value).hexdigest()), (text["bytes"], text["sha256"]))
        self.assertIn(b"define ", value)
        files = self.metric("loopfleet_blobs")

        # The same value after a restart, and from a job that runs again: no second copy, no second transfer.
        self.fleet.coordinator.kill()
        self.fleet.start_coordinator()
        self.fleet.await_workers(1)
        self.assertEqual(self.get(f"bitcode://sha256/{text['sha256']}"), value)
        received = self.metric("loopfleet_blob_received_bytes_total")
        self.assertEqual(self.observe("Ir", options=("--fresh",))["Ir"], text)
        self.assertEqual(self.metric("loopfleet_blobs"), files)
        self.assertEqual(self.metric("loopfleet_blob_received_bytes_total"), received)

        # What stands for code is fetched; a value that is lost is observed again.
        self.assertEqual(self.fleet.command("job", "code", "1.0", "--format", "llvm-ir").stdout.encode(), value)
        (self.uploads / text["sha256"]).unlink()
        self.assertEqual(self.fleet.command("job", "code", "1.0", "--format", "llvm-ir").stdout.encode(), value)

        # A person sees how to get it.
        shown = self.fleet.command("eval", self.program, "--passes", "mem2reg", "--observe", "Ir").stdout
        self.assertIn(f"loopfleet llvm get {text['sha256']}", shown)

    def test_observed_bitcode_is_a_program(self):
        self.start()
        observed = self.observe("Bitcode", "ModuleHash", "IrInstructionCount")
        self.assertEqual(observed["Bitcode"]["sha256"], observed["ModuleHash"])
        (outcome,) = self.fleet.json("eval", f"bitcode://sha256/{observed['ModuleHash']}", "--observe", "IrInstructionCount")
        self.assertEqual(outcome["status"], "ok", outcome)
        self.assertEqual(outcome["observed"]["IrInstructionCount"], observed["IrInstructionCount"])

    def test_the_longest_unused_value_makes_room(self):
        self.start(coordinator_arguments=("--observed-size", "32MiB"))
        first = self.observe("Ir")["Ir"]
        for passes in ("lowerswitch", "reg2mem", "lower-expect", "loop-rotate", "mem2reg,reg2mem", "loop-simplify", "lcssa",
                       "instnamer", "adce", "early-cse", "sink", "sroa", "reassociate", "simplifycfg"):
            self.observe("Ir", passes=passes)
            if self.metric("loopfleet_blobs_removed_total") > 0:
                break
        self.assertLessEqual(self.metric("loopfleet_blob_kept_bytes"), 34 * MIB, "with the program")
        gone = self.fleet.command("llvm", "get", first["sha256"], str(self.fleet.dir / "gone"))
        self.assertEqual(gone.returncode, 1)
        self.assertIn("submit its job again, fresh", gone.stderr)
        self.assertFalse((self.fleet.dir / "gone").exists())
        again = self.observe("Ir", options=("--fresh",))["Ir"]
        self.assertEqual(again, first)
        self.assertEqual(len(self.get(again["sha256"])), first["bytes"])

    def test_what_is_no_hash_is_refused(self):
        self.start(workers=0)
        refused = self.fleet.command("llvm", "get", "0123", str(self.fleet.dir / "value"))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("'0123' is no SHA-256", refused.stderr)


if __name__ == "__main__":
    fleet.main()

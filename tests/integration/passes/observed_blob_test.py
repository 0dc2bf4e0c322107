"""Observed values that are too large for an outcome: kept by a real coordinator under their hash, and brought by
`loopfleet llvm get`."""

import hashlib
import itertools
import pathlib
import sys
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fleet  # noqa: E402
from fleet import Fleet  # noqa: E402

MIB = 1 << 20


class ObservedBlob(unittest.TestCase):
    def start(self, **options):
        self.fleet = Fleet(**options)
        self.addCleanup(self.fleet.__exit__, None, None, None)

    def observe(self, *names, seed=0, passes="mem2reg", options=()):
        """The observed values of a csmith program, whose text is large."""
        (outcome,) = self.fleet.json("eval", f"generator://csmith-v0/{seed}", "--passes", passes,
                                     "--observe", ",".join(names), *options)
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
        self.assertGreater(text["bytes"], 112 << 10)
        value = self.get(text["sha256"])
        self.assertEqual((len(value), hashlib.sha256(value).hexdigest()), (text["bytes"], text["sha256"]))
        self.assertIn(b"define ", value)
        files = self.metric("loopfleet_blobs")

        # The same value after a restart, and again from a job that runs anew: no second copy, no second transfer.
        self.fleet.coordinator.kill()
        self.fleet.start_coordinator()
        self.fleet.await_workers(1)
        self.assertEqual(self.get(f"bitcode://sha256/{text['sha256']}"), value)
        received = self.metric("loopfleet_blob_received_bytes_total")
        self.assertEqual(self.observe("Ir", options=("--fresh",))["Ir"], text)
        self.assertEqual(self.metric("loopfleet_blobs"), files)
        self.assertEqual(self.metric("loopfleet_blob_received_bytes_total"), received)

        # A person sees how to get it.
        shown = self.fleet.command("eval", "generator://csmith-v0/0", "--passes", "mem2reg", "--observe", "Ir").stdout
        self.assertIn(f"loopfleet llvm get {text['sha256']}", shown)

    def test_observed_bitcode_is_a_program(self):
        self.start()
        seed = next(seed for seed in range(100)
                    if isinstance(self.observe("Bitcode", seed=seed)["Bitcode"], dict))
        observed = self.observe("Bitcode", "ModuleHash", "IrInstructionCount", seed=seed)
        self.assertEqual(observed["Bitcode"]["sha256"], observed["ModuleHash"])
        (outcome,) = self.fleet.json("eval", f"bitcode://sha256/{observed['ModuleHash']}", "--observe", "IrInstructionCount")
        self.assertEqual(outcome["status"], "ok", outcome)
        self.assertEqual(outcome["observed"]["IrInstructionCount"], observed["IrInstructionCount"])

    def test_the_longest_unused_value_makes_room(self):
        self.start(coordinator_arguments=("--uploads-size", "32MiB"))
        first = self.observe("Ir")["Ir"]
        passes = ("adce", "early-cse", "gvn", "instcombine", "jump-threading", "licm", "reassociate", "simplifycfg", "sroa")
        for pair in itertools.permutations(passes, 2):
            self.observe("Ir", passes=",".join(pair))
            if self.metric("loopfleet_blobs_removed_total") > 0:
                break
        self.assertLessEqual(self.metric("loopfleet_blob_kept_bytes"), 16 * MIB)
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

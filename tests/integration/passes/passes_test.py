"""LLVM passes as jobs, on a real cluster: `loopfleet eval generator://csmith-v0/7 --passes mem2reg,gvn`."""

import hashlib
import json
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fleet  # noqa: E402
from fleet import clean_environment, program  # noqa: E402

QSORT = "benchmark://small-v0/qsort"
PASSES = ["-mem2reg", "-gvn", "-simplifycfg", "-instcombine", "-dce", "-licm", "-sroa", "-inline"]


class PassesTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="lf-l-")
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)

    def in_cluster(self, script, *options):
        """Runs a shell script inside a cluster that keeps its database between calls."""
        return fleet.run([program("loopfleet"), "local", "--db", str(self.folder / "x.db"), *options, "--", "sh", "-c", script],
                         env={**clean_environment(), "LF": program("loopfleet")})

    def test_an_answer_is_exact_and_stored(self):
        command = f'"$LF" eval {QSORT} --passes mem2reg,dce --observe IrInstructionCount,IrInstructionCountOz --json'
        first = self.in_cluster(command)
        self.assertEqual(first.returncode, 0, first.stderr)
        again = self.in_cluster(command)  # another coordinator and worker, the same database
        (one,), (two,) = json.loads(first.stdout), json.loads(again.stdout)
        self.assertEqual(one["observed"], two["observed"])
        self.assertEqual((one["source"], two["source"]), ("measured", "stored"))
        self.assertEqual(one["observed"]["changed"], [1, 1])
        self.assertGreater(one["observed"]["IrInstructionCount"], one["observed"]["IrInstructionCountOz"])

    def test_a_batch_of_walks_gets_what_each_gets_alone(self):
        draw = random.Random(7)
        walks = [draw.choices(PASSES, k=draw.randint(1, 8)) for _ in range(40)]
        walks += [["-scalarizer"], ["-dce", "-scalarizer"]]  # crash on stress 1
        lines = self.folder / "jobs.jsonl"
        stress = "generator://llvm-stress-v0/1"
        lines.write_text("".join(json.dumps({"benchmark": uri, "passes": walk}) + "\n"
                                 for walk in walks for uri in (QSORT, stress)))
        done = self.in_cluster(f'"$LF" submit {lines} --wait --jsonl')
        outcomes = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda one: one["index"])
        self.assertEqual(len(outcomes), 2 * len(walks), done.stderr)
        crashed = [one for one in outcomes if one["status"] == "failed"]
        self.assertEqual([one["index"] for one in crashed], [2 * 40 + 1, 2 * 41 + 1])
        for one in crashed:
            self.assertEqual(one["error"]["code"], "COMPILE_ERROR")
            self.assertIn("PASS_CRASHED", one["error"]["message"])
            self.assertEqual(one["error"]["action_index"], len(walks[one["index"] // 2]) - 1)
        # Alone, and without the store.
        for place in (0, 7, 33):
            alone = self.in_cluster(f'"$LF" eval {QSORT} --passes={",".join(walks[place])} --fresh --json')
            self.assertEqual(json.loads(alone.stdout)[0]["observed"], outcomes[2 * place]["observed"])

    def test_added_bitcode_is_a_program_and_other_bytes_are_none(self):
        folder = self.folder / "programs"
        folder.mkdir()
        serves = ("--llvm-programs", str(folder))
        source = self.folder / "square.c"
        source.write_text("int square(int x) { int y = x; return y * y; }\n")
        made = self.folder / "square.bc"
        compiled = fleet.run(["clang-19", "-O1", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", str(source),
                              "-o", str(made)])
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        broken = self.folder / "broken.bc"
        broken.write_bytes(made.read_bytes()[:600])  # its head is right
        added = [fleet.run([program("loopfleet"), "llvm", "add", str(file), "--llvm-programs", str(folder)])
                 for file in (made, broken, source)]
        self.assertEqual([each.returncode for each in added], [0, 0, 1])
        self.assertIn("no LLVM bitcode", added[2].stderr)
        good, bad = (each.stdout.strip() for each in added[:2])
        self.assertEqual(good, f"bitcode://sha256/{hashlib.sha256(made.read_bytes()).hexdigest()}")
        command = f'"$LF" eval {good} --passes mem2reg --json; "$LF" eval {bad} --json'
        values, refused = (json.loads(line)[0] for line in self.in_cluster(command, *serves).stdout.splitlines())
        self.assertEqual(values["observed"]["IrInstructionCount"], 2)  # mul and ret
        self.assertEqual(refused["error"]["code"], "INVALID_BENCHMARK")
        # The bytes on the worker's disk change under the name.
        (folder / "bitcode" / (good.rsplit("/", 1)[1] + ".bc")).write_bytes(made.read_bytes() + b"more")
        changed = self.in_cluster(f'"$LF" eval {good} --passes gvn', *serves)
        self.assertIn("has the SHA-256", changed.stderr)

    def test_actions_are_listed(self):
        listed = fleet.run([program("loopfleet"), "llvm", "passes", "--space", "Passes19", "--json"])
        rows = json.loads(listed.stdout)
        self.assertEqual([row["id"] for row in rows], list(range(118)))
        self.assertIn({"id": 0, "action": "-add-discriminators", "text": "function(add-discriminators)"}, rows)
        table = fleet.run([program("loopfleet"), "llvm", "passes"]).stdout.splitlines()
        self.assertEqual(len(table), 1 + 124)
        wrong = fleet.run([program("loopfleet"), "llvm", "passes", "--space", "Passes"])
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("Passes19", wrong.stderr)

    def test_a_folder_of_programs_that_is_none_stops_the_worker(self):
        done = self.in_cluster("true", "--llvm-programs", str(self.folder / "none"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("build_debian.py FOLDER", done.stderr)

    def test_bad_input_names_what_is_valid(self):
        for arguments, said in ((f"{QSORT} --passes mem2rg", "nearest: -mem2reg"),
                                (f"{QSORT} --observe Autofase", "nearest: Autophase"),
                                ("benchmark://small-v0/qsrot", "nearest"),
                                (f"{QSORT} --threads 2", "field 'threads' means nothing for a job of kind passes"),
                                ("benchmark://mm-v0/mm8_8_8 --passes gvn", "means nothing for a job of kind loop"),
                                ("benchmark://debian-v0/gzip", "build_debian.py FOLDER --only gzip"),
                                ("bitcode://sha256/" + 64 * "0", "loopfleet llvm add FILE")):
            done = self.in_cluster(f'"$LF" eval {arguments}')
            self.assertNotEqual(done.returncode, 0, arguments)
            self.assertIn(said, done.stderr, arguments)


if __name__ == "__main__":
    fleet.main()

"""LLVM passes as jobs, on a real cluster: `loopfleet eval generator://csmith-v0/7 --passes mem2reg,gvn`."""

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

    def in_cluster(self, script):
        """Runs a shell script inside a cluster that keeps its database between calls."""
        return fleet.run([program("loopfleet"), "local", "--db", str(self.folder / "x.db"), "--", "sh", "-c", script],
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

    def test_bad_input_names_what_is_valid(self):
        for arguments, said in ((f"{QSORT} --passes mem2rg", "nearest: -mem2reg"),
                                (f"{QSORT} --observe Autofase", "nearest: Autophase"),
                                ("benchmark://small-v0/qsrot", "nearest"),
                                (f"{QSORT} --threads 2", "field 'threads' means nothing for a job of kind passes"),
                                ("benchmark://mm-v0/mm8_8_8 --passes gvn", "means nothing for a job of kind loop"),
                                ("bitcode://sha256/" + 64 * "0", "uploaded")):
            done = self.in_cluster(f'"$LF" eval {arguments}')
            self.assertNotEqual(done.returncode, 0, arguments)
            self.assertIn(said, done.stderr, arguments)


if __name__ == "__main__":
    fleet.main()

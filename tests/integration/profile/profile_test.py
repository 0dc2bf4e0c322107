"""Profiles on a real cluster: from a job to what is printed, and where they are kept."""

import json
import pathlib
import re
import sqlite3
import sys
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fleet  # noqa: E402
from fleet import Fleet, program  # noqa: E402

MM = "benchmark://mm-v0/mm64_64_64"
LEVELS = ("roots", "loops", "lines")


class ProfileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Fleet(workers=1)
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        (cls.figure,) = cls.cluster.json("eval", MM, "--actions", "down,split_16")
        cls.job = cls.figure["job"]

    def profile(self, level, *flags):
        done = self.cluster.command("job", "profile", self.job, "--level", level, "--json", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_each_level_says_where_all_the_time_went(self):
        for level in LEVELS:
            outcome = self.profile(level)
            with self.subTest(level=level):
                values = outcome["observed"]
                self.assertEqual(values["level"], level)
                lengths = {len(values[name]) for name in ("ref", "part", "share", "low", "high", "cycles", "entries",
                                                          "samples", "fused_into")}
                self.assertEqual(len(lengths), 1)
                self.assertIsNone(outcome["elapsed_ns"], "a profile holds no figure")
                self.assertIsNone(outcome["gflop_per_second"])
                self.assertEqual(values["code_hash"], self.figure["compiler"]["code_hash"])
                self.assertNotEqual(outcome["tree_key"], self.figure["tree_key"])
                if level != "loops":  # whose lines hold each other
                    self.assertAlmostEqual(sum(values["share"]), 1, delta=0.02)
                for low, share, high in zip(values["low"], values["share"], values["high"]):
                    self.assertLessEqual(low, share + 1e-9)
                    self.assertLessEqual(share, high + 1e-9)

    def test_people_see_it_beside_the_tree(self):
        for level in LEVELS:
            done = self.cluster.command("job", "profile", self.job, "--level", level)
            with self.subTest(level=level):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"(?m)^for m in 64 : L0 +\d")
                self.assertRegex(done.stdout, rf"(?m)^by {level}: .*no figure$")
                self.assertIn("█", done.stdout)
        self.assertIn("(with %3)", done.stdout, "the product is fused with its sum")
        same = self.cluster.command("eval", MM, "--actions", "down,split_16", "--profile", "lines")
        self.assertEqual(same.returncode, 0, same.stderr)
        self.assertIn("answered from the store", same.stdout)

    def test_a_profile_answers_equal_profiles_and_no_figure(self):
        first = self.profile("lines", "--fresh")
        self.assertEqual(first["source"], "measured")
        self.assertEqual(self.profile("lines")["source"], "stored")
        self.assertEqual(self.profile("lines")["observed"], first["observed"])
        (figure,) = self.cluster.json("eval", MM, "--actions", "down,split_16")
        self.assertIsNone(figure["observed"])
        self.assertGreater(figure["elapsed_ns"], 0)
        again = self.profile("lines", "--fresh")
        self.assertEqual(again["source"], "measured")

    def test_the_database_shows_it_as_columns(self):
        self.profile("roots")
        with sqlite3.connect(f"file:{self.cluster.database}?mode=ro", uri=True) as database:
            rows = database.execute("SELECT ref, part, share, cycles, entries FROM v_profiles "
                                    "WHERE level = 'roots' AND part = 'node'").fetchall()
        self.assertTrue(rows)
        for ref, part, share, cycles, entries in rows:
            self.assertEqual((ref, part, entries), ("L0", "node", 1))
            self.assertTrue(0.5 < share <= 1, share)
            self.assertGreater(cycles, 0)

    def test_the_export_and_the_page_have_it(self):
        outcome = self.profile("lines")
        exported = self.cluster.command("export")
        lines = [json.loads(line) for line in exported.stdout.splitlines()]
        self.assertTrue(any(line["job"] == outcome["job"] and line["observed"] for line in lines))
        with urllib.request.urlopen(f"http://{self.cluster.coordinator.ready['http']}/api/job/{self.job}",
                                    timeout=30) as answer:
            job = json.load(answer)
        self.assertEqual(job["kind"], "loop_schedule")
        self.assertEqual(job["profile"]["level"], "lines")
        self.assertEqual(len(job["profile"]["rows"]), len(outcome["observed"]["ref"]))

    def test_what_has_no_profile_says_so(self):
        def error(*arguments):
            done = self.cluster.command(*arguments)
            self.assertNotEqual(done.returncode, 0)
            return done.stderr
        for level in ("loops", "lines"):
            self.assertIn("UNSUPPORTED", error("eval", MM, "--profile", level, "--device", "cuda"))
        self.assertIn("'cache'", error("eval", MM, "--profile", "lines", "--cache", "cold"))
        self.assertIn("'profile'", error("eval", "probe://peaks-v0", "--profile", "lines"))
        self.assertIn("roots", error("job", "profile", self.job, "--level", "line"))
        self.assertIn("not a job", error("job", "profile", "12"))

    def test_the_example_of_the_page(self):
        page = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "PROFILE.md").read_text()
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        (command,) = [text.removeprefix("$ loopfleet ") for kind, text in blocks if kind == "console"]
        (shown,) = [text for kind, text in blocks if not kind]
        done = self.cluster.command(*command.split())
        self.assertEqual(done.returncode, 0, done.stderr)

        def nodes(text):
            """The lines of the tree without their figures; which parts were seen differs from run to run."""
            return [re.split(r"  +(?=[\d(])", line.rstrip(" █"))[0] for line in text.splitlines()
                    if line.lstrip().startswith(("for ", "%"))]
        self.assertGreater(len(nodes(shown)), 5)
        self.assertEqual(nodes(done.stdout), nodes(shown))
        self.assertIn("(packs inputs for L0)", shown)
        self.assertRegex(shown, r"(?m)^by lines: \d+ samples of the kernel, [+-][\d.]+ % of its time; no figure$")

    def test_threads(self):
        (outcome,) = self.cluster.json("eval", "benchmark://mm-v0/mm256_256_256", "--profile", "roots", "--threads", "2")
        if outcome["status"] == "failed":
            self.assertEqual(outcome["error"]["code"], "NO_MATCHING_WORKER", outcome)
            self.skipTest("this host has one core")
        self.assertEqual(outcome["threads"], 2)


if __name__ == "__main__":
    fleet.main()

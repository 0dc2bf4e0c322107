"""Jobs that are not timed, on a real cluster: `loopfleet eval --kind probe`."""

import json
import pathlib
import sqlite3
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fleet  # noqa: E402
from fleet import clean_environment, program  # noqa: E402

NAMES = {"clock_mhz", "flop_per_second", "read_bytes_per_second", "triad_bytes_per_second", "memory_load_ns"}
# Run inside the cluster, which it finds by its environment.
SCRIPT = """
import json, os, subprocess, sys, time, urllib.request
def loopfleet(*arguments):
    return subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, check=False)
def page(path):
    with urllib.request.urlopen("http://" + os.environ["LOOPFLEET_HTTP"] + path, timeout=30) as answer:
        return json.load(answer)
found = {}
for name, arguments in json.loads(sys.argv[2]).items():
    done = loopfleet(*arguments)
    found[name] = {"code": done.returncode, "out": done.stdout, "err": done.stderr}
worker = page("/api/workers")[0]["worker"]
deadline = time.monotonic() + 60
while time.monotonic() < deadline:  # outcomes are looked at while somebody watches the page, and not at once
    page("/api/overview")
    found["worker"] = page("/api/worker/" + worker)
    if found["worker"]["observed"]:
        break
    time.sleep(0.1)
found["job"] = page("/api/job/1.0")
print(json.dumps(found))
"""


class ProbeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="lf-p-") as scratch:
            database = pathlib.Path(scratch) / "x.db"
            commands = {
                "text": ["eval", "--kind", "probe"],
                "json": ["eval", "probe://peaks-v0", "--json"],
                "timed": ["eval", "benchmark://mm-v0/mm16_16_16", "--json"],
                "unknown": ["eval", "probe://peek-v0"],
                "kind": ["eval", "--kind", "prob"],
                "field": ["eval", "--kind", "probe", "--precision", "0.01"],
                "show": ["job", "show", "1.0"],
                "explain": ["job", "explain", "1.0"],
                "code": ["job", "code", "1.0"],
                "export": ["export"],
                "audit": ["audit", "--share", "100%"],
                "top": ["batch", "show", "1"],
            }
            done = fleet.run([program("loopfleet"), "local", "--db", str(database), "--", sys.executable, "-c", SCRIPT,
                              program("loopfleet"), json.dumps(commands)], env=clean_environment())
            if done.returncode != 0:
                raise AssertionError(done.stderr)
            cls.found = json.loads(done.stdout)
            cls.checked = fleet.run([program("loopfleet"), "db", "check", str(database)], env=clean_environment())
            with sqlite3.connect(database) as rows:
                cls.rows = rows.execute("SELECT observation, kind, benchmark, name, value FROM v_observations").fetchall()
                cls.results = rows.execute("SELECT benchmark, status, elapsed_ns FROM v_results").fetchall()

    def test_people_see_the_values(self):
        text = self.found["text"]
        self.assertEqual(text["code"], 0, text["err"])
        for name in NAMES:
            self.assertRegex(text["out"], rf"(?m)^  {name} +[0-9.e+]+$")
        self.assertEqual(self.found["show"]["code"], 0)
        self.assertIn("memory_load_ns", self.found["show"]["out"])
        self.assertIn("measured by", self.found["explain"]["out"])

    def test_programs_get_them_as_json(self):
        (outcome,) = json.loads(self.found["json"]["out"])
        self.assertEqual(outcome["status"], "ok")
        self.assertIsNone(outcome["elapsed_ns"])
        self.assertIsNone(outcome["gflop_per_second"])
        self.assertLessEqual(NAMES, outcome["observed"].keys())
        self.assertTrue(all(value > 0 for value in outcome["observed"].values()))
        (timed,) = json.loads(self.found["timed"]["out"])
        self.assertIsNone(timed["observed"])
        lines = [json.loads(line) for line in self.found["export"]["out"].splitlines()]
        self.assertEqual(len([line for line in lines if line["observed"]]), 2, self.found["export"]["err"])

    def test_every_probe_measures(self):
        (outcome,) = json.loads(self.found["json"]["out"])
        self.assertEqual(outcome["source"], "measured")
        self.assertEqual({row[0] for row in self.rows}, {1, 2})

    def test_bad_input_names_what_is_valid(self):
        for name, said in (("unknown", "nearest: 'probe://peaks-v0'"), ("kind", "probe"),
                           ("field", "field 'precision' means nothing for a job of kind probe")):
            self.assertNotEqual(self.found[name]["code"], 0)
            self.assertIn(said, self.found[name]["err"])
        self.assertNotEqual(self.found["code"]["code"], 0)
        self.assertIn("probe", self.found["code"]["err"])

    def test_the_page_shows_it_by_worker(self):
        self.assertLessEqual(NAMES, self.found["worker"]["observed"]["probe://peaks-v0"].keys())
        job = self.found["job"]
        self.assertEqual(job["kind"], "probe")
        self.assertLessEqual(NAMES, job["outcome"]["observed"].keys())
        self.assertFalse([command for command in job["commands"] if "replay" in command["command"]])

    def test_sql_has_a_row_for_each_value(self):
        self.assertLessEqual({("probe", "probe://peaks-v0", name) for name in NAMES}, {row[1:4] for row in self.rows})
        self.assertTrue(all(value > 0 for *_, value in self.rows))
        self.assertIn(("probe://peaks-v0", "ok", None), self.results)
        self.assertEqual(self.checked.returncode, 0, self.checked.stdout)

    def test_what_is_about_figures_passes_over_it(self):
        for name in ("audit", "top"):
            self.assertEqual(self.found[name]["code"], 0, self.found[name])


if __name__ == "__main__":
    fleet.main()

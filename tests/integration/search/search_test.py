"""`loopfleet search` on a real cluster and on its database."""

import collections
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fleet  # noqa: E402
from fleet import clean_environment, program  # noqa: E402

MATRIX = "benchmark://mm-v0/mm32_48_64"
OTHER = "benchmark://mm-v0/mm48_32_32"


class SearchTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="lf-s-")
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        self.database = self.folder / "x.db"

    def search(self, *arguments, live=True):
        command = [program("loopfleet"), "search", *arguments]
        if live:
            command = [program("loopfleet"), "local", "--db", str(self.database), "--", *command]
        return fleet.run(command, env=clean_environment())

    def found(self, *arguments, live=True):
        done = self.search(*arguments, "--json", live=live)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_a_live_search_is_repeated_by_its_database(self):
        flags = (MATRIX, OTHER, "--evaluations", "80", "--seed", "4", "--strategy", "genetic")
        live = self.found(*flags)
        self.assertEqual([each["benchmark"] for each in live], [MATRIX, OTHER])
        for each in live:
            self.assertEqual(each["evaluations"], 80)
            self.assertGreaterEqual(each["speed_up"], 1)  # the untuned one is confirmed, too
            self.assertLess(each["proposing_seconds"], each["seconds"])
            self.assertGreater(each["best"]["confirmed_ns"], 0)
            # The best three and the untuned one, which may be among them.
            self.assertIn([], [one["actions"] for one in each["confirmed"]])
            self.assertIn(len(each["confirmed"]), (3, 4))
        stored = self.found(*flags, "--store-only", "--db", str(self.database), live=False)
        for each, again in zip(live, stored):
            self.assertEqual(again["without_figure"], each["without_figure"])
            self.assertEqual([(point["evaluations"], point["best_ns"]) for point in again["curve"]],
                             [(point["evaluations"], point["best_ns"]) for point in each["curve"]])
            self.assertEqual(again["best"]["elapsed_ns"], each["curve"][-1]["best_ns"])
            self.assertIsNone(again["best"]["confirmed_ns"])
        unknown = self.search("mm-v0/mm8_8_8", "--evaluations", "5", "--store-only", "--db", str(self.database), live=False)
        self.assertEqual(unknown.returncode, 1, unknown.stderr)
        self.assertIn("none has a figure: NOT_FOUND: the database has no figure of this tree", unknown.stdout)

    def test_a_repeated_search_is_answered_from_the_store(self):
        flags = (MATRIX, "--evaluations", "60", "--confirm", "0")
        self.found(*flags)
        (again,) = self.found(*flags)
        self.assertEqual(again["evaluations"], 60)
        listed = fleet.run([program("loopfleet"), "local", "--db", str(self.database), "--", program("loopfleet"),
                            "export"], env=clean_environment())
        sources = [json.loads(line)["source"] for line in listed.stdout.splitlines()]
        self.assertGreater(sources.count("stored"), 40, listed.stderr)

    def test_an_interrupted_search_goes_on_where_it_was(self):
        flags = (MATRIX, "--evaluations", "300", "--seed", "2", "--confirm", "0", "--json")
        with fleet.Fleet() as cluster:
            def outcomes():
                return [json.loads(line) for line in cluster.command("export").stdout.splitlines()]

            interrupted = cluster.popen("search", *flags, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            fleet.wait_until(lambda: len(outcomes()) > 50, "the first figures")
            interrupted.send_signal(signal.SIGINT)
            found, said = interrupted.communicate(timeout=fleet.COMMAND_LIMIT_S)
            self.assertEqual(interrupted.returncode, 130, said)
            self.assertLess(json.loads(found)["evaluations"], 300)
            before = outcomes()
            repeated = json.loads(cluster.command("search", *flags).stdout)
            after = outcomes()[len(before):]
            stored = json.loads(cluster.command("search", *flags, "--store-only", "--db", str(cluster.database)).stdout)
        has_figure = {each["tree_key"] for each in before if each["status"] == "ok" and each["grade"] != "D"}
        self.assertGreater(len(has_figure), 10)
        self.assertEqual({each["source"] for each in after if each["tree_key"] in has_figure}, {"stored"})
        # Its way is that of a search with the same figures that nothing interrupted.
        self.assertEqual(repeated["evaluations"], 300)
        self.assertEqual([(point["evaluations"], point["best_ns"]) for point in repeated["curve"]],
                         [(point["evaluations"], point["best_ns"]) for point in stored["curve"]])
        self.assertEqual(repeated["best"]["actions"], stored["best"]["actions"])
        # What had no figure in three tries may have one now, and lead elsewhere.
        in_vain = collections.Counter(each["tree_key"] for each in before if each["status"] == "ok" and each["grade"] == "D"
                                      or each["status"] == "failed" and each["error"]["retryable"])
        if max(in_vain.values(), default=0) < 3:
            self.assertLessEqual(has_figure, {each["tree_key"] for each in after})

    def test_the_report_names_the_command_that_measures_it_again(self):
        picture = self.folder / "curve.svg"
        done = self.search(MATRIX, "--seconds", "2", "--plot", str(picture))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"best: [\d.]+ GFLOP/s, .* a run, confirmed")
        self.assertRegex(done.stdout, r"untuned: [\d.]+ GFLOP/s; [\d.]+ times as fast now")
        (again,) = [line.split()[2:] for line in done.stdout.splitlines() if line.startswith("again: ")]
        self.assertEqual(again[:2], ["eval", MATRIX])
        shown = fleet.run([program("loopfleet"), "local", "--", program("loopfleet"), *again], env=clean_environment())
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(ElementTree.parse(picture).getroot().tag, "{http://www.w3.org/2000/svg}svg")

    def test_passes_make_a_program_small(self):
        program_uri = "benchmark://small-v0/qsort"
        (greedy,) = self.found(program_uri, "--strategy", "greedy", "--evaluations", "700")
        (random,) = self.found(program_uri, "--strategy", "random", "--evaluations", "100", "--seed", "3")
        for each in (greedy, random):
            self.assertEqual(each["benchmark"], program_uri)
            self.assertLess(each["best"]["instructions"], each["instructions"])
            self.assertEqual(each["curve"][-1]["instructions"], each["best"]["instructions"])
        self.assertEqual(greedy["instructions_oz"], random["instructions_oz"])
        self.assertLess(greedy["best"]["instructions"], 1.2 * greedy["instructions_oz"])
        # The command that the report names leaves as many instructions.
        again = fleet.run([program("loopfleet"), "local", "--", *greedy["best"]["command"].split(), "--json"],
                          env=clean_environment())
        self.assertEqual(json.loads(again.stdout)[0]["observed"]["IrInstructionCount"],
                         greedy["best"]["instructions"], again.stderr)
        text = self.search(program_uri, "--strategy", "beam_breadth", "--evaluations", "130").stdout
        self.assertRegex(text, r"best: \d+ instructions after \d+ passes; \d+ before; \d+ after -Oz")

    def test_bad_input_is_refused_with_what_is_valid(self):
        for arguments, said in (((MATRIX, "--seconds", "1", "--strategy", "gready"), "nearest: greedy"),
                                ((MATRIX,), "either --seconds or --evaluations"),
                                ((MATRIX, "--seconds", "1", "--evaluations", "5"), "either --seconds or"),
                                (("benchmark://mm-v7/mm4_4_4", "--seconds", "1"), "nearest: benchmark://mm-v0/"),
                                (("benchmark://loop_tool-cpu-v0/64", "--seconds", "1"), "dialect agent"),
                                ((MATRIX, "--seconds", "1", "--store-only"), "requires --db FILE"),
                                ((MATRIX, "--seconds", "1", "--in-flight", "0"), "--in-flight"),
                                (("benchmark://small-v0/qsrt", "--seconds", "1"), "nearest: qsort"),
                                (("benchmark://small-v0/qsort", "--seconds", "1", "--strategy", "guided"), "for loops"),
                                (("benchmark://small-v0/qsort", "--seconds", "1", "--plot", "x.svg"), "for loops")):
            with self.subTest(arguments=arguments):
                done = self.search(*arguments, live=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(said, done.stderr)
        missing = self.search(MATRIX, "--seconds", "1", "--store-only", "--db", "/no/such.db", live=False)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("/no/such.db", missing.stderr)


if __name__ == "__main__":
    fleet.main()

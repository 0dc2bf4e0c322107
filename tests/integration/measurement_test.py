"""A job's demands on its measurement, through real processes: cut, cold, precise, fresh enough."""

import unittest

import fleet
from fleet import Fleet

MM = "benchmark://mm-v0/mm32_32_32"


class MeasurementTest(unittest.TestCase):
    # A cluster for each test: beside a noisy neighbour a worker soon is in quarantine, and its results then
    # answer no other job.
    def setUp(self):
        self.cluster = Fleet(workers=1)
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def outcome(self, *flags):
        """The outcome of one evaluation, repeated while a busy host gives no figure, or one that answers no other job."""
        for _ in range(fleet.MEASURING_TRIES):
            (outcome,) = self.cluster.json("eval", MM, *flags)
            if outcome["grade"] != "D" and (outcome["status"] == "ok" or outcome["error"]["code"] != "UNSTABLE_TIMING"):
                self.check_grade(outcome)
                return outcome
        self.fail(f"the host is too busy for any figure: {outcome}")

    def check_grade(self, outcome):
        """The grade is no better than the row's limit for its host."""
        _, says_limit, limit = (outcome["isolation"] or "").partition("no better than ")
        if says_limit and outcome["grade"]:
            self.assertGreaterEqual(outcome["grade"], limit[0], outcome["isolation"])

    def test_a_run_above_the_bound_is_cut_and_has_no_time(self):
        # Far below the time of any run.
        (outcome,) = self.cluster.json("eval", MM, "--cut-above-ns", "1", "--fresh")
        self.assertEqual((outcome["status"], outcome["error"]["code"]), ("failed", "CUT"))
        self.assertIn("1 ns", outcome["error"]["message"])
        self.assertIsNone(outcome["elapsed_ns"])
        self.assertIsNone(outcome["gflop_per_second"])

    def test_a_run_far_above_the_bound_is_stopped(self):
        (outcome,) = self.cluster.json("eval", "benchmark://mm-v0/mm1024_1024_1024", "--cut-above-ns", "1000", "--fresh")
        self.assertEqual((outcome["status"], outcome["error"]["code"]), ("failed", "CUT"))
        self.assertIn("the run to be verified was stopped", outcome["error"]["message"])
        self.assertFalse(outcome["stages_ns"]["measure"])

    def test_cold_runs_are_single_and_kept_apart_from_warm_ones(self):
        warm = self.outcome()
        cold = self.outcome("--cache", "cold")
        self.assertEqual(cold["source"], "measured")
        self.assertEqual((warm["cache"], cold["cache"]), ("warm", "cold"))
        self.assertEqual(cold["iterations_per_sample"], 1)
        self.assertEqual(self.outcome("--cache", "cold")["source"], "stored")

    def test_a_stored_result_answers_only_what_it_is_good_for(self):
        first = self.outcome("--fresh")
        self.assertEqual(self.outcome()["source"], "stored")
        self.assertEqual(self.outcome("--max-age-s", "3600")["source"], "stored")
        self.assertEqual(self.outcome("--max-age-s", "0.000001")["source"], "measured")
        finer = max(0.001, min(0.4, first["spread"] / 2))
        if first["spread"] > finer:
            again = self.outcome("--precision", str(finer))
            self.assertNotEqual(again["samples_ns"], first["samples_ns"])

    def test_a_new_worker_finds_the_same_machine_code_in_the_store(self):
        for _ in range(fleet.MEASURING_TRIES):
            first = self.outcome("--fresh")
            if first["grade"] <= "B":
                break
        else:
            self.skipTest("the host is too busy for a figure of grade B")
        self.cluster.workers.pop().stop()
        self.cluster.start_worker()
        # To vectorize the innermost loop, which is vectorized anyway, changes the tree and not the code.
        same = self.outcome("--actions", "down,down,vectorize")
        self.assertEqual(same["source"], "same_code")
        self.assertNotEqual(same["tree_key"], first["tree_key"])
        self.assertEqual(same["compiler"]["code_hash"], first["compiler"]["code_hash"])
        self.assertEqual(same["samples_ns"], first["samples_ns"])
        self.assertEqual(self.outcome("--actions", "down,down,vectorize")["source"], "stored")
        self.assertEqual(self.outcome("--actions", "down,down,unroll", "--fresh")["source"], "measured")

    def test_what_was_measured_beside_it_is_said(self):
        outcome = self.outcome("--fresh")
        self.assertEqual(len(outcome["samples_ns"]), len(outcome["sample_flags"]))
        self.assertEqual(outcome["accepted_samples"], outcome["sample_flags"].count(0))
        self.assertIn("moved", outcome["clock_mhz"])
        (worker,) = self.cluster.json("worker", "list")
        shown = self.cluster.json("worker", "show", worker["name"])
        self.assertGreater(shown["hardware"]["peak_gflop_per_second"], 0)
        self.assertGreater(shown["hardware"]["read_gb_per_second"], 0)
        self.assertEqual(shown["hardware"]["clock_mhz"], outcome["hardware"]["clock_mhz"])


if __name__ == "__main__":
    fleet.main()

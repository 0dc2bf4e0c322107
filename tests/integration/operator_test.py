"""What an operator does to a fleet: drains a host, resumes it, takes all outcomes out."""

import json
import unittest

import fleet


class Drain(unittest.TestCase):
    def test_a_drained_host_takes_nothing_until_it_is_resumed(self):
        with fleet.Fleet() as f:
            worker = f.json("worker", "list")[0]
            host = worker["host"]
            concerned = f.json("worker", "drain", host, "--reason", "new memory")
            self.assertEqual([w["worker"] for w in concerned], [worker["worker"]])
            drain = f.json("worker", "show", worker["name"])["drain"]
            self.assertEqual((drain["target"], drain["reason"]), (host, "new memory"))
            self.assertIn("@", drain["by"])
            self.assertIn("new memory", f.command("worker", "list").stdout)

            submitted = f.command("submit", "-", "--json",
                                  stdin=fleet.lines(fleet.small_jobs(3)))
            self.assertEqual(submitted.returncode, 0, submitted.stderr)
            # It outlives the coordinator, and the worker comes back drained.
            f.coordinator.kill()
            f.start_coordinator()
            fleet.wait_until(lambda: f.json("worker", "list"), "the worker is back")
            self.assertEqual(f.json("worker", "list")[0]["state"], "draining")
            self.assertEqual(f.json("batch", "show", "last")["finished"], 0)

            f.json("worker", "resume", host)
            self.assertIsNone(f.json("worker", "list")[0]["drain"])
            done = f.command("batch", "wait", "last", "--jsonl")  # another client's batch
            self.assertEqual(len(done.stdout.splitlines()), 3, done.stderr)

    def test_a_name_that_nobody_has_is_refused_with_the_nearest(self):
        with fleet.Fleet() as f:
            host = f.json("worker", "list")[0]["host"]
            refused = f.command("worker", "drain", host + "x")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("nearest: " + host, refused.stderr)


class Export(unittest.TestCase):
    def test_every_outcome_of_every_client_once(self):
        with fleet.Fleet() as f:
            jobs = fleet.small_jobs(4)
            f.submit(jobs[:2])
            f.submit(jobs[2:] + [{"benchmark": "benchmark://mm-v0/mm4_4_4", "actions": ["splt"]}])
            export = f.command("export")
            self.assertEqual(export.returncode, 0, export.stderr)
            lines = [json.loads(line) for line in export.stdout.splitlines()]
            jobs_seen = [line["job"] for line in lines]
            self.assertEqual(len(jobs_seen), len(set(jobs_seen)))
            self.assertGreaterEqual(len(lines), 4)
            self.assertTrue(all(line["sequence"] >= 1 for line in lines))
            rest = f.command("export", "--after", "1.1")
            self.assertEqual(rest.stdout.splitlines(), export.stdout.splitlines()[1:])
            none = f.command("export", "--benchmark", "benchmark://no-such-set/")
            self.assertEqual(none.stdout, "")
            bad = f.command("export", "--after", "first")
            self.assertEqual(bad.returncode, 2)


if __name__ == "__main__":
    fleet.main()

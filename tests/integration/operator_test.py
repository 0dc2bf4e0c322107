"""An operator's work on a fleet: drains a host, resumes it, exports all outcomes."""

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
            listed = f.command("worker", "list").stdout
            self.assertIn("new memory", listed)
            self.assertIn(f"since {drain['since'][:10]} ", listed)

            submitted = f.command("submit", "-", "--json",
                                  stdin=fleet.lines(fleet.small_jobs(3)))
            self.assertEqual(submitted.returncode, 0, submitted.stderr)
            # The drain survives the coordinator, and the worker returns drained.
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
            worker = f.json("worker", "list")[0]
            host = worker["host"]
            # The beginning of a name may be that of another host or worker.
            for other in (host[:-1], worker["name"][:-1]):
                self.assertNotEqual(f.command("worker", "drain", other).returncode, 0, other)
            self.assertIsNone(f.json("worker", "list")[0]["drain"])
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

    def test_from_the_place_that_it_ends_with_nothing_is_missing(self):
        def export(*arguments):
            done = f.command("export", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            return ({json.loads(line)["job"] for line in done.stdout.splitlines()},
                    done.stderr.split()[-1])

        with fleet.Fleet() as f:
            jobs = fleet.small_jobs(4)
            waiting = {"labels": ["nobody-has-this"]}
            done = f.command("submit", "-", "--json", stdin=fleet.lines([jobs[0], jobs[1] | waiting]))
            first = json.loads(done.stdout)["batch"]
            done = f.command("submit", "-", "--json", stdin=fleet.lines(jobs[2:]))
            second = json.loads(done.stdout)["batch"]
            f.command("batch", "wait", str(second))
            fleet.wait_until(lambda: f.json("job", "show", f"{first}.0")["outcome"], "the first job")
            before, place = export()
            self.assertLessEqual({f"{first}.0", f"{second}.0", f"{second}.1"}, before)
            f.command("batch", "cancel", str(first))
            f.command("batch", "wait", str(first))
            after, place = export("--after", place)
            self.assertIn(f"{first}.1", before | after)
            self.assertNotIn(f"{first}.0", after, "what was complete is not read again")
            self.assertEqual(export("--after", place), (set(), place))


if __name__ == "__main__":
    fleet.main()

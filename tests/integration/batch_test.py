"""A thousand jobs, with and without kills: each gets exactly one outcome."""

import json
import sqlite3
import subprocess
import threading
import unittest

import fleet
from fleet import Fleet, small_jobs, wait_until

JOBS = 1000


class BatchTest(unittest.TestCase):
    def start_submission(self, cluster):
        """Runs `submit --wait --jsonl` in the background and collects its outcomes as they arrive."""
        process = cluster.popen("submit", str(self.job_file(cluster)), "--wait", "--jsonl",
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        outcomes = []
        said = []

        def read_outcomes():
            for line in process.stdout:
                outcomes.append(json.loads(line))

        threads = [threading.Thread(target=read_outcomes),
                   threading.Thread(target=lambda: said.append(process.stderr.read()))]
        for thread in threads:
            thread.start()

        def finish():
            code = process.wait(fleet.COMMAND_LIMIT_S)
            for thread in threads:
                thread.join()
            process.stdout.close()
            process.stderr.close()
            return code, said[0]

        return outcomes, finish

    def job_file(self, cluster):
        path = cluster.dir / "jobs.jsonl"
        path.write_text(fleet.lines(small_jobs(JOBS)))
        return path

    def check_exactly_once(self, cluster, outcomes, code, said):
        self.assertEqual(sorted(outcome["index"] for outcome in outcomes), list(range(JOBS)))
        # On a busy host a few jobs get no figure; UNSTABLE_TIMING is an outcome like any other.
        unstable = {outcome["index"] for outcome in outcomes if fleet.is_unstable(outcome)}
        self.assertLess(len(unstable), JOBS // 2, said)
        self.assertEqual(code, 1 if unstable else 0, said)
        for outcome in outcomes:
            self.assertEqual(outcome["tag"], outcome["index"], "the outcome is of another job")
            if outcome["index"] in unstable:
                continue
            self.assertEqual(outcome["status"], "ok", outcome)
            self.assertGreater(outcome["elapsed_ns"], 0)
            self.assertAlmostEqual(outcome["gflop_per_second"],
                                   outcome["flop_count"] / outcome["elapsed_ns"])
        # The database agrees. Other batches are the coordinator's own.
        with sqlite3.connect(f"file:{cluster.database}?mode=ro", uri=True) as database:
            rows = database.execute('SELECT "index", tag, status FROM v_results WHERE batch = 1').fetchall()
            sequences = database.execute("SELECT sequence FROM outcomes WHERE batch = 1").fetchall()
        database.close()
        self.assertEqual(sorted(row[0] for row in rows), list(range(JOBS)))
        self.assertTrue(all(int(tag) == index and (status == "ok") == (index not in unstable)
                            for index, tag, status in rows))
        self.assertEqual(sorted(row[0] for row in sequences), list(range(1, JOBS + 1)))

    def test_two_workers_share_a_thousand_jobs(self):
        with Fleet(workers=2) as cluster:
            outcomes, finish = self.start_submission(cluster)
            code, said = finish()
            self.check_exactly_once(cluster, outcomes, code, said)
            self.assertEqual(len({outcome["worker"] for outcome in outcomes}), 2)
            # On a busy host a worker may count as lost, or a job get no figure at first; most jobs need one attempt.
            self.assertGreater(sum(outcome["attempts"] == 1 for outcome in outcomes), JOBS // 2)

    def kill_in_the_middle(self, kill, *shares):
        """Kills after each number of outcomes; again on another fleet if all had come before that."""
        for _ in range(3):
            with Fleet(workers=2) as cluster:
                outcomes, finish = self.start_submission(cluster)
                for share in shares:
                    wait_until(lambda share=share: len(outcomes) >= share, f"{share} outcomes")
                    is_the_middle = len(outcomes) < JOBS
                    if not is_the_middle:
                        break
                    kill(cluster)
                code, said = finish()
                self.check_exactly_once(cluster, outcomes, code, said)
            if is_the_middle:
                return
        self.fail("all outcomes came before the kill each time")

    def test_a_worker_is_killed_in_the_middle(self):
        self.kill_in_the_middle(lambda cluster: cluster.workers[0].kill(), 100)

    def test_the_coordinator_is_killed_in_the_middle(self):
        def kill(cluster):
            cluster.coordinator.kill()
            cluster.start_coordinator()

        self.kill_in_the_middle(kill, 100, 400)

    def test_equal_jobs_are_answered_from_the_store(self):
        with Fleet(workers=1) as cluster:
            jobs = small_jobs(20)
            first = self.measured_now(cluster, jobs)
            _, second = cluster.submit(jobs)
            for outcome in second:
                before = first.get(outcome["index"])
                if before is None:
                    continue
                if before["grade"] == "D":  # of a busy host: it answers no other job
                    self.assertNotEqual(outcome["source"], "stored")
                    continue
                self.assertEqual(outcome["source"], "stored")
                self.assertEqual(outcome["elapsed_ns"], before["elapsed_ns"])
            self.measured_now(cluster, jobs)

    def measured_now(self, cluster, jobs):
        """Fresh measurements by index, of the jobs that a busy host gave a figure: at least one."""
        for _ in range(fleet.MEASURING_TRIES):
            _, outcomes = cluster.submit([job | {"fresh": True} for job in jobs],
                                         again_if_unstable=False)
            self.assertEqual(len(outcomes), len(jobs))
            figures = [outcome for outcome in outcomes if not fleet.is_unstable(outcome)]
            if figures:
                self.assertEqual({outcome["source"] for outcome in figures}, {"measured"})
                return {outcome["index"]: outcome for outcome in figures}
        self.fail("the host is too busy for any figure")


if __name__ == "__main__":
    fleet.main()

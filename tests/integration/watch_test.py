"""Monitoring a fleet: its daemons' HTTP pages, and the output of `status`, `top`, `events`, `doctor` and
`completion`."""

import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import fleet


def get(address, path):
    """The status and body of a page."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def series(text):
    """Parses the text of /metrics into {'name{labels}': value}."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            found[name] = float(value)
    return found


def scrape(address):
    status, text = get(address, "/metrics")
    assert status == 200, text
    return series(text)


def slot_seconds(address):
    """A worker's slot seconds over all activities, and the times right before and after the request."""
    before = time.monotonic()
    metrics = scrape(address)
    after = time.monotonic()
    parts = {name: value for name, value in metrics.items()
             if name.startswith("loopfleet_worker_slot_seconds_total{")}
    assert len(parts) == 7, parts
    return before, sum(parts.values()), after, parts


class Metrics(unittest.TestCase):
    def test_each_second_of_a_busy_worker_is_accounted_for(self):
        with fleet.Fleet() as f:
            worker = f.json("worker", "list")[0]["http"]
            before_first, first, after_first, _ = slot_seconds(worker)
            f.submit(fleet.small_jobs(60))
            before_second, second, after_second, parts = slot_seconds(worker)
            # The difference is at least the time from the first answer to the second question, and at most
            # from the first question to the second answer. Counters are doubles: a millionth for rounding.
            self.assertGreaterEqual(second - first, before_second - after_first - 1e-6)
            self.assertLessEqual(second - first, after_second - before_first + 1e-6)
            for activity in ("measure", "compile", "verify"):
                name = f'loopfleet_worker_slot_seconds_total{{activity="{activity}"}}'
                self.assertGreater(parts[name], 0, parts)

    def test_the_number_of_series_does_not_depend_on_what_is_measured(self):
        with fleet.Fleet() as f:
            targets = [f.coordinator.ready["http"], f.json("worker", "list")[0]["http"]]
            before = [set(scrape(target)) for target in targets]
            f.submit(fleet.small_jobs(40) + [{"benchmark": "benchmark://mm-v0/mm4_4_4",
                                              "actions": ["no_such_action"]}])
            after = [set(scrape(target)) for target in targets]
            self.assertEqual(before, after)
            for names in after:
                self.assertLess(len(names), 800)
                self.assertFalse([name for name in names if "benchmark" in name or "mm4" in name])

    def test_prometheus_has_nothing_to_say_against_either_text(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed (Debian: prometheus)")
        with fleet.Fleet() as f:
            f.submit(fleet.small_jobs(5))
            for target in (f.coordinator.ready["http"], f.json("worker", "list")[0]["http"]):
                checked = subprocess.run(["promtool", "check", "metrics"],
                                         input=get(target, "/metrics")[1], text=True,
                                         capture_output=True, check=False)
                self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_health_readiness_and_version(self):
        with fleet.Fleet() as f:
            coordinator, worker = f.coordinator.ready["http"], f.workers[0].ready["http"]
            for target, component in ((coordinator, "coordinator"), (worker, "worker")):
                self.assertEqual(get(target, "/healthz")[0], 200)
                fleet.wait_until(lambda target=target: get(target, "/readyz")[0] == 200, f"the {component} is ready")
                self.assertEqual(json.loads(get(target, "/readyz")[1]), {"status": "ready"})
                version = json.loads(get(target, "/version")[1])
                self.assertEqual(version["component"], component)
                self.assertRegex(version["version"], r"^\d+\.\d+\.\d+$")
            # A worker without its coordinator is healthy but not ready.
            f.coordinator.kill()
            fleet.wait_until(lambda: get(worker, "/readyz")[0] == 503, "the worker noticed")
            self.assertEqual(get(worker, "/healthz")[0], 200)
            f.start_coordinator()
            fleet.wait_until(lambda: get(worker, "/readyz")[0] == 200, "the worker is back")


class Status(unittest.TestCase):
    def test_the_numbers_are_those_of_the_jobs(self):
        with fleet.Fleet() as f:
            f.submit(fleet.small_jobs(6))
            f.submit(fleet.small_jobs(6))  # from the store, except jobs without a figure
            # A noisy host may put the worker into quarantine for a while.
            status = fleet.wait_until(
                lambda: (s := json.loads(f.command("status", "--json").stdout))["workers"]["ready"] and s,
                "the worker is ready", fleet.COMMAND_LIMIT_S)
            self.assertEqual(status["health"]["level"], "healthy", status)
            self.assertEqual(status["workers"],
                             {"ready": 1, "draining": 0, "quarantined": 0, "lost": 0})
            jobs = status["jobs"]
            self.assertGreaterEqual(jobs["accepted"], 12)
            self.assertEqual(jobs["accepted"] % 6, 0)
            self.assertEqual(jobs["finished"], jobs["accepted"])
            self.assertGreaterEqual(jobs["shared"], 1)
            self.assertEqual(sum(status["failures"].values()), jobs["failed"])
            self.assertEqual(status["coordinator"]["http"], f.coordinator.ready["http"])
            fleet.wait_until(
                lambda: "nothing needs you" in f.command("status").stdout.splitlines()[0],
                "the same in a sentence", fleet.COMMAND_LIMIT_S)

    def test_the_first_line_says_what_is_wrong(self):
        with fleet.Fleet(workers=0) as f:
            text = f.command("status").stdout
            self.assertIn("No worker is connected", text.splitlines()[0])
            f.command("submit", "-", "--json", stdin=fleet.lines(fleet.small_jobs(3)))
            fleet.wait_until(lambda: "3 jobs wait and no worker is ready" in f.command("status").stdout,
                             "the status says that jobs wait")


    def test_the_page_the_health_check_and_the_metrics_say_the_same(self):
        kinds = {"workers_lost": 1, "workers_drained": 1, "jobs_unserved": 2}
        # Its jobs that no worker may run wait as long as the test.
        with fleet.Fleet(workers=2, coordinator_arguments=["--no-worker-grace", "600"]) as f:
            http = f.coordinator.ready["http"]
            drained, lost = (worker.ready["worker"] for worker in f.workers)
            f.json("worker", "drain", drained, "--reason", "new fan")
            f.start_worker()
            fleet.wait_until(lambda: len(f.json("worker", "list")) == 3, "the third has come")
            begun = time.monotonic()

            def is_heard():
                asked = time.monotonic()
                second, = (w for w in f.json("worker", "list") if w["name"] == lost)
                return second["since_heartbeat_ms"] < 1000 * (asked - begun)

            fleet.wait_until(is_heard, "the second is heard after the third, which so does not take its place")
            f.workers[1].kill()
            f.command("submit", "-", "--json", stdin=fleet.lines(
                [{**job, "labels": ["huge"]} for job in fleet.small_jobs(2)]))

            def shown():
                """What each of them shows; a noisy host may quarantine the third worker for a while."""
                lists = [json.loads(f.command("status", "--json").stdout)["health"]["attention"],
                         json.loads(get(http, "/api/overview")[1])["health"]["attention"],
                         json.loads(get(http, "/healthz")[1]).get("attention", [])]
                found = [{item["kind"]: (item["count"], item["sentence"]) for item in one
                          if item["kind"] in kinds} for one in lists]
                metrics = scrape(http)
                counted = {kind: metrics[f'loopfleet_needs_attention{{kind="{kind}"}}'] for kind in kinds}
                top = f.command("top").stdout
                # They are asked one after the other, and the metrics lag by half a second.
                is_settled = found[1:] == [found[0], found[0]] and all(
                    sentence in top for _, sentence in found[0].values())
                counts = {kind: count for kind, (count, _) in found[0].items()}
                return found[0] if is_settled and counted == counts == kinds else None

            found = fleet.wait_until(shown, "all of them say the same", fleet.COMMAND_LIMIT_S)
            self.assertEqual(found["workers_lost"][1], f"1 worker is lost: {lost}.")
            self.assertIn(drained, found["workers_drained"][1])


class Events(unittest.TestCase):
    def test_following_sees_workers_batches_and_restarts(self):
        with fleet.Fleet() as f:
            following = f.popen("events", "--follow", "--json", stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
            seen = []
            reader = threading.Thread(
                target=lambda: [seen.append(json.loads(line)) for line in following.stdout])
            reader.start()

            def wait_for(kind, times=1, **wanted):
                def found():
                    fitting = [event for event in seen if event["kind"] == kind
                               and all(event[k] == v for k, v in wanted.items())]
                    return fitting[-1] if len(fitting) >= times else None
                return fleet.wait_until(found, f"{kind} {wanted}")

            try:
                wait_for("coordinator.started")
                name = f.json("worker", "list")[0]["name"]
                wait_for("worker.joined", subject=name)
                f.submit(fleet.small_jobs(4))
                batch = wait_for("batch.accepted", count=4)["batch"]
                wait_for("batch.finished", batch=batch, count=4)
                f.json("worker", "drain", name)
                wait_for("worker.drained", subject=name)
                f.json("worker", "resume", name)
                wait_for("worker.resumed", subject=name)
                second = f.start_worker()
                f.await_workers(2)
                second.kill()
                wait_for("worker.lost", subject=second.ready["worker"])
                f.coordinator.kill()
                f.start_coordinator()
                wait_for("coordinator.started", times=2)
            finally:
                following.send_signal(signal.SIGINT)
                code = following.wait(fleet.STOP_LIMIT_S)
                reader.join()
                talk = following.stderr.read()
                following.stdout.close()
                following.stderr.close()
            self.assertEqual((code, talk), (0, ""))

            text = f.command("events").stdout
            self.assertRegex(text, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  coordinator\.started ")
            self.assertEqual(len(f.command("events", "--count", "1").stdout.splitlines()), 1)


class Top(unittest.TestCase):
    def test_into_a_pipe_it_is_printed_once(self):
        with fleet.Fleet() as f:
            f.submit(fleet.small_jobs(3))
            done = f.command("top")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("\033", done.stdout)
            self.assertIn(f.workers[0].ready["worker"], done.stdout)
            self.assertIn("batch.finished", done.stdout)

    def test_on_a_terminal_it_lives_until_q(self):
        with fleet.Fleet() as f:
            pid, terminal = pty.fork()
            if pid == 0:
                os.environ.update(fleet.clean_environment(LOOPFLEET_ADDRESS=f.address, TERM="xterm"))
                os.execv(fleet.program("loopfleet"), ["loopfleet", "top", "--interval", "0.1"])
            seen = bytearray()

            def shows(text):
                def look():
                    if text not in seen and select.select([terminal], [], [], 0.2)[0]:
                        try:
                            seen.extend(os.read(terminal, 65536))
                        except OSError:  # the other end is closed
                            pass
                    return text in seen
                return look

            fleet.wait_until(shows(b"\033[?1049h"), "a screen of its own")
            fleet.wait_until(shows(f.workers[0].ready["worker"].encode()), "the worker is shown")
            f.submit(fleet.small_jobs(3))
            fleet.wait_until(shows(b"batch.finished"), "it is live")
            os.write(terminal, b"q")
            fleet.wait_until(shows(b"\033[?1049l"), "the old screen is back")
            _, status = os.waitpid(pid, 0)
            os.close(terminal)
            self.assertEqual(os.waitstatus_to_exitcode(status), 0)


class Doctor(unittest.TestCase):
    def run_doctor(self, *arguments):
        return subprocess.run([fleet.program("loopfleet"), "doctor", *arguments], text=True,
                              capture_output=True, timeout=fleet.COMMAND_LIMIT_S, check=False,
                              env=fleet.clean_environment())

    def test_it_names_what_is_wrong_and_what_mends_it(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            governor = root / "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
            governor.parent.mkdir(parents=True)
            (root / "sys/devices/system/cpu/online").write_text("0-1\n")
            governor.write_text("powersave\n")
            sick = self.run_doctor("--root", folder)
            self.assertEqual(sick.returncode, 1, sick.stderr)
            self.assertRegex(sick.stdout, r"PROBLEM\s+governor\s+the governor of processor 1 is 'powersave'")
            self.assertIn("$ echo performance | tee", sick.stdout)
            governor.write_text("performance\n")
            well = self.run_doctor("--root", folder, "--json")
            self.assertEqual(well.returncode, 0, well.stdout)
            findings = {finding["check"]: finding for finding in json.loads(well.stdout)}
            self.assertEqual(findings["governor"]["severity"], "good")
            self.assertIsNone(findings["governor"]["mend"])

    def test_this_machine_can_be_looked_at(self):
        done = self.run_doctor("--json")
        self.assertIn(done.returncode, (0, 1))
        findings = json.loads(done.stdout)
        self.assertGreaterEqual(len(findings), 16)
        for finding in findings:
            if finding["severity"] == "problem":
                self.assertTrue(finding["mend"], finding)


    def test_it_measures_how_well_figures_repeat_here(self):
        done = self.run_doctor("--measure", "1", "--json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        finding = json.loads(done.stdout)[-1]
        self.assertEqual(finding["check"], "repeatability")
        figures = finding["figures"]
        self.assertGreaterEqual(figures["starts"], 3)
        # 12 kernels in a batch, and the same 12 one at a time.
        self.assertEqual(figures["figures"] + figures["failed"], 24 * figures["starts"])
        self.assertAlmostEqual(sum(grade["share"] for grade in figures["grades"].values()), 1)
        self.assertGreater(figures["latency_p50_ms"], 0)
        self.assertIn(f"{figures['starts']} starts", finding["why"])


class Completion(unittest.TestCase):
    def script(self, shell):
        return subprocess.run([fleet.program("loopfleet"), "completion", shell], text=True,
                              capture_output=True, check=True).stdout

    def test_bash_completes_the_real_grammar(self):
        script = self.script("bash") + """
            COMP_WORDS=(loopfleet worker d); COMP_CWORD=2; _loopfleet; echo "${COMPREPLY[@]}"
            COMP_WORDS=(loopfleet ev); COMP_CWORD=1; _loopfleet; echo "${COMPREPLY[@]}"
            COMP_WORDS=(loopfleet worker drain --rea); COMP_CWORD=3; _loopfleet; echo "${COMPREPLY[@]}"
        """
        done = subprocess.run(["bash"], input=script, text=True, capture_output=True, check=True)
        self.assertEqual([sorted(line.split()) for line in done.stdout.splitlines()],
                         [["drain"], ["eval", "events"], ["--reason"]])

    def test_the_other_shells_can_read_theirs(self):
        for shell in ("zsh", "fish"):
            with self.subTest(shell):
                if shutil.which(shell) is None:
                    self.skipTest(f"{shell} is not installed")
                done = subprocess.run([shell, "-n", "/dev/stdin"], input=self.script(shell), text=True,
                                      capture_output=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    fleet.main()

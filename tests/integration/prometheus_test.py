#!/usr/bin/env python3
"""A real Prometheus server scrapes a fleet, and answers the number of evaluated jobs and every query of the
Grafana dashboards.

    prometheus_test.py BIN_DIR     BIN_DIR holds `loopfleet`

Everything runs on loopback, in a temporary folder, and ends with the test. Exit status 77: `prometheus` is
not installed (Debian: prometheus).
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import fleet

SKIPPED = 77
WAIT_SECONDS = 120
MEASURING_TRIES = 30  # repetitions while the host is too busy for a figure
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
JOBS = [
    {"benchmark": f"benchmark://loop_tool-cpu-v0/{size}", "actions": actions}
    for size in (1024, 4096, 65536)
    for actions in ([], ["toggle_mode", "up", "up"])
]


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def wait_for(what, condition):
    """Returns the first true value of `condition`; after WAIT_SECONDS fails with its last value."""
    deadline = time.monotonic() + WAIT_SECONDS
    last = None
    while time.monotonic() < deadline:
        try:
            last = condition()
            if last:
                return last
        except (urllib.error.URLError, OSError) as error:
            last = error
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {WAIT_SECONDS} s; last: {last}")


class Prometheus:
    """A private Prometheus server that scrapes `targets`, a dict of job name to HOST:PORT."""

    def __init__(self, folder, targets):
        self.folder = folder
        self.config = folder / "prometheus.yml"
        self.config.write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms",
                       "evaluation_interval": "500ms"},
            "rule_files": [str(ROOT / "monitoring/rules/loopfleet.yml")],
            "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [target]}]}
                               for job, target in targets.items()],
        }))
        self.process = None

    def __enter__(self):
        for _ in range(5):  # another process may take the free port before Prometheus does
            port = fleet.free_port()
            self.url = f"http://127.0.0.1:{port}"
            with open(self.folder / "prometheus.log", "w", encoding="utf-8") as log:
                self.process = subprocess.Popen(
                    ["prometheus", f"--config.file={self.config}",
                     f"--storage.tsdb.path={self.folder / 'data'}",
                     f"--web.listen-address=127.0.0.1:{port}"],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                wait_for("Prometheus is ready", self.ready_or_gone)
                if self.process.poll() is None:
                    return self
            except AssertionError:
                self.__exit__()
                raise
        raise AssertionError("Prometheus does not start:\n" + self.log())

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ready_or_gone(self):
        return self.process.poll() is not None or "Ready" in get(self.url + "/-/ready")

    def log(self):
        return (self.folder / "prometheus.log").read_text(encoding="utf-8")

    def result(self, expression):
        """The series that an expression yields now."""
        question = urllib.parse.urlencode({"query": expression})
        return json.loads(get(f"{self.url}/api/v1/query?{question}"))["data"]["result"]

    def query(self, expression):
        """The value of an expression that yields one number; None while it yields nothing."""
        result = self.result(expression)
        return float(result[0]["value"][1]) if result else None

    def expect(self, expression, value):
        seen = []

        def equal():
            seen.append(self.query(expression))
            return seen[-1] == value

        try:
            wait_for(f"{expression} == {value}", equal)
        except AssertionError as error:
            raise AssertionError(f"{error}; it was {seen[-1] if seen else 'never answered'}") from None
        print(f"{expression} == {value}")


def answer_the_dashboards(prometheus):
    """Checks that every query of every panel yields a series on a real fleet."""
    sys.path.insert(0, str(ROOT / "tests/unit/monitoring"))
    import check_dashboards  # pylint: disable=import-outside-toplevel,import-error
    asked = 0
    for path in sorted((ROOT / "monitoring/grafana/dashboards").glob("*.json")):
        for where, expression in check_dashboards.queries(json.loads(path.read_text(encoding="utf-8"))):
            # Queries that show only problems are asked without that condition.
            plain = check_dashboards.plain(expression).removesuffix(" > 0")
            wait_for(f"{path.name}, {where}: {plain}", lambda plain=plain: prometheus.result(plain))
            asked += 1
    assert asked > 20, asked
    print(f"{asked} queries of dashboards have an answer")


def is_ok(outcome):
    return outcome["status"] == "ok"


def evaluate(loopfleet, jobs):
    """Submits the jobs; returns their outcomes."""
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    done = subprocess.run([loopfleet, "submit", "-", "--wait", "--jsonl"], input=lines, text=True,
                          stdout=subprocess.PIPE, timeout=300, check=False)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == len(jobs), outcomes
    assert done.returncode == (0 if all(is_ok(outcome) for outcome in outcomes) else 1), done
    return outcomes


def scrape_the_fleet(loopfleet, folder):
    """Runs as the command of `loopfleet local`, so that the fleet is up."""
    coordinator = os.environ["LOOPFLEET_HTTP"]
    listed = subprocess.run([loopfleet, "worker", "list", "--json"], stdout=subprocess.PIPE,
                            text=True, timeout=300, check=True)
    (worker,) = json.loads(listed.stdout)
    for address in (coordinator, worker["http"]):
        assert json.loads(get(f"http://{address}/healthz"))["status"] == "ok", address

    outcomes = []
    for _ in range(MEASURING_TRIES):
        outcomes += evaluate(loopfleet, JOBS)
        if all(is_ok(outcome) and outcome["grade"] != "D" for outcome in outcomes[-len(JOBS):]):
            break  # otherwise the host was too busy for a figure, or for one that answers
    unstable = [outcome for outcome in outcomes if not is_ok(outcome)]
    assert all(outcome["error"]["code"] == "UNSTABLE_TIMING" for outcome in unstable), unstable
    assert all(is_ok(outcome) for outcome in outcomes[-len(JOBS):]), outcomes
    measured = sum(outcome["source"] == "measured" for outcome in outcomes)
    measured_ok = sum(is_ok(outcome) and outcome["source"] == "measured" for outcome in outcomes)
    assert measured > 0, outcomes

    targets = {"loopfleet-coordinator": coordinator, "loopfleet-worker": worker["http"]}
    with Prometheus(folder, targets) as prometheus:
        prometheus.expect("sum(up)", 2)
        prometheus.expect("sum(loopfleet_jobs_submitted_total)", len(outcomes))
        prometheus.expect("sum(loopfleet_jobs_completed_total)", len(outcomes))
        prometheus.expect('sum(loopfleet_jobs_completed_total{outcome="ok"})',
                          len(outcomes) - len(unstable))
        prometheus.expect('sum(loopfleet_outcomes_total{source="measured"})', measured)
        prometheus.expect('sum(loopfleet_worker_jobs_completed_total{outcome="ok"})', measured_ok)
        prometheus.expect('sum(loopfleet_workers{state="ready"})', 1)
        prometheus.expect("sum(loopfleet_queue_jobs)", 0)
        prometheus.expect("sum(loopfleet_worker_connected)", 1)
        prometheus.expect("count(loopfleet_build_info)", 2)

        answer_the_dashboards(prometheus)

        again = evaluate(loopfleet, JOBS)  # the counters grow; now the store answers
        doubtful = {outcome["tree_key"] for outcome in outcomes[-len(JOBS):] if outcome["grade"] == "D"}
        assert all(outcome["source"] == "stored" for outcome in again if outcome["tree_key"] not in doubtful), again
        stored = sum(outcome["source"] == "stored" for outcome in outcomes + again)
        prometheus.expect("sum(loopfleet_jobs_completed_total)", len(outcomes + again))
        prometheus.expect('sum(loopfleet_outcomes_total{source="stored"})', stored)


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--inside":
        scrape_the_fleet(sys.argv[2], pathlib.Path(sys.argv[3]))
        return 0
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if shutil.which("prometheus") is None:
        print("SKIPPED: there is no prometheus to run (Debian: prometheus); nothing was tested",
              file=sys.stderr)
        return SKIPPED
    loopfleet = str(pathlib.Path(sys.argv[1]) / "loopfleet")
    with tempfile.TemporaryDirectory(prefix="loopfleet_prometheus_") as folder:
        # Ignores exported settings of other fleets.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LOOPFLEET_")}
        return subprocess.run(
            [loopfleet, "local", "--workers", "1", "--",
             sys.executable, __file__, "--inside", loopfleet, folder],
            stdin=subprocess.DEVNULL, env=environment, timeout=800, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

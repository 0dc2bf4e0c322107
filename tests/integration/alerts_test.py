"""A real Prometheus with our rules and a real Alertmanager: jobs wait without a ready worker, so an alert
fires; a worker connects, and the alert resolves.

The rules are the shipped ones with shorter waits: a minute becomes a second."""

import http.server
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

import fleet

RULES = pathlib.Path(__file__).resolve().parents[2] / "monitoring" / "rules" / "loopfleet.yml"


class Pager:
    """The receiver of alerts: Alertmanager's webhook."""

    def __init__(self):
        told = self.told = []  # (name, status)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                for alert in json.loads(body)["alerts"]:
                    told.append((alert["labels"]["alertname"], alert["status"]))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Server:
    """A ready Prometheus or Alertmanager on its own port."""

    def __init__(self, folder, argv_of_port):
        for _ in range(5):  # another process may take the free port first
            port = fleet.free_port()
            self.url = f"http://127.0.0.1:{port}"
            argv = argv_of_port(port)
            self.log = folder / f"{pathlib.Path(argv[0]).name}-{port}.log"
            with open(self.log, "wb") as log:
                self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                preexec_fn=fleet.die_with_parent)
            fleet.wait_until(lambda: self.process.poll() is not None or self.is_ready(),
                             f"{argv[0]} is ready; {self.log}")
            if self.process.poll() is None:
                return
        raise AssertionError(f"{argv[0]} does not start:\n" + self.log.read_text())

    def is_ready(self):
        try:
            with urllib.request.urlopen(self.url + "/-/ready", timeout=60) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)

    def stop(self):
        self.process.terminate()
        self.process.wait(fleet.STOP_LIMIT_S)


class NoWorkers(unittest.TestCase):
    def setUp(self):
        for name in ("prometheus", "prometheus-alertmanager"):
            if shutil.which(name) is None:
                self.skipTest(f"{name} is not installed (Debian: prometheus prometheus-alertmanager)")

    def start_servers(self, folder, pager, coordinator):
        (folder / "alertmanager.yml").write_text(json.dumps({  # JSON is YAML
            "route": {"receiver": "pager", "group_by": ["alertname"], "group_wait": "100ms",
                      "group_interval": "1s", "repeat_interval": "1h"},
            "receivers": [{"name": "pager", "webhook_configs": [
                {"url": pager.url, "send_resolved": True}]}]}))
        alertmanager = Server(folder, lambda port: [
            "prometheus-alertmanager", f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'alertmanager'}", "--cluster.listen-address=",
            f"--web.listen-address=127.0.0.1:{port}"])
        self.addCleanup(alertmanager.stop)
        # [5m] stays: it is the window of rates, not a wait.
        rules = re.sub(r"\bfor: \d+m\b", "for: 1s", RULES.read_text(encoding="utf-8"))
        (folder / "rules.yml").write_text(rules)
        (folder / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(folder / "rules.yml")],
            "alerting": {"alertmanagers": [{"static_configs": [
                {"targets": [alertmanager.url.removeprefix("http://")]}]}]},
            "scrape_configs": [{"job_name": "loopfleet-coordinator",
                                "static_configs": [{"targets": [coordinator]}]}]}))
        prometheus = Server(folder, lambda port: [
            "prometheus", f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'prometheus'}", "--rules.alert.resend-delay=1s",
            f"--web.listen-address=127.0.0.1:{port}"])
        self.addCleanup(prometheus.stop)
        return prometheus, alertmanager

    def test_the_alert_fires_and_clears(self):
        folder = tempfile.TemporaryDirectory(prefix="loopfleet_alerts_")
        self.addCleanup(folder.cleanup)  # after the servers, which write into it
        pager = Pager()
        self.addCleanup(pager.close)
        alert = "LoopfleetNoReadyWorkers"
        with fleet.Fleet(workers=0) as f:
            prometheus, alertmanager = self.start_servers(pathlib.Path(folder.name), pager,
                                                          f.coordinator.ready["http"])
            fleet.wait_until(lambda: prometheus.get("/api/v1/query?query=up")["data"]["result"],
                             "Prometheus has scraped the coordinator")
            # The alert about an absent coordinator clears after the first scrape; rules run once a second.
            # Whether this machine's disk fills up is not the test's.
            fleet.wait_until(lambda: {each["labels"]["alertname"] for each in prometheus.get(
                "/api/v1/alerts")["data"]["alerts"]} <= {"LoopfleetDiskFilling"}, "no other alert is left")
            # Jobs that no worker can run fail after 30 s, so new ones are submitted until the alert fires.
            submitting = threading.Event()

            def keep_waiting():
                number = 0
                while not submitting.is_set():
                    number += 1
                    f.command("submit", "-", "--json", stdin=fleet.lines(
                        [{"benchmark": f"benchmark://loop_tool-cpu-v0/{number}", "actions": []}]))
                    submitting.wait(5)

            submitter = threading.Thread(target=keep_waiting)
            submitter.start()
            try:
                fleet.wait_until(lambda: (alert, "firing") in pager.told, f"told: {pager.told}")
                names = [a["labels"]["alertname"] for a in alertmanager.get("/api/v2/alerts")]
                self.assertIn(alert, names)
            finally:
                submitting.set()
                submitter.join()
            f.start_worker()
            f.await_workers(1)
            fleet.wait_until(lambda: (alert, "resolved") in pager.told, f"told: {pager.told}")
            self.assertIn(alert, {name for name, _ in pager.told})
            self.assertLess(pager.told.index((alert, "firing")), pager.told.index((alert, "resolved")))


if __name__ == "__main__":
    fleet.main()

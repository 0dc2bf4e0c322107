"""The page's JSON on a live fleet: the same figures as the command prints, live events, and refusals for
foreign hosts. page_browser_test.py tests the page in a browser."""

import gzip
import http.client
import json
import re
import socket
import threading
import unittest

import fleet

MAX_WATCHERS = 128


def ask(address, path, method="GET", **headers):
    """Sends one request; returns status, headers and body of the answer."""
    connection = http.client.HTTPConnection(address, timeout=fleet.WAIT_LIMIT_S)
    try:
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


class Watcher:
    """A viewer of /api/live."""

    def __init__(self, address):
        self.connection = http.client.HTTPConnection(address, timeout=fleet.WAIT_LIMIT_S)
        self.connection.request("GET", "/api/live")
        self.socket = self.connection.sock.dup()
        self.reply = self.connection.getresponse()
        self.events = 0

    @property
    def status(self):
        return self.reply.status

    def next(self):
        """The next event's data. Skips comments and other fields."""
        while True:
            line = self.reply.readline()
            if not line:
                return None
            if line.startswith(b"data: "):
                return json.loads(line[len(b"data: "):])

    def read_on(self):
        """Reads from now on in a separate thread: the server drops a viewer that does not read."""
        def run():
            try:
                while self.next():
                    self.events += 1
            except (OSError, ValueError, AttributeError):
                pass  # closed
        threading.Thread(target=run, daemon=True).start()

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)  # ends a read on another thread
        except OSError:
            pass  # the server closed first
        self.socket.close()
        self.reply.close()
        self.connection.close()


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = fleet.Fleet(workers=1)
        cls.addClassCleanup(lambda: cls.fleet.__exit__(None, None, None))
        cls.http = cls.fleet.coordinator.ready["http"]
        jobs = [{"benchmark": "benchmark://mm-v0/mm16_16_16", "actions": ["down", "swap_up"], "tag": {"a": 1}},
                {"benchmark": "benchmark://mm-v0/mm16_16_16", "actions": ["down", "split_4"]},
                {"benchmark": "benchmark://loop_tool-cpu-v0/1024",
                 "actions": ["toggle_mode", "up", "toggle_thread"]},
                {"benchmark": "benchmark://mm-v0/mm16_16_16", "actions": ["up"]}]
        _, cls.outcomes = cls.fleet.submit(jobs)
        cls.batch = int(cls.outcomes[0]["job"].split(".")[0])

    def get(self, path):
        status, _, body = ask(self.http, path)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def overview_when(self, condition, what):
        def look():
            status, _, body = ask(self.http, "/api/overview")
            overview = json.loads(body) if status == 200 else None
            return overview if overview and condition(overview) else None
        return fleet.wait_until(look, what)

    def test_batches_are_those_of_the_command(self):
        told = self.fleet.json("batch", "list")
        shown = self.overview_when(
            lambda overview: [{key: batch[key] for key in told[0]} for batch in overview["batches"]] == told,
            "the page shows the batches of `batch list --json`")
        self.assertEqual(shown["batches"][0]["batch"], told[0]["batch"])
        one = self.get(f"/api/batch/{self.batch}")
        told = self.fleet.json("batch", "show", str(self.batch))
        self.assertEqual({key: one[key] for key in told}, told)
        self.assertEqual([row["job"] for row in one["outcomes"]],
                         [outcome["job"] for outcome in self.outcomes[-len(one["outcomes"]):]])

    def test_jobs_are_those_of_the_command(self):
        for outcome in self.outcomes:
            told = self.fleet.json("job", "show", outcome["job"])
            shown = self.get("/api/job/" + outcome["job"])
            self.assertEqual(shown["outcome"], told["outcome"])
            self.assertEqual(shown["state"], told["state"])
            self.assertEqual(shown["actions"], told["spec"]["actions"])
            self.assertEqual([step["action"] for step in shown["trail"]], told["spec"]["actions"])

    def test_the_tree_and_its_steps_are_those_of_replay(self):
        for outcome in self.outcomes:
            shown = self.get("/api/job/" + outcome["job"])
            command = shown["commands"][0]["command"]
            done = fleet.run(["bash", "-c", command], env=fleet.clean_environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            replayed = json.loads(done.stdout)
            if outcome["status"] == "ok":
                cursor = re.compile(r"  <+ cursor.*")
                self.assertEqual(shown["loop_tree"], cursor.sub("", replayed["loop_tree"]))
            for step, told in zip(shown["trail"], replayed.get("steps", [])):
                self.assertEqual(step["legal"], told["legal"])
                if step["legal"]:
                    self.assertEqual(step["loop_tree"], told["loop_tree"])

    def test_the_commands_print_the_code(self):
        good = next(outcome for outcome in self.outcomes if outcome["status"] == "ok")
        shown = [one["command"].split() for one in self.get("/api/job/" + good["job"])["commands"]]
        formats = []
        for command in shown:
            if command[:3] != ["loopfleet", "job", "code"]:
                continue
            formats.append(command[5])
            told = fleet.run([fleet.program("loopfleet"), *command[1:]],
                             env=fleet.clean_environment(LOOPFLEET_ADDRESS=self.fleet.address))
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertNotEqual(told.stdout, "")
            # The worker ran on this host, so its code is reproduced here.
            self.assertIn("the row's very code", told.stderr)
        self.assertEqual(formats, ["c", "llvm-ir", "asm"])

    def test_code_is_not_served(self):
        status, _, body = ask(self.http, f"/api/job/{self.outcomes[0]['job']}/code?format=c")
        self.assertEqual((status, json.loads(body)["error"]["code"]), (404, "NOT_FOUND"))

    def test_workers_are_those_of_the_command(self):
        def without_age(worker):
            return {key: value for key, value in worker.items()
                    if key not in ("since_heartbeat_ms", "canary_ratio")}

        told = self.fleet.json("worker", "list")
        shown = fleet.wait_until(
            lambda: (workers := self.get("/api/workers")) and
            [without_age(w) for w in workers] == [without_age(w) for w in told] and workers,
            "the page shows the workers of `worker list --json`")
        one = self.get("/api/worker/" + shown[0]["worker"])
        self.assertEqual(without_age({key: one[key] for key in told[0]}), without_age(told[0]))
        self.assertIn("canaries", one)

    def test_the_best_and_the_failures_are_those_of_the_outcomes(self):
        finished = sum(batch["finished"] for batch in self.fleet.json("batch", "list"))
        overview = self.overview_when(
            lambda overview: overview["looked_at"]["outcomes"] == finished, "every outcome was looked at")
        by_benchmark = {}
        codes = set()
        for batch in self.fleet.json("batch", "list"):
            for row in self.get(f"/api/batch/{batch['batch']}?after=0")["outcomes"]:
                if row["status"] == "ok":
                    best = by_benchmark.setdefault(row["benchmark"], 0)
                    by_benchmark[row["benchmark"]] = max(best, row["gflop_per_second"])
                else:
                    codes.add(row["error"]["code"])
        self.assertEqual({row["benchmark"]: row["gflop_per_second"] for row in overview["best"]},
                         by_benchmark)
        self.assertEqual({row["code"] for row in overview["failures"]}, codes)
        self.assertIn("INVALID_ACTION", codes)

    def test_a_submitted_batch_comes_as_an_event(self):
        watcher = Watcher(self.http)
        self.addCleanup(watcher.close)
        self.assertEqual(watcher.status, 200)
        self.assertEqual(watcher.reply.headers["Content-Type"], "text/event-stream")
        newest = self.fleet.json("batch", "list")[0]["batch"]
        self.fleet.submit([{"benchmark": "benchmark://mm-v0/mm16_16_16", "actions": ["down"]}])
        while not any(batch["batch"] > newest for batch in watcher.next()["batches"]):
            pass  # an earlier event

    def test_pages_of_outcomes(self):
        first = self.get(f"/api/batch/{self.batch}?after=0")
        rest = self.get(f"/api/batch/{self.batch}?after={first['outcomes'][0]['sequence']}")
        self.assertEqual(rest["outcomes"], first["outcomes"][1:])
        status, _, body = ask(self.http, f"/api/batch/{self.batch}?after=x")
        self.assertEqual((status, json.loads(body)["error"]["code"]), (400, "MALFORMED"))

    def test_what_is_not_there_is_said(self):
        for path in ("/api/job/9999.0", "/api/job/x", "/api/job/1", "/api/job/1.99999999999", "/api/batch/9999",
                     "/api/batch/../1", "/api/worker/nobody", "/api/", "/api/../../etc/passwd"):
            status, _, body = ask(self.http, path)
            self.assertEqual((path, status), (path, 404))
            self.assertEqual(json.loads(body)["error"]["code"], "NOT_FOUND")

    def test_it_only_reads(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            for path in ("/", "/api/overview", "/api/live"):
                status, headers, _ = ask(self.http, path, method)
                self.assertEqual(status, 405, (method, path))
                self.assertEqual(headers["Allow"], "GET, HEAD")

    def test_every_answer_is_for_our_own_pages_alone(self):
        for path in ("/", "/page.js", "/api/overview", "/api/job/9999.0"):
            _, headers, _ = ask(self.http, path)
            policy = headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'", policy)
            # Of all that is called unsafe, only kernels as WebAssembly may be compiled.
            self.assertIn("script-src 'self' 'wasm-unsafe-eval';", policy)
            self.assertEqual(policy.count("unsafe"), 1)
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["X-Frame-Options"], "DENY")
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")
            self.assertFalse([name for name in headers if name.lower().startswith("access-control-")])

    def test_a_file_is_compressed_where_the_request_accepts_it(self):
        for path in ("/", "/page.js"):
            _, headers, plain = ask(self.http, path, **{"Accept-Encoding": "identity"})
            self.assertNotIn("Content-Encoding", headers)
            _, headers, packed = ask(self.http, path, **{"Accept-Encoding": "br, gzip"})
            self.assertEqual(headers["Content-Encoding"], "gzip")
            self.assertEqual(gzip.decompress(packed), plain)

    def test_only_under_names_of_its_own(self):
        port = self.http.rsplit(":", 1)[1]
        for host in ("127.0.0.1", "localhost", "localhost:" + port, "[::1]:" + port, "10.1.2.3",
                     socket.gethostname()):
            self.assertEqual(ask(self.http, "/api/overview", Host=host)[0], 200, host)
        for host in ("evil.example", "evil.example:" + port, "localhost.evil.example", "127.0.0.1.evil.example",
                     "127.0.0.1:x", ""):
            status, _, body = ask(self.http, "/api/overview", Host=host)
            self.assertIn(status, (400, 421), host)
        # Prometheus may use any host name: metrics reveal nothing about jobs.
        self.assertEqual(ask(self.http, "/metrics", Host="evil.example")[0], 200)

    def test_the_one_watcher_too_many_is_told_so(self):
        watchers = []
        try:
            while len(watchers) < MAX_WATCHERS:
                watcher = Watcher(self.http)
                watchers.append(watcher)
                if watcher.status == 503:  # the server has not yet noticed that another test's viewer is gone
                    watchers.pop().close()
                else:
                    watcher.read_on()
            refused = Watcher(self.http)
            self.assertEqual(refused.status, 503)
            self.assertGreater(int(refused.reply.headers["Retry-After"]), 0)
            self.assertEqual(json.loads(refused.reply.read())["error"]["code"], "BUSY")
            refused.close()
            # All others are served.
            self.assertEqual(ask(self.http, "/metrics")[0], 200)
            self.assertEqual(ask(self.http, "/api/overview")[0], 200)
            fleet.wait_until(lambda: all(watcher.events for watcher in watchers), "events for everybody")
        finally:
            for watcher in watchers:
                watcher.close()

        # A viewer that leaves makes room.
        def is_let_in():
            watcher = Watcher(self.http)
            watcher.close()
            return watcher.status == 200
        fleet.wait_until(is_let_in, "room for another watcher")


class PageAudienceTest(unittest.TestCase):
    def start(self, *arguments, ready="http"):
        directory = fleet.tempfile.mkdtemp(prefix="lf-test-")
        self.addCleanup(fleet.shutil.rmtree, directory)
        daemon = fleet.Daemon(
            [fleet.program("loopfleet-coordinator"), "--listen-clients", f"ipc://{directory}/c",
             "--listen-workers", f"ipc://{directory}/w", "--db", f"{directory}/r.db", *arguments],
            fleet.pathlib.Path(directory) / "log")
        self.addCleanup(daemon.stop)
        return daemon.ready[ready]

    def test_nobody(self):
        address = self.start("--http", "127.0.0.1:0", "--page", "nobody")
        self.assertEqual(ask(address, "/")[0], 404)
        self.assertEqual(ask(address, "/api/overview")[0], 404)
        self.assertEqual(ask(address, "/metrics")[0], 200)

    def test_metrics_have_a_listener_of_their_own_if_asked(self):
        address = self.start("--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", ready="metrics")
        self.assertEqual(ask(address, "/")[0], 404)
        self.assertEqual(ask(address, "/api/overview")[0], 404)
        for path in ("/metrics", "/healthz", "/readyz", "/version"):
            self.assertEqual(ask(address, path)[0], 200)

    def test_a_name_that_was_given(self):
        address = self.start("--http", "127.0.0.1:0", "--page-host", "bench.example")
        self.assertEqual(ask(address, "/", Host="bench.example")[0], 200)
        self.assertEqual(ask(address, "/", Host="BENCH.example:80")[0], 200)
        self.assertEqual(ask(address, "/", Host="other.example")[0], 421)

    def test_this_machine_only(self):
        # An address of this machine outside 127.x stands for another machine.
        own = own_address()
        if own is None:
            self.skipTest("this machine has no address but 127.0.0.1")
        port = self.start("--http", "0.0.0.0:0").rsplit(":", 1)[1]
        self.assertEqual(ask(f"127.0.0.1:{port}", "/api/workers")[0] in (200, 503), True)
        status, _, body = ask(f"{own}:{port}", "/api/workers")
        self.assertEqual((status, json.loads(body)["error"]["code"]), (403, "FORBIDDEN"))
        self.assertEqual(ask(f"{own}:{port}", "/metrics")[0], 200)
        port = self.start("--http", "0.0.0.0:0", "--page", "everybody").rsplit(":", 1)[1]
        self.assertNotEqual(ask(f"{own}:{port}", "/api/workers")[0], 403)

    def test_who_watches_does_not_keep_it_from_ending(self):
        with fleet.Fleet(workers=0) as cluster:
            watchers = [Watcher(cluster.coordinator.ready["http"]) for _ in range(5)]
            self.assertTrue(all(watcher.next() for watcher in watchers))
            self.assertEqual(cluster.coordinator.stop(), 0)
            for watcher in watchers:
                while watcher.next():
                    pass
                watcher.close()

    def test_a_word_that_is_none(self):
        done = fleet.run([fleet.program("loopfleet-coordinator"), "--page", "evrybody"])
        self.assertEqual(done.returncode, 78)
        self.assertIn("machine, everybody or nobody", done.stderr)


def own_address():
    """An IPv4 address of this machine outside 127.x, or None. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


if __name__ == "__main__":
    fleet.main()

"""A coordinator under injected faults, with a stub fleet that works for it, clients that record what they
see, and the check of their histories at the end (history.py)."""

import json
import os
import pathlib
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "integration"))

import fleet  # noqa: E402
import history  # noqa: E402


_seed = None
# Exit signals that show a bug, whatever fault was injected.
CRASHES = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE)


def seed():
    """The seed of the faults. LOOPFLEET_CHAOS_SEED=N repeats them, as far as real processes allow."""
    global _seed
    _seed = os.environ.get("LOOPFLEET_CHAOS_SEED") or str(random.SystemRandom().randrange(1 << 32))
    print(f"LOOPFLEET_CHAOS_SEED={_seed}", flush=True)
    return int(_seed)


def expect_few_failed(counts, most_percent=3):
    """Limits the failures where faults may cost a job all of its three workers. A past bug, by which 41 % of the
    jobs became WORKER_LOST, kept every other promise."""
    if counts["failed"] * 100 > counts["outcomes"] * most_percent:
        raise AssertionError(f"{counts['failed']} of {counts['outcomes']} jobs failed")


class StubFleet:
    """loopfleet-stub-fleet, and the latest epoch of each event that it reported."""

    def __init__(self, coordinator, log, inside=(), **options):
        """`inside`: what the command begins with, such as a network namespace's."""
        argv = [*inside, fleet.program("loopfleet-stub-fleet"), "--coordinator", coordinator]
        for name, value in options.items():
            argv += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
        with open(log, "ab") as stderr:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=stderr, env=fleet.clean_environment(),
                                            preexec_fn=fleet.die_with_parent)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.seen = {"leased": 0, "all_welcomed": 0}
        self.jobs = {"taken": [], "taken_away": []}  # told with tell_leases=True
        self.rest = b""
        self.ran = self.again = None

    def await_epoch(self, event, epoch, limit_s=fleet.WAIT_LIMIT_S):
        """Waits until `event` is reported for this epoch or a later one."""
        end = time.monotonic() + limit_s
        while self.seen[event] < epoch:
            if time.monotonic() > end:
                raise TimeoutError(f"the fleet did not say {event} of epoch {epoch} within {limit_s} s")
            select.select([self.process.stdout], [], [], 0.5)
            self.listen()

    def listen(self):
        """Reads the events since the last call."""
        if self.process.poll() is not None:
            raise RuntimeError(f"the stub fleet ended with {self.process.returncode}")
        self.rest += self.process.stdout.read() or b""
        *lines, self.rest = self.rest.split(b"\n")
        for said in map(json.loads, lines):
            if "job" in said:
                self.jobs[said["event"]].append(said["job"])
            else:
                self.seen[said["event"]] = max(self.seen.get(said["event"], 0), said["epoch"])

    def stop(self):
        """Ends the fleet. Sets `ran`, the number of jobs run, and `again`, the number of repeated runs."""
        self.process.terminate()
        self.process.wait(fleet.STOP_LIMIT_S)
        self.rest += self.process.stdout.read() or b""
        self.process.stdout.close()
        for said in map(json.loads, self.rest.splitlines()):
            if said["event"] == "ended":
                self.ran, self.again = said["jobs"], said["again"]


class Arena:
    """`with Arena() as arena:`, inject faults, then call `arena.judge()`."""

    def __init__(self, transport="ipc", coordinator_program="loopfleet-coordinator", stubs=True,
                 environment=None, client_options=None, coordinator_arguments=(), keyed=False,
                 **stub_options):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="lf-chaos-"))
        self.database = self.dir / "results.db"
        self.program = coordinator_program
        self.coordinator_arguments = coordinator_arguments
        self.environment = environment or {}
        self.keys = fleet.make_keys(self.dir, client="client", worker="worker") if keyed else None  # recording clients have none
        if transport == "ipc":
            self.clients, self.workers = f"ipc://{self.dir}/clients", f"ipc://{self.dir}/workers"
        else:
            self.clients = self.workers = "tcp://127.0.0.1:0"
        self.coordinator = None
        self.epoch = 0
        self.client_options = client_options or {}
        self.client_count = 0
        self.running_clients = []
        self.histories = []
        self.read_until = {}  # history -> offset read so far, and the pages up to there
        self.stubs = None  # the fleet started last
        self.fleets = []
        try:
            self.start_coordinator()
            if stubs:
                self.start_stubs(**stub_options)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        processes = [*self.running_clients, *(stubs.process for stubs in self.fleets),
                     self.coordinator and self.coordinator.process]
        for process in processes:
            if process and process.poll() is None:
                process.kill()
                process.wait()
            for pipe in process and (process.stdin, process.stdout) or ():
                if pipe:
                    pipe.close()
        if kind is not None:
            kept = self.keep(kind)
            print(f"what is left of it: {kept}", file=sys.stderr)
            for log in sorted(kept.glob("arena/*.log")):
                print(f"---- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
        else:
            subprocess.run(["rm", "-rf", str(self.dir)], check=True)

    def keep(self, failure):
        """Keeps histories, database, logs and the seed. A broken promise or a crash goes where tests/run.sh
        looks: it counts even if a second run of the test passes."""
        crashed = self.coordinator and self.coordinator.process.poll() in CRASHES
        if crashed or issubclass(failure, history.Violation):
            within = fleet.broken_promises()
            within.mkdir(exist_ok=True)
        else:
            within = None  # the default temporary folder
        kept = pathlib.Path(tempfile.mkdtemp(prefix="lf-chaos-failed-", dir=within))
        shutil.move(self.dir, kept / "arena")
        (kept / "seed").write_text(f"LOOPFLEET_CHAOS_SEED={_seed}\n", encoding="utf-8")
        return kept

    def client_environment(self):
        keys = {"LOOPFLEET_KEYS": self.keys["client"]} if self.keys else {}
        return fleet.clean_environment(LOOPFLEET_ADDRESS=self.clients, **keys)

    # -- the coordinator

    def start_coordinator(self, environment=None, descriptors=None, may_die=False):
        """Starts the coordinator, always on the same endpoints and database. If it dies before it is ready, as
        failpoints make it, raises RuntimeError unless `may_die`."""
        limits = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
                  ) if descriptors else None
        self.epoch += 1
        self.coordinator = fleet.Daemon(
            [fleet.program(self.program), "--listen-clients", self.clients, "--listen-workers",
             self.workers, "--http", "127.0.0.1:0", "--db", str(self.database), "--log-level", "info",
             *(["--keys", self.keys["coordinator"]] if self.keys else []), *self.coordinator_arguments],
            self.dir / "coordinator.log", environment={**self.environment, **(environment or {})},
            before_exec=limits, may_die=may_die)
        if self.coordinator.ready is None:
            return
        self.clients = self.coordinator.ready["clients"]
        self.workers = self.coordinator.ready["workers"]

    def kill_coordinator(self):
        self.coordinator.kill()

    # -- workers and clients

    def start_stubs(self, address=None, **options):
        if self.keys:
            options["keys"] = self.keys["worker"]
        self.stubs = StubFleet(address or self.workers, self.dir / "stubs.log", **options)
        self.fleets.append(self.stubs)
        return self.stubs

    def await_dispatching(self, limit_s=fleet.WAIT_LIMIT_S):
        """Waits until a worker has a lease from the running coordinator."""
        self.stubs.await_epoch("leased", self.epoch, limit_s)

    def start_client(self, address=None, **options):
        """Starts a recording client. It submits until its standard input is closed."""
        self.client_count += 1
        name = f"c{self.client_count}"
        path = self.dir / f"{name}.history"
        path.touch()
        self.histories.append(path)
        argv = [fleet.program("loopfleet-recording-client"), "--coordinator", address or self.clients,
                "--history", str(path), "--name", name, "--seed", str(self.client_count)]
        for option, value in (self.client_options | options).items():
            argv += ["--" + option.replace("_", "-"), *([] if value is True else [str(value)])]
        with open(self.dir / f"{name}.log", "ab") as stderr:
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=stderr,
                                       env=fleet.clean_environment(), preexec_fn=fleet.die_with_parent)
        self.running_clients.append(process)
        return process

    def outcomes_seen(self):
        """The number of outcome pages that clients have recorded so far, as a measure of progress."""
        for path in self.histories:
            offset, pages = self.read_until.get(path, (0, 0))
            with open(path, "rb") as history:
                history.seek(offset)
                whole, newline, _ = history.read().rpartition(b"\n")
            self.read_until[path] = (offset + len(whole) + len(newline),
                                     pages + whole.count(b'"op":"outcomes"'))
        return sum(pages for _, pages in self.read_until.values())

    def await_progress(self, pages=1):
        """Waits until clients have recorded `pages` more pages."""
        before = self.outcomes_seen()
        fleet.wait_until(lambda: self.outcomes_seen() >= before + pages, f"{pages} more pages of outcomes")

    def stop_clients(self):
        """Each client ends once all its jobs have finished: I6, now that the faults have stopped."""
        for process in self.running_clients:
            if process.stdin:
                process.stdin.close()
        for process in self.running_clients:
            if process.returncode is not None:
                continue  # killed on purpose
            if process.wait(fleet.COMMAND_LIMIT_S) != 0:
                raise history.Violation(f"a client ended with {process.returncode}")

    def kill_client(self, process):
        process.kill()
        process.wait()
        process.stdin.close()

    def json(self, *arguments):
        """What `loopfleet ARGUMENTS --json` prints."""
        done = subprocess.run([fleet.program("loopfleet"), *arguments, "--json"], text=True, check=True,
                              capture_output=True, timeout=fleet.COMMAND_LIMIT_S,
                              env=self.client_environment())
        return json.loads(done.stdout)

    # -- the end

    def judge(self, may_fail=()):
        """After the faults: everything accepted finishes, an audit client reads every batch, and histories and
        database are checked against the promises. Returns the counts."""
        self.stop_clients()
        audit = self.dir / "audit.history"
        subprocess.run([fleet.program("loopfleet-recording-client"), "--coordinator", self.clients,
                        "--history", str(audit), "--name", "audit", "--audit",
                        *("--" + option for option, value in self.client_options.items() if value is True)],
                       check=True,
                       timeout=fleet.COMMAND_LIMIT_S, env=fleet.clean_environment())
        for stubs in self.fleets:
            if stubs.process.poll() is None:
                stubs.stop()
        code = self.coordinator.stop()
        if code != 0:
            raise history.Violation(f"the coordinator ended with {code}")
        counts = history.check([*self.histories, audit], self.database, may_fail)
        done = subprocess.run([fleet.program("loopfleet"), "db", "check", str(self.database)], text=True,
                              capture_output=True, env=fleet.clean_environment(), check=False)
        if done.returncode != 0:
            raise history.Violation(f"db check: {done.stdout}{done.stderr}")
        return counts

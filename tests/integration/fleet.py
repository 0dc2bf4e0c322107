"""A fleet of real processes on this machine, for tests: a coordinator and workers in a private directory.
The end of the `with` block stops them. Needs only Python's standard library."""

import argparse
import ctypes
import errno
import json
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

# Reached only if something is wrong, even on a much slower machine.
READY_LIMIT_S = 60
STOP_LIMIT_S = 60
COMMAND_LIMIT_S = 300
WAIT_LIMIT_S = 60
# How often a command that measures is repeated while the host is too busy for a figure. Commands that only
# read give the same answer each time and are not repeated.
MEASURING_TRIES = 30
MEASURING_COMMANDS = {"eval", "submit"}
# The product's limit of 2 s is for idle hosts: a compiler that gets no processor would fail its job.
PATIENCE = {"LOOPFLEET_WORKER_COMPILE_LIMIT_MS": "60000"}
PR_SET_PDEATHSIG = 1

_bin_dir = None
_tests_dir = None


def use_programs(bin_dir, tests_dir):
    """Sets the folders of the programs that this module runs."""
    global _bin_dir, _tests_dir
    _bin_dir, _tests_dir = pathlib.Path(bin_dir), pathlib.Path(tests_dir)


def broken_promises():
    """The folder beside the programs where tests leave the evidence of broken promises."""
    return _bin_dir.parent / "broken_promises"


def main():
    """The main program of each test file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, help="where loopfleet and its daemons are")
    parser.add_argument("--tests", required=True, help="where test-only programs are")
    own, rest = parser.parse_known_args()
    use_programs(own.bin, own.tests)
    unittest.main(argv=[sys.argv[0], "-v", *rest])


def program(name):
    """The path of one of our executables."""
    for folder in (_bin_dir, _tests_dir):
        if (folder / name).exists():
            return str(folder / name)
    raise FileNotFoundError(f"{name} is neither in {_bin_dir} nor in {_tests_dir}: build it first")


def clean_environment(**changes):
    """This process's environment without exported LOOPFLEET_ variables, plus `changes`."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LOOPFLEET_")}
    environment["PATH"] = f"{_bin_dir}:{environment['PATH']}"
    environment.update(changes)
    return environment


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(condition, what, limit_s=WAIT_LIMIT_S):
    """Waits until a condition is true; returns its value."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {limit_s} s")
        time.sleep(0.01)


def free_port():
    """A free port of loopback, below those that the kernel gives to connections."""
    while True:
        port = random.randrange(20_000, 32_000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


def alive(pid):
    """Whether a process runs; a zombie does not count."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def processes_mentioning(text):
    """The pids of running processes whose command line contains `text`."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if text in line and alive(int(entry.name)):
            found.append(int(entry.name))
    return found


def run(argv, timeout=COMMAND_LIMIT_S, again_if_unstable=True, **options):
    """Runs a command. Repeats a command that measures while it gives UNSTABLE_TIMING, so that a busy host does
    not fail a test."""
    again_if_unstable = again_if_unstable and not MEASURING_COMMANDS.isdisjoint(argv)
    for _ in range(MEASURING_TRIES):
        done = subprocess.run(argv, text=True, capture_output=True, timeout=timeout,
                              preexec_fn=die_with_parent, **options)
        if not again_if_unstable or "UNSTABLE_TIMING" not in done.stdout + done.stderr:
            return done
    raise AssertionError(f"{argv}: the host is too busy for any figure:\n{done.stdout}{done.stderr}")


class Daemon:
    """One started and ready daemon, and the content of its ready line."""

    def __init__(self, argv, log, environment=None, before_exec=None, may_die=False):
        self.log = log
        self.is_ended = False  # as the test wished

        def prepare():
            die_with_parent()
            if before_exec:
                before_exec()

        with open(log, "ab") as stderr:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
                env=clean_environment(**PATIENCE | (environment or {})), preexec_fn=prepare)
        readable, _, _ = select.select([self.process.stdout], [], [], READY_LIMIT_S)
        line = self.process.stdout.readline() if readable else b""
        if not line and may_die and self.process.wait(READY_LIMIT_S) is not None:
            self.ready = None
            self.is_ended = True
            return
        if not line:
            self.kill()
            raise RuntimeError(f"{argv[0]} was not ready; its log:\n{log.read_text()}")
        self.ready = json.loads(line)

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        self.is_ended = True
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        """Stops the daemon with SIGTERM. Returns the exit code."""
        self.is_ended = True
        self.process.terminate()
        try:
            code = self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise TimeoutError(f"{self.log.name}: SIGTERM did not end it; its log:\n"
                               f"{self.log.read_text()}") from None
        self.process.stdout.close()
        return code


class Fleet:
    def __init__(self, workers=1, worker_program="loopfleet-worker", worker_arguments=(),
                 transport="ipc", coordinator_arguments=()):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="lf-test-"))
        self.database = self.dir / "results.db"
        self.transport = transport
        self.worker_program = worker_program
        self.worker_arguments = list(worker_arguments)
        self.coordinator = None
        self.workers = []
        try:
            self.start_coordinator(*coordinator_arguments)
            for _ in range(workers):
                self.start_worker()
            self.await_workers(workers)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        failed = []
        for daemon in [*self.workers, self.coordinator]:
            if daemon is None or daemon.is_ended:
                continue
            if kind is not None:
                daemon.kill()
            elif (code := daemon.stop()) != 0:
                failed.append(f"{daemon.log.name}: it ended with {code}")
        if kind is not None or failed:
            for log in sorted(self.dir.glob("*.log")):
                print(f"---- {log.name}\n{log.read_text()[-4000:]}", file=sys.stderr)
        shutil.rmtree(self.dir)
        if failed:
            raise AssertionError("; ".join(failed))

    def start_coordinator(self, *arguments):
        """Starts the coordinator, after a kill on the same endpoints and database."""
        if self.coordinator is not None:
            clients, workers = self.address, self.worker_address
        elif self.transport == "ipc":
            clients, workers = f"ipc://{self.dir}/clients", f"ipc://{self.dir}/workers"
        else:
            clients = workers = "tcp://127.0.0.1:0"
        self.coordinator = Daemon(
            [program("loopfleet-coordinator"), "--listen-clients", clients, "--listen-workers",
             workers, "--http", "127.0.0.1:0", "--db", str(self.database),
             *arguments],
            self.dir / "coordinator.log")
        self.address = self.coordinator.ready["clients"]
        self.worker_address = self.coordinator.ready["workers"]

    def start_worker(self, worker_program=None):
        worker = Daemon(
            [program(worker_program or self.worker_program), "--coordinator", self.worker_address,
             "--http", "127.0.0.1:0", *self.worker_arguments],
            self.dir / f"worker-{len(self.workers) + 1}.log")
        self.workers.append(worker)
        return worker

    def await_workers(self, count):
        wait_until(lambda: sum(w["state"] == "ready" for w in self.json("worker", "list")) >= count,
                   f"{count} workers registered")

    def popen(self, *arguments, **options):
        return subprocess.Popen([program("loopfleet"), *arguments], text=True,
                                env=clean_environment(LOOPFLEET_ADDRESS=self.address),
                                preexec_fn=die_with_parent, **options)

    def command(self, *arguments, stdin="", **options):
        """Runs `loopfleet ARGUMENTS` on this fleet; repeats it if it measures and a job got no figure."""
        return run([program("loopfleet"), *arguments], input=stdin,
                   env=clean_environment(LOOPFLEET_ADDRESS=self.address), **options)

    def json(self, *arguments, **options):
        done = self.command(*arguments, "--json", **options)
        if not done.stdout:
            raise AssertionError(f"loopfleet {arguments} printed nothing; it said: {done.stderr}")
        return json.loads(done.stdout)

    def submit(self, jobs, *arguments, **options):
        """Submits, waits, and returns the outcomes in the order of arrival. Repeats all of it if a job got no
        figure; the store then answers the jobs already measured, unless they are `fresh`."""
        done = self.command("submit", "-", "--wait", "--jsonl", *arguments, stdin=lines(jobs),
                            **options)
        return done, [json.loads(line) for line in done.stdout.splitlines()]


def good_enough_to_share(evaluate):
    """Repeats an evaluation until its figure may answer equal jobs; one of a busy host, grade D, does not.
    Returns the outcome."""
    for _ in range(MEASURING_TRIES):
        outcome, = evaluate()
        if outcome["status"] == "ok" and outcome["grade"] < "D":
            return outcome
    raise AssertionError(f"the host is too busy for a good figure: {outcome}")


def is_unstable(outcome):
    """Whether a right kernel got no figure because the host was too busy for one."""
    return outcome["status"] == "failed" and outcome["error"]["code"] == "UNSTABLE_TIMING"


def lines(jobs):
    """Jobs (or lines, unchanged) as the text that `submit` reads."""
    return "".join((job if isinstance(job, str) else json.dumps(job)) + "\n" for job in jobs)


def make_keys(folder, **roles):
    """Keys of a coordinator, and of peers that it lets in, whose `roles` these are by name: the folder of each by its
    name, and of "coordinator"."""
    keys = {name: str(pathlib.Path(folder, f"{name}-keys")) for name in ("coordinator", *roles)}
    for name, out in keys.items():
        known = ["--name", name, "--authorize", keys["coordinator"]] if name in roles else []
        subprocess.run([program("loopfleet"), "keygen", "--role", roles.get(name, "coordinator"), "--out", out, *known],
                       check=True, capture_output=True, env=clean_environment())
    return keys


def small_jobs(count):
    """`count` jobs with different trees."""
    jobs = []
    for i in range(count):
        m, n, k = 4 + i % 10, 4 + i // 10 % 10, 4 + i // 100
        jobs.append({"benchmark": f"benchmark://mm-v0/mm{m}_{n}_{k}", "actions": [], "tag": i})
    return jobs

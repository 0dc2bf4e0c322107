"""`loopfleet local`: a whole cluster for one command, which leaves nothing behind."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import fleet
from fleet import alive, clean_environment, processes_mentioning, program, wait_until

ADD = "benchmark://loop_tool-cpu-v0/1024"
# The walk of the documents.
WALK = "toggle_thread,toggle_mode,up,toggle_thread,toggle_mode,up,up"


class LocalTest(unittest.TestCase):
    def setUp(self):
        # Everything that `local` creates lies in here, so that leftovers show.
        self.scratch = tempfile.TemporaryDirectory(prefix="lf-l-")
        self.tmp = pathlib.Path(self.scratch.name) / "tmp"
        self.tmp.mkdir()
        self.database = pathlib.Path(self.scratch.name) / "x.db"
        self.environment = clean_environment(TMPDIR=str(self.tmp))

    def tearDown(self):
        self.scratch.cleanup()

    def local(self, *arguments):
        return fleet.run([program("loopfleet"), "local", *arguments], env=self.environment)

    def popen(self, *arguments):
        return subprocess.Popen([program("loopfleet"), "local", *arguments], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment,
                                preexec_fn=fleet.die_with_parent)

    def check_nothing_is_left(self):
        wait_until(lambda: not list(self.tmp.iterdir()), "the private directory is gone")
        wait_until(lambda: not processes_mentioning(str(self.tmp)), "all daemons have ended")

    def test_the_walk_of_the_documents(self):
        arguments = ("--db", str(self.database), "--", "loopfleet", "eval", ADD, "--actions", WALK)
        first = self.local(*arguments)
        self.assertEqual(first.returncode, 0, first.stderr)
        tree = first.stdout.splitlines()
        self.assertIn("for a in 341 r 1 : L0", [line.rstrip() for line in tree])
        (threaded,) = [line for line in tree if line.startswith(" for a' in 3 : L1")]
        self.assertTrue(threaded.rstrip().endswith("[thread]"), threaded)
        self.assertRegex(first.stdout, r"[\d.]+ GFLOP/s, spread [\d.e-]+ %")
        self.assertIn("measured by", first.stdout)
        self.check_nothing_is_left()
        fleet.good_enough_to_share(lambda: json.loads(self.local(*arguments, "--json").stdout))
        second = self.local(*arguments)
        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertIn("answered from the store", second.stdout)
        self.check_nothing_is_left()

    def test_one_processor_limits_the_grade(self):
        alone = ("taskset", "-c", str(max(os.sched_getaffinity(0))), program("loopfleet"))
        done = fleet.run([*alone, "local", "--", "loopfleet", "eval", ADD, "--json"],
                         env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        (outcome,) = json.loads(done.stdout)
        self.assertRegex(outcome["isolation"], "; no better than B: cores")
        self.assertGreaterEqual(outcome["grade"], "B")
        doctor = fleet.run([*alone, "doctor"], env=self.environment)
        self.assertRegex(doctor.stdout, r"(?m)^PROBLEM +cores +there is one processor to use$")

    def test_gives_the_commands_exit_code(self):
        for shell, code in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)):
            with self.subTest(shell=shell):
                self.assertEqual(self.local("--", "sh", "-c", shell).returncode, code)
        self.assertEqual(self.local("--", "/no/such/program").returncode, 127)
        self.check_nothing_is_left()

    def test_tells_the_command_where_everything_is(self):
        done = self.local("--workers", "2", "--", "sh", "-c",
                          "env | grep LOOPFLEET_; loopfleet worker list --json; "
                          "stat -c %a $(dirname $LOOPFLEET_DB)")
        self.assertEqual(done.returncode, 0, done.stderr)
        *settings, workers, mode = done.stdout.splitlines()
        names = {line.split("=")[0] for line in settings}
        self.assertEqual(names, {"LOOPFLEET_ADDRESS", "LOOPFLEET_WORKER_ADDRESS", "LOOPFLEET_HTTP",
                                 "LOOPFLEET_DB"})
        self.assertEqual([worker["state"] for worker in json.loads(workers)], ["ready"] * 2)
        self.assertEqual(mode, "700")

    def test_a_private_database_is_gone_and_a_named_one_stays(self):
        self.assertEqual(self.local("--", "loopfleet", "eval", ADD).returncode, 0)
        self.assertEqual(
            self.local("--db", str(self.database), "--", "loopfleet", "eval", ADD).returncode, 0)
        self.assertTrue(self.database.exists())
        self.check_nothing_is_left()

    def start_in_foreground(self, *arguments):
        process = self.popen("--json", *arguments)
        endpoints = json.loads(process.stdout.readline())
        return process, endpoints

    def finish(self, process):
        code = process.wait(fleet.COMMAND_LIMIT_S)
        said = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        return code, said

    def test_runs_in_the_foreground_until_interrupted(self):
        process, endpoints = self.start_in_foreground()
        done = fleet.run(
            [program("loopfleet"), "eval", ADD, "--json", "--address", endpoints["address"]],
            env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process)[0], 130)
        self.check_nothing_is_left()

    def test_forwards_signals_to_the_command(self):
        process = self.popen("--", "sh", "-c", "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done")
        self.assertEqual(process.stdout.readline(), "up\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process)[0], 9)
        self.check_nothing_is_left()

    def test_a_signal_between_the_start_and_the_wait_for_signals_is_heard(self):
        for arguments in ((), ("--", "echo", "ran")):
            with self.subTest(arguments=arguments):
                reached = pathlib.Path(self.scratch.name) / f"reached-{len(arguments)}"
                stays = pathlib.Path(self.scratch.name) / f"stays-{len(arguments)}"
                stays.touch()
                process = subprocess.Popen(
                    [program("loopfleet-faulty"), "local", *arguments], text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=fleet.die_with_parent,
                    env=dict(self.environment, LOOPFLEET_FAILPOINT=f"local.started:1:pause-while={stays}",
                             LOOPFLEET_FAILPOINT_LOG=str(reached)))
                wait_until(lambda: reached.exists() and reached.read_text() == "local.started\n",
                           "the cluster has started")
                process.send_signal(signal.SIGTERM)
                stays.unlink()
                out, _ = process.communicate(timeout=fleet.COMMAND_LIMIT_S)
                self.assertEqual((process.returncode, out), (130, ""))
                self.check_nothing_is_left()

    def test_kill_9_leaves_nothing_behind(self):
        process = self.popen("--workers", "2", "--", "sleep", "1000")
        wait_until(lambda: len(processes_mentioning(str(self.tmp))) >= 3, "three daemons run")
        children = wait_until(lambda: [pid for pid in children_of(process.pid)
                                       if "sleep" in command_of(pid)], "the command runs")
        workers = [pid for pid in processes_mentioning(str(self.tmp)) if "worker" in command_of(pid)]
        grandchildren = [child for worker in workers for child in children_of(worker)]
        process.kill()
        self.finish(process)
        self.check_nothing_is_left()
        for pid in [*children, *grandchildren]:
            wait_until(lambda pid=pid: not alive(pid), f"process {pid} has ended")

    def test_says_loudly_that_a_daemon_died(self):
        process, endpoints = self.start_in_foreground()
        os.kill(endpoints["coordinator_pid"], signal.SIGKILL)
        code, said = self.finish(process)
        self.assertEqual(code, 69)
        self.assertIn("the coordinator", said)
        self.assertIn("was ended by signal 9", said)
        self.check_nothing_is_left()

    def test_a_daemon_that_cannot_start_is_shown_with_its_log(self):
        done = self.local("--db", "/no/such/folder/x.db", "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("coordinator", done.stderr)
        self.assertIn("/no/such/folder", done.stderr)
        self.check_nothing_is_left()

    def test_a_long_temporary_path_is_no_obstacle(self):
        self.environment["TMPDIR"] = str(self.tmp / ("x" * 90))
        self.assertEqual(self.local("--", "true").returncode, 0)


def children_of(pid):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(entry.name))
    return found


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


if __name__ == "__main__":
    fleet.main()

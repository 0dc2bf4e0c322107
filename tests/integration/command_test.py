"""The command: its verbs, its JSON, its exit codes."""

import json
import pathlib
import re
import signal
import statistics
import subprocess
import tempfile
import unittest

import fleet
from fleet import Fleet, clean_environment, program, small_jobs

ADD = "benchmark://loop_tool-cpu-v0/1024"
MATMUL = "benchmark://mm-v0/mm16_16_16"


class CommandTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Fleet(workers=1)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def test_eval_prints_an_array_with_every_documented_field(self):
        done = self.cluster.command("eval", MATMUL, "--actions", "down,swap_up", "--json", "--fresh")
        self.assertEqual(done.returncode, 0, done.stderr)
        (outcome,) = json.loads(done.stdout)
        self.assertEqual(outcome["benchmark"], MATMUL)
        self.assertEqual(outcome["actions"], ["down", "swap_up"])
        self.assertEqual(outcome["status"], "ok")
        self.assertEqual(outcome["source"], "measured")
        self.assertEqual(outcome["flop_count"], 2 * 16**3)
        self.assertEqual(len(outcome["tree_key"]), 32)
        self.assertEqual(len(outcome["samples_ns"]), len(outcome["sample_flags"]))
        self.assertGreater(len(outcome["samples_ns"]), 1)
        self.assertLessEqual(outcome["elapsed_min_ns"], outcome["elapsed_ns"])
        self.assertLessEqual(outcome["elapsed_low_ns"], outcome["elapsed_ns"])
        self.assertLessEqual(outcome["elapsed_ns"], outcome["elapsed_high_ns"])
        self.assertIn(outcome["grade"], "ABCD")  # D: on a busy host
        self.assertEqual(outcome["threads"], 1)
        self.assertEqual(outcome["cache"], "warm")
        self.assertTrue(outcome["isolation"])
        self.assertLessEqual({"class", "model", "isa", "clock_mhz", "microcode"},
                             set(outcome["hardware"]))
        self.assertLessEqual({"llvm", "tier", "revision", "code_hash"}, set(outcome["compiler"]))
        self.assertEqual(list(outcome["stages_ns"]),
                         ["queue", "replay", "compile", "verify", "measure", "store"])
        for stage in ("compile", "verify", "measure"):
            self.assertGreater(outcome["stages_ns"][stage], 0, stage)
        for field in ("attempts", "worker", "scratch_bytes", "spread"):
            self.assertIn(field, outcome)

    def test_eval_refines_a_first_figure(self):
        done = self.cluster.command("eval", MATMUL, "--actions", "down", "--refine", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertIn(len(figures), (1, 2, 3))
        if figures[0]["spread"] > 0.003:
            self.assertGreater(len(figures), 1, "it was not good enough")
        self.assertEqual(len({outcome["tree_key"] for outcome in figures}), 1)
        # Each step measures until its precision or the end of its time, on a host however busy.
        for outcome in figures:
            self.assertEqual(outcome["status"], "ok")
        people = self.cluster.command("eval", MATMUL, "--refine", "--fresh")
        self.assertEqual(people.stdout.count("for m"), 1, "the tree once")
        wrong = self.cluster.command("eval", MATMUL, "--actions", "fly", "--refine", "--json")
        self.assertEqual(wrong.returncode, 1)
        self.assertEqual(len(wrong.stdout.splitlines()), 1, "a failure is not tried again")
        both = self.cluster.command("eval", MATMUL, "--refine", "--precision", "0.01")
        self.assertEqual(both.returncode, 2)

    def test_eval_for_people(self):
        done = self.cluster.command("eval", ADD, "--fresh")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("for a in 1024 : L0", done.stdout)
        self.assertIn("GFLOP/s, spread", done.stdout)
        self.assertRegex(done.stdout, r"job \d+\.0: measured by")
        fleet.good_enough_to_share(lambda: self.cluster.json("eval", ADD))
        again = self.cluster.command("eval", ADD)
        self.assertIn("answered from the store", again.stdout)

    def test_eval_takes_a_program_as_text(self):
        ir = self.cluster.json("benchmark", "show", MATMUL)["ir"]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(ir)
            file.flush()
            outcome = fleet.good_enough_to_share(lambda: self.cluster.json("eval", "--ir", file.name))
        named = self.cluster.json("eval", MATMUL)
        self.assertEqual(outcome["tree_key"], named[0]["tree_key"])
        self.assertEqual(named[0]["source"], "stored", "equal programs share their results")

    def test_submit_reads_many_messages_into_one_batch(self):
        # More jobs than one message holds; most are answered from the store or by equal jobs.
        jobs = [{"benchmark": f"benchmark://mm-v0/mm4_4_{4 + i % 3}", "actions": [], "tag": i}
                for i in range(9000)]
        done, outcomes = self.cluster.submit(jobs)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(o["index"] for o in outcomes), list(range(9000)))
        self.assertTrue(all(o["tag"] == o["index"] for o in outcomes))
        self.assertEqual(len({o["job"].split(".")[0] for o in outcomes}), 1)

    def test_submit_without_waiting_then_wait_and_look(self):
        for _ in range(fleet.MEASURING_TRIES):
            done = self.cluster.command("submit", "-", "--json", stdin=fleet.lines(small_jobs(5)))
            self.assertEqual(done.returncode, 0, done.stderr)
            batch = json.loads(done.stdout)["batch"]
            self.assertIn(f"batch {batch}", done.stderr)
            waited = self.cluster.popen("batch", "wait", "last", "--jsonl", stdout=subprocess.PIPE)
            said, _ = waited.communicate(timeout=fleet.COMMAND_LIMIT_S)
            if "UNSTABLE_TIMING" not in said:  # a busy host may give a job no figure
                break
        self.assertEqual(waited.returncode, 0, said)
        outcomes = [json.loads(line) for line in said.splitlines()]
        self.assertEqual(sorted(outcome["index"] for outcome in outcomes), list(range(5)))
        shown = self.cluster.json("batch", "show", str(batch))
        self.assertEqual((shown["state"], shown["jobs"], shown["finished"]), ("finished", 5, 5))
        self.assertIn(batch, [row["batch"] for row in self.cluster.json("batch", "list")])
        report = self.cluster.json("batch", "show", str(batch), "--best", "1")["report"]
        self.assertEqual((report["ok"], report["failed"], sum(report["grades"].values())), (5, {}, 5))
        quickest = {}
        for outcome in outcomes:
            if outcome["grade"] == "D":
                continue  # does not win
            known = quickest.setdefault(outcome["benchmark"], outcome)
            quickest[outcome["benchmark"]] = min(known, outcome, key=lambda one: one["elapsed_ns"])
        self.assertEqual({one["job"] for one in report["best"]}, {one["job"] for one in quickest.values()})
        job = self.cluster.json("job", "show", f"{batch}.3")
        self.assertEqual(job["state"], "finished")
        self.assertEqual(job["spec"]["benchmark"], small_jobs(5)[3]["benchmark"])
        self.assertEqual(job["outcome"]["status"], "ok")
        self.assertIn("GFLOP/s", self.cluster.command("job", "show", f"{batch}.3").stdout)

    def test_job_show_prints_a_line_to_submit_again(self):
        job = {"benchmark": "benchmark://mm-v0/mm4_4_4", "actions": [], "tag": "\u2764\ufe0f\u009b"}
        batch = self.cluster.json("submit", "-", stdin=fleet.lines([job]))["batch"]
        shown = self.cluster.command("job", "show", f"{batch}.0").stdout.splitlines()[1]
        self.assertTrue(shown.isascii(), shown)
        self.assertEqual(json.loads(shown)["tag"], job["tag"])

    def test_winners_are_measured_again(self):
        jobs = fleet.lines({"benchmark": f"benchmark://mm-v0/mm{size}_16_16", "actions": actions}
                           for size in (16, 24) for actions in ([], ["split_4"], ["swap_down"], ["down", "swap_down"]))
        said = self.cluster.json("submit", "-", "--confirm", "2", stdin=jobs)
        self.assertEqual(said["ok"], 8)
        first = self.cluster.command("batch", "wait", str(said["batch"]), "--jsonl").stdout.splitlines()
        kernels = {(one["benchmark"], one["compiler"]["code_hash"]) for one in map(json.loads, first)
                   if one["grade"] < "D"}  # D: on a busy host
        of_program = [benchmark for benchmark, _ in sorted(kernels)]
        self.assertEqual([one["benchmark"] for one in said["confirmed"]],
                         [benchmark for benchmark in sorted(set(of_program))
                          for _ in range(min(2, of_program.count(benchmark)))])
        for one in said["confirmed"]:
            self.assertEqual(one["confirmed_ns"], statistics.median(one["remeasured_ns"]))
            self.assertIsInstance(one["disturbed"], bool)
        count = 3 * len(said["confirmed"])
        batch = next(row["batch"] for row in self.cluster.json("batch", "list")
                     if row["batch"] > said["batch"] and row["jobs"] == count)
        again = self.cluster.command("batch", "wait", str(batch), "--jsonl").stdout.splitlines()
        self.assertEqual([json.loads(line)["source"] for line in again], ["measured"] * count, "not looked up")
        table = self.cluster.command("submit", "-", "--confirm", "1", stdin=jobs)
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertRegex(table.stdout, r"BENCHMARK +GFLOP/S AT FIRST +CONFIRMED +TOO GOOD BY +ACTIONS")
        self.assertEqual(len(table.stdout.splitlines()), 3)
        nothing = self.cluster.command("submit", "-", "--confirm", "1", stdin="")
        self.assertEqual((nothing.returncode, nothing.stdout), (0, ""))
        self.assertIn("nothing to confirm", nothing.stderr)

    def test_the_code_of_a_row_can_be_read_and_rebuilt(self):
        actions = ["split_4", "down", "swap_down"]
        done, (outcome,) = self.cluster.submit(
            [{"benchmark": MATMUL, "actions": actions, "fresh": True, "tag": "code"}])
        self.assertEqual(done.returncode, 0, done.stderr)
        job = outcome["job"]
        facts = self.cluster.command("job", "code", job, "--format", "facts")
        self.assertEqual(facts.returncode, 0, facts.stderr)
        self.assertEqual(json.loads(facts.stdout)["code_hash"], outcome["compiler"]["code_hash"])
        self.assertEqual(json.loads(facts.stdout)["tree_key"], outcome["tree_key"])
        self.assertIn("the row's very code", facts.stderr)
        other = subprocess.run(
            [program("loopfleet-worker"), "emit", "--format", "facts", "--benchmark", MATMUL,
             "--code-hash", outcome["compiler"]["code_hash"]],
            text=True, capture_output=True, env=clean_environment(), timeout=fleet.COMMAND_LIMIT_S)
        self.assertIn("not the row's", other.stderr, "a tree without the actions is other code")

        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "kernel.c"
            source.write_text(self.cluster.command("job", "code", job).stdout)
            built = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic",
                                    "-c", "-o", "/dev/null", source],
                                   text=True, capture_output=True, timeout=fleet.COMMAND_LIMIT_S)
            self.assertEqual(built.returncode, 0, built.stderr)
        self.assertIn("define void @loopfleet_kernel",
                      self.cluster.command("job", "code", job, "--format", "llvm-ir").stdout)
        self.assertIn("loopfleet_kernel:",
                      self.cluster.command("job", "code", job, "--format", "asm").stdout)
        bad = self.cluster.command("job", "code", job, "--format", "ams")
        self.assertEqual((bad.returncode, bad.stdout), (2, ""))
        self.assertIn("nearest: asm", bad.stderr)

    def test_parallel_loops_run_on_the_threads_of_the_job(self):
        (worker,) = self.cluster.json("worker", "list")
        if worker["max_threads"] < 2:
            self.skipTest("this machine has one core")
        uri = "benchmark://loop_tool-cpu-v0/100001"  # its outer loop is [thread] from the start
        done, outcomes = self.cluster.submit(
            [{"benchmark": uri, "actions": [], "threads": n, "fresh": True, "tag": n}
             for n in (1, 2)])
        self.assertEqual(done.returncode, 0, done.stderr)
        one, two = sorted(outcomes, key=lambda outcome: outcome["tag"])
        self.assertEqual((one["status"], two["status"]), ("ok", "ok"))
        self.assertEqual((one["threads"], two["threads"]), (1, 2))
        self.assertEqual(one["no_effect"], ["L0 thread"])
        self.assertEqual(two["no_effect"], [])
        self.assertNotEqual(one["compiler"]["code_hash"], two["compiler"]["code_hash"])

    def test_a_wait_says_what_for_and_once(self):
        done = self.cluster.command("eval", ADD, "--labels", "nowhere", "--timeout", "8")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertEqual(len(re.findall(r"job \d+\.0: queued: no worker for it", done.stderr)), 1, done.stderr)

    def test_worker_list(self):
        (worker,) = self.cluster.json("worker", "list")
        self.assertEqual(worker["pid"], self.cluster.workers[0].pid)
        self.assertIn(worker["state"], ["ready", "quarantined"])  # a loud host
        self.assertEqual(worker["device"], "cpu")
        self.assertIn(worker["name"], self.cluster.command("worker", "list").stdout)

    def test_benchmarks_need_no_cluster(self):
        listed = subprocess.run([program("loopfleet"), "benchmark", "list", "--json"], text=True,
                                capture_output=True, env=clean_environment(), timeout=fleet.COMMAND_LIMIT_S)
        self.assertIn("benchmark://mm64_256_16_range-v0/",
                      [dataset["prefix"] for dataset in json.loads(listed.stdout)])
        shown = self.cluster.json("benchmark", "show", ADD)
        self.assertEqual(shown["flop_count"], 1024)

    def test_data_sets_are_listed_counted_and_drawn_from(self):
        def benchmark(*arguments):
            return subprocess.run([program("loopfleet"), "benchmark", *arguments], text=True,
                                  capture_output=True, env=clean_environment(), timeout=fleet.COMMAND_LIMIT_S)

        members = benchmark("list", "mm8_16_128_128-v0").stdout.split()
        self.assertEqual(len(members), 24)
        self.assertEqual(members[1], "benchmark://mm8_16_128_128-v0/mm8_16_128_128_0132")
        page = benchmark("list", "mm8_16_128_128-v0", "--offset", "22", "--limit", "5", "--json")
        self.assertEqual(json.loads(page.stdout), members[22:])
        self.assertEqual(json.loads(benchmark("list", "mm128_128_128-v0", "--offset", "9",
                                              "--json").stdout), [])
        self.assertEqual(benchmark("count", "conv_train-v0").stdout, "62\n")
        counts = json.loads(benchmark("count", "--json").stdout)
        self.assertEqual(counts["benchmark://mm64_256_16_range-v0/"], 2197)
        self.assertIsNone(counts["benchmark://mm-v0/"])
        drawn = benchmark("random", "--seed", "5", "--count", "9", "--json").stdout
        self.assertEqual(len(json.loads(drawn)), 9)
        self.assertEqual(benchmark("random", "--seed", "5", "--count", "9", "--json").stdout, drawn)
        self.assertIn("seed ", benchmark("random").stderr)
        for arguments, said in ((("list", "mm-v0"), "no end"), (("random", "conv-v0"), "no end"),
                                (("count", "conv_trian-v0"), "nearest: conv_train-v0")):
            with self.subTest(arguments=arguments):
                done = benchmark(*arguments)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(said, done.stderr)
        self.assertEqual(benchmark("list", "--limit", "5").returncode, 2)
        self.assertIn("benchmark://small-v0/qsort", benchmark("list", "small-v0").stdout.split())
        self.assertEqual(benchmark("count", "generator://csmith-v0").stdout, f"{1 << 32}\n")
        self.assertEqual(json.loads(benchmark("show", "generator://csmith-v0/7", "--json").stdout)["kind"], "passes")
        self.assertIn("needs a seed", benchmark("show", "generator://csmith-v0/x").stderr)

    def test_a_job_of_passes(self):
        program = "benchmark://small-v0/qsort"
        self.assertEqual(self.cluster.json("eval", program, "--passes", "")[0]["status"], "ok")
        done = self.cluster.command("eval", program, "--passes", "mem2reg")
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = self.cluster.command("batch", "show", "last", "--best", "1")
        self.assertIn("1 of 1 job finished", shown.stdout)
        self.assertIn("the fewest instructions", shown.stdout)
        self.assertIn("function(mem2reg)", shown.stdout)
        job = re.search(r"job (\d+\.0)", done.stdout).group(1)
        self.assertIn("define", self.cluster.command("job", "code", job).stdout)
        c = self.cluster.command("job", "code", job, "--format", "c")
        self.assertEqual(c.returncode, 2)
        self.assertIn("only llvm-ir", c.stderr)

    def test_an_unknown_batch_or_job_is_a_refusal(self):
        for arguments in (("batch", "show", "999999"), ("job", "show", "999999.0"),
                          ("batch", "wait", "999999"), ("batch", "cancel", "999999")):
            with self.subTest(arguments=arguments):
                done = self.cluster.command(*arguments)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_usage_is_2_and_names_the_nearest(self):
        for arguments, nearest in ((("evla",), "eval"), (("batch", "lst"), "list"),
                                   (("eval", ADD, "--jsno"), "--json"),
                                   (("submit", "-", "--wiat"), "--wait")):
            with self.subTest(arguments=arguments):
                done = self.cluster.command(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"nearest: {nearest}", done.stderr)
        for arguments in ((), ("eval",), ("submit",), ("job", "show", "x"), ("batch", "show", "x"),
                          ("submit", "/no/such/file")):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.cluster.command(*arguments).returncode, 2)

    def test_help_and_version_are_0(self):
        for arguments in (("--help",), ("--version",), ("eval", "--help"), ("batch", "wait", "--help")):
            done = self.cluster.command(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertIn("loopfleet" if arguments[-1] == "--version" else "xample" if
                          arguments[0] != "--help" else "eval", done.stdout)

    def test_the_help_of_submit_names_the_fields_of_a_line(self):
        said = self.cluster.command("submit", "--help").stdout
        for part in ("benchmark, ir, actions, ", "max_age_s", "`loopfleet eval --help`"):
            self.assertIn(part, said)
        self.assertIn("0: any age", self.cluster.command("eval", "--help").stdout)

    def test_a_tag_is_json(self):
        done = self.cluster.command("eval", ADD, "--tag", '{"a": 1}', "--json")
        self.assertEqual(json.loads(done.stdout)[0]["tag"], {"a": 1}, done.stderr)
        done = self.cluster.command("eval", ADD, "--tag", "notjson")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("a text needs quotes: '\"text\"'", done.stderr)

    def test_the_editor_has_no_address_by_default(self):
        said = self.cluster.command("tune", "--help").stdout
        self.assertIn("default: none", said)
        self.assertNotIn("127.0.0.1", said)

    def test_an_absent_coordinator_is_69(self):
        # The command waits nearly all of its time limit for the coordinator; a slow machine may need more.
        for limit in ("2", "8", "32"):
            done = self.cluster.command("--address", "tcp://127.0.0.1:1", "eval", ADD, "--timeout",
                                        limit)
            if done.returncode != 75:
                break
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("tcp://127.0.0.1:1", done.stderr)

    def test_a_bad_variable_is_named(self):
        done = subprocess.run([program("loopfleet"), "worker", "list"], text=True, timeout=fleet.COMMAND_LIMIT_S,
                              capture_output=True, env=clean_environment(LOOPFLEET_TIMEOUT="abc"))
        self.assertEqual(done.returncode, 78)
        self.assertIn("LOOPFLEET_TIMEOUT", done.stderr)
        done = self.cluster.command("worker", "list", "--config", "/no/such/file.toml")
        self.assertEqual(done.returncode, 78)
        self.assertIn("/no/such/file.toml: ", done.stderr)
        self.assertNotIn(":0", done.stderr)

    def test_daemons_name_the_flag_and_the_help(self):
        for daemon, wrong, nearest in (("loopfleet-worker", "--coordinater", "--coordinator"),
                                       ("loopfleet-coordinator", "--listen-client",
                                        "--listen-clients")):
            with self.subTest(daemon=daemon):
                done = subprocess.run([program(daemon), wrong, "x"], text=True, timeout=fleet.COMMAND_LIMIT_S,
                                      capture_output=True, env=clean_environment())
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"unknown flag '{wrong}'; nearest: {nearest}", done.stderr)
                self.assertIn(f"{daemon} --help", done.stderr)
                shown = subprocess.run([program(daemon), "--help"], text=True, timeout=fleet.COMMAND_LIMIT_S,
                                       capture_output=True, env=clean_environment())
                self.assertIn(daemon.upper().replace("-", "_") + "_", shown.stdout)
                self.assertIn("Exit codes: 0", shown.stdout)

    def test_daemons_warn_of_a_variable_that_no_option_has(self):
        for daemon, arguments, nearest in (
                ("loopfleet-worker", ("--coordinator", "http://x"), "LOOPFLEET_WORKER_LABELS"),
                ("loopfleet-coordinator", ("--db", "/no/such/folder/x.db"), "LOOPFLEET_COORDINATOR_MEMORY")):
            with self.subTest(daemon=daemon):
                wrong = nearest[:-1] + "Z"
                done = subprocess.run([program(daemon), *arguments], text=True, timeout=fleet.COMMAND_LIMIT_S,
                                      capture_output=True,
                                      env=clean_environment(**{wrong: "1", f"{nearest.rpartition('_')[0]}_PORT": "x"}))
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f" settings.unknown '{wrong}' is no setting; nearest: {nearest}\n",
                              done.stderr)
                self.assertNotIn("_PORT", done.stderr)

    def test_a_bad_configuration_is_78(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('[client]\nadress = "x"\n')
            file.flush()
            done = self.cluster.command("worker", "list", "--config", file.name)
        self.assertEqual(done.returncode, 78)
        self.assertIn("nearest: address", done.stderr)


class WithoutWorkersTest(unittest.TestCase):
    """Jobs without a worker, and the ways to stop waiting for them."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Fleet(workers=0)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def test_a_timeout_is_75(self):
        done = self.timed_out(lambda limit: self.cluster.command("eval", MATMUL, "--timeout", limit))
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn("goes on; `loopfleet batch wait", done.stderr)
        done = self.timed_out(lambda limit: self.cluster.submit(small_jobs(1), "--timeout", limit)[0])
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn("loopfleet batch wait", done.stderr)

    def timed_out(self, start):
        """The result of a command that timed out after its batch was accepted, for which a slow machine may
        need more time."""
        for limit in ("1", "4", "16", "64"):
            done = start(limit)
            if "loopfleet batch wait" in done.stderr:
                break
        return done

    def test_interrupting_detaches_and_says_how_to_come_back(self):
        process = self.cluster.popen("submit", "-", "--wait", stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(fleet.lines(small_jobs(2)))
        process.stdin.close()
        self.assertRegex(process.stderr.readline(), r"^batch \d+: 2 jobs")
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.wait(fleet.COMMAND_LIMIT_S), 130)
        self.assertIn("loopfleet batch wait", said)
        self.assertEqual(self.cluster.json("batch", "show", "last")["state"], "running")

    def test_a_batch_can_be_cancelled(self):
        done = self.cluster.command("submit", "-", "--json", stdin=fleet.lines(small_jobs(3)))
        batch = str(json.loads(done.stdout)["batch"])
        cancelled = self.cluster.command("batch", "cancel", batch)
        self.assertEqual(cancelled.returncode, 0, cancelled.stderr)
        waited = self.cluster.command("batch", "wait", batch, "--jsonl")
        self.assertEqual(waited.returncode, 1)
        outcomes = [json.loads(line) for line in waited.stdout.splitlines()]
        self.assertEqual([outcome["error"]["code"] for outcome in outcomes], ["CANCELLED"] * 3)


if __name__ == "__main__":
    fleet.main()

"""The report program for machines with a GPU (tests/gpu), on the fake driver: every part of its report
begins, says that it comes from no GPU, and grades nothing. The program needs no library that such a machine
may lack. A stub of NVIDIA's sanitizer only runs its command."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import fleet

PARTS = ["children", "device", "conformance", "timing", "profile", "search", "repeats", "faults", "sanitizer",
         "after"]
FAULTS = {"illegal-address": "RUN_CRASH", "misaligned": "RUN_CRASH", "trap": "RUN_CRASH",
          "endless": "RUN_TIMEOUT", "too-much-memory": "RUN_OOM"}
MOST_BYTES = 40 << 20
# Libraries of the C library and the loader.
SYSTEM_LIBRARIES = ("linux-vdso", "linux-gate", "libc.", "libm.", "libdl.", "libpthread.", "librt.",
                    "/lib")
NO_DEVICE = 77
# The fake driver cannot stop an endless kernel: it recognises this one by the size of its buffer.
DEVICE = "memory 1000000000\nhangs 128\n"
SANITIZER = """#!/bin/sh
echo "$@" >> "$0.log"
[ "$1" = --version ] && exit 0
[ "$1 $3 $4 $5 $6" = "--tool --report-api-errors no --error-exitcode 9" ] || exit 8
shift 6
exec "$@"
"""


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.program = fleet.program("gpu_conformance")
        except FileNotFoundError:
            raise unittest.SkipTest("NOT TESTED: gpu_conformance was not built (cmake says why)")
        cls.folder = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.folder.name)
        (cls.dir / "device").write_text(DEVICE)
        sanitizer = cls.dir / "compute-sanitizer"
        sanitizer.write_text(SANITIZER)
        sanitizer.chmod(0o755)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_it(self, *flags, fake=True):
        libraries = pathlib.Path(fleet._tests_dir) / "fake_cuda"
        environment = fleet.clean_environment()
        environment["PATH"] = f"{self.dir}:{environment['PATH']}"
        if fake:
            environment.update(LD_LIBRARY_PATH=str(libraries),
                               LOOPFLEET_NVJITLINK=str(libraries / "libnvJitLink-fake.so"),
                               LOOPFLEET_FAKE_CUDA=str(self.dir / "device"))
        self.json = self.dir / "report.json"
        self.json.unlink(missing_ok=True)
        return subprocess.run([self.program, "--json", self.json, *flags], text=True,
                              capture_output=True, timeout=fleet.COMMAND_LIMIT_S, env=environment)

    def test_every_part_is_there_and_none_is_graded(self):
        done = self.run_it("--trees", "10", "--largest", "64", "--search-seconds", "1",
                           "--repeats", "3")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("NO FIGURE BELOW IS ONE OF A GPU", done.stdout)
        self.assertTrue(done.stdout.rstrip().endswith("ALL PASSED"), done.stdout)
        report = json.loads(self.json.read_text())
        self.assertEqual((report["fake_device"], report["complete"], report["passed"]),
                         (True, True, True))
        self.assertEqual([part["part"] for part in report["parts"]], PARTS)
        by_name = {part["part"]: part for part in report["parts"]}
        for name, part in by_name.items():
            self.assertTrue(part["passed"], part)
            self.assertTrue(part["fake_device"], name)
            self.assertTrue(part["rows"], name)
            for goal in part.get("goals", []):
                self.assertIn(goal["verdict"], ("not graded", "not judged"), name)
        self.assertEqual({goal["verdict"] for goal in by_name["repeats"]["goals"]}, {"not graded"})
        # Without a peer, or left out: reported as neither reached nor missed.
        for name in ("timing", "search"):
            for goal in by_name[name]["goals"]:
                self.assertEqual((goal["verdict"], goal["value"]), ("not judged", None), goal)
                self.assertTrue(goal["why"])
        self.assertEqual(len(by_name["search"]["goals"]), 4)
        self.assertIn("5 goals could not be judged", done.stdout)
        # Compiled behind the filter, run and timed by the device child.
        children = [row for row in by_name["children"]["rows"] if "benchmark" in row]
        self.assertEqual(len(children), 3)
        for row in children:
            self.assertTrue(row["right"], row)
            self.assertGreater(row["ns"], 0)
        self.assertEqual(by_name["conformance"]["rows"][0]["trees_right"], 10)
        self.assertEqual({row["cache"] for row in by_name["timing"]["rows"]}, {"warm", "cold"})
        (profile,) = by_name["profile"]["rows"]
        self.assertAlmostEqual(sum(profile["shares"]), 1, delta=0.01)
        self.assertAlmostEqual(profile["shares"][0], 0.2, delta=0.05)
        self.assertEqual(len(by_name["profile"]["goals"]), 3)
        self.assertEqual({row["fault"]: row["expected"] for row in by_name["faults"]["rows"]}, FAULTS)
        for row in by_name["faults"]["rows"]:
            self.assertTrue(row["survived"], row)
            self.assertTrue(row["said"].startswith(row["expected"]), row)
        self.assertEqual([row["tool"] for row in by_name["sanitizer"]["rows"]],
                         ["memcheck", "racecheck", "synccheck"])
        commands = (self.dir / "compute-sanitizer.log").read_text()
        self.assertIn("--tool racecheck --report-api-errors no --error-exitcode 9", commands)
        self.assertEqual(commands.count("--only-trees 20"), 3)

    def test_parts_are_chosen_and_left_out_when_the_time_is_over(self):
        done = self.run_it("--parts", "device,conformance", "--trees", "2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads(self.json.read_text())
        self.assertEqual([part["part"] for part in report["parts"]], ["device", "conformance"])
        done = self.run_it("--parts", "device,faults", "--seconds", "1e-9")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("not begun", json.loads(self.json.read_text())["parts"][-1]["failures"][0])

    def test_an_old_driver_assembles_itself(self):
        (self.dir / "device").write_text(DEVICE + "cubin 209\ndriver 12020\nno_graphs 1\n")
        try:
            done = self.run_it("--parts", "children,device,conformance", "--trees", "2")
        finally:
            (self.dir / "device").write_text(DEVICE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        parts = {part["part"]: part for part in json.loads(self.json.read_text())["parts"]}
        self.assertIn("does not take the code", parts["device"]["not_tested"][0])
        self.assertEqual(parts["children"]["rows"][0]["assembler"], "driver of CUDA 12.2")

    def test_a_part_that_takes_the_process_with_it_costs_no_other(self):
        # The size of a matrix in the known kernel that runs when the device is described.
        (self.dir / "device").write_text(DEVICE + f"kills {4 * 64 * 64}\n")
        try:
            done = self.run_it("--parts", "device,conformance", "--trees", "2")
        finally:
            (self.dir / "device").write_text(DEVICE)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        report = json.loads(self.json.read_text())
        self.assertEqual([part["part"] for part in report["parts"]], ["device", "conformance"])
        self.assertIn("it ended with", report["parts"][0]["failures"][0])
        self.assertTrue(report["parts"][1]["passed"], report["parts"][1])
        self.assertTrue(report["complete"])

    def test_wrong_flags_are_named(self):
        for flags, words in ((["--part", "device"], "--part is no flag"),
                             (["--trees"], "--trees is no flag, or lacks its value"),
                             (["--parts", "device,faultz"], "there is no part 'faultz'"),
                             (["--fault", "flood"], "there is no fault 'flood'")):
            done = self.run_it(*flags)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(words, done.stderr)

    def test_it_needs_nothing_that_a_gpu_machine_may_lack(self):
        self.assertLess(os.stat(self.program).st_size, MOST_BYTES)
        listed = subprocess.run(["ldd", self.program], text=True, capture_output=True, check=True)
        for line in listed.stdout.splitlines():
            self.assertTrue(line.strip().startswith(SYSTEM_LIBRARIES), line)

    def test_without_a_device_nothing_is_tested(self):
        done = self.run_it(fake=False)
        if done.returncode != NO_DEVICE:
            self.skipTest("NOT TESTED: this host has a CUDA device")
        self.assertIn("NOTHING TESTED", done.stdout)
        self.assertFalse(self.json.exists())


if __name__ == "__main__":
    fleet.main()

"""CPU and GPU workers in one fleet, through real processes but without a GPU: the GPU worker is the shipped
one, over fakes of NVIDIA's libraries that run kernels from their PTX (tests/support/fake_cuda). Each test
writes a file that tells the fakes which faults to inject."""

import ctypes
import json
import os
import pathlib
import subprocess
import sys
import unittest

import fleet
from fleet import Fleet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "profile"))
from programs import products  # noqa: E402

ADD = "benchmark://loop_tool-cuda-v0/"
MM = "benchmark://mm-v0/mm20_20_20"
REAL_NVJITLINK = [
    "libnvJitLink.so.13", "libnvJitLink.so.12",
    "/usr/local/lib/loopfleet/nvidia-nvjitlink/nvidia/cu13/lib/libnvJitLink.so.13"]
ILLEGAL_ADDRESS, ECC, LAUNCH_FAILED, UNAVAILABLE = 700, 214, 719, 46
NO_BINARY, UNSUPPORTED_PTX = 209, 222
THERMAL = 0x40


def add(size, **more):
    return {"benchmark": f"{ADD}{size}", "actions": [], **more}


def fake_libraries():
    return pathlib.Path(fleet._tests_dir) / "fake_cuda"


def opens(library):
    try:
        ctypes.CDLL(library)
        return True
    except OSError:
        return False


class GpuFleet(Fleet):
    """A fleet of CPU workers, and GPU workers on the fake device."""

    def __init__(self, cpu_workers=1):
        super().__init__(workers=cpu_workers)
        self.control = self.dir / "device"
        self.control.write_text("")

    def tell_device(self, *lines):
        """Replaces the control file atomically, because the fake reads it at any time."""
        new = self.dir / "device.new"
        new.write_text("".join(line + "\n" for line in lines))
        new.rename(self.control)

    def environment(self, **more):
        return {"LD_LIBRARY_PATH": str(fake_libraries()),
                "LOOPFLEET_NVJITLINK": str(fake_libraries() / "libnvJitLink-fake.so"),
                "LOOPFLEET_FAKE_CUDA": str(self.control), **more}

    def start_gpu_worker(self, *arguments, may_die=False, **environment):
        registered = sum(w["state"] == "ready" for w in self.json("worker", "list"))
        worker = fleet.Daemon(
            [fleet.program("loopfleet-worker"), "--device", "cuda:0", "--coordinator",
             self.worker_address, "--http", "127.0.0.1:0", *arguments],
            self.dir / f"gpu-worker-{len(self.workers) + 1}.log", self.environment(**environment),
            may_die=may_die)
        self.workers.append(worker)
        if worker.ready is not None:
            self.await_workers(registered + 1)
        return worker

    def outcomes(self, *jobs):
        _, outcomes = self.submit(jobs)
        return {o["index"]: o for o in outcomes}

    def outcome(self, job):
        return self.outcomes(job)[0]


class OneFleet(unittest.TestCase):
    """Device faults; the device works again after each test."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = GpuFleet()
        cls.gpu = cls.fleet.start_gpu_worker("--run-limit-ms", "1000")

    @classmethod
    def tearDownClass(cls):
        cls.fleet.__exit__(None, None, None)

    def tearDown(self):
        self.fleet.tell_device()

    def log(self):
        return self.gpu.log.read_text()

    def expect_well(self, size):
        """The device serves the next job."""
        self.fleet.tell_device()
        outcome = self.fleet.outcome(add(size))
        self.assertEqual(outcome["status"], "ok", outcome)

    def test_each_job_goes_to_its_kind_of_worker(self):
        outcomes = self.fleet.outcomes(
            add(1000), {"benchmark": MM, "actions": []},
            {"benchmark": MM, "actions": ["swap_down"], "device": "cuda"},
            {"benchmark": f"{ADD}1001", "actions": ["toggle_thread"]})
        self.assertEqual([outcomes[i]["status"] for i in range(4)], ["ok"] * 4, outcomes)
        gpu, cpu = self.gpu.ready["worker"], self.fleet.workers[0].ready["worker"]
        self.assertEqual([outcomes[i]["worker"] for i in range(4)], [gpu, cpu, gpu, gpu])
        # The fake's figures cannot be mistaken for a GPU's.
        for i in (0, 2, 3):
            hardware = outcomes[i]["hardware"]
            self.assertEqual((hardware["model"], hardware["isa"]), ("fake", "sm_90"))
            self.assertIn(":fake:", hardware["class"])
            self.assertEqual(outcomes[i]["grade"], "C")
            self.assertEqual(outcomes[i]["compiler"]["tier"], "gpu")
            self.assertGreaterEqual(len(outcomes[i]["samples_ns"]), 5)
        self.assertNotEqual(outcomes[1]["hardware"]["model"], "fake")
        kinds = {w["name"]: w["device"] for w in self.fleet.json("worker", "list")}
        self.assertEqual((kinds[gpu], kinds[cpu]), ("cuda", "cpu"))
        self.assertIn("device.fake", self.log())

    def test_a_profile_gives_each_root_its_share(self):
        # The fake's time is that of its instructions, and some for each launch.
        job = {"ir": products(64, 256), "actions": [], "device": "cuda"}
        figure = self.fleet.outcome(job)
        self.assertEqual(figure["status"], "ok", figure)
        profile = self.fleet.outcome({**job, "profile": "roots"})
        self.assertEqual((profile["status"], profile["elapsed_ns"]), ("ok", None), profile)
        self.assertEqual(profile["hardware"]["model"], "fake")
        values = profile["observed"]
        self.assertEqual(values["level"], "roots")
        self.assertEqual(values["code_hash"], figure["compiler"]["code_hash"])
        self.assertGreater(values["run_ns"], 0)
        self.assertGreater(values["overhead"], -0.01)
        shares = [share for share, part in zip(values["share"], values["part"]) if part == 0]
        self.assertEqual(len(shares), 2, values)
        self.assertAlmostEqual(sum(shares), 1, delta=0.01)
        self.assertAlmostEqual(shares[0], 1 / 5, delta=0.05)
        shown = self.fleet.command("job", "profile", figure["job"], "--level", "roots")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("answered from the store", shown.stdout)
        self.assertRegex(shown.stdout, r"(?m)^by roots: .*no figure$")

    def test_a_gpu_has_profiles_by_roots_only(self):
        for level in ("loops", "lines"):
            outcome = self.fleet.outcome(add(1050, profile=level))
            self.assertEqual(outcome["error"]["code"], "UNSUPPORTED", outcome)
            self.assertIn("give 'roots'", outcome["error"]["message"])
        self.fleet.tell_device(f"ends {4 * 1051} {ILLEGAL_ADDRESS}")
        outcomes = self.fleet.outcomes(add(1051, profile="roots"), add(1052, profile="roots"))
        self.assertEqual(outcomes[0]["error"]["code"], "RUN_CRASH", outcomes[0])
        self.assertEqual(outcomes[1]["status"], "ok", outcomes[1])

    def test_cold_runs_are_kept_apart_from_warm_ones(self):
        outcomes = self.fleet.outcomes(add(1100), add(1100, cache="cold"),
                                       add(40000, cache="cold"))
        self.assertEqual([outcomes[i]["status"] for i in range(3)], ["ok"] * 3, outcomes)
        self.assertEqual([outcomes[i]["cache"] for i in range(3)], ["warm", "cold", "cold"])
        # For big tensors a few copies exceed the cache; for small ones the cache is evicted before each run.
        self.assertEqual(outcomes[1]["iterations_per_sample"] > 1,
                         outcomes[2]["iterations_per_sample"] > 1)

    def test_a_run_above_the_bound_is_cut(self):
        outcome = self.fleet.outcome(add(1200, cut_above_ns=1))
        self.assertEqual(outcome["error"]["code"], "CUT", outcome)

    def test_errors_that_stay_cost_a_process_and_no_other_job(self):
        self.fleet.tell_device(f"ends {4 * 2001} {ILLEGAL_ADDRESS}")
        outcomes = self.fleet.outcomes(add(2001), add(2002), add(2003))
        self.assertEqual(outcomes[0]["error"]["code"], "RUN_CRASH", outcomes[0])
        self.assertIn("illegal address", outcomes[0]["error"]["message"])
        self.assertEqual([outcomes[i]["status"] for i in (1, 2)], ["ok"] * 2, outcomes)
        self.assertIn("child.ended child=device", self.log())

    def test_a_kernel_that_hangs_is_ended(self):
        self.fleet.tell_device(f"hangs {4 * 2101}")
        outcomes = self.fleet.outcomes(add(2101), add(2102))
        self.assertEqual(outcomes[0]["error"]["code"], "RUN_TIMEOUT", outcomes[0])
        self.assertEqual(outcomes[1]["status"], "ok", outcomes[1])

    def test_a_driver_that_takes_the_process_with_it(self):
        self.fleet.tell_device(f"kills {4 * 2201}")
        outcomes = self.fleet.outcomes(add(2201), add(2202))
        self.assertEqual(outcomes[0]["error"]["code"], "RUN_CRASH", outcomes[0])
        self.assertEqual(outcomes[1]["status"], "ok", outcomes[1])

    def test_output_that_was_not_written_is_wrong(self):
        self.fleet.tell_device(f"idle {4 * 2301}")
        outcome = self.fleet.outcome(add(2301))
        self.assertEqual(outcome["error"]["code"], "WRONG_OUTPUT", outcome)
        self.assertIn("never written", outcome["error"]["message"])
        self.expect_well(2302)

    def test_a_job_that_does_not_fit_the_devices_memory(self):
        self.expect_well(2400)  # so that no check is due, which would need memory, too
        self.fleet.tell_device("memory 5000")
        outcome = self.fleet.outcome(add(2401))
        self.assertEqual(outcome["error"]["code"], "RUN_OOM", outcome)
        self.expect_well(2402)

    def test_one_jobs_faults_do_not_cost_the_device(self):
        self.fleet.tell_device(f"ends {4 * 2501} {ECC}")
        outcome = self.fleet.outcome(add(2501))
        self.assertEqual(outcome["error"]["code"], "DEVICE_FAULT", outcome)
        self.expect_well(2502)

    def test_samples_of_a_device_that_is_held_back_are_discarded_and_counted(self):
        self.fleet.tell_device(f"throttle {THERMAL}", "temperature 90")
        outcome = self.fleet.outcome(add(2601, budget_ms=20))
        self.assertEqual(outcome["status"], "ok", outcome)
        self.assertEqual(set(outcome["sample_flags"]), {4})
        self.assertEqual((outcome["accepted_samples"], outcome["grade"]), (0, "C"))
        self.assertIn("hardware thermal slowdown", self.log())
        # The stored row keeps the sensor readings.
        self.assertEqual(outcome["device"], {
            "temperature_c": 90.0, "power_w": 100.0, "memory_clock_mhz": 1000.0,
            "throttle_reasons": ["hardware thermal slowdown"]})
        again = self.fleet.outcome(add(2601, budget_ms=20))
        self.assertEqual((again["source"], again["device"]), ("stored", outcome["device"]))
        shown = self.fleet.command("job", "show", outcome["job"]).stdout
        self.assertIn("at most 90 C and 100 W, throttle reasons: hardware thermal slowdown", shown)

    def test_who_else_has_the_device_is_noticed(self):
        self.fleet.tell_device("processes 2")
        self.assertEqual(self.fleet.outcome(add(2701))["grade"], "C")
        self.assertIn("device.shared", self.log())


class Lives(unittest.TestCase):
    """Other starts and ends of workers."""

    def test_a_job_without_a_worker_of_its_kind_is_told_so(self):
        with Fleet(workers=1) as cluster:
            _, (outcome,) = cluster.submit([add(1000)])
        self.assertEqual(outcome["error"]["code"], "NO_MATCHING_WORKER", outcome)
        self.assertIn("cuda", outcome["error"]["message"])

    def test_without_a_driver_a_worker_says_what_is_missing(self):
        if opens("libcuda.so.1"):
            self.skipTest("NOT TESTED: this host has a CUDA driver")
        done = subprocess.run(
            [fleet.program("loopfleet-worker"), "--device", "cuda:0", "--coordinator",
             "tcp://127.0.0.1:1"], text=True, capture_output=True, timeout=fleet.COMMAND_LIMIT_S,
            env=fleet.clean_environment())
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("install NVIDIA's driver", done.stderr)

    def start_refused(self, cluster, *lines):
        cluster.tell_device(*lines)
        worker = cluster.start_gpu_worker(may_die=True)
        self.assertIsNone(worker.ready)
        return worker.process.returncode, worker.log.read_text()

    def test_devices_that_cannot_be_used_are_refused_at_the_start(self):
        with GpuFleet(cpu_workers=0) as cluster:
            for lines, code, words in (
                    (["devices 0"], 78, "there are 0 CUDA devices"),
                    (["capability 52"], 70, "compute capability 5.2"),
                    ([f"context {UNAVAILABLE}"], 70, "device not available"),
                    ([f"cubin {NO_BINARY}", f"ptx {UNSUPPORTED_PTX}"], 70, "PTX newer than the driver"),
                    (["forgets 1"], 70, "does not keep what is written"),
                    (["hangs 16384"], 70, "had not ended after")):
                returned, log = self.start_refused(cluster, *lines)
                self.assertEqual(returned, code, log)
                self.assertIn(words, log)

    def test_an_old_driver_assembles_itself(self):
        with GpuFleet(cpu_workers=0) as cluster:
            cluster.tell_device(f"cubin {NO_BINARY}", "driver 12020", "no_graphs 1")
            worker = cluster.start_gpu_worker()
            outcome = cluster.outcome(add(1000))
            self.assertEqual(outcome["status"], "ok", outcome)
            self.assertIn("driver of CUDA 12.2", outcome["compiler"]["revision"])
            self.assertIn("device.driver_assembles", worker.log.read_text())

    def test_a_library_that_is_no_assembler_does_not_hide_another(self):
        with GpuFleet(cpu_workers=0) as cluster:
            libraries = cluster.dir / "libraries"
            libraries.mkdir()
            for version, found in (("13", "libnvidia-ml.so.1"), ("12", "libnvJitLink-fake.so")):
                (libraries / f"libnvJitLink.so.{version}").symlink_to(fake_libraries() / found)
            cluster.start_gpu_worker(LOOPFLEET_NVJITLINK="",
                                     LD_LIBRARY_PATH=f"{fake_libraries()}:{libraries}")
            outcome = cluster.outcome(add(1000))
            self.assertEqual(outcome["status"], "ok", outcome)
            self.assertIn("nvJitLink 0.0", outcome["compiler"]["revision"])

    def test_peaks_measured_beside_another_user_refuse_nothing(self):
        with GpuFleet(cpu_workers=0) as cluster:
            cluster.tell_device("processes 2")
            worker = cluster.start_gpu_worker()
            self.assertIn("device.no_peaks", worker.log.read_text())
            outcome = cluster.outcome(add(1000))
            self.assertEqual((outcome["status"], outcome["grade"]), ("ok", "C"), outcome)
            self.assertEqual(cluster.command("worker", "list").returncode, 0)

    def test_a_lost_device_is_given_up_and_its_jobs_go_elsewhere(self):
        with GpuFleet(cpu_workers=0) as cluster:
            lost = cluster.start_gpu_worker("--labels", "first")
            healthy = cluster.dir / "healthy"
            healthy.write_text("")
            other = cluster.start_gpu_worker(LOOPFLEET_FAKE_CUDA=str(healthy))
            cluster.tell_device(f"ends 0 {LAUNCH_FAILED}", f"context {UNAVAILABLE}")
            outcomes = cluster.outcomes(add(3000, labels=["first"]),
                                        *(add(3001 + i) for i in range(12)))
            self.assertEqual(lost.process.wait(fleet.WAIT_LIMIT_S), 70)
            lost.kill()  # the end of the fleet asks no more of it
            log = lost.log.read_text()
            self.assertIn("device.retired", log)
            self.assertIn("device not available", log)
            # The job that only that worker could run failed: it ran when the device fell off, or had no
            # worker then. Of the others, at most those that ran there at that moment failed.
            self.assertIn(outcomes[0]["error"]["code"], ("RUN_CRASH", "NO_MATCHING_WORKER"))
            for i in range(1, 13):
                if outcomes[i]["status"] == "ok":
                    self.assertEqual(outcomes[i]["worker"], other.ready["worker"])
            self.assertGreaterEqual(sum(o["status"] == "ok" for o in outcomes.values()), 11)

    def test_the_real_assembler_works_where_children_call_it(self):
        real = next((library for library in REAL_NVJITLINK if opens(library)), None)
        if real is None:
            self.skipTest("NOT TESTED: there is no nvJitLink here (deploy/dependencies.sh --tests)")
        with GpuFleet(cpu_workers=0) as cluster:
            cluster.start_gpu_worker("--compile-limit-ms", "120000",
                                     LOOPFLEET_REAL_NVJITLINK=real)
            outcomes = cluster.outcomes(add(1000), {"benchmark": MM, "actions": ["swap_down"],
                                                    "device": "cuda"})
            self.assertEqual([outcomes[i]["status"] for i in range(2)], ["ok"] * 2, outcomes)


if __name__ == "__main__":
    fleet.main()

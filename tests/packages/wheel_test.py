"""The wheel with the programs: its tag, its libraries and licences, and a user's first minutes with it in a clean
Debian 12 root that has Python and nothing else: pip install, `loopfleet local`, the Python package.

    wheel_test.py [--make] FOLDER_WITH_WHEEL

What it needs itself, numpy and pyzmq, comes from build/python/wheels (tests/python/make_environment.sh), or from
PyPI."""

import pathlib
import re
import shutil
import sys
import time
import unittest
import zipfile

import clean_root

PROGRAMS = ("loopfleet", "loopfleet-coordinator", "loopfleet-mirror", "loopfleet-worker")
MOST_SECONDS = 60
MOST_BYTES = 100 << 20  # PyPI's limit for a file
ENVIRONMENT = "/opt/env"
NEEDED = ("numpy", "pyzmq")
CAMPAIGN = 'name = "three"\npoints = 3\nbenchmarks = ["mm64_256_16_range-v0"]\n'
PYTHON = f'''
import loopfleet
with loopfleet.LocalCluster() as cluster, loopfleet.Client() as client:
    for _ in range({clean_root.MEASURING_TRIES}):
        outcome = client.evaluate("{clean_root.BENCHMARK}", ["down"], fresh=True)
        if outcome.ok:
            break
    print(outcome.gflops, "GFLOP/s")
'''


class Contents(unittest.TestCase):
    def test_the_tag_is_manylinux_and_the_libraries_and_licences_are_inside(self):
        self.assertRegex(WHEEL.name, r"-cp3\d+-cp3\d+-manylinux_2_\d+_x86_64\.whl$")
        self.assertLess(WHEEL.stat().st_size, MOST_BYTES)
        with zipfile.ZipFile(WHEEL) as archive:
            names = archive.namelist()
        for program in PROGRAMS:
            self.assertIn(f"loopfleet/bin/{program}", names)
            self.assertTrue(any(re.fullmatch(rf"loopfleet-.*\.data/scripts/{program}", name) for name in names))
        for library, package in (("libLLVM", "libllvm19"), ("libzmq", "libzmq5"), ("libmimalloc", "libmimalloc2.0")):
            self.assertTrue(any(name.startswith(f"loopfleet.libs/{library}") for name in names), library)
            self.assertTrue(any(name.endswith(f"/licenses/bundled/{package}.txt") for name in names), package)


class Installation(clean_root.InCleanRoot):
    def test_from_pip_install_to_outcomes(self):
        root = clean_root.Root.bootstrap(self.memory / "root", ["python3-venv"])
        for program in (*clean_root.COMPILERS, *PROGRAMS):
            self.assertFalse(root.has(program), program)
        for library in ("libLLVM", "libzmq", "libcapnp", "libfmt", "libsodium"):
            self.assertEqual(list(root.folder.glob(f"usr/lib/*/{library}*")), [], library)
        (root.folder / "wheels").mkdir()
        shutil.copy(WHEEL, root.folder / "wheels")
        offline = []
        if WHEELS is not None:
            for name in NEEDED:
                for wheel in WHEELS.glob(f"{name}-*.whl"):
                    shutil.copy(wheel, root.folder / "wheels")
            offline = ["--no-index", "--find-links", "/wheels"]
        root.run("python3", "-m", "venv", ENVIRONMENT)
        started = time.monotonic()
        root.run(f"{ENVIRONMENT}/bin/pip", "install", "--quiet", *offline, f"/wheels/{WHEEL.name}")
        installed = time.monotonic()
        clean_root.leave_network()
        # As a user that may write nowhere but in /tmp, and without the environment in PATH.
        figure = root.outcome(f"{ENVIRONMENT}/bin/loopfleet", "local", "--", "loopfleet", "eval", clean_root.BENCHMARK,
                              user="nobody:nogroup")
        first = time.monotonic()
        print(f"wheel: {WHEEL.stat().st_size / 1e6:.0f} MB; installation {installed - started:.1f} s; to the first outcome "
              f"{first - started:.1f} s (most: {MOST_SECONDS}); {figure} GFLOP/s", flush=True)
        self.assertLess(first - started, MOST_SECONDS)
        self.assertGreater(root.outcome(f"{ENVIRONMENT}/bin/python", "-c", PYTHON, user="nobody:nogroup"), 0)
        for program in PROGRAMS:
            self.assertIn(f"Usage: {program}", root.run(f"{ENVIRONMENT}/bin/{program}", "--help"))
        # The environment's interpreter runs campaigns, not the system's.
        (root.folder / "tmp/three.toml").write_text(CAMPAIGN)
        said = root.run(f"{ENVIRONMENT}/bin/loopfleet", "local", "--", "loopfleet", "campaign", "run", "/tmp/three.toml",
                        "--out", "/tmp/three", user="nobody:nogroup")
        self.assertIn("3 of 3 points", said)


if __name__ == "__main__":
    (WHEEL,) = clean_root.packages("wheel").glob("loopfleet-*.whl")
    needed = clean_root.SOURCE / "build/python/wheels"
    WHEELS = needed if needed.is_dir() else None
    clean_root.main()

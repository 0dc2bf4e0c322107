"""The Debian packages: what is in them, what lintian says, and an operator's first minutes with them in a clean
Debian 12 root without a compiler: install, keys, daemons as their units start them, a job, removal.

    debs_test.py [--make] FOLDER_WITH_DEBS"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import clean_root
import unit_file

PACKAGES = ("loopfleet", "loopfleet-coordinator", "loopfleet-worker")
# From the start of the installation to the first outcome, downloads not counted.
MOST_SECONDS = 60
KEYS = "/etc/loopfleet"


def field(deb, name):
    return clean_root.command("dpkg-deb", "--field", deb, name).strip()


def files(deb):
    """Paths without their first dot; those of folders end in a slash."""
    return {line.split(maxsplit=5)[5].split(" -> ")[0].removeprefix(".")
            for line in clean_root.command("dpkg-deb", "--contents", deb).splitlines()}


class Contents(unittest.TestCase):
    def test_versions_are_the_projects_and_libraries_are_named_as_dependencies(self):
        version = clean_root.command(sys.executable, clean_root.SOURCE / "tests/check_version.py").strip()
        library = {"loopfleet": "libsqlite3-0", "loopfleet-coordinator": "libmimalloc2.0", "loopfleet-worker": "libllvm19"}
        for name, deb in DEBS.items():
            self.assertEqual(field(deb, "Version"), version)
            self.assertRegex(field(deb, "Depends"), rf"\b{re.escape(library[name])}\b")
            self.assertRegex(field(deb, "Depends"), r"\blibc6 \(>= ")
        self.assertIn(f"loopfleet (= {version})", field(DEBS["loopfleet-coordinator"], "Depends"))

    def test_each_has_its_program_its_manual_page_and_its_files(self):
        for name, deb in DEBS.items():
            there = files(deb)
            self.assertLessEqual({f"/usr/bin/{name}", f"/usr/share/man/man1/{name}.1.gz",
                                  f"/usr/share/doc/{name}/copyright"}, there)
            if name != "loopfleet":
                daemon = name.removeprefix("loopfleet-")
                self.assertLessEqual({f"/lib/systemd/system/{name}.service", f"{KEYS}/{daemon}.env", f"{KEYS}/{daemon}/"},
                                     there)
                with tempfile.TemporaryDirectory() as control:
                    clean_root.command("dpkg-deb", "--control", deb, control)
                    self.assertEqual(pathlib.Path(control, "conffiles").read_text(), f"{KEYS}/{daemon}.env\n")
        self.assertLessEqual({"/usr/share/bash-completion/completions/loopfleet", "/usr/share/loopfleet/make_keys.sh",
                              "/usr/share/zsh/vendor-completions/_loopfleet",
                              "/usr/share/fish/vendor_completions.d/loopfleet.fish"}, files(DEBS["loopfleet"]))
        everything = [path for deb in DEBS.values() for path in files(deb) if not path.endswith("/")]
        self.assertEqual(len(everything), len(set(everything)), "no file is in two packages")

    def test_grafana_finds_the_dashboards(self):
        with tempfile.TemporaryDirectory() as root:
            clean_root.command("dpkg-deb", "--extract", DEBS["loopfleet-coordinator"], root)
            grafana = pathlib.Path(root, "usr/share/loopfleet/monitoring/grafana")
            text = (grafana / "provisioning/dashboards/loopfleet.yml").read_text()
            (path,) = re.findall(r"(?m)^ *path: (.*)$", text)
            self.assertTrue(pathlib.Path(root, path.removeprefix("/"), "fleet.json").is_file(), path)

    def test_lintian_finds_nothing(self):
        if shutil.which("lintian") is None:
            self.fail("lintian is not installed (deploy/dependencies.sh --tests)")
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0",
                               *map(str, DEBS.values())], text=True, capture_output=True,
                              env={**os.environ, "TMPDIR": str(clean_root.InCleanRoot.memory or tempfile.gettempdir())})
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)


class Installation(clean_root.InCleanRoot):
    def test_from_an_empty_root_to_an_outcome_and_back(self):
        root = clean_root.Root.bootstrap(self.memory / "root")
        for program in clean_root.COMPILERS:
            self.assertFalse(root.has(program), program)
        (root.folder / "debs").mkdir()
        for deb in DEBS.values():
            shutil.copy(deb, root.folder / "debs")
        local = [f"/debs/{deb.name}" for deb in DEBS.values()]

        started = time.monotonic()
        root.run("apt-get", "install", "--yes", "--no-install-recommends", "--download-only", *local)
        downloaded = time.monotonic()
        root.run("apt-get", "install", "--yes", "--no-install-recommends", *local)
        installed = time.monotonic()
        self.start_a_fleet(root)
        figure = root.outcome("loopfleet", "eval", clean_root.BENCHMARK, "--actions", "down,split_16",
                              "--keys", "/tmp/keys/me", user="nobody:nogroup")
        first = time.monotonic()
        print(f"debs: downloads {downloaded - started:.1f} s; installation {installed - downloaded:.1f} s; to the first "
              f"outcome {first - downloaded:.1f} s (most: {MOST_SECONDS}); {figure} GFLOP/s", flush=True)
        self.assertLess(first - downloaded, MOST_SECONDS)
        for program in clean_root.COMPILERS:
            self.assertFalse(root.has(program), program)
        self.check_what_others_may_read(root)
        for daemon in self.daemons:
            daemon.terminate()
        self.assertEqual([daemon.wait(clean_root.COMMAND_LIMIT_S) for daemon in self.daemons], [0, 0], root.logs())
        self.check_reinstallation(root, local)
        self.check_removal(root)

    def start_a_fleet(self, root):
        """What docs/OPERATIONS.md says, with both daemons on one machine."""
        coordinator, worker = (unit_file.UnitFile(root, name) for name in PACKAGES[1:])
        self.assertEqual(self.enabled(root), {f"{name}.service" for name in PACKAGES[1:]})
        self.assertTrue(coordinator.may_start(), "the installation makes the coordinator's keys")
        self.assertFalse(worker.may_start(), "a worker waits for its keys")
        root.run("/usr/share/loopfleet/make_keys.sh", f"{KEYS}/coordinator", "--workers", "node1", "--clients", "me")
        peers = f"{KEYS}/coordinator/peers"
        root.run("install", "-m", "644", f"{peers}/node1/coordinator.key", f"{KEYS}/worker/")
        root.run("install", "-m", "600", f"{peers}/node1/node1.key_secret", f"{KEYS}/worker/worker.key_secret")
        root.run("install", "-d", "/tmp/keys")
        root.run("cp", "-r", f"{peers}/me", "/tmp/keys/")
        root.run("chown", "-R", "nobody:nogroup", "/tmp/keys")
        self.assertTrue(worker.may_start())
        clean_root.leave_network()
        self.daemons = [coordinator.start(), worker.start()]

    def enabled(self, root):
        """The services of ours that start when the machine does."""
        return {unit.name for unit in (root.folder / "etc/systemd/system/multi-user.target.wants").glob("loopfleet-*")}

    def check_what_others_may_read(self, root):
        for path in (f"{KEYS}/coordinator/coordinator.key_secret", f"{KEYS}/worker/worker.key_secret",
                     "/var/lib/loopfleet-coordinator/loopfleet.db"):
            done = subprocess.run(root.argv(["cat", path], "nobody:nogroup"), capture_output=True)
            self.assertNotEqual(done.returncode, 0, path)

    def check_reinstallation(self, root, local):
        """An upgrade keeps keys and settings."""
        kept = root.folder / KEYS.lstrip("/")
        (kept / "worker.env").write_text("LOOPFLEET_WORKER_COORDINATOR=tcp://head:5571\n")
        before = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}
        root.run("dpkg", "--install", "--force-confdef", *local)
        self.assertEqual({path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}, before)

    def check_removal(self, root):
        root.run("dpkg", "--remove", *PACKAGES)
        self.assertTrue((root.folder / f"{KEYS}/worker.env".lstrip("/")).exists(), "settings stay until a purge")
        root.run("dpkg", "--purge", *PACKAGES)
        self.assertFalse((root.folder / KEYS.lstrip("/")).exists())
        self.assertEqual(self.enabled(root), set())
        self.assertTrue((root.folder / "var/lib/loopfleet-coordinator/loopfleet.db").exists(), "results stay")
        for name in PACKAGES:
            self.assertFalse(root.has(name), name)


if __name__ == "__main__":
    debs = {deb.name.partition("_")[0]: deb for deb in clean_root.packages("debs").glob("*.deb")}
    DEBS = {name: debs[name] for name in PACKAGES}
    clean_root.main()

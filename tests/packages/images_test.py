"""The images of the two daemons: their configuration is the Dockerfile's, no key is inside, and they measure a job
with their own entry points, as their own user, on a read-only root file system.

    images_test.py [--make] FOLDER_WITH_OCI_ARCHIVES"""

import json
import pathlib
import subprocess
import time

import clean_root

DAEMONS = ("coordinator", "worker")
MOST_BYTES = {"coordinator": 64 << 20, "worker": 160 << 20}
KEYS = "/run/loopfleet/keys"
STATE = "/var/lib/loopfleet"
PORTS = {"coordinator": 9570, "worker": 9571}


class Image:
    """An image, unpacked, and the process that its configuration describes."""

    def __init__(self, daemon, memory):
        self.daemon = daemon
        (self.archive,) = FOLDER.glob(f"loopfleet-{daemon}_*.oci.tar")
        clean_root.command("skopeo", "copy", "--quiet", f"oci-archive:{self.archive}", f"oci:{memory}/{daemon}-layout:it")
        clean_root.command("umoci", "unpack", "--image", f"{memory}/{daemon}-layout:it", memory / daemon)
        self.process = json.loads((memory / daemon / "config.json").read_text())["process"]
        self.root = clean_root.Root(memory / daemon / "rootfs")
        self.settings = dict(setting.split("=", 1) for setting in self.process["env"] if setting.startswith("LOOPFLEET_"))
        self.user = f"{self.process['user']['uid']}:{self.process['user']['gid']}"
        self.log = memory / f"{daemon}.log"

    def mount(self):
        """As Kubernetes runs it: all is read-only but the volumes, which belong to its user."""
        clean_root.command("mount", "--bind", self.root.folder, self.root.folder)
        clean_root.command("mount", "-o", "remount,ro,bind", self.root.folder)
        self.root.mount()
        for folder in ("/run", STATE):
            clean_root.command("mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", self.root.folder / folder[1:])
            clean_root.command("chown", self.user, self.root.folder / folder[1:])

    def start(self, *arguments):
        in_its_folder = ["sh", "-c", f'cd {self.process["cwd"]} && exec "$@"', "sh"]
        return self.root.start(*in_its_folder, *self.process["args"], *arguments, user=self.user, log=self.log,
                               **self.settings)

    def is_healthy(self):
        return subprocess.run(self.root.argv(["loopfleet-healthy", PORTS[self.daemon]], self.user),
                              capture_output=True).returncode == 0


class Images(clean_root.InCleanRoot):
    images = {}

    def setUp(self):
        super().setUp()
        if not self.images:
            self.images.update({daemon: Image(daemon, self.memory) for daemon in DAEMONS})

    def test_each_is_small_and_runs_its_daemon_without_rights_and_holds_no_key(self):
        for daemon, image in self.images.items():
            self.assertLess(image.archive.stat().st_size, MOST_BYTES[daemon])
            self.assertEqual(image.user, "10001:10001")
            self.assertEqual(image.process["cwd"], STATE)
            # Arguments after its name would take the place of more.
            self.assertEqual(image.process["args"], [f"loopfleet-{daemon}"])
            self.assertEqual(image.settings[f"LOOPFLEET_{daemon.upper()}_KEYS"], KEYS)
            shown = json.loads(clean_root.command("skopeo", "inspect", "--config", f"oci-archive:{image.archive}"))
            self.assertEqual(sorted(shown["config"]["ExposedPorts"]),
                             ["5570", "5571", "9570"] if daemon == "coordinator" else ["9571"])
            self.assertEqual([str(path) for path in image.root.folder.rglob("*.key*")
                              if path.suffix in (".key", ".key_secret")], [])
            for program in (*clean_root.COMPILERS, "apt-get"):
                self.assertFalse(image.root.has(program), program)

    def test_they_measure_a_job(self):
        coordinator, worker = (self.images[daemon] for daemon in DAEMONS)
        clean_root.leave_network()
        for image in self.images.values():
            image.mount()
        # The secrets that an operator mounts, made by the command in the image.
        home = pathlib.Path(coordinator.root.folder)
        for arguments in (["--role", "coordinator", "--out", KEYS],
                          ["--role", "worker", "--name", "node1", "--out", "/run/node1", "--authorize", KEYS],
                          ["--role", "client", "--name", "me", "--out", "/run/me", "--authorize", KEYS]):
            coordinator.root.run("loopfleet", "keygen", *arguments, user=coordinator.user)
        (worker.root.folder / "run/loopfleet").mkdir()
        clean_root.command("cp", "-rp", home / "run/node1", worker.root.folder / KEYS[1:])
        clean_root.command("chown", "-R", worker.user, worker.root.folder / "run/loopfleet")
        started = time.monotonic()
        # The worker as on another machine: its keys and its health port are still the image's.
        daemons = [coordinator.start(), worker.start("--coordinator", "tcp://127.0.0.1:5571")]
        try:
            figure = coordinator.root.outcome("loopfleet", "eval", clean_root.BENCHMARK, "--keys", "/run/me",
                                              user=coordinator.user)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{coordinator.log.read_text()}\n{worker.log.read_text()}") from None
        sizes = ", ".join(f"{daemon} {image.archive.stat().st_size / 1e6:.0f} MB" for daemon, image in self.images.items())
        print(f"images: {sizes}; from the start to the first outcome {time.monotonic() - started:.1f} s; {figure} GFLOP/s",
              flush=True)
        for image in self.images.values():
            clean_root.wait_for(f"{image.daemon} is healthy", image.is_healthy)
        for daemon in daemons:
            daemon.terminate()
        self.assertEqual([daemon.wait(clean_root.COMMAND_LIMIT_S) for daemon in daemons], [0, 0])


if __name__ == "__main__":
    FOLDER = clean_root.packages("images", needs=("mmdebstrap", "umoci", "skopeo"))
    clean_root.main()

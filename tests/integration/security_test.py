"""A fleet with keys: the commands that make them, which peers are accepted, that a revoked key can do
nothing from its next message on, and that without keys only this machine is served. Real daemons, the real
command."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import unittest

import fleet

MATMUL = "benchmark://mm-v0/mm4_4_4"
LIMIT_S = 60


class KeyedFleet(unittest.TestCase):
    """A coordinator with keys on TCP; each test adds the peers that it needs."""

    def setUp(self):
        self.cluster = fleet.Fleet(workers=0)  # for its directory; its coordinator is replaced
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.cluster.coordinator.stop()
        self.dir = self.cluster.dir
        self.keys = self.dir / "keys"
        self.keygen("--role", "coordinator", "--out", self.keys)
        self.log = self.dir / "keyed.log"
        self.start_coordinator()

    def start_coordinator(self, clients="tcp://127.0.0.1:0", *more):
        self.cluster.coordinator = fleet.Daemon(
            [fleet.program("loopfleet-coordinator"), "--listen-clients", clients,
             "--listen-workers", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0",
             "--db", str(self.dir / "keyed.db"), "--keys", str(self.keys), *more], self.log)
        self.address = self.cluster.coordinator.ready["clients"]
        self.worker_address = self.cluster.coordinator.ready["workers"]

    def keygen(self, *arguments, expect=0):
        done = subprocess.run([fleet.program("loopfleet"), "keygen", "--json",
                               *map(str, arguments)], text=True, capture_output=True,
                              env=fleet.clean_environment(), timeout=LIMIT_S)
        self.assertEqual(done.returncode, expect, done.stderr)
        return json.loads(done.stdout) if expect == 0 else done.stderr

    def peer(self, name, role="client"):
        """The keys directory of a new authorized peer."""
        out = self.dir / f"{name}-keys"
        self.keygen("--role", role, "--name", name, "--out", out, "--authorize", self.keys)
        return out

    def command(self, keys, *arguments, address=None, stdin=""):
        environment = fleet.clean_environment(LOOPFLEET_ADDRESS=address or self.address,
                                              LOOPFLEET_KEYS=str(keys) if keys else "")
        return subprocess.run([fleet.program("loopfleet"), *arguments], text=True, input=stdin,
                              capture_output=True, env=environment, timeout=LIMIT_S)

    def start_worker(self, keys):
        self.cluster.workers.append(fleet.Daemon(
            [fleet.program("loopfleet-worker"), "--coordinator", self.worker_address, "--http",
             "127.0.0.1:0", "--keys", str(keys)], self.dir / f"worker-{keys.name}.log"))
        return self.cluster.workers[-1]

    def workers_as(self, keys):
        done = self.command(keys, "worker", "list", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def batches_as(self, keys):
        done = self.command(keys, "batch", "list", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class WhoIsLetIn(KeyedFleet):
    def test_a_fleet_with_a_key_for_everybody(self):
        alice, node = self.peer("alice"), self.peer("node7", "worker")
        worker = self.start_worker(node)
        fleet.wait_until(lambda: self.workers_as(alice), "the worker is registered", LIMIT_S)
        info, = self.workers_as(alice)
        self.assertTrue(info["name"].startswith("node7/"), info["name"])
        done = self.command(alice, "eval", MATMUL, "--json")
        outcome, = json.loads(done.stdout)
        self.assertTrue(outcome["status"] == "ok" or fleet.is_unstable(outcome), outcome)
        self.assertEqual(worker.stop(), 0)

    def test_a_worker_is_shown_by_its_host_too(self):
        alice, node = self.peer("alice"), self.peer("node7", "worker")
        self.start_worker(node)
        fleet.wait_until(lambda: self.workers_as(alice), "the worker is registered", LIMIT_S)
        info, = self.workers_as(alice)
        shown = self.command(alice, "worker", "show", info["host"], "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(json.loads(shown.stdout)["name"], info["name"])
        self.start_worker(node)
        fleet.wait_until(lambda: len(self.workers_as(alice)) == 2, "the second is registered", LIMIT_S)
        shown = self.command(alice, "worker", "show", info["host"])
        self.assertEqual(shown.returncode, 1, shown.stdout)
        for worker in self.workers_as(alice):
            self.assertIn(worker["name"], shown.stderr)

    def test_no_key_wrong_key_and_keys_of_other_roles_get_nothing_done(self):
        root = self.peer("root", "admin")
        job = json.dumps({"benchmark": MATMUL, "actions": []}) + "\n"

        stranger = self.dir / "stranger-keys"
        self.keygen("--name", "stranger", "--out", stranger)
        shutil.copy(self.keys / "coordinator.key", stranger)
        done = self.command(stranger, "submit", "-", stdin=job)
        self.assertEqual(done.returncode, 1)
        self.assertIn("UNAUTHENTICATED", done.stderr)
        self.assertIn("authorized/clients", done.stderr)

        done = self.command(None, "--timeout", "3", "submit", "-", stdin=job)
        self.assertIn(done.returncode, (69, 75), done.stderr)

        # An impostor in the coordinator's place does not have the right key.
        other = self.dir / "other"
        self.keygen("--role", "coordinator", "--out", other)
        alice = self.peer("alice")
        os.remove(alice / "coordinator.key")
        shutil.copy(other / "coordinator.key", alice)
        done = self.command(alice, "--timeout", "3", "submit", "-", stdin=job)
        self.assertIn(done.returncode, (69, 75), done.stderr)
        shutil.copy(self.keys / "coordinator.key", alice)

        # Valid keys at the wrong endpoint: a worker's at the clients', a client's at the workers'. The
        # programs refuse before the coordinator does.
        node = self.peer("node7", "worker")
        done = self.command(node, "batch", "list")
        self.assertEqual(done.returncode, 78)
        self.assertIn("is the key of a worker, and a client or admin's is needed", done.stderr)
        with self.assertRaises(RuntimeError) as refused:
            self.start_worker(alice)
        self.assertIn("is the key of a client, and a worker's is needed", str(refused.exception))
        # If the key files claim another role, the coordinator's directory decides.
        for keys, lie in ((node, "client"), (alice, "worker")):
            for file in keys.glob("*.key_secret"):
                file.write_text(re.sub(r'role = "\w+"', f'role = "{lie}"', file.read_text()))
        done = self.command(node, "submit", "-", stdin=job)
        self.assertEqual(done.returncode, 1)
        self.assertIn("UNAUTHENTICATED", done.stderr)
        self.start_worker(alice)
        fleet.wait_until(lambda: "of client alice is not for this socket" in self.log.read_text(),
                         "the refusal is logged", LIMIT_S)

        self.assertEqual(self.batches_as(root), [])
        self.assertEqual(self.workers_as(root), [])

    def test_keys_that_others_may_read_are_refused(self):
        alice = self.peer("alice")
        secret = alice / "alice.key_secret"
        self.assertEqual(secret.stat().st_mode & 0o7777, 0o600)
        secret.chmod(0o644)
        done = self.command(alice, "batch", "list")
        self.assertEqual(done.returncode, 78)
        self.assertIn(f"chmod 600 {secret}", done.stderr)
        secret.chmod(0o600)
        self.assertEqual(self.batches_as(alice), [])

        self.cluster.coordinator.stop()
        own = self.keys / "coordinator.key_secret"
        own.chmod(0o640)
        with self.assertRaises(RuntimeError) as refused:
            self.start_coordinator()
        self.assertIn(f"chmod 600 {own}", str(refused.exception))
        own.chmod(0o600)
        (self.keys / "authorized" / "admins").chmod(0o777)
        with self.assertRaises(RuntimeError) as refused:
            self.start_coordinator()
        self.assertIn("chmod go-w", str(refused.exception))


class OwnersAndAdmins(KeyedFleet):
    def test_cancelling_needs_the_owner_or_an_admin_and_reading_does_not(self):
        alice, bob, root = self.peer("alice"), self.peer("bob"), self.peer("root", "admin")
        job = json.dumps({"benchmark": MATMUL, "actions": []}) + "\n"
        batches = []
        for _ in range(2):
            done = self.command(alice, "submit", "-", "--json", stdin=job)
            self.assertEqual(done.returncode, 0, done.stderr)
            batches.append(str(json.loads(done.stdout)["batch"]))
        self.assertEqual(self.command(bob, "batch", "show", batches[0]).returncode, 0)
        done = self.command(bob, "batch", "cancel", batches[0])
        self.assertEqual(done.returncode, 1)
        self.assertIn("FORBIDDEN", done.stderr)
        # Every `loopfleet` is another connection: the key identifies alice.
        done = self.command(alice, "batch", "cancel", batches[0])
        self.assertEqual(done.returncode, 0, done.stderr)
        # The owner survives a restart, in the database.
        self.cluster.coordinator.stop()
        self.start_coordinator()
        done = self.command(bob, "batch", "cancel", batches[1])
        self.assertIn("FORBIDDEN", done.stderr)
        done = self.command(root, "batch", "cancel", batches[1])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_quotas_are_configured_and_said(self):
        self.cluster.coordinator.stop()
        self.start_coordinator("tcp://127.0.0.1:0", "--max-jobs-per-client", "3")
        alice, bob = self.peer("alice"), self.peer("bob")
        jobs = "".join(json.dumps({"benchmark": f"benchmark://mm-v0/mm4_4_{n}", "actions": []})
                       + "\n" for n in range(4, 7))
        done = self.command(alice, "submit", "-", stdin=jobs)
        self.assertEqual(done.returncode, 0, done.stderr)
        # The client waits for room, as the refusal tells it to; here until its time limit. A slow machine may need
        # more to be refused at all.
        for limit in ("2", "8", "16"):
            done = self.command(alice, "--timeout", limit, "submit", "-", stdin=jobs)
            if done.returncode != 69:
                break
        self.assertEqual(done.returncode, 75, done.stderr)
        done = self.command(bob, "submit", "-", stdin=jobs)
        self.assertEqual(done.returncode, 0, "others have room of their own: " + done.stderr)


class LiveChanges(KeyedFleet):
    def authorized(self, name, role):
        return self.keys / "authorized" / f"{role}s" / f"{name}.key"

    def test_a_key_is_good_as_soon_as_its_file_is_there_and_until_it_goes(self):
        alice = self.peer("alice")  # while the coordinator runs
        self.assertEqual(self.batches_as(alice), [])
        job = json.dumps({"benchmark": MATMUL, "actions": []}) + "\n"
        done = self.command(alice, "submit", "-", stdin=job)
        self.assertEqual(done.returncode, 0, done.stderr)

        # A lasting connection: `batch wait` fetches once a second and gets no further answer.
        waiting = subprocess.Popen(
            [fleet.program("loopfleet"), "batch", "wait", "last"], text=True,
            stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=fleet.die_with_parent,
            env=fleet.clean_environment(LOOPFLEET_ADDRESS=self.address, LOOPFLEET_KEYS=str(alice)))
        self.addCleanup(lambda: waiting.poll() is None and waiting.kill())
        os.remove(self.authorized("alice", "client"))
        _, errors = waiting.communicate(timeout=LIMIT_S)
        self.assertEqual(waiting.returncode, 1, errors)
        self.assertIn("UNAUTHENTICATED", errors)
        done = self.command(alice, "batch", "list")
        self.assertIn("UNAUTHENTICATED", done.stderr)

        shutil.copy(alice / "alice.key", self.authorized("alice", "client"))
        self.assertEqual(len(self.batches_as(alice)), 1)

    def test_a_revoked_worker_leaves_the_fleet_at_once(self):
        root, node = self.peer("root", "admin"), self.peer("node7", "worker")
        worker = self.start_worker(node)
        fleet.wait_until(lambda: self.workers_as(root), "the worker is registered", LIMIT_S)
        os.remove(self.authorized("node7", "worker"))
        self.assertEqual(self.workers_as(root), [])
        # Refused at its next message, the worker drops its jobs and keeps trying, as one that was never
        # authorized does: keys that are missing for a moment must not end a fleet.
        fleet.wait_until(lambda: "UNAUTHENTICATED" in worker.log.read_text(), "it is told", LIMIT_S)
        shutil.copy(node / "node7.key", self.authorized("node7", "worker"))
        fleet.wait_until(lambda: self.workers_as(root), "it is back", LIMIT_S)
        self.assertIsNone(worker.process.poll())

    def test_a_moment_without_keys_ends_no_worker(self):
        root, node = self.peer("root", "admin"), self.peer("node7", "worker")
        worker = self.start_worker(node)
        fleet.wait_until(lambda: self.workers_as(root), "the worker is registered", LIMIT_S)
        (self.keys / "authorized").chmod(0o775)
        fleet.wait_until(lambda: "UNAUTHENTICATED" in worker.log.read_text(), "it is told", LIMIT_S)
        (self.keys / "authorized").chmod(0o755)
        fleet.wait_until(lambda: self.workers_as(root), "it is back", LIMIT_S)
        self.assertIsNone(worker.process.poll())

    def test_replacing_a_key_revokes_the_old_one(self):
        old = self.peer("alice")
        self.assertEqual(self.batches_as(old), [])
        said = self.keygen("--name", "alice", "--out", self.dir / "new", "--authorize", self.keys,
                           expect=1)
        self.assertIn("--replace", said)
        self.keygen("--name", "alice", "--out", self.dir / "new", "--authorize", self.keys,
                    "--replace")
        self.assertEqual(self.batches_as(self.dir / "new"), [])
        self.assertIn("UNAUTHENTICATED", self.command(old, "batch", "list").stderr)

    def test_a_bad_file_is_told_and_harms_nobody_else(self):
        alice = self.peer("alice")
        (self.keys / "authorized" / "clients" / "broken.key").write_text("nonsense")
        fleet.wait_until(lambda: "broken.key: it has no line" in self.log.read_text(),
                         "the problem is logged", LIMIT_S)
        self.assertEqual(self.batches_as(alice), [])

    def test_a_directory_that_is_gone_authorizes_nobody_until_it_is_back(self):
        alice = self.peer("alice")
        self.assertEqual(self.batches_as(alice), [])
        (self.keys / "authorized").rename(self.keys / "away")
        self.assertIn("UNAUTHENTICATED", self.command(alice, "batch", "list").stderr)
        (self.keys / "away").rename(self.keys / "authorized")
        self.assertEqual(self.batches_as(alice), [])


class Keygen(unittest.TestCase):
    def setUp(self):
        self.cluster = fleet.Fleet(workers=0)
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.dir = self.cluster.dir

    def keygen(self, *arguments):
        return subprocess.run([fleet.program("loopfleet"), "keygen", *map(str, arguments)],
                              text=True, capture_output=True, cwd=self.dir,
                              env=fleet.clean_environment(), timeout=LIMIT_S)

    def test_files_and_modes(self):
        done = self.keygen("--role", "coordinator")
        self.assertEqual(done.returncode, 0, done.stderr)
        keys = self.dir / "keys"
        self.assertEqual(keys.stat().st_mode & 0o777, 0o700)
        self.assertEqual((keys / "coordinator.key_secret").stat().st_mode & 0o777, 0o600)
        self.assertEqual(sorted(p.name for p in (keys / "authorized").iterdir()),
                         ["admins", "clients", "workers"])
        self.assertEqual(done.stdout.split(),
                         ["keys/coordinator.key_secret", "keys/coordinator.key"])
        self.assertIn("loopfleet-coordinator --keys keys", done.stderr)
        again = self.keygen("--role", "coordinator")
        self.assertEqual(again.returncode, 1)
        self.assertIn("never written over", again.stderr)

    def test_misuse_is_told(self):
        for arguments, part in ((("--role", "king"), "use client, worker, admin or coordinator"),
                                (("--name", "a/b"), "a key's name has"),
                                (("--name", "x", "--replace"), "without --authorize"),
                                (("--role", "coordinator", "--name", "x"), "is called coordinator"),
                                (("--role", "coordinator", "--authorize", "keys"), "by nobody")):
            done = self.keygen(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)
        done = self.keygen("--name", "x", "--authorize", self.dir / "none")
        self.assertEqual(done.returncode, 1)
        self.assertIn("coordinator.key", done.stderr)
        self.assertFalse((self.dir / "x-keys").exists(), "nothing is made in vain")

    def test_pyzmq_reads_the_files(self):
        """Reads the two lines that pyzmq's zmq.auth.load_certificate looks for, as it does."""
        self.assertEqual(self.keygen("--name", "alice").returncode, 0)
        fields = {}
        for line in (self.dir / "alice-keys" / "alice.key_secret").read_bytes().splitlines():
            line = line.strip()
            if line.startswith(b"#"):
                continue
            for name in (b"public-key", b"secret-key"):
                if line.startswith(name):
                    fields[name] = line.split(b"=", 1)[1].strip(b" \t'\"")
        self.assertEqual({name: len(value) for name, value in fields.items()},
                         {b"public-key": 40, b"secret-key": 40})


class Documentation(unittest.TestCase):
    """The commands of docs/SECURITY.md and docs/OPERATIONS.md, unchanged."""

    def setUp(self):
        self.cluster = fleet.Fleet(workers=0)
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.dir = self.cluster.dir
        self.root = pathlib.Path(__file__).resolve().parents[2]

    def shell(self, script):
        done = subprocess.run(["bash", "-euc", script], cwd=self.dir, text=True,
                              capture_output=True, env=fleet.clean_environment(), timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_commands_of_security_md(self):
        page = (self.root / "docs" / "SECURITY.md").read_text()
        script = re.search(r"security_test\.py\. -->\n```sh\n(.*?)```", page, re.DOTALL).group(1)
        self.assertEqual(script.count("loopfleet keygen"), 5)
        self.shell(script)
        authorized = self.dir / "keys" / "authorized"
        self.assertEqual(sorted(p.name for p in authorized.glob("*/*")), ["alice.key", "root.key"])
        self.assertEqual((authorized / "clients" / "alice.key").read_text(),
                         (self.dir / "alice-keys-2" / "alice.key").read_text())

    def test_the_keys_of_a_fleet_in_one_command(self):
        page = (self.root / "docs" / "OPERATIONS.md").read_text()
        command = re.search(r"^deploy/(make_keys\.sh keys .*)$", page, re.MULTILINE).group(1)
        made = self.shell(f"{self.root}/deploy/{command}").split()
        self.assertEqual([pathlib.Path(m).name for m in made],
                         ["alice", "bob", "node1", "node2", "root"])
        for peer in made:
            self.assertTrue((self.dir / peer / "coordinator.key").exists())
        before = (self.dir / "keys" / "authorized" / "clients" / "alice.key").read_text()
        more = self.shell(f"{self.root}/deploy/make_keys.sh keys --clients alice --workers node3")
        self.assertEqual(more.split(), ["keys/peers/node3"])
        self.assertEqual((self.dir / "keys" / "authorized" / "clients" / "alice.key").read_text(),
                         before)


class Addresses(unittest.TestCase):
    def setUp(self):
        self.cluster = fleet.Fleet(workers=0)
        self.addCleanup(self.cluster.__exit__, None, None, None)

    def test_other_addresses_need_keys_and_the_refusal_says_how_to_make_them(self):
        for flag in ("--listen-clients", "--listen-workers"):
            done = subprocess.run(
                [fleet.program("loopfleet-coordinator"), flag, "tcp://0.0.0.0:0", "--db",
                 str(self.cluster.dir / "x.db")], text=True, capture_output=True,
                env=fleet.clean_environment(), timeout=LIMIT_S)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn(flag, done.stderr)
            self.assertIn("loopfleet keygen --role coordinator --out KEYS", done.stderr)
        # The commands in the message work as printed.
        keys = self.cluster.dir / "KEYS"
        for arguments in (["--role", "coordinator", "--out", "KEYS"],
                          ["--role", "client", "--name", "NAME", "--out", "NAME-keys",
                           "--authorize", "KEYS"]):
            subprocess.run([fleet.program("loopfleet"), "keygen", *arguments], check=True,
                           cwd=self.cluster.dir, capture_output=True,
                           env=fleet.clean_environment(), timeout=LIMIT_S)
        everywhere = fleet.Daemon(
            [fleet.program("loopfleet-coordinator"), "--listen-clients", "tcp://0.0.0.0:0",
             "--listen-workers", "tcp://127.0.0.1:0", "--http", "127.0.0.1:0", "--db",
             str(self.cluster.dir / "y.db"), "--keys", str(keys)],
            self.cluster.dir / "everywhere.log")
        self.addCleanup(everywhere.stop)
        port = everywhere.ready["clients"].rsplit(":", 1)[1]
        done = subprocess.run(
            [fleet.program("loopfleet"), "--address", f"tcp://127.0.0.1:{port}", "--keys",
             str(self.cluster.dir / "NAME-keys"), "batch", "list", "--json"], text=True,
            capture_output=True, env=fleet.clean_environment(), timeout=LIMIT_S)
        self.assertEqual(json.loads(done.stdout), [], done.stderr)


if __name__ == "__main__":
    fleet.main()

"""deploy/compose: docker-compose takes the file; what it names is there, and knows what it is given; the role that
Grafana reads as may read what a mirror makes."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/integration"))
sys.path.insert(0, str(ROOT / "tests/integration/postgres"))
import fleet  # noqa: E402
from fleet import Fleet, clean_environment, program  # noqa: E402
from postgres_server import PostgresServer, programs  # noqa: E402

try:
    import yaml
except ImportError:
    print("SKIPPED: python3-yaml is not installed (deploy/dependencies.sh --tests)")
    sys.exit(77)

FOLDER = ROOT / "deploy" / "compose"
FILE = FOLDER / "compose.yaml"
SETTINGS = {"LOOPFLEET_POSTGRES_PASSWORD": "one", "LOOPFLEET_READER_PASSWORD": "two"}
# They are made as the file's head says.
MADE = {"keys", "keys/peers/compose"}
OURS = ("loopfleet-coordinator", "loopfleet-worker")


def docker_compose(**settings):
    return subprocess.run(["docker-compose", "-f", str(FILE), "config"], text=True, capture_output=True,
                          env={**{name: value for name, value in os.environ.items() if name not in SETTINGS}, **settings},
                          timeout=fleet.COMMAND_LIMIT_S)


def stage(name):
    text = (ROOT / "deploy/container/Dockerfile").read_text()
    return next(s for s in re.split(r"(?m)^FROM ", text) if s.split("\n")[0].endswith(f"AS {name}"))


class ComposeTest(unittest.TestCase):
    def setUp(self):
        self.services = yaml.safe_load(FILE.read_text())["services"]

    def mounts(self):
        """(service, path in the tree, path in the container) of each mount from the tree."""
        for name, service in self.services.items():
            for mount in service.get("volumes", []):
                source, target = mount.split(":")[:2]
                if source.startswith("."):
                    yield name, (FOLDER / source).resolve(), target

    @unittest.skipIf(shutil.which("docker-compose") is None, "docker-compose is not installed")
    def test_docker_compose_takes_it(self):
        done = docker_compose(**SETTINGS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        said = yaml.safe_load(done.stdout)["services"]
        self.assertEqual(sorted(said), sorted(self.services))
        self.assertEqual(said["loopfleet-coordinator"]["environment"]["LOOPFLEET_COORDINATOR_RESULTS"],
                         "postgresql://loopfleet:one@postgres/loopfleet")
        done = docker_compose()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("see the head of compose.yaml", done.stderr)

    def test_files_are_there_and_volumes_declared(self):
        for name, source, _ in self.mounts():
            if str(source.relative_to(FOLDER, ) if source.is_relative_to(FOLDER) else source) not in MADE:
                self.assertTrue(source.exists(), f"{name}: {source}")
        self.assertTrue(os.access(FOLDER / "make_reader.sh", os.X_OK))
        declared = set(yaml.safe_load(FILE.read_text())["volumes"])
        used = {mount.split(":")[0] for service in self.services.values() for mount in service.get("volumes", [])}
        self.assertEqual(declared, {name for name in used if not name.startswith(".")})

    def test_our_images_know_what_they_are_given(self):
        version = re.search(r"project\(loopfleet VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
        for name in OURS:
            service = self.services[name]
            self.assertEqual(service["image"], f"{name}:{version}")
            made = stage(service["build"]["target"])
            self.assertIn(f'ENTRYPOINT ["{name}"]', made)
            self.assertTrue((FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).exists())
            told = subprocess.run([program(name), "--help"], text=True, capture_output=True, check=True).stdout
            prefix = name.replace("-", "_").upper() + "_"
            for variable in service["environment"]:
                self.assertTrue(variable.startswith(prefix), variable)
                self.assertIn("--" + variable.removeprefix(prefix).lower().replace("_", "-"), told)
            exposed = re.search(r"(?m)^EXPOSE (.*)$", made)[1].split()
            for port in service.get("ports", []):
                self.assertIn(port.split(":")[-1], exposed)
            targets = [mount.split(":")[1] for mount in service["volumes"]]
            self.assertIn(re.search(prefix + r"KEYS=(\S+)", made)[1], targets)
        # The worker's default is the coordinator's name here.
        self.assertIn("LOOPFLEET_WORKER_COORDINATOR=tcp://loopfleet-coordinator:5571 ", stage("worker"))

    @unittest.skipIf(os.geteuid() != 0, "only root can give keys to the containers' user")
    def test_keys_as_its_head_makes_them_serve_the_containers_and_peers_can_be_added(self):
        head = re.findall(r"(?m)^#   (\S.*)", FILE.read_text())
        (last,) = [i for i, line in enumerate(head) if line.startswith("printf")]
        user = int(re.search(r"(?m)^USER (\d+)", (ROOT / "deploy/container/Dockerfile").read_text())[1])
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            root.chmod(0o755)
            keys = root / "deploy/compose/keys"
            keys.parent.mkdir(parents=True)
            shutil.copy(ROOT / "deploy/make_keys.sh", root / "deploy")

            def shell(command):
                done = subprocess.run(["bash", "-ec", command], cwd=root, text=True, capture_output=True,
                                      env=clean_environment(LOOPFLEET=program("loopfleet")), timeout=fleet.COMMAND_LIMIT_S)
                self.assertEqual(done.returncode, 0, done.stderr)

            shell("\n".join(head[:last]))
            # Each container sees what is mounted into it, as its user.
            seen = root / "worker"
            shutil.copytree(keys / "peers/compose", seen)
            for path in (seen, *seen.iterdir()):
                there = (keys / "peers/compose" / path.relative_to(seen)).stat()
                os.chown(path, there.st_uid, there.st_gid)
            for folder in ("coordinator-home", "worker-home"):
                (root / folder).mkdir()
                os.chown(root / folder, user, user)

            def as_user(home):
                def become():
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)
                    os.chdir(root / home)
                return become

            daemons = []
            try:
                daemons.append(fleet.Daemon(
                    [program("loopfleet-coordinator"), "--listen-clients", "tcp://127.0.0.1:0", "--listen-workers",
                     "tcp://127.0.0.1:0", "--http", "127.0.0.1:0", "--db", "fleet.db", "--keys", str(keys)],
                    root / "coordinator.log", before_exec=as_user("coordinator-home")))
                shell("deploy/make_keys.sh deploy/compose/keys --workers more")
                daemons.append(fleet.Daemon(
                    [program("loopfleet-worker"), "--coordinator", daemons[0].ready["workers"], "--http", "127.0.0.1:0",
                     "--keys", str(seen)], root / "worker.log", before_exec=as_user("worker-home")))
                alice = clean_environment(LOOPFLEET_ADDRESS=daemons[0].ready["clients"],
                                          LOOPFLEET_KEYS=str(keys / "peers/alice"))
                fleet.wait_until(lambda: '"compose/' in subprocess.run(
                    [program("loopfleet"), "worker", "list", "--json"], text=True, capture_output=True, env=alice).stdout,
                    "the worker is registered", fleet.COMMAND_LIMIT_S)
                self.assertRegex((root / "coordinator.log").read_text(), "keys.authorized role=worker name=more")
            finally:
                for daemon in reversed(daemons):
                    daemon.kill()

    # A connection through a published port comes from Docker's bridge, which is not "this machine".
    def test_the_page_answers_through_its_port_and_on_this_machine_only(self):
        service = self.services["loopfleet-coordinator"]
        self.assertEqual(service["environment"]["LOOPFLEET_COORDINATOR_PAGE"], "everybody")
        self.assertEqual([port for port in service["ports"] if port.endswith(":9570")], ["127.0.0.1:9570:9570"])

    def test_prometheus_finds_the_daemons(self):
        found = {}
        for _, source, target in self.mounts():
            if target == "/etc/prometheus/targets":
                for path in source.glob("*.json"):
                    ((host, port),) = [t.split(":") for t in json.loads(path.read_text())[0]["targets"]]
                    found[host] = port
                    self.assertIn(port, re.search(r"(?m)^EXPOSE (.*)$", stage(host.removeprefix("loopfleet-")))[1].split())
        self.assertEqual(sorted(found), sorted(OURS))
        mounted = {target for name, _, target in self.mounts() if name == "prometheus"}
        (config,) = [word.split("=")[1] for word in self.services["prometheus"]["command"] if "--config.file" in word]
        self.assertIn(config, mounted)

    def test_grafana_asks_services_that_are_there(self):
        for source in yaml.safe_load((FOLDER / "datasources.yml").read_text())["datasources"]:
            host, port = re.sub(r"^https?://", "", source["url"]).split(":")
            self.assertIn(host, self.services)
            self.assertEqual(port, {"prometheus": "9090", "postgres": "5432"}[host])
            for variable in re.findall(r"\$(\w+)", str(source.get("secureJsonData", ""))):
                self.assertIn(variable, self.services["grafana"]["environment"])
        provider = yaml.safe_load((FOLDER / "dashboards.yml").read_text())
        self.assertIn(provider["providers"][0]["options"]["path"],
                      {target for name, _, target in self.mounts() if name == "grafana"})

    @unittest.skipIf(programs() is None, "PostgreSQL is not installed (Debian: postgresql)")
    def test_the_reader_reads_what_the_mirror_makes(self):
        with PostgresServer() as server, Fleet(workers=0) as running:
            environment = clean_environment(
                POSTGRES_USER="postgres", POSTGRES_DB="postgres", LOOPFLEET_READER_PASSWORD="it's secret",
                PGHOST="127.0.0.1", PGPORT=str(server.port), PATH=f"{programs()}:{os.environ['PATH']}")
            subprocess.run([str(FOLDER / "make_reader.sh")], env=environment, check=True, capture_output=True)
            running.submit([{"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": ["up"]}])
            subprocess.run([program("loopfleet-mirror"), "--db", str(running.database), "--once"], check=True,
                           env=clean_environment(LOOPFLEET_RESULTS=server.url), capture_output=True)
            self.assertEqual(server.rows("SET ROLE reader; SELECT count(*) FROM loopfleet.v_results"), [["1"]])
            with self.assertRaisesRegex(AssertionError, "permission denied"):
                server.rows("SET ROLE reader; DELETE FROM loopfleet.outcomes")


if __name__ == "__main__":
    fleet.main()

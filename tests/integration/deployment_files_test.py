"""The files in deploy/ for Kubernetes and containers match this version of the programs. Exit status 77
without PyYAML."""

import copy
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import fleet

try:
    import manifests
    import yaml
except ImportError:
    print("SKIPPED: python3-yaml is not installed (deploy/dependencies.sh --tests)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
WATCHED = ROOT / "monitoring" / "prometheus-kubernetes.yml"
DOCKERFILE = ROOT / "deploy" / "container" / "Dockerfile"
PROGRAM_OF_IMAGE = {"loopfleet-coordinator": "loopfleet-coordinator",
                    "loopfleet-worker": "loopfleet-worker"}


def version():
    return re.search(r"project\(loopfleet VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def flags_of(name):
    """Every flag that a program's --help lists."""
    done = subprocess.run([fleet.program(name), "--help"], text=True, capture_output=True,
                          timeout=fleet.COMMAND_LIMIT_S, check=True)
    return set(re.findall(r"--[a-z][-a-z]*", done.stdout))


def copies(text):
    """([source...], target) of every COPY from the tree, not from another stage."""
    found = re.findall(r"(?m)^COPY ((?:[^-\s]\S* )+)(\S+)$", text)
    return [(sources.split(), target) for sources, target in found]


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.kustomization, self.objects = manifests.load(KUBERNETES)

    def test_every_name_that_is_used_is_there(self):
        manifests.check_references(self.objects)

    def test_mistakes_would_be_seen(self):
        def refused(change):
            objects = copy.deepcopy(self.objects)
            change(objects)
            with self.assertRaises(manifests.Wrong):
                for (kind, name), o in objects.items():
                    manifests.check_shape(o, {"apiVersion!": str, "kind!": str,
                                              "metadata!": manifests.METADATA,
                                              **manifests.KINDS[kind][1]}, name)
                manifests.check_references(objects)

        def pod(objects):
            return objects["DaemonSet", "loopfleet-worker"]["spec"]["template"]

        refused(lambda o: pod(o)["spec"].update(securtyContext={}))
        refused(lambda o: pod(o)["spec"].pop("securityContext"))
        refused(lambda o: pod(o)["spec"].update(nodeSelector={"loopfleet.io/worker": True}))
        refused(lambda o: pod(o)["spec"]["containers"][0]["volumeMounts"].append(
            {"name": "nothing", "mountPath": "/x"}))
        refused(lambda o: pod(o)["spec"]["containers"][0]["ports"].clear())
        refused(lambda o: pod(o)["spec"]["containers"][0]["env"][0]["valueFrom"].clear())
        refused(lambda o: pod(o)["metadata"]["labels"].clear())
        refused(lambda o: pod(o)["spec"]["containers"][0].pop("readinessProbe"))
        refused(lambda o: pod(o)["spec"]["containers"][0]["livenessProbe"]["httpGet"].update(path="/readyz"))
        refused(lambda o: o["Service", "loopfleet-coordinator"]["spec"]["selector"].update(app="x"))
        refused(lambda o: o.pop(("Service", "loopfleet-coordinator")))

    def test_the_programs_know_the_flags_and_images_are_of_this_version(self):
        for name, template in manifests.pods(self.objects):
            for container in manifests.containers(template):
                self.assertIn(container["image"], PROGRAM_OF_IMAGE)
                known = flags_of(PROGRAM_OF_IMAGE[container["image"]])
                for argument in container.get("args", []):
                    self.assertIn(argument.split("=")[0], known, name)
                prefix = container["image"].replace("-", "_").upper() + "_"
                for variable in container.get("env", []):
                    self.assertTrue(variable["name"].startswith(prefix), variable)
                    flag = "--" + variable["name"].removeprefix(prefix).lower().replace("_", "-")
                    self.assertIn(flag, known, name)
        images = {i["name"]: i["newTag"] for i in self.kustomization["images"]}
        self.assertEqual(images, {image: version() for image in PROGRAM_OF_IMAGE})

    def test_nothing_runs_as_root_or_with_a_capability(self):
        for name, template in manifests.pods(self.objects):
            self.assertTrue(template["spec"]["securityContext"]["runAsNonRoot"], name)
            self.assertFalse(template["spec"]["automountServiceAccountToken"], name)
            for container in manifests.containers(template):
                context = container["securityContext"]
                self.assertEqual(context["capabilities"], {"drop": ["ALL"]}, name)
                self.assertFalse(context["allowPrivilegeEscalation"], name)
                self.assertTrue(context["readOnlyRootFilesystem"], name)

    def test_the_workers_of_a_node_are_of_one_host(self):
        template = dict(manifests.pods(self.objects))["loopfleet-worker"]
        environment = {v["name"]: v for v in template["spec"]["containers"][0]["env"]}
        self.assertEqual(environment["LOOPFLEET_WORKER_HOST"]["valueFrom"],
                         {"fieldRef": {"fieldPath": "spec.nodeName"}})

    def test_the_worker_has_whole_cpus_of_its_own(self):
        template = dict(manifests.pods(self.objects))["loopfleet-worker"]
        for container in manifests.containers(template):
            resources = container["resources"]
            self.assertEqual(resources["requests"], resources["limits"])
            self.assertTrue(resources["limits"]["cpu"].isdigit())

    def test_prometheus_finds_every_daemon_under_the_name_that_the_alerts_use(self):
        found = [job for _, template in manifests.pods(self.objects)
                 for job in manifests.scraped(template, WATCHED)]
        self.assertEqual(sorted(found), ["loopfleet-coordinator", "loopfleet-worker"])
        # The same names as in the other configuration and in the alerts.
        listed = yaml.safe_load((ROOT / "monitoring" / "prometheus.yml").read_text())
        self.assertEqual(sorted(found), sorted(c["job_name"] for c in listed["scrape_configs"]))
        alerts = (ROOT / "monitoring" / "rules" / "loopfleet.yml").read_text()
        self.assertLessEqual(set(re.findall(r'job="([^"]+)"', alerts)), set(found))
        for label in ("part-of", "component"):
            for _, template in manifests.pods(copy.deepcopy(self.objects)):
                del template["metadata"]["labels"][f"app.kubernetes.io/{label}"]
                self.assertNotIn(manifests.scraped(template, WATCHED),
                                 (["loopfleet-coordinator"], ["loopfleet-worker"]))

    def test_kustomize_renders_it(self):
        if shutil.which("kubectl") is None:
            self.skipTest("SKIPPED: there is no kubectl")
        done = subprocess.run(["kubectl", "kustomize", str(KUBERNETES)], text=True,
                              capture_output=True, timeout=fleet.COMMAND_LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        for image in PROGRAM_OF_IMAGE:
            self.assertIn(f"image: {image}:{version()}", done.stdout)


class Targets(unittest.TestCase):
    def test_the_recipe_for_lists_gives_addresses_that_others_can_reach(self):
        if shutil.which("jq") is None:
            self.skipTest("SKIPPED: there is no jq")
        told = (ROOT / "monitoring" / "prometheus-file_sd.yml").read_text()
        (program,) = re.findall(r"(?s)worker list --json \|\n#     jq '(.*?)'", told)
        with fleet.Fleet(workers=0) as f:
            f.workers.append(fleet.Daemon(
                [fleet.program("loopfleet-worker"), "--coordinator", f.worker_address,
                 "--http", "0.0.0.0:0"], f.dir / "worker.log"))
            f.await_workers(1)
            listed = f.json("worker", "list")
        self.assertTrue(listed[0]["http"].startswith("0.0.0.0:"), listed)
        port = listed[0]["http"].rsplit(":")[1]
        listed += [{"host": "six", "http": "[::]:9571"}, {"host": "none", "http": None}]
        done = subprocess.run(["jq", program], input=json.dumps(listed), text=True,
                              capture_output=True, timeout=fleet.COMMAND_LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout),
                         [{"targets": [f"{listed[0]['host']}:{port}", "six:9571"]}])


class Container(unittest.TestCase):
    def test_packages_stand_in_the_one_list_and_the_user_is_not_root(self):
        text = DOCKERFILE.read_text()
        self.assertNotIn("apt-get install", text)
        self.assertGreaterEqual(text.count("dependencies.sh"), 2)
        self.assertRegex(text, r"(?m)^USER 10001:10001$")
        stages = re.split(r"(?m)^FROM .* AS ", text)[1:]
        daemons = [s for s in stages if s.split()[0] in ("coordinator", "worker")]
        self.assertEqual(len(daemons), 2)
        for stage in daemons:
            self.assertIn("HEALTHCHECK", stage)
            name = re.search(r'ENTRYPOINT \["([-a-z]+)"\]', stage)[1]
            settings = re.findall(name.replace("-", "_").upper() + "_([A-Z_]+)=", stage)
            self.assertGreater(len(settings), 2)
            self.assertLessEqual({"--" + setting.lower().replace("_", "-") for setting in settings}, flags_of(name))
            # Arguments after the image's name would take its place.
            self.assertNotRegex(stage, r"(?m)^CMD")
        for sources, _ in copies(text):
            for source in sources:
                self.assertTrue((ROOT / source).exists(), source)
        for tag in re.findall(r"-t \S+:(\S+)", text):
            self.assertEqual(tag, version())

    def test_the_packages_can_be_installed_from_what_is_copied(self):
        stages = re.split(r"(?m)^FROM ", DOCKERFILE.read_text())[1:]
        ran = [stage for stage in stages if self.install_as_in(stage)]
        self.assertEqual(len(ran), 2)  # the build stage and the run stage

    def install_as_in(self, stage):
        """Runs deploy/dependencies.sh as a stage does, in a folder with exactly the files that the stage has
        copied by then, on a Debian with every package. False if the stage does not run it."""
        ran = re.search(r"(?m)^RUN (\S*dependencies\.sh)((?: --\S+)*)", stage)
        if ran is None:
            return False
        before = stage[:ran.start()]
        workdir = re.search(r"(?m)^WORKDIR /(\S+)$", before)
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "root"
            here = root / (workdir[1] if workdir else "")
            for sources, target in copies(before):
                for source in sources:
                    to = root / target[1:] if target.startswith("/") else here / target
                    to.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / source, to)
            script = root / ran[1][1:] if ran[1].startswith("/") else here / ran[1]
            installed = pathlib.Path(folder) / "installed"
            text = script.read_text()
            self.assertEqual(text.count("wheel_folder=/usr/local/lib/loopfleet\n"), 1)
            script.write_text(text.replace("wheel_folder=/usr/local/lib/loopfleet\n",
                                           f"wheel_folder={installed}\n"))
            stubs = pathlib.Path(folder) / "stubs"
            stubs.mkdir()
            for name, does in {
                    "dpkg-query": 'shift 3; for name; do echo "installed $name"; done',
                    "apt-get": "exit 1", "node": "exit 1", "sudo": 'exec "$@"',
                    "npm": "test -f package.json -a -f package-lock.json && mkdir -p node_modules/uplot",
            }.items():
                (stubs / name).write_text(f"#!/bin/sh\n{does}\n")
                (stubs / name).chmod(0o755)
            environment = {"PATH": f"{stubs}:{os.environ['PATH']}"}
            done = subprocess.run([str(script), *ran[2].split()], cwd=here, env=environment, text=True,
                                  capture_output=True, timeout=fleet.COMMAND_LIMIT_S)
            self.assertEqual(done.returncode, 0, f"{ran[0]}: {done.stderr}")
            builds = "--only-runtime" not in ran[2]
            self.assertEqual(len(list(installed.glob("page-*/node_modules/uplot"))), int(builds), ran[0])
        return True

    def test_who_can_not_become_root_is_told_so(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copytree(ROOT / "deploy", root / "deploy", symlinks=True)
            shutil.copytree(ROOT / "monitoring" / "page", root / "monitoring" / "page", symlinks=True)
            script = root / "deploy" / "dependencies.sh"
            # A machine without any of the fetched files and without sudo.
            script.write_text(script.read_text().replace("wheel_folder=/usr/local/lib/loopfleet\n",
                                                         f"wheel_folder={folder}/installed\n"))
            stubs = root / "stubs"
            stubs.mkdir()
            for name in ("bash", "cut", "dirname", "env", "grep", "sha256sum"):
                (stubs / name).symlink_to(shutil.which(name))
            for name, does in {"id": "echo 1000", "apt-get": "exit 1", "node": "exit 1", "npm": "exit 1",
                               "dpkg-query": 'shift 3; for name; do echo "installed $name"; done'}.items():
                (stubs / name).write_text(f"#!{shutil.which('bash')}\n{does}\n")
                (stubs / name).chmod(0o755)
            for arguments, said in (([], "As root, run: monitoring/page/fetch_packages.sh /"),
                                    (["--tests"], "WITHOUT nvidia-nvjitlink")):
                done = subprocess.run([str(script), *arguments], env={"PATH": str(stubs)}, text=True,
                                      capture_output=True, timeout=fleet.COMMAND_LIMIT_S)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("not root, and there is no sudo", done.stderr)
                self.assertIn(said, done.stderr)
                self.assertNotRegex(done.stderr, "fetch(ing|ed)")

    def test_the_libraries_of_the_programs_are_among_the_runtime_packages(self):
        if shutil.which("dpkg-query") is None:
            self.skipTest("SKIPPED: this is no Debian")
        listed = subprocess.run([str(ROOT / "deploy" / "dependencies.sh"), "--only-runtime", "--list"],
                                text=True, capture_output=True, check=True).stdout.split()
        # Their direct and indirect dependencies.
        there = set()
        waiting = listed + ["libc6"]
        while waiting:
            package = waiting.pop()
            if package in there:
                continue
            there.add(package)
            depends = subprocess.run(["dpkg-query", "-W", "-f", "${Depends}", package], text=True,
                                     capture_output=True).stdout
            waiting += [re.match(r"[-+.a-z0-9]+", d.strip())[0] for d in depends.split(",") if d.strip()]
        needed = set()
        for name in ("loopfleet", "loopfleet-coordinator", "loopfleet-worker"):
            libraries = subprocess.run(["ldd", fleet.program(name)], text=True, capture_output=True,
                                       check=True).stdout
            for path in re.findall(r"=> (\S+) \(", libraries):
                real = str(pathlib.Path(path).resolve())
                needed |= {real, real.removeprefix("/usr")}
        # It fails for libraries that belong to no package, and prints the others.
        owners = subprocess.run(["dpkg-query", "-S", *sorted(needed)], text=True,
                                capture_output=True).stdout
        for owner in re.findall(r"(?m)^([^:]+):", owners):
            if not re.match("lib[a-z]+san", owner):  # a build with sanitizers
                self.assertIn(owner, there, owners)

    def test_the_health_check_hears_the_daemon(self):
        script = str(ROOT / "deploy" / "container" / "healthy.sh")
        with fleet.Fleet(workers=0) as f:
            port = f.coordinator.ready["http"].rsplit(":", 1)[1]
            self.assertEqual(subprocess.run([script, port]).returncode, 0)
        self.assertNotEqual(subprocess.run([script, port], capture_output=True).returncode, 0)

    def test_the_health_check_ends_no_daemon_over_what_a_restart_does_not_mend(self):
        """Swarm and other systems restart unhealthy containers: they would kill a coordinator with a full disk."""
        says = {"/livez": 200, "/healthz": 503, "/readyz": 503}

        class FullDisk(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(says.get(self.path, 404))
                self.end_headers()

            def log_message(self, *_):
                pass

        script = str(ROOT / "deploy" / "container" / "healthy.sh")
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), FullDisk) as server:
            threading.Thread(target=server.serve_forever).start()
            try:
                port = str(server.server_address[1])
                self.assertEqual(subprocess.run([script, port]).returncode, 0)
                says["/livez"] = 503
                self.assertNotEqual(subprocess.run([script, port]).returncode, 0)
            finally:
                server.shutdown()


if __name__ == "__main__":
    fleet.main()

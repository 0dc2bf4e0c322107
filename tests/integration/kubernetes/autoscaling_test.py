"""deploy/kubernetes/autoscaled: its workers are those of the fixed nodes, and a real Prometheus answers its query
with the jobs that wait. Exit status 77 without PyYAML or Prometheus."""

import copy
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/integration"))
import fleet  # noqa: E402

try:
    import manifests
    import yaml
except ImportError:
    print("SKIPPED: python3-yaml is not installed (deploy/dependencies.sh --tests)")
    sys.exit(77)
from prometheus_test import Prometheus  # noqa: E402

FIXED = ROOT / "deploy" / "kubernetes"
FOLDER = FIXED / "autoscaled"


class Autoscaling(unittest.TestCase):
    def setUp(self):
        self.kustomization, self.objects = manifests.load(FOLDER)
        self.scaled = self.objects["ScaledObject", "loopfleet-elastic-worker"]["spec"]

    def test_every_name_that_is_used_is_there(self):
        manifests.check_references(self.objects)
        objects = copy.deepcopy(self.objects)
        del objects["Deployment", "loopfleet-elastic-worker"]
        with self.assertRaises(manifests.Wrong):
            manifests.check_references(objects)

    def test_elastic_workers_are_the_fixed_ones_elsewhere(self):
        fixed_kustomization, fixed = manifests.load(FIXED)
        fixed = fixed["DaemonSet", "loopfleet-worker"]["spec"]["template"]
        elastic = copy.deepcopy(self.objects["Deployment", "loopfleet-elastic-worker"]["spec"]["template"])
        one_a_node, = elastic["spec"].pop("affinity")["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        self.assertEqual(one_a_node["topologyKey"], "kubernetes.io/hostname")
        self.assertLessEqual(one_a_node["labelSelector"]["matchLabels"].items(), elastic["metadata"]["labels"].items())
        self.assertEqual(elastic["spec"].pop("nodeSelector"), {"loopfleet.io/worker": "elastic"})
        self.assertEqual(fixed["spec"].pop("nodeSelector"), {"loopfleet.io/worker": "true"})
        for template in (elastic, fixed):  # by the name no pod is of both
            self.assertTrue(template["metadata"]["labels"].pop("app.kubernetes.io/name"))
        self.assertEqual(elastic, fixed)
        self.assertIn(self.kustomization["images"][0], fixed_kustomization["images"])
        self.assertEqual(manifests.scraped(elastic, ROOT / "monitoring" / "prometheus-kubernetes.yml"), ["loopfleet-worker"])

    def test_the_network_lets_them_through(self):
        _, fixed = manifests.load(FIXED)
        labels = self.objects["Deployment", "loopfleet-elastic-worker"]["spec"]["template"]["metadata"]["labels"]
        worker = fixed["NetworkPolicy", "loopfleet-worker"]["spec"]["podSelector"]["matchLabels"]
        coordinator = fixed["NetworkPolicy", "loopfleet-coordinator"]["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"]
        for wanted in (worker, coordinator):
            self.assertLessEqual(wanted.items(), labels.items())

    def test_one_that_is_taken_away_has_time_to_drain(self):
        pod = self.objects["Deployment", "loopfleet-elastic-worker"]["spec"]["template"]["spec"]
        self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], 120)
        self.assertGreaterEqual(self.scaled["cooldownPeriod"], 5 * pod["terminationGracePeriodSeconds"])

    @unittest.skipIf(shutil.which("prometheus") is None, "prometheus is not installed (Debian: prometheus)")
    def test_prometheus_answers_with_the_jobs_that_wait(self):
        (trigger,) = self.scaled["triggers"]
        with tempfile.TemporaryDirectory() as folder, fleet.Fleet(
                workers=0, coordinator_arguments=["--no-worker-grace", "600"]) as running, Prometheus(
                pathlib.Path(folder), {"loopfleet-coordinator": running.coordinator.ready["http"]}) as prometheus:
            prometheus.expect(trigger["metadata"]["query"], 0)
            jobs = fleet.small_jobs(7) + [{"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": [], "device": "any"}]
            running.command("submit", "-", stdin=fleet.lines(jobs))
            prometheus.expect(trigger["metadata"]["query"], 8)

    def test_the_simulated_day_has_the_same_rule(self):
        rule = (ROOT / "tests/simulation/day/autoscaler.h").read_text()

        def number(name):
            return float(re.search(rf"\b{name} = (?:std::chrono::seconds\()?([\d.]+)", rule)[1])

        down = self.scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
        self.assertEqual(
            [number(name) for name in ("least", "most", "interval", "stabilization", "most_removed")],
            [self.scaled["minReplicaCount"], self.scaled["maxReplicaCount"], self.scaled["pollingInterval"],
             down["stabilizationWindowSeconds"], down["policies"][0]["value"] / 100])

    def test_kustomize_renders_it(self):
        if shutil.which("kubectl") is None:
            self.skipTest("SKIPPED: there is no kubectl")
        done = subprocess.run(["kubectl", "kustomize", str(FOLDER)], text=True, capture_output=True,
                              timeout=fleet.COMMAND_LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({each["metadata"]["namespace"] for each in yaml.safe_load_all(done.stdout)}, {"loopfleet"})


if __name__ == "__main__":
    fleet.main()

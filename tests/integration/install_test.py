"""What `cmake --install` installs: programs that run from there, a package that another project finds and
links with, and units that systemd accepts and rates as little exposed."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import fleet

MOST_EXPOSURE = 2.0
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(loopfleet 0.1 CONFIG REQUIRED)
add_executable(consumer consumer.cc)
target_link_libraries(consumer PRIVATE loopfleet::client)
add_executable(tensors tensors.cc)
target_link_libraries(tensors PRIVATE loopfleet::tensor)
"""
TENSORS = """
#include <cstdio>

#include "kernel/tensor_backend.h"
#include "tensor/tensor.h"

int main(int, char** argv) {
  using namespace loopfleet::tensor;
  Session::Of().SetBackend(loopfleet::CpuTensorBackend({.program = argv[1]}, loopfleet::VerifyWish::kOnce));
  const Symbol m("m"), n("n"), k("k");
  Tensor a(Tensor::Shape{2, 3}), b(Tensor::Shape{3, 4});
  a.fill(2);
  b.fill(5);
  const Tensor c = (a.to({m, k}) * b.to({k, n})).sum({k});
  std::printf("%zu elements of %g\\n", c.data<float>().size(), c.data<float>()[7]);
}
"""
PROGRAM = """
#include <cstdio>

#include "client/client.h"

int main(int, char** argv) {
  auto client = loopfleet::client::Client::Connect({.address = argv[1]});
  if (!client) {
    std::fprintf(stderr, "%s\\n", client.error().message.c_str());
    return 1;
  }
  const auto workers = client->ListWorkers();
  if (!workers) return 1;
  std::printf("epoch %llu, %zu workers\\n", static_cast<unsigned long long>(client->epoch()),
              workers->workers.size());
}
"""


def run(*command, **options):
    done = subprocess.run(command, text=True, capture_output=True, timeout=800,
                          preexec_fn=fleet.die_with_parent, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="lf-install-"))
        cls.prefix = cls.dir / "prefix"
        build = pathlib.Path(fleet.program("loopfleet")).parents[1]
        for component in ("programs", "library"):
            run("cmake", "--install", str(build), "--prefix", str(cls.prefix),
                "--component", component)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def test_installed_programs_run_from_there_with_the_tree_out_of_sight(self):
        command = str(self.prefix / "bin" / "loopfleet")
        shown = run(command, "local", "--workers", "0", "--", "loopfleet", "worker", "list", "--json",
                    env=fleet.clean_environment())
        self.assertEqual(shown.strip(), "[]")
        keys = self.dir / "keys"
        run(str(self.prefix / "share" / "loopfleet" / "make_keys.sh"), str(keys), "--workers", "n1",
            env=fleet.clean_environment(LOOPFLEET=command))
        self.assertTrue((keys / "peers" / "n1" / "n1.key_secret").exists())

    def test_manual_pages_know_every_command_and_are_well_formed(self):
        pages = {page.name: page for page in (self.prefix / "share" / "man" / "man1").iterdir()}
        self.assertEqual(sorted(pages), ["loopfleet-coordinator.1", "loopfleet-mirror.1", "loopfleet-worker.1",
                                         "loopfleet.1"])
        text = pages["loopfleet.1"].read_text(encoding="utf-8")
        for command in ("worker drain", "doctor", "events", "completion zsh"):
            self.assertIn(f".SS {command}\n", text)
        if shutil.which("groff"):
            for page in pages.values():
                done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", str(page)], text=True,
                                      capture_output=True, timeout=fleet.COMMAND_LIMIT_S)
                self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)

    def test_shells_and_servers_find_what_is_theirs(self):
        for name in ("bash-completion/completions/loopfleet", "zsh/site-functions/_loopfleet",
                     "fish/vendor_completions.d/loopfleet.fish", "loopfleet/monitoring/prometheus.yml",
                     "loopfleet/monitoring/rules/loopfleet.yml", "doc/loopfleet/LICENSE",
                     "loopfleet/javascript/loopfleet.mjs",
                     "loopfleet/monitoring/grafana/dashboards/fleet.json"):
            self.assertGreater((self.prefix / "share" / name).stat().st_size, 100, name)

    def test_grafana_finds_the_dashboards(self):
        grafana = self.prefix / "share/loopfleet/monitoring/grafana"
        text = (grafana / "provisioning/dashboards/loopfleet.yml").read_text()
        self.assertEqual(re.findall(r"(?m)^ *path: (.*)$", text), [str(grafana / "dashboards")])

    def test_a_project_of_somebody_else_finds_builds_and_links(self):
        project = self.dir / "consumer"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(PROJECT)
        (project / "consumer.cc").write_text(PROGRAM)
        (project / "tensors.cc").write_text(TENSORS)
        # The library of a sanitizer build needs the sanitizer's flags.
        cache = (pathlib.Path(fleet.program("loopfleet")).parents[1] / "CMakeCache.txt").read_text()
        sanitize = re.search(r"^LOOPFLEET_SANITIZE:\w+=(.*)$", cache, re.MULTILINE)[1]
        flags = [f"-DCMAKE_CXX_FLAGS=-fsanitize={sanitize}"] if sanitize else []
        compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.MULTILINE)[1]
        run("cmake", "-S", str(project), "-B", str(project / "build"), "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={compiler}", *flags)
        run("cmake", "--build", str(project / "build"))
        with fleet.Fleet(workers=0) as f:
            said = run(str(project / "build" / "consumer"), f.address)
        self.assertEqual(said, "epoch 1, 0 workers\n")
        worker = str(self.prefix / "bin" / "loopfleet-worker")
        self.assertEqual(run(str(project / "build" / "tensors"), worker), "8 elements of 30\n")
        # Minor versions may be incompatible, so another one is not accepted.
        (project / "CMakeLists.txt").write_text(PROJECT.replace("0.1", "0.2"))
        done = subprocess.run(["cmake", "-S", str(project), "-B", str(project / "other"),
                               f"-DCMAKE_PREFIX_PATH={self.prefix}"], text=True, capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("0.1", done.stderr)

    def test_units_are_whole_and_little_exposed(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("SKIPPED: there is no systemd-analyze")
        for name in ("loopfleet-coordinator", "loopfleet-worker"):
            unit = self.prefix / "lib" / "systemd" / "system" / f"{name}.service"
            rated = run("systemd-analyze", "security", "--offline=true", "--no-pager", str(unit))
            exposure = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", rated)[1])
            self.assertLessEqual(exposure, MOST_EXPOSURE, rated)
            # `verify` checks that programs exist, so ours get their current paths.
            text = unit.read_text()
            program = re.search(rf"^ExecStart=(\S+/{name})\b", text, re.MULTILINE)[1]
            here = self.dir / unit.name
            here.write_text(text.replace(program, str(self.prefix / "bin" / name)))
            verified = subprocess.run(["systemd-analyze", "verify", "--man=no", str(here)], text=True,
                                      capture_output=True, timeout=fleet.COMMAND_LIMIT_S)
            about_us = [line for line in verified.stderr.splitlines() if unit.name in line]
            self.assertEqual(about_us, [])

    def test_units_use_settings_that_there_are_and_leave_them_to_the_operators_file(self):
        for name in ("loopfleet-coordinator", "loopfleet-worker"):
            text = (self.prefix / "lib" / "systemd" / "system" / f"{name}.service").read_text()
            program = str(self.prefix / "bin" / name)
            self.assertRegex(text, rf"(?m)^ExecStart=\S+/{name}$", "a flag would beat the file")
            prefix = name.replace("-", "_").upper() + "_"
            settings = re.findall(rf"^Environment={prefix}(\w+)=", text, re.MULTILINE)
            known = run(program, "--help")
            self.assertTrue(settings)
            for setting in settings:
                self.assertIn("--" + setting.lower().replace("_", "-"), known)
            self.assertIn(f"/etc/loopfleet/{name.removeprefix('loopfleet-')}.env",
                          [path.lstrip("-") for path in re.findall(r"^EnvironmentFile=(.*)$", text, re.MULTILINE)])
            self.assertNotIn("@", re.sub(r"(?m)^(#|SystemCallFilter).*$", "", text))


if __name__ == "__main__":
    fleet.main()

"""What `cmake --install` leaves behind is complete: programs that run, manual pages, completions, units,
what Prometheus reads, and a library that find_package(loopfleet) finds and a small program uses."""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import fleet

build_dir = None

CONSUMER_CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
find_package(loopfleet 0.1 REQUIRED CONFIG)
add_executable(consumer main.cc)
target_link_libraries(consumer PRIVATE loopfleet::client)
"""

CONSUMER_MAIN = r"""
#include <cstdio>

#include "client/client.h"

int main(int, char** argv) {
  auto client = loopfleet::client::Client::Connect({.address = argv[1]});
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().message.c_str());
    return 1;
  }
  loopfleet::JobSpec job;
  job.source = loopfleet::looptree::BenchmarkUri{"benchmark://mm-v0/mm8_8_8"};
  int outcomes = 0;
  const auto done = client->Evaluate(std::vector{job}, [&](const loopfleet::Outcome&) { ++outcomes; });
  std::printf("%d outcomes, batch finished: %d\n", outcomes, done.has_value());
  return 0;
}
"""


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="loopfleet_install_")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = pathlib.Path(cls.folder.name) / "usr"
        subprocess.run(["cmake", "--install", build_dir, "--prefix", str(cls.prefix)], check=True,
                       stdout=subprocess.DEVNULL)

    def find(self, pattern):
        found = sorted(self.prefix.glob(pattern))
        self.assertTrue(found, pattern)
        return found

    def test_programs_run_from_where_they_are_installed(self):
        done = subprocess.run([self.prefix / "bin/loopfleet", "--version"], text=True,
                              capture_output=True, check=True)
        self.assertRegex(done.stdout, r"^loopfleet \d")
        for daemon in ("loopfleet-coordinator", "loopfleet-worker"):
            subprocess.run([self.prefix / "bin" / daemon, "--help"], stdout=subprocess.DEVNULL, check=True)

    def test_manual_pages_know_every_command_and_are_well_formed(self):
        pages = {page.name: page for page in self.find("share/man/man1/*.1")}
        self.assertEqual(sorted(pages),
                         ["loopfleet-coordinator.1", "loopfleet-worker.1", "loopfleet.1"])
        text = pages["loopfleet.1"].read_text(encoding="utf-8")
        for command in (".SS worker drain", ".SS doctor", ".SS events", ".SS completion zsh"):
            self.assertIn(command + "\n", text)
        self.assertIn("\\fB\\-\\-follow", text.replace("\\-f, ", ""))
        if shutil.which("groff"):
            for page in pages.values():
                done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", str(page)], text=True,
                                      capture_output=True, check=True)
                self.assertEqual(done.stderr, "", page.name)

    def test_shells_and_servers_find_what_is_theirs(self):
        for pattern in ("share/bash-completion/completions/loopfleet", "share/zsh/site-functions/_loopfleet",
                        "share/fish/vendor_completions.d/loopfleet.fish",
                        "lib/systemd/system/loopfleet-coordinator.service",
                        "lib/systemd/system/loopfleet-worker.service",
                        "share/loopfleet/monitoring/rules/loopfleet.yml",
                        "share/loopfleet/monitoring/grafana/dashboards/fleet.json"):
            self.assertGreater(self.find(pattern)[0].stat().st_size, 100, pattern)

    def test_the_library_is_found_and_used(self):
        source = pathlib.Path(self.folder.name) / "consumer"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(CONSUMER_CMAKE)
        (source / "main.cc").write_text(CONSUMER_MAIN)
        built = source / "build"
        for argv in (["cmake", "-S", str(source), "-B", str(built), f"-DCMAKE_PREFIX_PATH={self.prefix}"],
                     ["cmake", "--build", str(built)]):
            done = subprocess.run(argv, text=True, capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with fleet.Fleet() as f:
            done = subprocess.run([built / "consumer", f.address], text=True, capture_output=True,
                                  check=False, timeout=fleet.COMMAND_LIMIT_S)
            self.assertEqual((done.stdout, done.stderr), ("1 outcomes, batch finished: 1\n", ""))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    own, sys.argv[1:] = parser.parse_known_args()
    build_dir = own.build
    fleet.main()

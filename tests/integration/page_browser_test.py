"""The page in a real browser (headless Chromium), on a live fleet: page_browser.mjs does the checks. Skipped
without Chromium, which deploy/dependencies.sh --tests installs."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import fleet

SKIPPED = 77
LIMIT_S = 800

JOBS = [
    {"benchmark": "benchmark://mm-v0/mm64_64_64", "actions": ["down", "swap_up", "split_4"]},
    {"benchmark": "benchmark://mm-v0/mm64_64_64", "actions": ["down", "split_128"]},
    {"benchmark": "benchmark://loop_tool-cpu-v0/1024", "actions": ["toggle_mode", "up", "toggle_thread"]},
    {"benchmark": "benchmark://mm-v0/mm48_32_64", "actions": ["swap_up"], "on_illegal": "skip"},
]


def skip(why):
    print(f"SKIPPED: {why}", file=sys.stderr)
    sys.exit(SKIPPED)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--tests", required=True)
    parser.add_argument("--packages", required=True, help="where the page's npm packages are; '' without the page")
    arguments = parser.parse_args()
    if not arguments.packages:
        skip("this build is without the page (LOOPFLEET_PAGE=OFF)")
    chromium = shutil.which("chromium")
    if chromium is None:
        skip("there is no chromium: run deploy/dependencies.sh --tests")
    packages = pathlib.Path(arguments.packages)
    if not (packages / "node_modules" / "playwright-core").is_dir():
        skip(f"there is no playwright-core in {packages}: run deploy/dependencies.sh --tests")
    fleet.use_programs(arguments.bin, arguments.tests)
    with fleet.Fleet(workers=1) as cluster:
        _, outcomes = cluster.submit(JOBS)
        outcomes.sort(key=lambda outcome: outcome["job"])  # as in JOBS
        profiled = cluster.command("job", "profile", outcomes[0]["job"])
        if profiled.returncode != 0:
            raise AssertionError(profiled.stderr)
        home = cluster.dir / "home"
        home.mkdir()
        script = pathlib.Path(__file__).with_name("page_browser.mjs")
        environment = fleet.clean_environment(
            LOOPFLEET_ADDRESS=cluster.address, LOOPFLEET_HTTP=cluster.coordinator.ready["http"],
            LOOPFLEET_COORDINATOR_PID=str(cluster.coordinator.pid), LOOPFLEET_CHROMIUM=chromium,
            LOOPFLEET_OUTCOMES=json.dumps(outcomes), HOME=str(home))
        if "LOOPFLEET_SCREENSHOTS" in os.environ:
            environment["LOOPFLEET_SCREENSHOTS"] = os.environ["LOOPFLEET_SCREENSHOTS"]
        done = subprocess.run(["node", str(script), str(packages)], env=environment, timeout=LIMIT_S,
                              preexec_fn=fleet.die_with_parent, check=False)
        if done.returncode != 0:
            raise AssertionError(f"page_browser.mjs: exit status {done.returncode}")


if __name__ == "__main__":
    main()

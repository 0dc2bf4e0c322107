#!/usr/bin/env bash
# Installs what is needed, builds, and runs every test; ctest's summary comes last and the exit status
# is its own. Arguments go to ctest, for example: tests/run.sh -L unit
#   LOOPFLEET_PRESET=release   which preset of CMakePresets.json to use
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

preset=${LOOPFLEET_PRESET:-release}
deploy/dependencies.sh --tests
tests/python/make_environment.sh
cmake --preset "$preset"
cmake --build --preset "$preset" --parallel "$(nproc)"
# Two at a time: the fleets of the integration tests share the machine. What measures time, or fills
# the machine, is marked RUN_SERIAL and runs alone.
ctest --preset "$preset" --parallel 2 "$@"

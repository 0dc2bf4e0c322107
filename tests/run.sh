#!/usr/bin/env bash
# Installs what is needed, builds, and runs every test; ctest's summary comes last and the exit status
# is its own. Tests that failed, if they are few, run once more, alone, and are named: what fails then
# as well is broken, what passes is a test that a loud host can disturb and that wants mending.
# Arguments go to ctest, for example: tests/run.sh -L unit
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
failed=build/$preset/Testing/Temporary/LastTestsFailed.log
rm -f "$failed"
ctest --preset "$preset" --parallel 2 "$@" && exit
status=$?

most_second_tries=5
if [[ ! -s $failed ]] || (($(wc -l <"$failed") > most_second_tries)); then
  exit "$status"
fi
printf '\nFailed beside others, once more alone:\n'
sed 's/^[0-9]*:/  /' "$failed"
ctest --preset "$preset" --rerun-failed

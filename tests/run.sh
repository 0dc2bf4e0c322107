#!/usr/bin/env bash
# Installs what is needed, builds, and runs every test; ctest's summary comes last. Tests that failed,
# if they are few, run once more, alone, and are named: what fails then as well is broken, and so is
# the run; what passes is a test that a loud host can disturb and that wants mending. A promise that was
# broken under faults, or a crash, is never tried again: what shows it is left in
# build/PRESET/broken_promises. The exit status is that of the last ctest. Arguments go to ctest (which then runs once), as in: tests/run.sh -L unit
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
broken=build/$preset/broken_promises
rm -rf "$failed" "$broken"
ctest --preset "$preset" --parallel 2 "$@" && exit
status=$?

if [[ -d $broken ]]; then
  printf '\nA promise was broken; histories, databases and seeds are in %s\n' "$broken"
  exit "$status"
fi
most_second_tries=5
if (($# > 0)) || [[ ! -s $failed ]] || (($(wc -l <"$failed") > most_second_tries)); then
  exit "$status"
fi
printf '\nFailed beside others, once more alone:\n'
sed 's/^[0-9]*:/  /' "$failed"
ctest --preset "$preset" --parallel 1 --rerun-failed

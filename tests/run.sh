#!/usr/bin/env bash
# Installs what is needed, builds, and runs every test; then prints where the time went, and ctest's
# summary last. If few tests failed they run once more, alone, and are named: a test that fails again is
# broken, and so is the run; one that passes is disturbed by a loud host and needs mending. A promise
# broken under faults, or a crash, is never tried again: its evidence is left in
# build/PRESET/broken_promises. The exit status is that of the last ctest. Arguments go to ctest (which
# then runs once), as in: tests/run.sh -L unit
#   LOOPFLEET_PRESET=release   which preset of CMakePresets.json to use
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec </dev/null

preset=${LOOPFLEET_PRESET:-release}
deploy/dependencies.sh --tests
tests/python/make_environment.sh
cmake --preset "$preset"
cmake --build --preset "$preset" --parallel "$(nproc)"
# The worker for another architecture, for the test that runs it on an emulated machine.
if deploy/aarch64/make_sysroot.sh; then
  cmake --preset aarch64
  cmake --build --preset aarch64 --parallel "$(nproc)"
else
  echo "run.sh: WITHOUT a worker for AArch64: its test will be skipped" >&2
fi
# Two at a time: the fleets of the integration tests share the machine. What measures time, or fills
# the machine, is marked RUN_SERIAL and runs alone.
failed=build/$preset/Testing/Temporary/LastTestsFailed.log
broken=build/$preset/broken_promises
rm -rf "$failed" "$broken"
times=$PWD/build/$preset/test_times.xml
log=build/$preset/ctest.log
status=0
ctest --preset "$preset" --parallel 2 --output-junit "$times" "$@" | tee "$log" || status=$?
tests/test_times.py "$times" || true
grep -E '^[0-9]+% tests passed|^Total Test time' "$log" || true
if ((status == 0)); then exit; fi

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

#!/usr/bin/env bash
# Builds with the thread sanitizer what has threads and no forked children, and runs its tests: base (bounded
# queue), wire (sockets), storage and the coordinator's core. Exit status 0: nothing was reported.
# Arguments are test programs, to run fewer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(base_test wire_test storage_test coordinator_core_test)
cmake --preset tsan >/dev/null
cmake --build build/tsan --parallel "$(nproc)" --target "${programs[@]}"
# A test that forks from a process with threads may do anything but go on: see tsan.supp for the rest.
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp halt_on_error=0 exitcode=66 die_after_fork=0"
for program in "${programs[@]}"; do
  build/tsan/tests/"$program" --gtest_brief=1
done

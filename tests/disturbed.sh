#!/usr/bin/env bash
# tests/run.sh on a host that is made worse in one way, for finding tests that trust their host:
#
#   tests/disturbed.sh neighbour  [ctest's arguments]   multiply-adds on the timing core, half of each second
#   tests/disturbed.sh one_core   [ctest's arguments]   everything on one core
#   tests/disturbed.sh two_clocks [ctest's arguments]   the clock changes its rate by 12 % twice a second
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

made=build/disturbance
mkdir -p "$made"
way=${1:-}
[ $# -eq 0 ] || shift
case $way in
  neighbour)
    ${CC:-cc} -O2 -o "$made/neighbour" tests/support/disturbance/neighbour.c
    # A worker times on the last core that it may use.
    "$made/neighbour" "$(taskset -cp $$ | grep -oE '[0-9]+$')" &
    trap 'kill %1' EXIT
    tests/run.sh "$@"
    ;;
  one_core) taskset -c 0 tests/run.sh "$@" ;;
  two_clocks)
    ${CC:-cc} -O2 -shared -fPIC -o "$made/two_clocks.so" tests/support/disturbance/two_clocks.c -ldl
    LD_PRELOAD=$PWD/$made/two_clocks.so tests/run.sh "$@"
    ;;
  *)
    sed -n '2,7s/^# \{0,1\}//p' tests/disturbed.sh >&2
    exit 2
    ;;
esac

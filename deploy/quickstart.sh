#!/usr/bin/env bash
# From a fresh clone to measured results: installs what is missing, builds, starts a coordinator and a
# CPU worker, evaluates a few hundred schedules of four benchmarks, prints a table, and ends everything
# that it started. Run it again at any time; the second time it has little to build.
#
#   deploy/quickstart.sh
#
# The results stay in build/quickstart/results.db, for a look with sqlite3; remove the folder to start
# anew. Nothing else is left behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -gt 0 ]; then
  sed -n '2,9s/^# \{0,1\}//p' deploy/quickstart.sh >&2
  case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
fi

preset=${LOOPFLEET_PRESET:-release}
bin=$PWD/build/$preset/bin
state=$PWD/build/quickstart
database=$state/results.db

step() { printf '\n==> %s\n' "$*" >&2; }

step "1/4 packages"
deploy/dependencies.sh

step "2/4 build (preset $preset, $(nproc) at a time; the first time takes some minutes)"
if [ ! -f "build/$preset/build.ninja" ]; then cmake --preset "$preset" >&2; fi
cmake --build --preset "$preset" --parallel "$(nproc)" \
  --target loopfleet loopfleet-coordinator loopfleet-worker >&2

step "3/4 jobs"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$state"
# The number of this run seeds the half of the walks that is new in each run.
run=$(($(cat "$state/runs" 2>/dev/null || echo 0) + 1))
python3 deploy/quickstart_jobs.py --loopfleet "$bin/loopfleet" --seed "$run" >"$scratch/jobs"
echo "$run" >"$state/runs"
jobs=$(wc -l <"$scratch/jobs")
echo "run $run: $jobs jobs" >&2

step "4/4 a coordinator and a CPU worker on this machine evaluate them"
# The table tells about failed jobs (submit's status 1); any other failure of submit ends the run.
# shellcheck disable=SC2016
evaluate='
  set -euo pipefail
  { "$1/loopfleet" submit "$2" --wait --jsonl || [ $? -eq 1 ]; } |
    python3 deploy/quickstart_table.py --expected "$3" --database "$4"'
"$bin/loopfleet" local --workers 1 --db "$database" -- \
  bash -c "$evaluate" quickstart "$bin" "$scratch/jobs" "$jobs" "$database"

cat <<MORE

Look at the results:     sqlite3 -box $database 'SELECT benchmark, gflop_per_second, actions FROM v_best'
Try one of your own:     $bin/loopfleet local --db $database -- \\
                           $bin/loopfleet eval benchmark://mm-v0/mm64_64_64 --actions down,swap_up
MORE

#!/usr/bin/env bash
# bench/run.sh NAME    builds what NAME needs (preset release) and prints its results as JSON lines:
#                      {"bench", "case", "value", "unit", "peer", "peer_value", "ratio"}
# bench/run.sh --list  tells the names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

list() {
  cat <<'LIST'
codegen      tree to callable over the corpus, and GFLOP/s of named schedules beside cc -O3
evaluations  fresh, verified evaluations per second of one worker, beside cc -O3 + dlopen
queue        durable null jobs per second through the coordinator, beside redis lists
store        storage alone: ingest at several sizes, lookups, pages, recovery, beside a plain table
LIST
}

usage() {
  echo "usage: bench/run.sh NAME | --list" >&2
  list >&2
  exit 2
}

[[ $# -ge 1 ]] || usage
name=$1
shift
case "$name" in
  --list) list; exit 0 ;;
  codegen) targets=(bench_codegen) ;;
  evaluations) targets=(bench_evaluations loopfleet-coordinator loopfleet-worker) ;;
  queue) targets=(bench_queue loopfleet-coordinator) ;;
  store) targets=(bench_store) ;;
  *) echo "bench/run.sh: unknown name '$name'" >&2; usage ;;
esac

# Standard output is for results alone.
{
  cmake --preset release
  cmake --build --preset release --parallel "$(nproc)" --target "${targets[@]}"
} >&2
exec "build/release/bin/bench_$name" "$@"

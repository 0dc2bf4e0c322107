#!/usr/bin/env bash
# bench/run.sh NAME    builds what NAME needs (preset release) and prints its results as JSON lines:
#                      {"bench", "case", "value", "unit", "peer", "peer_value", "ratio"}
# bench/run.sh --list  lists the names.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

list() {
  cat <<'LIST'
alone        one evaluation at a time: how long until its figure is there, and whether it has the same one in a batch, beside
             cc -O3 + dlopen [--jobs 100]
bounds       the longest event and transaction of the coordinator, and how long another client waits, under the heaviest loads
             that clients and workers may put on it [--only old-results,labels,drift,queued,stored] [--stored 1000000]
             [--queued 1000000]
clock_ramp   how figures stand a clock that rises or falls while they are taken, on a scripted core: any host
codegen      tree to callable over the corpus beside LLVM's O3, GFLOP/s in every loop order beside cc -O3, the best of a
             search beside OpenBLAS, BLIS and LIBXSMM, the article's workload and an addition beside numpy
             [--only latency,orders,threads,strides,best,article,add] [--seconds 60]
dispatch     the coordinator's longest events while jobs wait that none of 1,000 idle workers may run
editor       the schedule editor: from a key to the figure of its own process, and to a worker's graded one [--keys 200]
evaluations  fresh, verified evaluations per second of one worker over two corpora (all actions; moves, swaps and splits), beside
             cc -O3 + dlopen and Halide's JIT
             [--compiled-before [--cores 1] [--rounds 3]]: beside itself without compiling
flood        how long a client waits while another one sends all that it can
interactive  how long one job waits behind a million of another client [QUEUED [JOBS]]
gpu_compile  loop tree to cubin beside NVRTC from CUDA C++ of the same kernel to cubin; needs no GPU [--gpu-arch sm_90]
isolation    what confining kernels costs, and how soon the next runs after a crash
llvm         steps of LLVM passes per second of processor time beside a process of opt-19 for each and for 40, and llvmlite;
             what an environment's steps and its heads cost, and what a shared prefix saves
             [--batches 2] [--llvm-programs FOLDER] [--only batches,environment,prefix]
             [--program bzip2] [--bitcode FILE]
llvm_agents  agents that order passes, trained on Csmith's programs and judged on Debian's beside searches that do not learn
             --folder F [--llvm-programs FOLDER] train graph|unshared|features|rllib|tabular SEED | judge;
             bench/llvm_agents_table.py makes the table
             with rllib: in an environment of its own, build/rllib (bench/requirements-rllib.txt)
llvm_semantics  csmith programs before and after random passes, random passes over llvm-stress programs, mutated bitcode
             [--csmith 20] [--stress 100] [--mutations 100] [--passes 40] [--first 0]
mirror       outcomes copied to PostgreSQL beside a COPY of the same rows into a plain table [--rows 1000000]
             [--benchmarks 1 10000]
outage       PostgreSQL away for an hour: submissions before, during and after, lag, rows missing and doubled
             [--minutes 60] [--beside 3]
peers        search at equal seconds on one core beside TVM's MetaSchedule, Halide's autoschedulers and numpy, on a dozen
             programs; a peer that is not installed is skipped, and says so; goes on where it was [--out FILE.jsonl]
             [--programs 12] [--seconds 10,60] [--only TVM,Halide,numpy] [--models FOLDER]
page         /metrics and the queue while 100 pages are watched live and 64 connections are half open [ROUNDS [JOBS]]
python       messages, environments over a null backend, async against sync, fork, in Python
             [--seconds 3]; tests/python/make_environment.sh makes its environment
queue        durable null jobs per second through the coordinator, beside redis lists, beanstalkd and NATS
scale        both stores at so many rows: rows a second, a look-up, a start, bytes a row and v_best, beside plain tables;
             the page and an export over SQLite
             [--rows 1000000 10000000] [--benchmarks 10000] [--stores sqlite postgres]
             [--settings shared_buffers=6GB max_wal_size=8GB]
search       strategies and learned models on 25 products that no model was trained on (LoopTune's test set), or, with
             --table 2, on convolutions, chains, reductions and large products beside numpy; goes on where it was
             [--out FILE.jsonl] [--plot FILE.svg] [--programs 25] [--seconds 1,10,60] [--seeds 1] [--only policy,random]
             [--training 400] [--agent-steps 32000]; --out FILE.jsonl --markdown FILE.md: the table of it, without measuring
search_stored  searches of ten programs on a live cluster, and again from its database alone: is that choice as good?
             [--evaluations 300] [--strategy auto]
security     latency of a client while 50,000 hostile connections come in before authentication
             [--nice]
store        storage alone: ingest at several sizes, lookups, pages, recovery, beside a plain table
tensor       tensors from Python: sums of positive products beside numpy, end to end, at the start schedule and tuned; what calls
             cost [--tune-seconds 10]; tests/python/make_environment.sh makes its environment
wasm         kernels as WebAssembly in Node.js beside the native ones of the same trees [--rounds 5];
             tests/python/make_environment.sh makes its environment
replay       replay, legality, features, key and a cursor move of loop trees; the slowest hostile line
timing       how far figures can be trusted: A/A over fresh processes, intervals, alone against batch, latency, peak,
             a busy neighbour, ranking
LIST
}

usage() {
  echo "usage: bench/run.sh NAME | --list" >&2
  list >&2
  exit 2
}

make_rllib_environment() {
  bench/make_environment.sh rllib ||
    bench/make_environment.sh rllib --extra-index-url https://download.pytorch.org/whl/cpu
}

[[ $# -ge 1 ]] || usage
name=$1
shift
fleet=(loopfleet loopfleet-coordinator loopfleet-worker)
python=          # the interpreter of the cases that are Python; empty: build/release/bin/bench_NAME is run
environment=()   # what makes it
case "$name" in
  --list) list; exit 0 ;;
  alone | timing) targets=("bench_$name" loopfleet-coordinator loopfleet-worker) ;;
  bounds | flood | interactive | page | queue | security) targets=("bench_$name" loopfleet-coordinator) ;;
  clock_ramp | codegen | dispatch | gpu_compile | isolation | llvm | replay | store) targets=("bench_$name") ;;
  evaluations) targets=(bench_evaluations bench_compiled_before_worker loopfleet-coordinator loopfleet-worker) ;;
  mirror) targets=(bench_store loopfleet-mirror) python=python3 ;;
  outage) targets=("${fleet[@]}" loopfleet-mirror) python=python3 ;;
  scale)
    targets=(bench_scale loopfleet_python loopfleet-coordinator loopfleet-mirror) python=build/python/bin/python
    environment=(tests/python/make_environment.sh --without-learning) ;;
  search_stored) targets=("${fleet[@]}") python=python3 ;;
  editor | llvm_semantics | python | tensor | wasm)
    targets=(loopfleet_python "${fleet[@]}") python=build/python/bin/python
    environment=(tests/python/make_environment.sh --without-learning) ;;
  search | llvm_agents | peers)
    targets=(loopfleet_python "${fleet[@]}") python=build/python/bin/python
    environment=(tests/python/make_environment.sh) ;;
  *) echo "bench/run.sh: unknown name '$name'" >&2; usage ;;
esac
if [[ $name == llvm_agents && " $* " == *" rllib "* ]]; then
  python=build/rllib/bin/python environment=(make_rllib_environment)
fi

# NVRTC loads a part of itself from the loader's search path.
if [[ $name == gpu_compile ]]; then
  export LD_LIBRARY_PATH=/usr/local/lib/loopfleet/nvidia-cuda-nvrtc/nvidia/cu13/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

# Standard output carries results only.
{
  "${environment[@]}"
  if [[ $name == peers ]]; then
    targets+=(bench_peers)
    bench/make_environment.sh peers --no-deps || echo "bench/run.sh: TVM could not be installed; that peer will be skipped"
  fi
  if [[ $name == llvm ]]; then
    bench/make_environment.sh llvmlite || echo "bench/run.sh: llvmlite could not be installed; that peer will be skipped"
  fi
  cmake --preset release
  cmake --build --preset release --parallel "$(nproc)" --target "${targets[@]}"
} >&2
[[ $python ]] || exec "build/release/bin/bench_$name" "$@"
PYTHONPATH=build/release/python LOOPFLEET_BIN=build/release/bin exec "$python" -B "bench/cases/$name.py" "$@"

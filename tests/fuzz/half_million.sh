#!/usr/bin/env bash
# tests/fuzz/half_million.sh [TARGET...]    runs half a million mutated inputs through each decoder of
# external bytes, with AddressSanitizer and UBSan (preset asan), and prints one line for each piece of
# the run. Stops at the first finding and leaves its input in crash-fuzz_TARGET.
#   LOOPFLEET_FUZZ_PIECES=10      pieces for each target, each with its own seed
#   LOOPFLEET_FUZZ_INPUTS=50000   inputs of a piece
#   LOOPFLEET_FUZZ_FIRST=1        seed of the first piece
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
targets=("$@")
[[ $# -gt 0 ]] || targets=(action_frame worker_frame reply_frame command_frame key_file)
# By default UBSan only reports.
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
pieces=${LOOPFLEET_FUZZ_PIECES:-10}
inputs=${LOOPFLEET_FUZZ_INPUTS:-50000}
first=${LOOPFLEET_FUZZ_FIRST:-1}
[[ -f build/asan/build.ninja ]] || cmake --preset asan >&2
cmake --build build/asan --parallel "$(nproc)" --target "${targets[@]/#/fuzz_}" >&2
for target in "${targets[@]}"; do
  for ((seed = first; seed < first + pieces; ++seed)); do
    printf 'seed %s: ' "$seed"
    "build/asan/tests/fuzz_$target" --corpus "tests/fuzz/corpus/$target" \
      --words "tests/fuzz/words/$target.dict" --runs "$inputs" --seed "$seed"
  done
done

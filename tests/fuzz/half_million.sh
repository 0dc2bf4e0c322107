#!/usr/bin/env bash
# tests/fuzz/half_million.sh [TARGET...]    mutates half a million inputs for each decoder of what comes
# from outside, with AddressSanitizer and UBSan (preset asan), and prints one line for each piece of the
# run. Ends at the first finding; the input is left behind as crash-fuzz_TARGET.
#   LOOPFLEET_FUZZ_PIECES=10      how many pieces for each target, each from a seed of its own
#   LOOPFLEET_FUZZ_INPUTS=50000   how many inputs a piece has
#   LOOPFLEET_FUZZ_FIRST=1        the first one's seed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
targets=("$@")
[[ $# -gt 0 ]] || targets=(action_frame worker_frame reply_frame command_frame key_file)
# UBSan alone only tells.
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

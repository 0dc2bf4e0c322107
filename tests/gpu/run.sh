#!/usr/bin/env bash
# tests/gpu/run.sh            builds gpu_conformance and runs it here, if there is a CUDA device
# tests/gpu/run.sh --build    only builds it, and says what to carry to a machine with a GPU
#
# The program needs a C library (2.36 or newer) and NVIDIA's driver there, nothing else; with nvJitLink
# (of the CUDA toolkit, or named by LOOPFLEET_NVJITLINK) it tests our cubins, without it the driver
# assembles. Its report goes to standard output: dated reports are kept under docs/gpu/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

program=build/release/bin/gpu_conformance
most_bytes=$((40 << 20))
{
  cmake --preset release
  cmake --build --preset release --parallel "$(nproc)" --target gpu_conformance
} >&2
bytes=$(stat -c %s "$program")
needs=$(ldd "$program" | awk '{print $1}' | grep -vE '^(linux-vdso|libc\.|libm\.|/lib|libdl|libpthread|librt)' || true)
echo "gpu: $program: $bytes bytes" >&2
if [ "$bytes" -gt "$most_bytes" ]; then
  echo "gpu: that is more than $most_bytes" >&2
  exit 1
fi
if [ -n "$needs" ]; then
  echo "gpu: it needs shared libraries that a GPU machine may not have: $needs" >&2
  exit 1
fi
if [ "${1:-}" = --build ]; then
  echo "gpu: carry $program there and run it" >&2
  exit 0
fi
set +e
"$program" "$@"
status=$?
set -e
if [ "$status" -eq 77 ]; then
  echo "gpu: NO CUDA DEVICE HERE: built, and NOT TESTED" >&2
  exit 0
fi
exit "$status"

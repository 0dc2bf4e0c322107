#!/usr/bin/env bash
# tests/gpu/run.sh [--out DIR] [-- FLAGS]   builds gpu_conformance, if possible here, and runs it
# tests/gpu/run.sh --build                  only builds it, and says what to copy to a GPU machine
#
# The report goes to standard output and to DIR/DATE.md and DIR/DATE.json (default: build/gpu).
# Reports of real devices are kept under docs/gpu/. FLAGS are gpu_conformance's. On a machine that is
# available for ten minutes at a time:
#   tests/gpu/run.sh --out "$OUT" -- --parts children,device,conformance,timing,profile,faults --seconds 540
#   tests/gpu/run.sh --out "$OUT" -- --parts search,repeats --seconds 540
#   tests/gpu/run.sh --out "$OUT" -- --parts sanitizer,after --seconds 540
# A GPU machine needs build/release/bin/gpu_conformance, a C library (2.36 or newer) and NVIDIA's
# driver. With nvJitLink our cubins are tested; without it the driver assembles. cuBLAS is the peer.
# Both are searched in the system's folders, the CUDA toolkit and Python packages. To override:
#   LOOPFLEET_NVIDIA_LIBRARIES=/a:/b     folders to search first
#   LOOPFLEET_NVJITLINK=..., LOOPFLEET_CUBLAS=...     use exactly these files
# DIR/DATE.txt describes the machine (nvidia-smi and others).
# Exit code: 0 if all passed, or if this machine has no CUDA device (nothing tested); otherwise that
# of gpu_conformance.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

program=build/release/bin/gpu_conformance
most_bytes=$((40 << 20))
out=build/gpu
only_build=no
while [ $# -gt 0 ]; do
  case "$1" in
    --build) only_build=yes; shift ;;
    --out) out=${2:?--out needs a folder}; shift 2 ;;
    --) shift; break ;;
    *) echo "gpu: there is no flag $1; gpu_conformance's go behind --" >&2; exit 2 ;;
  esac
done

if command -v cmake > /dev/null && command -v llvm-config-19 > /dev/null; then
  {
    cmake --preset release
    cmake --build --preset release --parallel "$(nproc)" --target gpu_conformance
  } >&2
elif [ ! -x "$program" ]; then
  echo "gpu: neither LLVM 19 nor $program is here: run tests/gpu/run.sh --build elsewhere, and carry it here" >&2
  exit 1
fi
bytes=$(stat -c %s "$program")
needs=$(ldd "$program" | awk '{print $1}' | grep -vE '^(linux-vdso|linux-gate|libc\.|libm\.|/lib|libdl|libpthread|librt)' || true)
echo "gpu: $program: $bytes bytes" >&2
if [ "$bytes" -gt "$most_bytes" ]; then
  echo "gpu: that is more than $most_bytes" >&2
  exit 1
fi
if [ -n "$needs" ]; then
  echo "gpu: it needs shared libraries that a GPU machine may not have: $needs" >&2
  exit 1
fi
if [ "$only_build" = yes ]; then
  echo "gpu: carry $program and tests/gpu/run.sh there, in the same folders" >&2
  exit 0
fi

# LD_LIBRARY_PATH takes precedence over the system's own folders. So it gets only folders that have
# one of the two libraries and no driver (stubs or compatibility packages).
folders=${LOOPFLEET_NVIDIA_LIBRARIES:-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
shopt -s nullglob
for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib /usr/local/cuda-*/lib64 \
              {/usr,/usr/local,/opt/conda,"${HOME:-/root}"/.local}/lib/python3*/{site,dist}-packages/nvidia/*/lib \
              /usr/lib/python3/dist-packages/nvidia/*/lib; do
  libraries=("$folder"/libnvJitLink.so* "$folder"/libcublas.so*)
  drivers=("$folder"/libcuda.so*)
  if [ ${#libraries[@]} -gt 0 ] && [ ${#drivers[@]} -eq 0 ]; then folders+=:$folder; fi
done
shopt -u nullglob
export LD_LIBRARY_PATH=${folders#:}

if ! help=$("$program" --parts nothing 2>&1) && [[ $help != *"there is no part"* ]]; then
  echo "gpu: $program does not start here: $help" >&2
  exit 1
fi

mkdir -p "$out"
report=$out/$(date -u +%Y-%m-%d)
# A second run on the same day does not overwrite the first.
for ((i = 2; ; ++i)); do
  [ -e "$report.md" ] || break
  report=$out/$(date -u +%Y-%m-%d)-$i
done
{
  date -u
  uname -a
  ldd --version 2>&1 | head -1
  echo "LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
  ls -l /dev/nvidia* /dev/nvidia-caps 2>&1
  if command -v nvidia-smi > /dev/null; then timeout 60 nvidia-smi -q 2>&1; else echo "no nvidia-smi"; fi
} > "$report.txt" || true
set +e
"$program" --json "$report.json" "$@" | tee "$report.md"
status=${PIPESTATUS[0]}
set -e
if [ "$status" -eq 77 ]; then
  rm -f "$report.md" "$report.json" "$report.txt"
  echo "gpu: NO CUDA DEVICE HERE: built, and NOT TESTED" >&2
  exit 0
fi
echo "gpu: the report is in $report.md and $report.json" >&2
exit "$status"

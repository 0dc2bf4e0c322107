#!/usr/bin/env bash
# deploy/aarch64/make_sysroot.sh
# Fetches Debian's arm64 libraries that loopfleet is built with into build/aarch64-sysroot, and a
# kernel and a shell with which tests boot an emulated machine. Then `cmake --preset aarch64` and
# `cmake --build --preset aarch64` make an AArch64 worker on a machine of another kind. What is there
# already stays. Needs mmdebstrap and Debian's archive.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

sysroot=build/aarch64-sysroot
mapfile -t libraries < <(deploy/dependencies.sh --list | grep -e '-dev$')
packages=(libc6-dev libstdc++-12-dev "${libraries[@]}" linux-image-cloud-arm64 busybox-static)
list=$(printf '%s\n' "${packages[@]}")
if [[ -f $sysroot.list && $(<"$sysroot.list") == "$list" ]]; then exit; fi

echo "make_sysroot: fetching ${#packages[@]} arm64 packages and what they need into $sysroot" >&2
rm -rf "$sysroot" "$sysroot.list" "$sysroot.new"
mkdir -p build
mmdebstrap --quiet --architectures=arm64 --variant=extract --include="$(IFS=,; echo "${packages[*]}")" \
  bookworm "$sysroot.new" </dev/null
mv "$sysroot.new" "$sysroot"
echo "$list" >"$sysroot.list"

#!/usr/bin/env bash
# Makes what a release consists of, in build/release-packages: three Debian packages, the wheel with the
# programs, an image (OCI archive) of each daemon, and SHA256SUMS.
#
#   deploy/release.sh                      installs what is missing, builds, packages
#   deploy/release.sh --check              the same, then tests each package in a clean Debian 12 root
#   deploy/release.sh --only debs,wheel    some of: debs, wheel, images
#   deploy/release.sh --built              packages what is built already, and installs nothing
#   deploy/release.sh --out FOLDER         puts them elsewhere
#
# Images need root rights, and Debian's archive. LOOPFLEET_PRESET=release names another build.
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${LOOPFLEET_PRESET:-release}
build=$PWD/build/$preset
out=$PWD/build/release-packages
kinds=debs,wheel,images
is_built=no
checks=no
while [[ $# -gt 0 ]]; do
  case $1 in
    --check) checks=yes ;;
    --built) is_built=yes ;;
    --only) kinds=${2:?--only takes a list}; shift ;;
    --out) out=$(cd "$called_from" && mkdir -p "${2:?--out takes a folder}" && cd "$2" && pwd); shift ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' deploy/release.sh; exit 0 ;;
    *) echo "release: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
  shift
done
for kind in ${kinds//,/ }; do
  case $kind in debs | wheel | images) ;; *) echo "release: there is no kind '$kind'; see --help" >&2; exit 2 ;; esac
done
has() { [[ ,$kinds, == *,$1,* ]]; }
step() { printf '\n==> %s\n' "$*" >&2; }

if has images && [[ $(id -u) -ne 0 ]]; then
  echo "release: images need root rights; --only debs,wheel does without" >&2
  exit 1
fi
version=$(python3 tests/check_version.py) || { echo "$version" >&2; exit 1; }
# One commit gives the same dates each time.
if [[ -z ${SOURCE_DATE_EPOCH:-} ]] && date=$(git log -1 --format=%ct 2>/dev/null); then
  export SOURCE_DATE_EPOCH=$date
fi

if [[ $is_built == no ]]; then
  step "build loopfleet $version (preset $preset)"
  deploy/dependencies.sh --tests
  if [[ ! -x build/python/bin/python ]]; then tests/python/make_environment.sh --without-learning; fi
  cmake --preset "$preset" >&2
  cmake --build "$build" --parallel "$(nproc)" --target debian loopfleet_python loopfleet_python_stub >&2
fi
mkdir -p "$out"
rm -f "$out/SHA256SUMS"
if has debs; then rm -f "$out"/loopfleet*.deb; fi
if has wheel; then rm -f "$out"/loopfleet*.whl; fi
if has images; then rm -f "$out"/loopfleet*.oci.tar; fi

if has debs || has images; then
  step "Debian packages"
  debs=$build/debian/packages
  rm -rf "$debs"
  cpack --config "$build/CPackConfig.cmake" -B "$debs" >&2
  rm -rf "$debs/_CPack_Packages"
fi
if has debs; then cp "$debs"/*.deb "$out"; fi

if has wheel; then
  step "wheel"
  environment=build/wheel-env
  wanted=deploy/wheel/requirements.txt
  if ! cmp -s "$wanted" "$environment/requirements.txt"; then
    # The wheel is for the interpreter that the module was compiled for.
    build/python/bin/python -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
    cp "$wanted" "$environment/requirements.txt"
  fi
  "$environment/bin/python" -B deploy/wheel/build_wheel.py --build "$build" --out "$out" >&2
fi

if has images; then
  step "images"
  python3 -B deploy/container/build_images.py --debs "$debs" --out "$out" >&2
fi

shopt -s nullglob
cd "$out"
made=(loopfleet*.deb loopfleet*.whl loopfleet*.oci.tar)
sha256sum -- "${made[@]}" >SHA256SUMS
step "in $out"
du -h -- "${made[@]}" >&2
cd "$OLDPWD"

if [[ $checks == yes ]]; then
  step "checks"
  for kind in ${kinds//,/ }; do
    python3 -B "tests/packages/${kind}_test.py" "$out"
  done
fi

#!/usr/bin/env bash
# Makes build/python, the virtual environment that the tests of the Python package run in, from
# requirements.txt beside this, and from requirements-learning.txt, which trains models (torch for the
# CPU, Stable-Baselines3, xgboost: 1 GB on the disk, a minute). Quick when nothing has changed.
#   --without-learning  leaves the second out; tests that need it are skipped, and say so
# The same happens, loudly, where no torch for the CPU can be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

environment=build/python
made=$environment/requirements.txt          # what is in it
without=$environment/without-learning.txt   # or why not; the tests' words when they skip
everything=(tests/python/requirements.txt tests/python/requirements-learning.txt)
wanted=("${everything[@]}")
torch_index=https://download.pytorch.org/whl/cpu
if [ "${1:-}" = --without-learning ]; then wanted=("${everything[0]}"); fi

say() { echo "tests/python: $*" >&2; }
is_made() { [ -f "$made" ] && cat "$@" | cmp -s - "$made"; }
pip() { "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }

if is_made "${everything[@]}" || is_made "${wanted[@]}"; then exit 0; fi
mkdir -p build
if ! is_made "${everything[0]}"; then
  say "installing into $environment"
  python=/usr/bin/python3  # Debian's own, whose headers python3-dev has
  [ -x "$python" ] || python=python3
  "$python" -m venv "$environment"
  pip -r "${everything[0]}" >&2
  # What the package itself needs, for the fresh environment of package_test.py: tests ask no network.
  rm -rf "$environment/wheels"
  "$environment/bin/python" -m pip download --quiet --disable-pip-version-check --dest "$environment/wheels" \
    numpy pyzmq gymnasium networkx pyarrow pandas >&2
  cp "${everything[0]}" "$made"
fi
if [ ${#wanted[@]} -eq 1 ]; then
  echo "it was made by make_environment.sh --without-learning" > "$without"
  exit 0
fi
say "installing what trains models into $environment"
log=$environment/learning.log
# First from where pip looks anyway, which may be a folder or a mirror that has that build.
if pip -r "${everything[1]}" > "$log" 2>&1 ||
  pip --retries 1 --timeout 20 --extra-index-url "$torch_index" -r "${everything[1]}" > "$log" 2>&1; then
  cat "${everything[@]}" > "$made"
  rm -f "$without"
else
  grep -m 1 '^ERROR' "$log" > "$without" || echo "pip failed, see $log" > "$without"
  say "WITHOUT what trains models, what needs it will be skipped: $(cat "$without")"
fi

#!/usr/bin/env bash
# Makes build/python, the virtual environment of the Python package's tests, from requirements.txt in this
# folder and from requirements-learning.txt, the packages that train models (torch for the CPU,
# Stable-Baselines3, xgboost: 1 GB on disk, one minute). Quick when nothing has changed.
#   --without-learning  leaves the second out; tests that need it are skipped with that reason
# The same happens, with a warning, if torch for the CPU cannot be installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

environment=build/python
made=$environment/requirements.txt          # the installed requirements
without=$environment/without-learning.txt   # why learning packages are missing; tests print it when they skip
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
  python=/usr/bin/python3  # Debian's own, which python3-dev has the headers of
  [ -x "$python" ] || python=python3
  "$python" -m venv "$environment"
  pip -r "${everything[0]}" >&2
  # The package's dependencies for the fresh environment of package_test.py: tests use no network.
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
# First from pip's configured index, which may be a folder or a mirror with that build.
if pip -r "${everything[1]}" > "$log" 2>&1 ||
  pip --retries 1 --timeout 20 --extra-index-url "$torch_index" -r "${everything[1]}" > "$log" 2>&1; then
  cat "${everything[@]}" > "$made"
  rm -f "$without"
else
  grep -m 1 '^ERROR' "$log" > "$without" || echo "pip failed, see $log" > "$without"
  say "WITHOUT what trains models, what needs it will be skipped: $(cat "$without")"
fi

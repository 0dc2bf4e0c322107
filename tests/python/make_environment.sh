#!/usr/bin/env bash
# Makes build/python, the virtual environment that the tests of the Python package run in, from
# requirements.txt beside this. Quick when it is there and nothing has changed.
#   --learning  what trains models, too (requirements-learning.txt, about 1 GB): without it the tests that
#               need it are skipped
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

environment=build/python
made=$environment/requirements.txt
wanted=(tests/python/requirements.txt)
if [ "${1:-}" = --learning ] || { [ -f "$made" ] && grep -q ^torch "$made"; }; then
  wanted+=(tests/python/requirements-learning.txt)
fi
if [ -f "$made" ] && cat "${wanted[@]}" | cmp -s - "$made"; then
  exit 0
fi
echo "tests/python: installing into $environment" >&2
mkdir -p build
python=/usr/bin/python3  # Debian's own, whose headers python3-dev has
[ -x "$python" ] || python=python3
"$python" -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check "${wanted[@]/#/-r}" >&2
cat "${wanted[@]}" > "$made"

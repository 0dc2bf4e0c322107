#!/usr/bin/env bash
# Makes build/python, the virtual environment that the tests of the Python package run in, from
# requirements.txt beside this. Quick when it is there and nothing has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

wanted=tests/python/requirements.txt
environment=build/python
made=$environment/requirements.txt
if [ -f "$made" ] && cmp -s "$wanted" "$made"; then
  exit 0
fi
echo "tests/python: installing into $environment" >&2
mkdir -p build
python=/usr/bin/python3  # Debian's own, whose headers python3-dev has
[ -x "$python" ] || python=python3
"$python" -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted" >&2
cp "$wanted" "$made"

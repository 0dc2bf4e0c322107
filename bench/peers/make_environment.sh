#!/usr/bin/env bash
# Makes build/peers-python, the virtual environment of bench/run.sh peers, from requirements.txt in this folder: TVM and
# what its MetaSchedule imports (600 MB on disk). Quick when nothing has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

environment=build/peers-python
wanted=bench/peers/requirements.txt
made=$environment/requirements.txt
if cmp -s "$wanted" "$made"; then exit 0; fi
echo "bench/peers: installing into $environment" >&2
mkdir -p build
rm -rf "$environment"
python=/usr/bin/python3
[ -x "$python" ] || python=python3
"$python" -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$wanted" >&2
cp "$wanted" "$made"

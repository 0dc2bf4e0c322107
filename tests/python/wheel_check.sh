#!/usr/bin/env bash
# The package as a user gets it: sdist, the wheel that is made of it, a fresh environment, a job on a real cluster.
# Takes minutes, because the module is compiled; not part of the tests. Needs build/release/bin and
# tests/python/make_environment.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# --no-isolation: with the build tools of build/python.
PATH=$PWD/build/python/bin:$PATH build/python/bin/python -m build --no-isolation --outdir "$scratch/dist" . > "$scratch/log" 2>&1 ||
  { tail -40 "$scratch/log"; exit 1; }
(cd "$scratch/dist" && du -h -- *)
python3 -m venv "$scratch/env"
"$scratch/env/bin/python" -m pip install --quiet --disable-pip-version-check "$scratch"/dist/*.whl
export LOOPFLEET_BIN=$PWD/build/release/bin
cd "$scratch"
env/bin/python - <<'PYTHON'
import importlib.metadata
import sys

import loopfleet

if not loopfleet.__file__.startswith(sys.prefix):
    sys.exit(f"{loopfleet.__file__} is not the installed one")
with loopfleet.LocalCluster(workers=1), loopfleet.Client() as client:
    outcomes = client.evaluate_many([("benchmark://mm-v0/mm64_64_64", ["down", f"split_{1 << k}"]) for k in range(1, 6)])
if not outcomes.ok.any():
    sys.exit(f"nothing was measured: {outcomes.status_names}")
needs = importlib.metadata.requires("loopfleet") or []
print(f"loopfleet {loopfleet.__version__} installed, needs {', '.join(need for need in needs if 'extra' not in need)}: {outcomes}")
PYTHON

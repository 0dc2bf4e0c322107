#!/usr/bin/env bash
# RLlib's and TorchRL's checks of the environments, on a real cluster: runs learners_check.py in its own environment,
# build/learners (the package, built by pip, with `ray`, `torch` and their dependencies: 6 GB with CUDA). Too large for
# every run of the tests; docs/PYTHON.md has its output. Needs build/release/bin (deploy/quickstart.sh). Arguments go to
# learners_check.py.
#   PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu   for torch without CUDA
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

environment=build/learners
[ -x "$environment/bin/python" ] || /usr/bin/python3 -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check '.[ray,torch]' torchrl >&2
export LOOPFLEET_BIN=$PWD/build/release/bin
exec "$environment/bin/python" -B tests/python/learners_check.py "$@"

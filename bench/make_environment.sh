#!/usr/bin/env bash
# bench/make_environment.sh NAME [PIP-OPTION...]
# Makes build/NAME, the virtual environment of a peer whose packages do not go with those of the tests, from
# bench/requirements-NAME.txt. Quick when nothing has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=$1
shift
environment=build/$name
wanted=bench/requirements-$name.txt
made=$environment/requirements.txt
if cmp -s "$wanted" "$made"; then exit 0; fi
echo "bench: installing into $environment" >&2
mkdir -p build
rm -rf "$environment"
python=/usr/bin/python3
[ -x "$python" ] || python=python3
"$python" -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted" "$@" >&2
cp "$wanted" "$made"

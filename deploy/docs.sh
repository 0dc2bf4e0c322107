#!/usr/bin/env bash
# Builds the documents' site into build/site: the Markdown documents, the programs' --help, the Python API
# from docstrings, with search. Fails on a broken link. Needs the programs and the Python package in
# build/release (deploy/quickstart.sh, tests/python/make_environment.sh); installs mkdocs-material from PyPI
# into build/site-env.
#
#   deploy/docs.sh
#
# LOOPFLEET_PRESET=release names another build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

built=$PWD/build/${LOOPFLEET_PRESET:-release}
for needed in bin/loopfleet bin/loopfleet-coordinator bin/loopfleet-worker python/loopfleet/_core.pyi; do
  if [[ ! -e $built/$needed ]]; then
    echo "deploy/docs.sh: $built/$needed is not there; build it first: cmake --build build/${LOOPFLEET_PRESET:-release}" >&2
    exit 1
  fi
done

environment=build/site-env
wanted=deploy/site/requirements.txt
if ! cmp -s "$wanted" "$environment/requirements.txt"; then
  python3 -m venv --clear "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
  cp "$wanted" "$environment/requirements.txt"
fi

# mkdocs finds its pages and the package beside its configuration.
work=build/site-work
mkdir -p "$work"
cp deploy/site/mkdocs.yml "$work/"
rm -rf "$work/python"
cp -r "$built/python" "$work/python"
"$environment/bin/python" -B deploy/site/write_pages.py --bin "$built/bin" --package "$built/python/loopfleet" --out "$work/pages"
# With --quiet mkdocs would not count its warnings, and so let them pass.
export NO_MKDOCS_2_WARNING=1
"$environment/bin/mkdocs" build --strict --clean --config-file "$work/mkdocs.yml" --site-dir "$PWD/build/site"
echo "the site is in build/site; to read it: python3 -m http.server --directory build/site"

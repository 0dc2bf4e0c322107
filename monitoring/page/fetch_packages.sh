#!/usr/bin/env bash
# Fetches what the page is built from (and with --tests: tested with) by `npm ci`: exactly the versions
# whose hashes are in package-lock.json. No script of a package is run.
#
#   monitoring/page/fetch_packages.sh [--tests] FOLDER    FOLDER/node_modules is there afterwards
#
# Does nothing if they are there already.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

omit=(--omit=dev)
wanted=uplot
if [ "${1:-}" = --tests ]; then
  omit=()
  wanted=playwright-core
  shift
fi
folder=${1:?which folder?}
if [ -d "$folder/node_modules/$wanted" ] && cmp -s "$here/package-lock.json" "$folder/package-lock.json"; then
  exit 0
fi
for program in node npm; do
  if ! command -v "$program" >/dev/null; then
    echo "fetch_packages: there is no $program (Debian: nodejs npm)" >&2
    exit 1
  fi
done
# Beside its place and then renamed, so that a fetch which breaks off leaves nothing that looks whole.
mkdir -p "$(dirname "$folder")"
scratch=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$scratch/"
(cd "$scratch" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error "${omit[@]}" >&2)
chmod 755 "$scratch"
rm -rf "$folder"
mv "$scratch" "$folder"

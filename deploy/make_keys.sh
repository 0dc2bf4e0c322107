#!/usr/bin/env bash
# deploy/make_keys.sh DIR [--clients A,B] [--workers N1,N2] [--admins R]
# The keys of a fleet: the coordinator's in DIR, one directory for each peer in DIR/peers/NAME, to be
# moved to where the peer runs. What is there already stays as it is, so it can be run again to add
# peers. docs/SECURITY.md says what the files are. LOOPFLEET=PATH names the command to use.
set -euo pipefail

usage() {
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
}

loopfleet=${LOOPFLEET:-$(command -v loopfleet || true)}
built=$(dirname "${BASH_SOURCE[0]}")/../build/release/bin/loopfleet
[[ -n $loopfleet || ! -x $built ]] || loopfleet=$built
[[ -n $loopfleet ]] || { echo "make_keys.sh: no loopfleet in PATH; LOOPFLEET=PATH names it" >&2; exit 1; }

keygen() {
  local said
  said=$("$loopfleet" keygen "$@" 2>&1) || { echo "make_keys.sh: $said" >&2; exit 1; }
}

[[ $# -ge 1 && $1 != -* ]] || usage
dir=$1
shift
[[ -e $dir/coordinator.key_secret ]] || keygen --role coordinator --out "$dir"

while [[ $# -gt 0 ]]; do
  case $1 in
    --clients) role=client ;;
    --workers) role=worker ;;
    --admins) role=admin ;;
    *) usage ;;
  esac
  [[ $# -ge 2 ]] || usage
  IFS=, read -ra names <<<"$2"
  shift 2
  for name in "${names[@]}"; do
    if [[ -e $dir/authorized/${role}s/$name.key ]]; then
      echo "make_keys.sh: the $role $name has a key already" >&2
      continue
    fi
    keygen --role "$role" --name "$name" --out "$dir/peers/$name" --authorize "$dir"
    echo "$dir/peers/$name"
  done
done

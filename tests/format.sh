#!/usr/bin/env bash
# Fails if a C++ file is not laid out as .clang-format says, and names it. --fix: lays it out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=(--dry-run --Werror)
if [[ ${1:-} == --fix ]]; then mode=(-i); fi
find . -type d \( -name node_modules -o -name 'build*' -o -name '.?*' \) -prune -o -type f \( -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 -P "$(nproc)" -n 50 clang-format-19 "${mode[@]}"

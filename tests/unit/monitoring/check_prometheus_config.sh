#!/usr/bin/env bash
# promtool's view of what we ship: the config, the rules and their tests, and both daemons' /metrics.
# Also: the rules use only metrics of the table.
#   check_prometheus_config.sh SOURCE_DIR WRITE_METRICS
set -euo pipefail
source_dir=$1 write_metrics=$2

if ! command -v promtool >/dev/null; then
  echo "SKIPPED: promtool is not installed (Debian: prometheus); nothing was checked" >&2
  exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$write_metrics" "$folder"

promtool check config "$source_dir/monitoring/prometheus.yml"
promtool test rules "$source_dir"/monitoring/rules/*_test.yaml
for daemon in coordinator worker; do
  [ -s "$folder/$daemon.prom" ]
  promtool check metrics <"$folder/$daemon.prom"
done

# Recorded series have colons in their names; everything else called loopfleet_ has to exist.
unknown=$(grep -hoE '\bloopfleet_[a-z_]+\b' "$source_dir"/monitoring/rules/*.yml |
  sort -u | grep -vxF -f "$folder/names" | grep -v '^loopfleet_jobs_completed$' || true)
if [ -n "$unknown" ]; then
  printf 'the rules use metrics that do not exist:\n%s\n' "$unknown" >&2
  exit 1
fi

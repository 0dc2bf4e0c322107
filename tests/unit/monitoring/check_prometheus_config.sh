#!/usr/bin/env bash
# Checks with promtool the shipped config, the rules and their tests, and both daemons' /metrics.
# Also checks that the rules use only metrics of the table, and that docs/METRICS.md has its tables.
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
promtool check config "$source_dir/monitoring/prometheus-file_sd.yml"
# Debian's Prometheus is built without Kubernetes, so that part is not checked.
mkdir "$folder/rules"
cp "$source_dir"/monitoring/rules/*.yml "$folder/rules/"
sed -e 's/kubernetes_sd_configs:/static_configs:/' -e 's/- role: pod/- targets: []/' \
  "$source_dir/monitoring/prometheus-kubernetes.yml" >"$folder/prometheus-kubernetes.yml"
promtool check config "$folder/prometheus-kubernetes.yml"
if command -v amtool >/dev/null; then
  amtool check-config "$source_dir/monitoring/alertmanager.yml"
else
  echo "amtool is not installed (Debian: prometheus-alertmanager): alertmanager.yml was not checked" >&2
fi
promtool test rules "$source_dir"/monitoring/rules/*_test.yaml
for daemon in coordinator worker; do
  [ -s "$folder/$daemon.prom" ]
  promtool check metrics <"$folder/$daemon.prom"
done

# Recorded series have colons in their names; every other loopfleet_ name must exist.
unknown=$(sed 's/[a-z_]*:[a-z_]*:[a-z0-9_]*//g' "$source_dir"/monitoring/rules/*.yml |
  grep -hoE '\bloopfleet_[a-z_]+\b' | sort -u | grep -vxF -f "$folder/names" || true)
if [ -n "$unknown" ]; then
  printf 'the rules use metrics that do not exist:\n%s\n' "$unknown" >&2
  exit 1
fi

# To update them: run write_metrics DIR and put DIR/table.md between the two marks, an empty line before each table.
if ! diff <(sed -n '/^<!-- table -->$/,/^<!-- end of table -->$/p' "$source_dir/docs/METRICS.md" | sed '1d;$d;/^$/d') \
  "$folder/table.md"; then
  echo "docs/METRICS.md does not have the tables of monitoring/metric_table.cc" >&2
  exit 1
fi

#include "bench/rigs/event_times.h"

#include <cstdlib>
#include <limits>
#include <utility>

#include "bench/rigs/metrics_page.h"

namespace loopfleet::bench {
namespace {

// The value of a label in a series' name; "": it has none.
std::string LabelOf(const std::string& series, const std::string& label) {
  const std::string start = label + "=\"";
  const std::size_t at = series.find(start);
  if (at == std::string::npos) return "";
  const std::size_t from = at + start.size();
  return series.substr(from, series.find('"', from) - from);
}

}  // namespace

Result<EventTimes> EventTimes::Begin(const std::string& address) {
  LF_TRY(Series before, ReadMetrics(address));
  return EventTimes(address, std::move(before));
}

Result<Tail> EventTimes::TailOf(const std::string& histogram) const {
  LF_TRY(const Series after, ReadMetrics(address_));
  std::map<std::string, std::map<double, double>> kinds;  // cumulative counts by upper end
  for (const auto& [series, count] : after) {
    if (!series.starts_with(histogram + "_bucket")) continue;
    const auto before = before_.find(series);
    const std::string end = LabelOf(series, "le");
    const double upper =
        end == "+Inf" ? std::numeric_limits<double>::infinity() : std::strtod(end.c_str(), nullptr);
    kinds[LabelOf(series, "kind")][upper] = count - (before == before_.end() ? 0 : before->second);
  }
  Tail tail;
  std::map<double, double> all;
  for (const auto& [kind, buckets] : kinds) {
    double below = 0;
    for (const auto& [upper, count] : buckets) {
      all[upper] += count;
      if (count > below && upper * 1e3 > tail.longest_ms) {
        tail.longest_ms = upper * 1e3;
        tail.longest_kind = kind;
      }
      below = count;
    }
  }
  const double total = all.empty() ? 0 : all.rbegin()->second;
  for (const auto& [upper, count] : all) {
    if (count < 0.999 * total) continue;
    tail.p999_ms = upper * 1e3;
    break;
  }
  return tail;
}

}  // namespace loopfleet::bench

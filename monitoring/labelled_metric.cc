#include "monitoring/labelled_metric.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::monitoring {

LabelledCounter::LabelledCounter(Cells cells) : cells_(std::move(cells)) {
  LF_CHECK(cells_.contains(kOther), "no cell for unknown values");
}

void LabelledCounter::Add(std::string_view value, double count) {
  auto cell = cells_.find(value);
  if (cell == cells_.end()) cell = cells_.find(kOther);
  cell->second->Increment(count);
}

LabelledGauge::LabelledGauge(Cells cells) : cells_(std::move(cells)) {}

void LabelledGauge::Set(std::string_view value, double amount) {
  const auto cell = cells_.find(value);
  if (cell != cells_.end()) cell->second->Set(amount);
}

LabelledHistogram::LabelledHistogram(Cells cells, std::span<const double> buckets)
    : cells_(std::move(cells)), buckets_(buckets.begin(), buckets.end()) {}

void LabelledHistogram::Observe(std::string_view value, std::chrono::nanoseconds duration,
                                std::uint64_t count) {
  const auto cell = cells_.find(value);
  if (cell == cells_.end()) return;
  const double seconds = std::chrono::duration<double>(duration).count();
  if (count == 1) return cell->second->Observe(seconds);
  std::vector<double> increments(buckets_.size() + 1);
  const auto bucket = std::ranges::lower_bound(buckets_, seconds) - buckets_.begin();
  increments[static_cast<std::size_t>(bucket)] = static_cast<double>(count);
  cell->second->ObserveMultiple(increments, seconds * static_cast<double>(count));
}

}  // namespace loopfleet::monitoring

#include "monitoring/labelled_metric.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

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

LabelledHistogram::LabelledHistogram(Cells cells) : cells_(std::move(cells)) {}

void LabelledHistogram::Observe(std::string_view value, std::chrono::nanoseconds duration) {
  const auto cell = cells_.find(value);
  if (cell == cells_.end()) return;
  cell->second->Observe(std::chrono::duration<double>(duration).count());
}

}  // namespace loopfleet::monitoring

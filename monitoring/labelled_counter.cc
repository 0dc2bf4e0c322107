#include "monitoring/labelled_counter.h"

#include <prometheus/counter.h>

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

}  // namespace loopfleet::monitoring

#pragma once
// IdRange: ids of rows that were added in the order of their ids, and which of them may be as new
// as some moment.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace loopfleet::storage {

struct IdRange {
  std::int64_t first = 1;
  std::int64_t last = 0;  // included

  bool empty() const { return first > last; }
  // Removes at most `count` ids from the front and returns them.
  IdRange TakeFront(std::int64_t count) {
    const std::int64_t from = std::exchange(first, std::min(first + count, last + 1));
    return {.first = from, .last = first - 1};
  }
};

// The ids from the first row that may be as new as `since` up to `last`. `time_of(id)` reads the
// first row from `id` on; nullopt: it is damaged, or there is none. Ids and times ascend together,
// unless a clock was set back: one minute further back is included.
template <class TimeOf>
Result<IdRange> RangeSince(WallTime since, std::int64_t last, const TimeOf& time_of) {
  constexpr Nanos kSlack = std::chrono::minutes(1);
  // A binary search whose lower end is always proven older. A wrong turn at a time that does not
  // ascend, or at a damaged row, makes the range longer, never shorter.
  std::int64_t older = 0;
  std::int64_t first = last + 1;
  while (first - older > 1) {
    const std::int64_t middle = older + (first - older) / 2;
    LF_TRY(const std::optional<WallTime> time, time_of(middle));
    (time && *time < since - kSlack ? older : first) = middle;
  }
  return IdRange{.first = first, .last = last};
}

}  // namespace loopfleet::storage

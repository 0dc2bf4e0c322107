#pragma once
// OutcomeFeed: the finished outcomes of all batches, each once, in steps that can be resumed.
// Outcomes of one batch come in the order of their sequence; those of several batches come in no
// promised order, because batches run side by side.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "common/base/result.h"
#include "common/job/ids.h"
#include "common/job/outcome.h"
#include "storage/store_reader.h"

namespace loopfleet::storage {

// How far a feed has come.
struct FeedPosition {
  BatchId last;  // the newest batch that was begun; 0: none
  // Batches up to `last` of which something may follow: the sequence read last.
  std::map<BatchId, std::uint64_t> open;
  friend bool operator==(const FeedPosition&, const FeedPosition&) = default;
};

struct FeedStep {
  std::vector<Outcome> outcomes;
  // By the place in `outcomes`: StoreReader::RepeatedFigure(), where there is one.
  std::map<std::size_t, FigureName> repeated;
  FeedPosition after;
  // Outcomes that were there when it looked and are not in this or an earlier step; at least, if
  // more batches wait to be begun than one step looks at. Then never 0: those may have outcomes.
  std::uint64_t waiting = 0;
};
// A step ends with the outcome that reaches so many bytes (BytesOf).
inline constexpr std::size_t kMostFeedBytes = std::size_t{32} << 20;

// The outcomes that follow `from`, at most `most`, or none.
// Errors: those of StoreReader.
Result<FeedStep> NextOutcomes(StoreReader& reader, const FeedPosition& from, std::uint32_t most);

}  // namespace loopfleet::storage

#pragma once
// OutcomeFeed: reads the finished outcomes of all batches, each once, in steps that can be resumed.
// Outcomes of one batch come in the order of their sequence; those of several batches come in no
// promised order, because batches run side by side.
//
// One thread. The reader must outlive it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
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

class OutcomeFeed {
 public:
  OutcomeFeed(StoreReader& reader, FeedPosition from) : reader_(reader), at_(std::move(from)) {}

  struct Step {
    std::vector<Outcome> outcomes;
    FeedPosition after;
    // Outcomes that were there when it looked and are not in this or an earlier step; at least, if
    // more batches wait to be begun than one step looks at.
    std::uint64_t waiting = 0;
  };
  // A step ends once its outcomes have so many bytes of program text, or a little more.
  static constexpr std::size_t kTextBytesPerStep = std::size_t{32} << 20;
  // The next outcomes, at most `most`, or none. The same again until Advance().
  // Errors: those of StoreReader.
  Result<Step> Next(std::uint32_t most);
  // The step was taken over for good.
  void Advance(const Step& step) { at_ = step.after; }

 private:
  static constexpr std::uint32_t kBatchesPerStep = 1'000;
  static constexpr std::uint32_t kOutcomesPerRead = 64;

  Status ReadBatch(const StoredBatch& batch, std::uint32_t most, Step& step);
  bool IsFull(std::uint32_t most, const Step& step) const {
    return step.outcomes.size() >= most || text_bytes_ >= kTextBytesPerStep;
  }

  StoreReader& reader_;
  FeedPosition at_;
  std::size_t text_bytes_ = 0;  // of the step that is being read
};

}  // namespace loopfleet::storage

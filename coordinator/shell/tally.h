#pragma once
// Tally: counts of jobs since the coordinator started. Belongs to the event loop; other threads get
// copies (fleet_snapshot.h).

#include <cstdint>

#include "coordinator/core/contract/effect.h"

namespace loopfleet::coordinator {

class Tally {
 public:
  void Count(const Observation& observation);

  std::uint64_t accepted() const { return accepted_; }
  std::uint64_t finished() const { return finished_; }  // including failed ones
  std::uint64_t judged() const { return judged_; }      // without cancelled and cut ones
  std::uint64_t failed() const { return failed_; }      // of these
  std::uint64_t from_store() const { return from_store_; }

 private:
  std::uint64_t accepted_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t judged_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t from_store_ = 0;
};

}  // namespace loopfleet::coordinator

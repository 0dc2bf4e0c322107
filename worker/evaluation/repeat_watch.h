#pragma once
// RepeatWatch: how much the figures of the same code differ on this worker between separate
// measurements in different buffers, as a user repeating a job would see. Remembers a bounded
// number of the most recent codes. Belongs to one thread.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "common/job/job_spec.h"

namespace loopfleet::worker {

class RepeatWatch {
 public:
  struct Key {
    std::string code_hash;  // of the object file: covers sizes and schedule
    std::uint32_t threads = 1;
    CacheState cache = CacheState::kWarm;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  explicit RepeatWatch(std::size_t most = 4'096) : most_(most) {}

  // |now - before| / the smaller of the two; nullopt the first time.
  std::optional<double> Observe(const Key& key, double elapsed_ns);

 private:
  using Order = std::list<const Key*>;  // least recently seen first
  struct Seen {
    double elapsed_ns = 0;
    Order::iterator place;
  };

  const std::size_t most_;
  std::map<Key, Seen> seen_;
  Order order_;
};

}  // namespace loopfleet::worker

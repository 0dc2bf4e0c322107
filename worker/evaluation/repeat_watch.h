#pragma once
// RepeatWatch: how far apart figures of the same code are on this worker, taken at different times
// in different buffers: what a user who asks twice would see. Remembers a bounded number of codes,
// the latest. Belongs to one thread.

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
    std::string code_hash;  // of the object file: sizes and schedule are in it
    std::uint32_t threads = 1;
    CacheState cache = CacheState::kWarm;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  explicit RepeatWatch(std::size_t most = 4'096) : most_(most) {}

  // |now - before| / the smaller of the two; empty the first time.
  std::optional<double> Observe(const Key& key, double elapsed_ns);

 private:
  using Order = std::list<const Key*>;  // the one that was seen longest ago is first
  struct Seen {
    double elapsed_ns = 0;
    Order::iterator place;
  };

  const std::size_t most_;
  std::map<Key, Seen> seen_;
  Order order_;
};

}  // namespace loopfleet::worker

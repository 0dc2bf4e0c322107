#pragma once
// ReadTurns: pages of outcomes that clients wait for. To read and encode one takes the event loop
// milliseconds, so they are read in turns: one of each client, whatever its connections and however
// many it asked for. Who asks for little waits for no more than a page of each of the others.
//
// Invariant: a client stands in `turns_` once, exactly while it waits for something.

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/core/contract/event.h"

namespace loopfleet::coordinator {

class ReadTurns {
 public:
  using Read = std::variant<SendOutcomes, AnswerFromStorage>;
  struct Limits {
    std::size_t max_reads = 20'000;            // beyond: BUSY
    std::size_t max_reads_per_client = 4'000;  // twice those that may wait for something to fetch
  };
  ReadTurns() = default;
  explicit ReadTurns(const Limits& limits) : limits_(limits) {}

  // Why there is no room for it, if there is none.
  std::optional<Failure> Add(Read read);
  Read Take();  // of the client whose turn it is; not while it is empty
  void RemoveThoseWith(const std::set<KeyText>& keys);
  bool empty() const { return turns_.empty(); }

 private:
  Limits limits_;
  std::map<Uuid, std::deque<Read>> waiting_;
  std::deque<Uuid> turns_;
  std::size_t size_ = 0;
};

}  // namespace loopfleet::coordinator

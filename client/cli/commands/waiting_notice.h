#pragma once
// WaitingNotice: explains a stalled batch. After 3 s without an outcome, while the first unfinished
// job is queued, gives the coordinator's reason; another reason later, at doubling intervals.

#include <chrono>
#include <string>
#include <vector>

#include "client/client.h"

namespace loopfleet::client {

class WaitingNotice {
 public:
  // `quiet`: before the first notice.
  explicit WaitingNotice(Client& client, std::chrono::seconds quiet = std::chrono::seconds(3))
      : client_(client), quiet_(quiet) {}
  // Called for each page, also the empty ones. Returns the line to print; "": none.
  std::string OnPage(const wire::OutcomePage& page);

 private:
  using Clock = std::chrono::steady_clock;

  Client& client_;
  std::chrono::seconds quiet_;
  std::vector<bool> is_finished_;  // by index in the batch
  Clock::time_point ask_at_ = Clock::now() + quiet_;
  std::chrono::seconds pause_ = quiet_;  // doubled by each notice
  std::string said_;                     // without its numbers
};

}  // namespace loopfleet::client

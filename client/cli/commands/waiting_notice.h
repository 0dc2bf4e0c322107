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
  explicit WaitingNotice(Client& client) : client_(client) {}
  // Called for each page, also the empty ones. Returns the line to print; "": none.
  std::string OnPage(const wire::OutcomePage& page);

 private:
  static constexpr std::chrono::seconds kQuiet{3};  // before the first notice

  using Clock = std::chrono::steady_clock;

  Client& client_;
  std::vector<bool> is_finished_;  // by index in the batch
  Clock::time_point ask_at_ = Clock::now() + kQuiet;
  std::chrono::seconds pause_ = kQuiet;  // doubled by each notice
  std::string said_;                     // without its numbers
};

}  // namespace loopfleet::client

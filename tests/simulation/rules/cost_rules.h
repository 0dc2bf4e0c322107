#pragma once
// CostRules: checks that no event of the core costs more than it brings and the limits allow, by
// the outcomes that it writes and by the rows of the tables that it goes through. A part of the
// checker; it shares no code with the core.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "coordinator/core/contract/effect.h"
#include "coordinator/core/contract/event.h"
#include "tests/simulation/fault_mix.h"

namespace loopfleet::simulation {

class CostRules {
 public:
  explicit CostRules(const FaultMix& mix) : mix_(mix) {}

  void Started();
  void WillHandle(const coordinator::Event& event);
  // The effects of that event. A broken rule; nullopt: none.
  std::optional<std::string> Handled(const coordinator::Effects& effects, std::uint64_t rows);

 private:
  const FaultMix& mix_;
  std::map<coordinator::Token, std::size_t> accepted_;  // jobs on their way to disk
  std::size_t allowed_ = 0;                             // outcomes that the event may write
  bool is_quiet_ = false;                               // the event changes nothing
  std::uint64_t rows_left_ = 0;                         // that quiet events may go through
};

}  // namespace loopfleet::simulation

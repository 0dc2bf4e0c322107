#pragma once
// CostRules: checks that no event of the core costs more than it brings and the limits allow, by
// the outcomes that it writes. A part of the checker; it shares no code with the core.

#include <cstddef>
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

  void Started() { accepted_.clear(); }
  void WillHandle(const coordinator::Event& event);
  // The effects of that event. A broken rule; nullopt: none.
  std::optional<std::string> Handled(const coordinator::Effects& effects);

 private:
  const FaultMix& mix_;
  std::map<coordinator::Token, std::size_t> accepted_;  // jobs on their way to disk
  std::size_t allowed_ = 0;                             // outcomes that the event may write
};

}  // namespace loopfleet::simulation

#pragma once
// World: one seed: a coordinator with its disk, workers and clients, the network between them, and
// faults; then a period without faults, by whose end every accepted job must be finished.

#include <cstdint>
#include <optional>
#include <string>

#include "tests/simulation/fault_mix.h"
#include "tests/simulation/planted/planted_bug.h"
#include "tests/simulation/rules/checker.h"
#include "tests/simulation/trace.h"

namespace loopfleet::simulation {

struct Verdict {
  std::optional<Violation> violation;  // nullopt: every promise was kept
  std::uint64_t hash = 0;              // of the trace
  std::uint64_t steps = 0;
  std::uint64_t outcomes = 0;
  Nanos lasted{};  // in virtual time
};

Verdict RunWorld(std::uint64_t seed, const FaultMix& mix, Trace::Text text,
                 const PlantedBugInfo* bug = nullptr);

}  // namespace loopfleet::simulation

#pragma once
// The stages of a job, in order. Outcomes, metrics and documents use the same names.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/clock.h"

namespace loopfleet {

enum class Stage : std::uint8_t { kQueue, kReplay, kCompile, kVerify, kMeasure, kStore };
inline constexpr std::array kStages = {Stage::kQueue,  Stage::kReplay,  Stage::kCompile,
                                       Stage::kVerify, Stage::kMeasure, Stage::kStore};

std::string_view StageName(Stage stage);  // "queue"

// How long each stage took; zero for a stage that the job did not reach. Time in the queue is not
// part of the job's own time.
class StageDurations {
 public:
  Nanos& operator[](Stage stage) { return durations_[static_cast<std::size_t>(stage)]; }
  Nanos operator[](Stage stage) const { return durations_[static_cast<std::size_t>(stage)]; }
  friend bool operator==(const StageDurations&, const StageDurations&) = default;

 private:
  std::array<Nanos, kStages.size()> durations_{};
};

}  // namespace loopfleet

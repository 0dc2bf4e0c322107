#pragma once
// The stages a job passes, in order: one label set for outcomes, metrics and docs.

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

// How long each stage took; zero for a stage the job did not reach. Queue time is time spent
// waiting and never part of the job's own time.
class StageDurations {
 public:
  Nanos& operator[](Stage stage) { return durations_[static_cast<std::size_t>(stage)]; }
  Nanos operator[](Stage stage) const { return durations_[static_cast<std::size_t>(stage)]; }
  friend bool operator==(const StageDurations&, const StageDurations&) = default;

 private:
  std::array<Nanos, kStages.size()> durations_{};
};

}  // namespace loopfleet

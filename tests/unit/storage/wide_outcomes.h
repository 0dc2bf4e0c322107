#pragma once
// Outcomes that take hundreds of kilobytes each when they are read.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/record.h"

namespace loopfleet::storage {

// Batch 1 of `count` jobs, all with the same 400 KB of observed values, stored once.
inline std::vector<Write> WideOutcomes(std::uint32_t count) {
  JobsAccepted accepted{.batch = {1}, .client = Uuid::Random(), .request_id = Uuid::Random()};
  accepted.jobs.resize(count, {.source = looptree::BenchmarkUri{"generator://csmith-v0/0"}});
  JobFinished first{.outcome = {.job = {.batch = {1}}, .sequence = 1}};
  first.outcome.evaluation.verdict = Observed{.values = {{"Ir", std::string(400'000, 'x')}}};
  first.outcome.evaluation.subject.emplace();
  first.outcome.evaluation.conditions.emplace();
  JobsAnswered others;
  const auto answer = std::make_shared<const StoredResult>(
      StoredResult{.evaluation = {.verdict = Observed{}}, .row = -1});
  for (std::uint32_t i = 1; i < count; ++i) {
    others.jobs.push_back({.job = {{1}, i}, .sequence = i + 1, .answer = answer});
  }
  return {std::move(accepted), std::move(first), std::move(others)};
}

}  // namespace loopfleet::storage

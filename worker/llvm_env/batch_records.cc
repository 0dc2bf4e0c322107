#include "worker/llvm_env/batch_records.h"

#include <algorithm>
#include <variant>

namespace loopfleet::worker {

BatchRecords::BatchRecords(std::size_t nodes,
                           std::map<passes::Observation, passes::ObservationValue> baselines)
    : nodes_(nodes), baselines_(std::move(baselines)) {
  nodes_.front().changed = false;  // the program itself: no pass has to end
}

bool BatchRecords::Add(std::string_view records) {
  auto decoded = DecodeRecords(records);
  return decoded && std::ranges::all_of(*decoded, [&](PassRecord& record) {
           return std::visit([&](auto& one) { return AddOne(std::move(one)); }, record);
         });
}

bool BatchRecords::AddOne(StepRecord record) {
  if (record.node >= nodes_.size()) return false;
  nodes_[record.node].changed = record.changed;
  return true;
}

bool BatchRecords::AddOne(ValueRecord record) {
  if (record.node == kBaselineNode) {
    baselines_.insert_or_assign(record.observation, std::move(record.value));
    return true;
  }
  if (record.node >= nodes_.size() || ValueAt(record.node, record.observation) != nullptr) {
    return false;
  }
  nodes_[record.node].values.emplace_back(record.observation, std::move(record.value));
  return true;
}

bool BatchRecords::AddOne(NoValueRecord record) {
  if (record.node == kBaselineNode) {
    missing_baselines_.insert_or_assign(record.observation, std::move(record.failure));
    return true;
  }
  if (record.node >= nodes_.size()) return false;
  nodes_[record.node].missing.insert_or_assign(record.observation, std::move(record.failure));
  return true;
}

bool BatchRecords::AddOne(FailureRecord record) {
  if (record.node >= nodes_.size()) return false;
  nodes_[record.node].failure = std::move(record.failure);
  return true;
}

const passes::ObservationValue* BatchRecords::ValueAt(std::uint32_t node,
                                                      passes::Observation observation) const {
  if (passes::InfoOf(observation).baseline != passes::Baseline::kNone) {
    const auto found = baselines_.find(observation);
    return found == baselines_.end() ? nullptr : &found->second;
  }
  for (const auto& [name, value] : nodes_[node].values) {
    if (name == observation) return &value;
  }
  return nullptr;
}

PassFailure BatchRecords::MissingAt(std::uint32_t node, passes::Observation observation,
                                    const std::optional<PassFailure>& interruption) const {
  const bool is_baseline = passes::InfoOf(observation).baseline != passes::Baseline::kNone;
  const auto& missing = is_baseline ? missing_baselines_ : nodes_[node].missing;
  const auto found = missing.find(observation);
  if (found != missing.end()) return found->second;
  return interruption.value_or(PassFailure{.reason = PassFailure::Reason::kNoProcess,
                                           .message = "the walk ended without this value"});
}

EpisodeResult BatchRecords::ResultOf(const Episode& episode, std::span<const std::uint32_t> path,
                                     const std::optional<PassFailure>& interruption) const {
  std::vector<std::vector<passes::Observation>> wanted_at(path.size());
  for (const Wanted& wanted : episode.wanted) {
    for (const std::uint32_t step : wanted.steps) {
      const bool is_baseline =
          passes::InfoOf(wanted.observation).baseline != passes::Baseline::kNone;
      wanted_at[is_baseline ? 0 : step].push_back(wanted.observation);
    }
  }
  EpisodeResult result;
  std::uint32_t end = 0;  // the first step of which not all is known
  for (; end < path.size() && !result.failure; ++end) {
    const Node& node = nodes_[path[end]];
    if (end > 0 && node.changed) result.changed.push_back(*node.changed);
    if (node.failure) {
      result.failure = node.failure;
    } else if (!node.changed) {
      result.failure =
          interruption.value_or(PassFailure{.reason = PassFailure::Reason::kNoProcess,
                                            .message = "the walk ended without this step"});
    }
    for (const passes::Observation observation : wanted_at[end]) {
      if (result.failure) break;
      if (ValueAt(path[end], observation) == nullptr) {
        result.failure = MissingAt(path[end], observation, interruption);
      }
    }
    if (result.failure) break;
  }
  if (result.failure && end > 0) result.failure->pass_index = end - 1;
  for (const Wanted& wanted : episode.wanted) {
    for (const std::uint32_t step : wanted.steps) {
      if (step >= end) continue;
      result.values.push_back({.observation = wanted.observation,
                               .step = step,
                               .value = *ValueAt(path[step], wanted.observation)});
    }
  }
  return result;
}

}  // namespace loopfleet::worker

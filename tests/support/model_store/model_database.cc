#include "tests/support/model_store/model_database.h"

#include <algorithm>
#include <memory>
#include <variant>

namespace loopfleet::storage {
namespace {

bool IsOld(const ModelDatabase& database, const StoredBatch& batch, WallTime before) {
  const bool is_finished = batch.is_over();
  if (!is_finished || batch.accepted_at >= before) return false;
  if (batch.job_count == 0) return true;
  const JobId last = database.sequences.at({batch.batch, batch.finished});
  return database.outcomes.at(last).finished_at < before;
}

}  // namespace

ThinningCount ModelDatabase::Thin(const ThinningRule& rule) {
  ThinningCount count;
  for (auto& [id, row] : results) {
    StoredResult result = *row.answer;
    if (!result.evaluation.is_timed() || result.measured_at >= rule.measured_before) continue;
    auto& measurement = std::get<Measurement>(result.evaluation.verdict);
    const std::size_t taken = RemoveSamples(rule, measurement);
    if (taken == 0) continue;
    ++count.results;
    count.samples += taken;
    count.bytes += taken * (sizeof(double) + sizeof(std::uint8_t));
    for (const auto& [job, its_row] : row_of) {
      if (its_row == id) outcomes.at(job).evaluation.verdict = measurement;
    }
    row.answer = std::make_shared<const StoredResult>(std::move(result));
  }
  return count;
}

PruningCount ModelDatabase::Prune(const PruningRule& rule) {
  PruningCount count;
  std::set<BatchId> old;
  for (const auto& [id, batch] : batches) {
    const bool is_newest = id == batches.rbegin()->first;
    if (!is_newest && IsOld(*this, batch, rule.finished_before)) old.insert(id);
  }
  const auto erase = [&](auto& map, auto batch_of) {
    return std::erase_if(map, [&](const auto& entry) { return old.contains(batch_of(entry)); });
  };
  const auto of_job = [](const auto& entry) { return entry.first.batch; };
  count.batches = erase(batches, [](const auto& entry) { return entry.first; });
  count.requests = erase(requests, [](const auto& entry) { return entry.second.batch; });
  count.known_failures = erase(failures, [](const auto& known) { return known.job.batch; });
  count.outcomes = erase(outcomes, of_job);
  count.jobs = erase(jobs, of_job);
  erase(accepted_at, of_job);
  erase(replayed, of_job);
  erase(row_of, of_job);
  erase(sequences, [](const auto& entry) { return entry.first.first; });
  pruned.merge(old);
  return count;
}

bool HasCode(const Evaluation& evaluation) {
  return evaluation.is_timed() && !evaluation.code_hash.empty() &&
         evaluation.measurement().grade <= Grade::kB;
}

}  // namespace loopfleet::storage

#include "bench/rigs/stored_results.h"

#include <fmt/format.h>

#include <vector>

#include "bench/rigs/queue_rig.h"
#include "bench/rigs/stub_workers.h"
#include "bench/rigs/unique_tree.h"
#include "common/base/clock.h"
#include "storage/store.h"

namespace loopfleet::bench {
namespace {

constexpr std::uint32_t kGroup = 4'000;  // jobs in a batch, rows in a transaction

std::vector<looptree::TreeKey> RepeatableTrees(std::uint64_t count) {
  std::vector<looptree::TreeKey> trees;
  for (std::uint64_t i = 0; i < count; ++i) {
    trees.push_back(*AnswerTo(RepeatableJob(static_cast<std::uint32_t>(i))).evaluation.tree_key);
  }
  return trees;
}

}  // namespace

Status FillWithResults(const std::filesystem::path& database, const Evaluation& like,
                       const StoredResultsOptions& options) {
  LF_TRY(const auto store, storage::Store::Open(database));
  const std::vector<looptree::TreeKey> trees = RepeatableTrees(options.trees);
  const SystemClock clock;
  std::uint64_t row = 0;
  for (std::uint64_t batch = 1; row < options.rows; ++batch) {
    storage::JobsAccepted accepted{.batch = {batch},
                                   .request_id = Uuid::Random(),
                                   .request_digest = std::string(16, 'd'),
                                   .accepted_at = clock.WallNow()};
    std::vector<storage::Write> writes(1);
    for (std::uint32_t index = 0; index < kGroup && row < options.rows; ++index, ++row) {
      accepted.jobs.push_back(NullJob());
      Outcome outcome{.job = {{batch}, index},
                      .sequence = index + std::uint64_t{1},
                      .attempts = 1,
                      .worker = options.worker,
                      .finished_at = clock.WallNow(),
                      .evaluation = like};
      outcome.evaluation.tree_key = trees.empty() ? UniqueTree(row) : trees[row % trees.size()];
      outcome.evaluation.code_hash = fmt::format("{:032x}", row);
      std::get<Measurement>(outcome.evaluation.verdict).elapsed_mean_ns +=
          static_cast<double>(row % 1000) / 7;
      writes.emplace_back(storage::JobFinished{std::move(outcome)});
    }
    writes.front() = std::move(accepted);
    LF_TRY_VOID(store->Apply(writes));
  }
  return {};
}

}  // namespace loopfleet::bench

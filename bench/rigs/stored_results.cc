#include "bench/rigs/stored_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/rigs/queue_rig.h"
#include "bench/rigs/stub_workers.h"
#include "bench/rigs/unique_tree.h"
#include "common/base/clock.h"
#include "storage/sqlite/result_index/result_keys.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/sqlite_store.h"
#include "storage/sqlite/tables/conditions_table.h"
#include "storage/sqlite/tables/result_table.h"

namespace loopfleet::bench {
namespace {

constexpr std::uint64_t kGroup = 8'000;  // rows in a transaction

std::vector<looptree::TreeKey> RepeatableTrees(std::uint64_t count) {
  std::vector<looptree::TreeKey> trees;
  for (std::uint64_t i = 0; i < count; ++i) {
    trees.push_back(*AnswerTo(RepeatableJob(static_cast<std::uint32_t>(i))).evaluation.subject);
  }
  return trees;
}

// Only results, so not by Store::Apply, which takes the outcomes of accepted jobs.
class ResultFiller {
 public:
  ResultFiller(storage::Connection& connection, const Evaluation& like,
               const StoredResultsOptions& options)
      : connection_(connection),
        options_(options),
        trees_(RepeatableTrees(options.trees)),
        outcome_{.worker = options.worker, .evaluation = like},
        mean_ns_(like.measurement().elapsed_mean_ns) {}

  Status Fill() {
    for (std::uint64_t row = 0; row < options_.rows; row += kGroup) {
      LF_TRY_VOID(connection_.Run("BEGIN"));
      for (std::uint64_t i = row; i < std::min(row + kGroup, options_.rows); ++i) {
        LF_TRY_VOID(Insert(i));
      }
      LF_TRY_VOID(results_.Flush());
      LF_TRY_VOID(keys_.WriteRuns(connection_));
      LF_TRY_VOID(connection_.Run("COMMIT"));
      keys_.Publish(results_.TakeAdded());
    }
    return {};
  }

 private:
  Status Insert(std::uint64_t row) {
    Evaluation& evaluation = outcome_.evaluation;
    evaluation.subject = trees_.empty() ? UniqueTree(row) : trees_[row % trees_.size()];
    evaluation.code_hash = fmt::format("{:032x}", row);
    std::get<Measurement>(evaluation.verdict).elapsed_mean_ns =
        mean_ns_ + static_cast<double>(row % 1000) / 7;
    outcome_.finished_at = clock_.WallNow();
    LF_TRY_VOID(results_.Insert(outcome_));
    return {};
  }

  storage::Connection& connection_;
  const StoredResultsOptions options_;
  const std::vector<looptree::TreeKey> trees_;
  const SystemClock clock_;
  storage::ConditionsTable conditions_{connection_};
  storage::ResultKeys keys_;
  storage::ResultTable results_{connection_, conditions_, keys_};
  Outcome outcome_;
  const double mean_ns_;
};

}  // namespace

Status FillWithResults(const std::filesystem::path& database, const Evaluation& like,
                       const StoredResultsOptions& options) {
  LF_TRY_VOID(storage::SqliteStore::Open(database));  // its schema
  LF_TRY(
      const auto connection,
      storage::Connection::Open(database, storage::Access::kReadWriteCreate, storage::kBusyWait));
  // A crash may spoil the file: it is filled again.
  LF_TRY_VOID(
      connection->Run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
                      "PRAGMA cache_size = -65536; PRAGMA ignore_check_constraints = ON"));
  return ResultFiller(*connection, like, options).Fill();
}

}  // namespace loopfleet::bench

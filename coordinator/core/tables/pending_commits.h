#pragma once
// PendingCommits: the writes on their way to disk, each with what may be said once it is there. An
// effect that depends on a write is released only through this table.
//
// Invariant: tokens ascend; each is taken exactly once, by Persisted or PersistRefused.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "common/job/outcome.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/core/tables/client_table.h"
#include "coordinator/core/tables/single_flight_table.h"

namespace loopfleet::coordinator {

// The jobs of one message. Until they are durable they are nowhere else.
struct AcceptanceCommit {
  RequestKey request;
  BatchId batch;
  std::uint32_t first_index = 0;
  wire::BatchEnd end = wire::BatchEnd::kComplete;
  // Jobs whose answer is known keep only the deadline of their specs, the one field still needed.
  std::vector<ResolvedJob> jobs;
  std::uint64_t bytes = 0;  // charged for these jobs
  Instant arrived_at{};
};

struct OutcomeRecord {
  BatchId batch;
  std::uint64_t sequence = 0;
  LeaseId lease;                    // whose report is to be acknowledged; none without a report
  std::optional<Question> settles;  // the answer that need not be kept in memory any more
};

// The memory that an outcome takes until it is on disk, approximately: most of them take what all
// do, but samples, messages and observed values can be hundreds of kilobytes.
inline constexpr std::uint64_t kOutcomeBytes = 2048;
std::uint64_t LargePartsOf(const Evaluation& evaluation);  // what it takes beyond kOutcomeBytes

// All outcomes of one event.
struct OutcomeCommit {
  Instant made_at{};
  std::vector<OutcomeRecord> outcomes;
  std::uint64_t bytes = 0;  // of memory that these take
  std::optional<BatchId> cancels;
  bool is_piece = false;  // one of many pieces: the next waits for it (bulk_completion.h)
  std::vector<std::pair<Asker, std::string>> drains;    // who set or ended which drain
  std::vector<std::pair<Asker, wire::Accepted>> flags;  // the replies to FlagResults
};

using Commit = std::variant<AcceptanceCommit, OutcomeCommit>;

class PendingCommits {
 public:
  Token Add(Commit commit);
  Commit Take(Token token);
  std::size_t undurable_outcomes() const { return undurable_outcomes_; }
  std::uint64_t undurable_outcome_bytes() const { return undurable_outcome_bytes_; }
  std::uint64_t undurable_job_bytes() const { return undurable_job_bytes_; }
  bool empty() const { return commits_.empty(); }

 private:
  std::map<Token, Commit> commits_;
  Token last_ = 0;
  std::size_t undurable_outcomes_ = 0;
  std::uint64_t undurable_outcome_bytes_ = 0;
  std::uint64_t undurable_job_bytes_ = 0;
};

}  // namespace loopfleet::coordinator

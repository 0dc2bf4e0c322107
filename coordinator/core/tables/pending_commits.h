#pragma once
// PendingCommits: what is on its way to disk, and what may be said once it is there. The only way
// by which an effect that depends on a write is released.
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
#include "coordinator/core/contract/event.h"
#include "coordinator/core/tables/client_table.h"
#include "coordinator/core/tables/single_flight_table.h"

namespace loopfleet::coordinator {

// Jobs of one message. Until it is durable they are nowhere else.
struct AcceptanceCommit {
  RequestKey request;
  BatchId batch;
  std::uint32_t first_index = 0;
  wire::BatchEnd end = wire::BatchEnd::kComplete;
  // Those whose answer is known keep of their specs only what is looked at yet: the deadline.
  std::vector<AdmittedJob> jobs;
  std::uint64_t bytes = 0;  // that were charged for them
  Instant arrived_at{};
};

struct OutcomeRecord {
  BatchId batch;
  std::uint64_t sequence = 0;
  LeaseId lease;                    // whose report is to be acknowledged; none if there was none
  std::optional<Question> settles;  // the answer that need not be kept any more
};

// All outcomes that one event led to.
struct OutcomeCommit {
  Instant made_at{};
  std::vector<OutcomeRecord> outcomes;
  std::optional<BatchId> cancels;
  bool is_piece = false;  // of many endings: the next one waits for it (bulk_completion.h)
  std::vector<std::pair<Asker, std::string>> drains;    // who set or ended which
  std::vector<std::pair<Asker, wire::Accepted>> flags;  // what their askers are told
};

using Commit = std::variant<AcceptanceCommit, OutcomeCommit>;

class PendingCommits {
 public:
  Token Add(Commit commit);
  Commit Take(Token token);
  std::size_t undurable_outcomes() const { return undurable_outcomes_; }
  bool empty() const { return commits_.empty(); }

 private:
  std::map<Token, Commit> commits_;
  Token last_ = 0;
  std::size_t undurable_outcomes_ = 0;
};

}  // namespace loopfleet::coordinator

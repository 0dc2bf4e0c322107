#include "tests/simulation/rules/cost_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace loopfleet::simulation {
namespace {

using coordinator::Persist;

// Any event may end expired jobs; they have a limit of their own.
bool HasExpired(const Outcome& outcome) {
  return !outcome.evaluation.ok() && outcome.evaluation.failure().code == FailureCode::kExpired;
}

struct Size {
  std::size_t accepted = 0;
  std::size_t finished = 0;  // but for expired ones
};
Size SizeOf(const Persist& persist) {
  Size size;
  for (const storage::Write& write : persist.writes) {
    if (const auto* accepted = std::get_if<storage::JobsAccepted>(&write)) {
      size.accepted += accepted->jobs.size();
    } else if (const auto* answered = std::get_if<storage::JobsAnswered>(&write)) {
      size.finished += answered->jobs.size();
    } else if (const auto* finished = std::get_if<storage::JobFinished>(&write)) {
      size.finished += HasExpired(finished->outcome) ? 0 : 1;
    }
  }
  return size;
}

// Whether the event usually neither brings nor changes anything, so that there is nothing to search
// for.
bool IsQuiet(const coordinator::Event& event) {
  if (const auto* said = std::get_if<coordinator::WorkerSaid>(&event)) {
    return std::holds_alternative<wire::Heartbeat>(said->message);
  }
  const auto* asked = std::get_if<coordinator::ClientAsked>(&event);
  return asked != nullptr && (std::holds_alternative<wire::ClientHello>(asked->question) ||
                              std::holds_alternative<wire::FetchOutcomes>(asked->question));
}

}  // namespace

void CostRules::Started() {
  accepted_.clear();
  rows_left_ = 50 * mix_.workers;
}

// Pieces of what ends in bulk, and ended jobs that dispatch meets in the queue, are each bounded by
// max_endings_per_event. An event that can lose workers may end what they hold.
//
// A quiet event goes through 2 rows, usually, however many workers there are. A few go through
// more, where a worker changed before or a job waits for another worker, so what the others leave
// counts.
void CostRules::WillHandle(const coordinator::Event& event) {
  is_quiet_ = IsQuiet(event);
  if (is_quiet_) {
    rows_left_ += 8;
  } else if (!std::holds_alternative<coordinator::Tick>(event)) {
    rows_left_ += 2 * mix_.workers;
  }
  rows_left_ = std::min<std::uint64_t>(rows_left_, 100 * (mix_.workers + 1));
  allowed_ = 1 + 2 * mix_.limits.max_endings_per_event;
  const std::size_t held = mix_.workers * mix_.most_credit * 2;  // with those of earlier lives
  if (const auto* persisted = std::get_if<coordinator::Persisted>(&event)) {
    // These tokens', and earlier ones that are on disk with them.
    const auto end = accepted_.upper_bound(persisted->tokens.back());
    for (auto token = accepted_.begin(); token != end; ++token) allowed_ += token->second;
    accepted_.erase(accepted_.begin(), end);
  } else if (const auto* said = std::get_if<coordinator::WorkerSaid>(&event)) {
    allowed_ += held;
    if (const auto* reports = std::get_if<wire::Reports>(&said->message)) {
      allowed_ += reports->reports.size();
    }
  } else if (std::holds_alternative<coordinator::WorkerUnreachable>(event)) {
    allowed_ += held;
  } else if (std::holds_alternative<coordinator::ClientAsked>(event)) {
    // The first jobs of a batch that it cancels, and one more for each worker that would get it.
    allowed_ += mix_.limits.max_endings_per_event + mix_.workers * 2;
  } else if (std::holds_alternative<coordinator::Tick>(event)) {
    allowed_ += held + mix_.limits.max_expiries_per_tick;  // jobs that no worker may run
  } else if (const auto* recovered = std::get_if<coordinator::Recovered>(&event)) {
    allowed_ += recovered->jobs.size() + recovered->damaged.size();
  } else if (const auto* more = std::get_if<coordinator::JobsRecovered>(&event)) {
    allowed_ += more->jobs.size() + more->damaged.size();
  }
}

std::optional<std::string> CostRules::Handled(const coordinator::Effects& effects,
                                              std::uint64_t rows) {
  if (is_quiet_) {
    if (rows > rows_left_) {
      return fmt::format("an event that changes nothing goes through {} rows, after others did",
                         rows);
    }
    rows_left_ -= rows;
  }
  std::size_t finished = 0;
  for (const coordinator::Effect& effect : effects) {
    const auto* persist = std::get_if<Persist>(&effect);
    if (persist == nullptr) continue;
    const Size size = SizeOf(*persist);
    finished += size.finished;
    if (size.accepted > 0) accepted_[persist->token] = size.accepted;
  }
  if (finished <= allowed_) return std::nullopt;
  return fmt::format("one event ends {} jobs, allowed are {}", finished, allowed_);
}

}  // namespace loopfleet::simulation

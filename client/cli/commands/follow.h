#pragma once
// Follows a batch on the command line: a progress bar, outcomes as they finish, a report.

#include <cstdint>
#include <functional>

#include "client/cli/text/batch_report.h"
#include "client/client.h"

namespace loopfleet::client {

enum class OutcomeOutput {
  kNone,   // a progress bar and the summary
  kJsonl,  // each outcome as a line of JSON on standard output, as it finishes
};

struct FollowOptions {
  BatchId batch;
  OutcomeOutput output = OutcomeOutput::kNone;
  // The "index" printed for a job: its position in its batch, or in its input file.
  std::function<std::uint64_t(std::uint32_t)> index_of = [](std::uint32_t index) { return index; };
  std::function<void(const Outcome&)> on_outcome = [](const Outcome&) {};
};

// Returns the exit code once the last outcome has arrived. Reports errors on standard error.
int FollowBatch(Client& client, const FollowOptions& options, BatchReport& report);

}  // namespace loopfleet::client

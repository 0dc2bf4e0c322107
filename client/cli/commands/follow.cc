#include "client/cli/commands/follow.h"

#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/progress_bar.h"
#include "client/outcome_json.h"

namespace loopfleet::client {
namespace {

void Count(const Outcome& outcome, BatchSummary& summary) {
  if (outcome.evaluation.ok()) {
    ++summary.ok;
    if (outcome.source == OutcomeSource::kStored) ++summary.from_store;
  } else {
    ++summary.failed[std::string(OutcomeLabel(outcome.evaluation))];
  }
}

}  // namespace

int FollowBatch(Client& client, const FollowOptions& options, BatchSummary& summary) {
  ProgressBar bar;
  const auto on_page = [&](const wire::OutcomePage& page) {
    for (const Outcome& outcome : page.outcomes) {
      Count(outcome, summary);
      options.on_outcome(outcome);
      if (options.output == OutcomeOutput::kJsonl) {
        Json json = OutcomeJson(outcome);
        json["index"] = options.index_of(outcome.job.index);
        fmt::print("{}\n", Dump(json));
      }
    }
    // A reader of a pipe wants each outcome at once.
    if (!page.outcomes.empty()) std::fflush(stdout);
    bar.Show(
        {.done = page.batch.finished, .failed = page.batch.failed, .total = page.batch.job_count});
  };
  const auto info = client.Follow(options.batch, on_page);
  bar.Clear();
  if (!info) {
    const int code = Report(info.error());
    fmt::print(stderr, "batch {} goes on; `loopfleet batch wait {}` comes back to it\n",
               options.batch, options.batch);
    return code;
  }
  return info->failed == 0 ? kExitOk : kExitFailed;
}

std::string SummaryText(const BatchSummary& summary) {
  std::string text = fmt::format("{} ok", summary.ok);
  if (summary.from_store > 0) text += fmt::format(" ({} from the store)", summary.from_store);
  std::uint32_t failed = 0;
  std::vector<std::string> codes;
  for (const auto& [code, count] : summary.failed) {
    failed += count;
    codes.push_back(fmt::format("{} {}", count, code));
  }
  if (failed > 0) text += fmt::format(", {} failed: {}", failed, fmt::join(codes, ", "));
  return text;
}

}  // namespace loopfleet::client

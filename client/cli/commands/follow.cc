#include "client/cli/commands/follow.h"

#include <fmt/format.h>

#include <cstdio>

#include "client/cli/commands/waiting_notice.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/progress_bar.h"
#include "client/outcome_json.h"

namespace loopfleet::client {

int FollowBatch(Client& client, const FollowOptions& options, BatchReport& report) {
  ProgressBar bar;
  WaitingNotice notice(client);
  const auto on_page = [&](const wire::OutcomePage& page) {
    for (const Outcome& outcome : page.outcomes) {
      report.Add(outcome);
      options.on_outcome(outcome);
      if (options.output == OutcomeOutput::kJsonl) {
        Json json = OutcomeJson(outcome);
        json["index"] = options.index_of(outcome.job.index);
        fmt::print("{}\n", Dump(json));
      }
    }
    // A reader of a pipe wants each outcome at once.
    if (!page.outcomes.empty()) std::fflush(stdout);
    if (const std::string waits = notice.OnPage(page); !waits.empty()) {
      bar.Clear();
      fmt::print(stderr, "{}\n", waits);
    }
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

}  // namespace loopfleet::client

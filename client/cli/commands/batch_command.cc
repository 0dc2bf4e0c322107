#include <fmt/format.h>

#include <memory>
#include <string>

#include "client/cli/command_line.h"
#include "client/cli/commands/follow.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/outcome_text.h"
#include "client/cli/text/table.h"
#include "client/outcome_json.h"
#include "common/base/counted.h"
#include "common/fleet/fleet_json.h"

namespace loopfleet::client {
namespace {

struct BatchFlags {
  std::string batch;
  std::uint32_t limit = 20;
  std::size_t best = 0;  // of each benchmark; 0: not asked for
  bool json = false;
  bool jsonl = false;
};

void PrintInfo(const wire::BatchInfo& info, bool json) {
  if (json) {
    fmt::print("{}\n", Dump(BatchJson(info)));
    return;
  }
  fmt::print("batch {}: {}, {} of {} finished, {} failed, {} from the store, submitted {} UTC\n",
             info.batch, BatchStateName(info.state), info.finished,
             Counted(info.job_count, "job", "jobs"), info.failed, info.from_store,
             TimeText(info.submitted_at));
}

int RunList(const BatchFlags& flags, const CommandRun& run) {
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto list = client->ListBatches(flags.limit);
  if (!list) return Report(list.error());
  if (flags.json) {
    Json array = Json::array();
    for (const auto& info : list->batches) array.push_back(BatchJson(info));
    fmt::print("{}\n", Dump(array));
    return kExitOk;
  }
  Table table(
      {"BATCH", "STATE", "JOBS", "FINISHED", "FAILED", "FROM STORE", "SUBMITTED (UTC)", "BY"});
  for (const auto& info : list->batches) {
    table.Add({fmt::format("{}", info.batch), std::string(BatchStateName(info.state)),
               std::to_string(info.job_count), std::to_string(info.finished),
               std::to_string(info.failed), std::to_string(info.from_store),
               TimeText(info.submitted_at), info.client.is_nil() ? "coordinator" : "client"});
  }
  fmt::print("{}", table.Text());
  return kExitOk;
}

// Connects, finds the batch, and calls `act` with both.
template <class Do>
int WithBatch(const BatchFlags& flags, const CommandRun& run, const Do& act) {
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto batch = FindBatch(*client, flags.batch);
  if (!batch) return Report(batch.error());
  return act(*client, *batch);
}

// The outcomes so far.
Answer<void> ReadFinished(Client& client, BatchId batch, BatchReport& report) {
  for (std::uint64_t after = 0;;) {
    LF_TRY(const wire::OutcomePage page, client.Fetch(batch, after, Nanos{0}));
    if (page.outcomes.empty()) return {};
    for (const Outcome& outcome : page.outcomes) report.Add(outcome);
    after = page.outcomes.back().sequence;
  }
}

int RunShow(const BatchFlags& flags, const CommandRun& run) {
  return WithBatch(flags, run, [&](Client& client, BatchId batch) -> int {
    const auto info = client.ShowBatch(batch);
    if (!info) return Report(info.error());
    if (flags.best == 0) {
      PrintInfo(*info, flags.json);
      return kExitOk;
    }
    BatchReport report(flags.best);
    if (auto read = ReadFinished(client, batch, report); !read) return Report(read.error());
    if (flags.json) {
      Json json = BatchJson(*info);
      json["report"] = report.ToJson();
      fmt::print("{}\n", Dump(json));
    } else {
      PrintInfo(*info, false);
      fmt::print("{}\n{}", report.Summary(), report.Details());
    }
    return kExitOk;
  });
}

int RunWait(const BatchFlags& flags, const CommandRun& run) {
  return WithBatch(flags, run, [&](Client& client, BatchId batch) {
    BatchReport report;
    const int code = FollowBatch(
        client,
        {.batch = batch, .output = flags.jsonl ? OutcomeOutput::kJsonl : OutcomeOutput::kNone},
        report);
    if (code == kExitOk || code == kExitFailed) {
      fmt::print(stderr, "{}\n", report.Summary());
      if (!flags.jsonl) fmt::print(stderr, "{}", report.Details());
    }
    return code;
  });
}

int RunCancel(const BatchFlags& flags, const CommandRun& run) {
  return WithBatch(flags, run, [&](Client& client, BatchId batch) -> int {
    const auto info = client.Cancel(batch);
    if (!info) return Report(info.error());
    PrintInfo(*info, flags.json);
    return kExitOk;
  });
}

CLI::App& AddVerb(CommandLine& line, CLI::App& noun, const CommandText& text,
                  const std::shared_ptr<BatchFlags>& flags,
                  int (*run)(const BatchFlags&, const CommandRun&)) {
  CLI::App& verb =
      line.AddCommand(noun, text, CommandLine::Talks::kToCoordinator,
                      [flags, run](const CommandRun& how) { return run(*flags, how); });
  if (text.name != "list") {
    verb.add_option("batch", flags->batch, "its number, or 'last' for the newest of a client")
        ->type_name("ID")
        ->required();
  }
  if (text.name != "wait") verb.add_flag("--json", flags->json, "print one JSON value");
  return verb;
}

}  // namespace

void AddBatchCommands(CommandLine& line) {
  CLI::App& noun =
      line.AddNoun({.name = "batch",
                    .description = "List, show, await or cancel batches of jobs",
                    .examples = "loopfleet batch list\nloopfleet batch wait last --jsonl"});
  const auto flags = std::make_shared<BatchFlags>();
  AddVerb(line, noun,
          {.name = "list",
           .description = "The newest batches, and older ones that run",
           .examples = {}},
          flags, RunList)
      .add_option("--limit", flags->limit, "how many (default 20)")
      ->check(CLI::Range(1, 1000));
  AddVerb(line, noun,
          {.name = "show",
           .description = "One batch",
           .examples = "loopfleet batch show last --best 3"},
          flags, RunShow)
      .add_option("--best", flags->best,
                  "also the K best of each benchmark (the quickest schedules; the passes that left "
                  "the fewest instructions), the grades of all figures, and failures by code")
      ->type_name("K")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000}));
  AddVerb(line, noun,
          {.name = "wait",
           .description = "Wait for a batch to finish",
           .examples = "loopfleet batch wait 12 --timeout 60\nloopfleet batch wait last --jsonl"},
          flags, RunWait)
      .add_flag("--jsonl", flags->jsonl,
                "print each outcome as a line of JSON; \"index\" is the job's place in the batch");
  AddVerb(line, noun,
          {.name = "cancel", .description = "Give up what has not finished", .examples = {}}, flags,
          RunCancel);
}

}  // namespace loopfleet::client

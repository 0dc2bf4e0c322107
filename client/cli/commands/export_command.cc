#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/python_process.h"
#include "client/outcome_json.h"
#include "common/base/counted.h"
#include "common/base/number_in.h"
#include "common/wire/bounds.h"

namespace loopfleet::client {
namespace {

struct ExportFlags {
  std::string format = "jsonl";
  std::string benchmark;
  std::string after;
  std::string folder;
  std::string database;
  bool follow = false;
  bool once = false;
};

// Follows into a folder: loopfleet.export.followed of the Python package.
int Follow(const ExportFlags& flags) {
  std::vector<std::string> arguments = {flags.folder, "--follow", "--format",
                                        flags.format, "--db",     flags.database};
  if (flags.once) arguments.emplace_back("--once");
  return BecomePython(
      {.subject = "exports that follow", .module = "loopfleet.export.__main__", .extra = "dataset"},
      std::move(arguments));
}

// Parses "12.3": after sequence 3 of batch 12.
std::optional<OutcomePlace> ParsePlace(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto batch = NumberIn<std::uint64_t>(text.substr(0, dot));
  const auto sequence = NumberIn<std::uint64_t>(text.substr(dot + 1));
  if (!batch || !sequence) return std::nullopt;
  return OutcomePlace{.batch = BatchId{*batch}, .sequence = *sequence};
}

void PrintLine(const Outcome& outcome) {
  Json json = OutcomeJson(outcome);
  json["index"] = outcome.job.index;
  json["sequence"] = outcome.sequence;
  json["finished_at_ns"] = outcome.finished_at.time_since_epoch().count();
  fmt::print("{}\n", Dump(json));
}

bool HasOutcomesToCome(const wire::BatchInfo& batch) {
  return batch.state == wire::BatchState::kOpen || batch.finished < batch.job_count;
}

// The first batch from `first` on that still lacks outcomes; if none does, the newest batch. All
// batches before it are complete; later ones may not be.
Answer<BatchId> FirstUnfinished(Client& client, BatchId first) {
  LF_TRY(auto list, client.ListBatches(wire::kMaxBatchesPerList));
  std::ranges::reverse(list.batches);
  if (list.batches.empty()) return first;
  // Unfinished batches are listed however old they are, up to half of the list. If there are that
  // many, older ones may not be listed: the next export reads all of this one's outcomes again.
  if (list.batches.size() == wire::kMaxBatchesPerList &&
      std::ranges::count_if(list.batches, HasOutcomesToCome) >= wire::kMaxBatchesPerList / 2) {
    return first;
  }
  for (const wire::BatchInfo& batch : list.batches) {
    if (batch.batch >= first && HasOutcomesToCome(batch)) return batch.batch;
  }
  return list.batches.back().batch;
}

int RunExport(const ExportFlags& flags, const CommandRun& run) {
  if (flags.follow && (!flags.benchmark.empty() || !flags.after.empty())) {
    fmt::print(stderr, "loopfleet: --benchmark and --after do not go with --follow\n");
    return kExitUsage;
  }
  if (flags.follow) return Follow(flags);
  if (flags.format != "jsonl" || !flags.folder.empty() || !flags.database.empty() || flags.once) {
    fmt::print(stderr,
               "loopfleet: a folder, --db, --once, parquet and csv go with --follow; without it, "
               "lines of JSON go to standard output\n");
    return kExitUsage;
  }
  wire::ListOutcomes list{.benchmark_prefix = flags.benchmark};
  if (!flags.after.empty()) {
    const auto place = ParsePlace(flags.after);
    if (!place) {
      fmt::print(stderr, "loopfleet: '{}' is no place: give BATCH.SEQUENCE, for example 12.3\n",
                 flags.after);
      return kExitUsage;
    }
    list.after = *place;
  }
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  // Determined before reading: outcomes that arrive meanwhile belong to the next export.
  const auto first_unfinished = FirstUnfinished(*client, list.after.batch);
  if (!first_unfinished) return Report(first_unfinished.error());
  OutcomePlace resume{.batch = *first_unfinished};
  if (list.after.batch >= resume.batch) resume = list.after;
  std::uint64_t written = 0;
  while (true) {
    const auto page = client->ListOutcomes(list);
    if (!page) return Report(page.error());
    for (const Outcome& outcome : page->outcomes) {
      PrintLine(outcome);
      if (outcome.job.batch == resume.batch) resume.sequence = outcome.sequence;
    }
    written += page->outcomes.size();
    if (std::fflush(stdout) != 0) return kExitFailed;
    list.after = page->next;
    if (page->is_end) break;
  }
  fmt::print(stderr, "{}; to go on later: --after {}.{}\n", Counted(written, "outcome", "outcomes"),
             resume.batch, resume.sequence);
  return kExitOk;
}

}  // namespace

void AddExportCommand(CommandLine& line) {
  const auto flags = std::make_shared<ExportFlags>();
  CLI::App& command = line.AddCommand(
      line.root(),
      {.name = "export",
       .description =
           "Every stored outcome, of all clients, as lines of JSON (datasets with splits: "
           "loopfleet-export of the Python package)",
       .examples = "loopfleet export > outcomes.jsonl\n"
                   "loopfleet export --benchmark benchmark://mm-v0/ --after 12.400\n"
                   "loopfleet export --follow --format parquet --db loopfleet.db outcomes/"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunExport(*flags, run); });
  command
      .add_option(
          "--format", flags->format,
          "jsonl: the fields of eval, and index, sequence, but not suspect, which is in what "
          "--follow writes; with it also parquet, csv")
      ->check(CLI::IsMember({"jsonl", "parquet", "csv"}))
      ->capture_default_str();
  command.add_option("--benchmark", flags->benchmark, "only benchmarks whose URI begins so")
      ->type_name("PREFIX");
  command
      .add_option("--after", flags->after,
                  "only what stands after this, in the order of batch and sequence")
      ->type_name("BATCH.SEQUENCE");
  CLI::Option* follow = command.add_flag(
      "--follow", flags->follow,
      "write into FOLDER, go on where it ends, and follow what comes until interrupted");
  CLI::Option* folder =
      command.add_option("FOLDER", flags->folder, "of --follow: files partitioned by day");
  CLI::Option* database =
      command
          .add_option("--db", flags->database,
                      "of --follow: what it reads, a database file or postgresql://...")
          ->type_name("FILE|URL");
  command.add_flag("--once", flags->once, "of --follow: end when everything is there");
  follow->needs(folder)->needs(database);
}

}  // namespace loopfleet::client

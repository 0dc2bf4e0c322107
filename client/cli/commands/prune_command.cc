#include "client/cli/commands/prune_command.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>

#include "client/cli/commands/offline_database.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/age.h"
#include "client/outcome_json.h"
#include "common/base/clock.h"
#include "common/base/counted.h"
#include "storage/open.h"
#include "storage/pruning.h"

namespace loopfleet::client {
namespace {

struct PruneFlags {
  std::string file;
  std::string older_than;
  bool compact = false;
  bool dry_run = false;
  bool json = false;
};

// Prints what `prune` did, or with --dry-run would do.
void PrintPruned(const PruneFlags& flags, const storage::PruningCount& count, std::int64_t id) {
  const std::uint64_t file_bytes = FileBytes(flags.file);
  if (flags.json) {
    const Json json{{"dry_run", flags.dry_run},   {"batches", count.batches},
                    {"requests", count.requests}, {"jobs", count.jobs},
                    {"outcomes", count.outcomes}, {"known_failures", count.known_failures},
                    {"damaged", count.damaged},   {"pruning", id == 0 ? Json(nullptr) : Json(id)},
                    {"file_bytes", file_bytes}};
    fmt::print("{}\n", Dump(json));
    return;
  }
  fmt::print("{} {} with {} and {}; {} among them\n", flags.dry_run ? "would remove" : "removed",
             Counted(count.batches, "batch", "batches"), Counted(count.jobs, "job", "jobs"),
             Counted(count.outcomes, "outcome", "outcomes"),
             Counted(count.known_failures, "known failure", "known failures"));
  if (id != 0) fmt::print("recorded as row {} of table prunings\n", id);
  if (count.damaged > 0) {
    fmt::print("{} damaged, and left alone: loopfleet db check\n",
               Counted(count.damaged, "batch is", "batches are"));
  }
  if (flags.compact) fmt::print("the file takes {} bytes now\n", file_bytes);
}

int Run(const PruneFlags& flags) {
  const auto age = ParseAge(flags.older_than);
  if (!age) {
    fmt::print(stderr, "loopfleet: --older-than: {}\n", age.error().message);
    return kExitUsage;
  }
  const SystemClock clock;
  const storage::PruningRule rule{.finished_before = clock.WallNow() - *age,
                                  .asked_by = "loopfleet db prune"};
  if (flags.dry_run) {
    const auto reader = storage::OpenReader(flags.file);
    if (!reader) return Complain(reader.error());
    const auto count = (*reader)->CountPruning(rule);
    if (!count) return Complain(count.error());
    PrintPruned(flags, *count, 0);
    return kExitOk;
  }
  const auto store = OpenToWrite(flags.file, "--keep-batches-days");
  if (!store) return kExitFailed;
  storage::Pruning pass(rule);
  Status done;
  while (done && !pass.is_over()) done = store->Prune(pass, clock.WallNow());
  if (done && flags.compact) done = store->Compact();
  PrintPruned(flags, pass.count(), pass.id());
  return done ? kExitOk : Complain(done.error());
}

}  // namespace

void AddPrune(CommandLine& line, CLI::App& noun) {
  const auto flags = std::make_shared<PruneFlags>();
  CLI::App& prune = line.AddCommand(
      noun,
      {.name = "prune",
       .description = "Remove old batches with their requests, jobs, outcomes and known failures; "
                      "results stay and answer as before. No coordinator may be running on it",
       .examples = "loopfleet db prune loopfleet.db --older-than 90d --dry-run\n"
                   "loopfleet db prune loopfleet.db --older-than 52w"},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return Run(*flags); });
  prune.add_option("file", flags->file, "the database")->type_name("FILE")->required();
  prune
      .add_option("--older-than", flags->older_than,
                  "batches whose last job finished longer ago than this: 36h, 90d, 52w")
      ->type_name("AGE")
      ->required();
  CLI::Option* compact =
      prune.add_flag("--compact", flags->compact,
                     "rewrite the file, so that it is as small as it can be (a file made before "
                     "version 11 shrinks in no other way); needs twice its size meanwhile");
  prune
      .add_flag("--dry-run", flags->dry_run,
                "change nothing, say what would be removed; also while a coordinator runs")
      ->excludes(compact);
  prune.add_flag("--json", flags->json, "print one JSON value");
}

}  // namespace loopfleet::client

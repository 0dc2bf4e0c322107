// `loopfleet db`: works on a database file, without a coordinator.

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>

#include "client/cli/command_line.h"
#include "client/cli/commands/forget_failures_command.h"
#include "client/cli/commands/offline_database.h"
#include "client/cli/commands/prune_command.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/age.h"
#include "client/cli/text/outcome_text.h"
#include "client/cli/text/table.h"
#include "client/outcome_json.h"
#include "common/base/counted.h"
#include "storage/database_check.h"
#include "storage/open.h"
#include "storage/outcome_repair.h"
#include "storage/snapshot.h"
#include "storage/store.h"
#include "storage/thinning.h"

namespace loopfleet::client {
namespace {

struct DbFlags {
  std::string file;
  std::string to;
  bool drop_kept = false;
  bool json = false;
};

struct ThinFlags {
  std::string file;
  std::string older_than;
  std::uint32_t keep_every = 0;
  bool drop_samples = false;
  bool compact = false;
  bool dry_run = false;
  bool json = false;
};

Json CheckJson(const storage::DatabaseCheck& check) {
  Json json;
  json["ok"] = check.ok();
  json["schema_version"] = check.schema_version;
  json["damage_count"] = check.damage_count;
  json["tables"] = Json::array();
  for (const auto& table : check.tables) {
    json["tables"].push_back(
        {{"table", table.name}, {"rows", table.rows}, {"damaged", table.damaged}});
  }
  json["damage"] = Json::array();
  for (const auto& damage : check.damage) {
    json["damage"].push_back({{"table", damage.table}, {"row", damage.row}, {"what", damage.what}});
  }
  return json;
}

void PrintCheck(const storage::DatabaseCheck& check) {
  Table table({"TABLE", "ROWS", "DAMAGED"});
  for (const auto& checked : check.tables) {
    table.Add({checked.name, std::to_string(checked.rows), std::to_string(checked.damaged)});
  }
  fmt::print("{}", table.Text());
  for (const auto& damage : check.damage) {
    fmt::print("{}{}{}: {}\n", damage.table.empty() ? "file" : damage.table,
               damage.row.empty() ? "" : " ", damage.row, damage.what);
  }
  if (check.damage_count > check.damage.size()) {
    fmt::print("... and {} more\n", check.damage_count - check.damage.size());
  }
}

int RunCheck(const DbFlags& flags) {
  const auto check = storage::CheckDatabase(flags.file);
  if (!check) {
    if (flags.json) {
      fmt::print("{}\n", Dump(Json{{"ok", false}, {"error", check.error().message}}));
    }
    return Complain(check.error());
  }
  if (flags.json) {
    fmt::print("{}\n", Dump(CheckJson(*check)));
  } else {
    PrintCheck(*check);
  }
  if (check->ok()) {
    fmt::print(stderr, "{}: every row is what was written\n", flags.file);
    return kExitOk;
  }
  fmt::print(
      stderr,
      "{0}: {1} damaged; such rows are never used, the others are served. Restore a snapshot "
      "(loopfleet db snapshot), or go on without them; if a page of outcomes cannot be read "
      "and the coordinator ends: loopfleet db repair {0}\n",
      flags.file, check->damage_count);
  return kExitFailed;
}

int RunSnapshot(const DbFlags& flags) {
  if (const Status taken = storage::TakeSnapshot(flags.file, flags.to); !taken) {
    return Complain(taken.error());
  }
  fmt::print(stderr, "{} is a copy of {}; to go on from it: loopfleet-coordinator --db {}\n",
             flags.to, flags.file, flags.to);
  return kExitOk;
}

int RunDropKept(const DbFlags& flags) {
  const auto dropped = storage::DropKeptOutcomes(flags.file);
  if (!dropped) return Complain(dropped.error());
  const std::uint64_t bytes = FileBytes(flags.file);
  if (flags.json) fmt::print("{}\n", Dump(Json{{"dropped", *dropped}, {"file_bytes", bytes}}));
  fmt::print(stderr, "{}: {} removed; the file takes {} bytes now\n", flags.file,
             Counted(*dropped, "kept table", "kept tables"), bytes);
  return kExitOk;
}

int RunRepair(const DbFlags& flags) {
  if (flags.drop_kept) return RunDropKept(flags);
  const auto repair = storage::RepairOutcomes(flags.file);
  if (!repair) return Complain(repair.error());
  if (flags.json) {
    Json lost = Json::array();
    for (const auto& place : repair->lost) {
      lost.push_back({{"batch", place.batch.value}, {"sequence", place.sequence}});
    }
    const Json kept_as = repair->was_damaged ? Json(repair->kept_as) : Json(nullptr);
    fmt::print("{}\n", Dump(Json{{"repaired", repair->was_damaged},
                                 {"lost", std::move(lost)},
                                 {"kept_as", kept_as}}));
  }
  if (!repair->was_damaged) {
    fmt::print(stderr, "{}: every page of outcomes can be read; nothing was changed\n", flags.file);
    return kExitOk;
  }
  fmt::print(stderr,
             "{}: outcomes rebuilt; {} lost, now STORAGE_CORRUPT; the damaged table stays as {}\n",
             flags.file, repair->lost.size(), repair->kept_as);
  return kExitOk;
}

// Prints what `thin` did, or with --dry-run would do.
void PrintThinned(const ThinFlags& flags, const storage::ThinningCount& count, std::int64_t id,
                  std::uint64_t file_bytes) {
  if (flags.json) {
    Json json{{"dry_run", flags.dry_run}, {"results", count.results},
              {"samples", count.samples}, {"bytes", count.bytes},
              {"damaged", count.damaged}, {"retention", id == 0 ? Json(nullptr) : Json(id)},
              {"file_bytes", file_bytes}};
    fmt::print("{}\n", Dump(json));
    return;
  }
  fmt::print("{} {} ({}) of {}\n", flags.dry_run ? "would remove" : "removed",
             Counted(count.samples, "sample", "samples"), Counted(count.bytes, "byte", "bytes"),
             Counted(count.results, "result", "results"));
  if (id != 0) fmt::print("recorded as row {} of table retention\n", id);
  if (count.damaged > 0) {
    fmt::print("{} not what was written, and left alone: loopfleet db check\n",
               Counted(count.damaged, "result is", "results are"));
  }
  if (flags.compact) fmt::print("the file takes {} bytes now\n", file_bytes);
}

int RunCompact(const ThinFlags& flags) {
  const auto store = OpenToWrite(flags.file, nullptr);
  if (!store) return kExitFailed;
  if (const Status done = store->Compact(); !done) return Complain(done.error());
  PrintThinned(flags, {}, 0, FileBytes(flags.file));
  return kExitOk;
}

int RunThin(const ThinFlags& flags) {
  const bool keeps_some = flags.keep_every > 0;
  if (flags.compact && flags.older_than.empty() && !keeps_some && !flags.drop_samples) {
    return RunCompact(flags);
  }
  if (flags.older_than.empty() || (!keeps_some && !flags.drop_samples)) {
    fmt::print(stderr,
               "loopfleet: choose which samples go: give --older-than AGE, and --keep-every N or "
               "--drop-samples; --compact alone takes none\n");
    return kExitUsage;
  }
  const auto age = ParseAge(flags.older_than);
  if (!age) {
    fmt::print(stderr, "loopfleet: --older-than: {}\n", age.error().message);
    return kExitUsage;
  }
  const SystemClock clock;
  const storage::ThinningRule rule{.measured_before = clock.WallNow() - *age,
                                   .keep_every = flags.keep_every,
                                   .asked_by = "loopfleet db thin"};
  if (flags.dry_run) {
    const auto reader = storage::OpenReader(flags.file);
    if (!reader) return Complain(reader.error());
    const auto count = (*reader)->CountThinning(rule);
    if (!count) return Complain(count.error());
    PrintThinned(flags, *count, 0, FileBytes(flags.file));
    return kExitOk;
  }
  const auto store = OpenToWrite(flags.file, "--keep-samples-days");
  if (!store) return kExitFailed;
  storage::Thinning pass(rule, storage::Thinning::Scope::kAll);
  while (!pass.is_over()) {
    if (const Status done = store->Thin(pass, clock.WallNow()); !done) {
      PrintThinned(flags, pass.count(), pass.id(), FileBytes(flags.file));
      return Complain(done.error());
    }
  }
  const Status compacted = flags.compact ? store->Compact() : Status{};
  PrintThinned(flags, pass.count(), pass.id(), FileBytes(flags.file));
  return compacted ? kExitOk : Complain(compacted.error());
}

void AddThin(CommandLine& line, CLI::App& noun) {
  const auto flags = std::make_shared<ThinFlags>();
  CLI::App& thin = line.AddCommand(
      noun,
      {.name = "thin",
       .description = "Take raw samples away from old results; their figures stay, and the "
                      "database says what was taken. No coordinator may be running on it",
       .examples = "loopfleet db thin loopfleet.db --older-than 90d --drop-samples --dry-run\n"
                   "loopfleet db thin loopfleet.db --older-than 52w --keep-every 4 --compact\n"
                   "loopfleet db thin loopfleet.db --compact"},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return RunThin(*flags); });
  thin.add_option("file", flags->file, "the database")->type_name("FILE")->required();
  thin.add_option("--older-than", flags->older_than,
                  "of results that were measured longer ago than this: 36h, 90d, 52w")
      ->type_name("AGE");
  CLI::Option* keep =
      thin.add_option("--keep-every", flags->keep_every, "leave one of each N samples")
          ->type_name("N")
          ->check(CLI::Range(2, 4096));
  thin.add_flag("--drop-samples", flags->drop_samples, "leave none")->excludes(keep);
  CLI::Option* compact =
      thin.add_flag("--compact", flags->compact,
                    "give the room back to the disk, also alone; needs twice the file's size while "
                    "it works");
  thin.add_flag("--dry-run", flags->dry_run,
                "change nothing, say what would be taken; also while a coordinator runs")
      ->excludes(compact);
  thin.add_flag("--json", flags->json, "print one JSON value");
}

}  // namespace

void AddDbCommands(CommandLine& line) {
  CLI::App& noun = line.AddNoun(
      {.name = "db",
       .description = "Check or copy a database file, also while its coordinator runs; thin, "
                      "prune or repair it, or forget its known failures",
       .examples = "loopfleet db check loopfleet.db\nloopfleet db snapshot loopfleet.db copy.db"});
  const auto flags = std::make_shared<DbFlags>();
  CLI::App& check = line.AddCommand(
      noun,
      {.name = "check",
       .description = "Compare every row with its checksum; exit status 1 if one is damaged",
       .examples = {}},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return RunCheck(*flags); });
  check.add_option("file", flags->file, "the database")->type_name("FILE")->required();
  check.add_flag("--json", flags->json, "print one JSON value");
  CLI::App& snapshot = line.AddCommand(
      noun,
      {.name = "snapshot",
       .description = "Copy it as it is now, into a new file",
       .examples = "loopfleet db snapshot loopfleet.db \"backup-$(date -I).db\""},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return RunSnapshot(*flags); });
  snapshot.add_option("file", flags->file, "the database")->type_name("FILE")->required();
  snapshot.add_option("to", flags->to, "the copy; must not be there yet")
      ->type_name("TO")
      ->required();
  AddThin(line, noun);
  AddPrune(line, noun);
  AddForgetFailures(line, noun);
  CLI::App& repair = line.AddCommand(
      noun,
      {.name = "repair",
       .description = "Rebuild the table of outcomes from the pages that can be read; what is lost "
                      "becomes STORAGE_CORRUPT. No coordinator may be running on it",
       .examples =
           "loopfleet db snapshot loopfleet.db before.db\nloopfleet db repair loopfleet.db"},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return RunRepair(*flags); });
  repair.add_option("file", flags->file, "the database")->type_name("FILE")->required();
  repair.add_flag(
      "--drop-kept", flags->drop_kept,
      "instead, remove the damaged tables that earlier repairs kept, and give their room "
      "back to the disk; needs twice the file's size while it works");
  repair.add_flag("--json", flags->json, "print one JSON value");
}

}  // namespace loopfleet::client

// `loopfleet db`: a database file, looked at without a coordinator.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"
#include "client/cli/outcome_text.h"
#include "client/cli/table.h"
#include "client/outcome_json.h"
#include "storage/database_check.h"
#include "storage/snapshot.h"

namespace loopfleet::client {
namespace {

struct DbFlags {
  std::string file;
  std::string to;
  bool json = false;
};

int Complain(const Error& error) {
  fmt::print(stderr, "loopfleet: {}\n", error.message);
  return kExitFailed;
}

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
  fmt::print(stderr,
             "{}: {} damaged; such rows are never used, the others are served. Restore a snapshot "
             "(loopfleet db snapshot), or go on without them\n",
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

}  // namespace

void AddDbCommands(CommandLine& line) {
  CLI::App& noun = line.AddNoun(
      {.name = "db",
       .description = "Check or copy a database file, also while its coordinator runs",
       .examples = "loopfleet db check loopfleet.db\nloopfleet db snapshot loopfleet.db copy.db"});
  const auto flags = std::make_shared<DbFlags>();
  CLI::App& check = line.AddCommand(
      noun,
      {.name = "check",
       .description = "Compare every row with its checksum; exit status 1 if one is damaged",
       .examples = {}},
      CommandLine::Talks::kToNobody, [flags](const CommandRun&) { return RunCheck(*flags); });
  check.add_option("file", flags->file, "the database")->type_name("FILE")->required();
  check.add_flag("--json", flags->json, "print one JSON value");
  CLI::App& snapshot = line.AddCommand(
      noun,
      {.name = "snapshot",
       .description = "Copy it as it is now, into a new file",
       .examples = "loopfleet db snapshot loopfleet.db \"backup-$(date -I).db\""},
      CommandLine::Talks::kToNobody, [flags](const CommandRun&) { return RunSnapshot(*flags); });
  snapshot.add_option("file", flags->file, "the database")->type_name("FILE")->required();
  snapshot.add_option("to", flags->to, "the copy; must not be there yet")
      ->type_name("TO")
      ->required();
}

}  // namespace loopfleet::client

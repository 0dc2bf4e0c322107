#include <fmt/format.h>

#include <memory>
#include <string>

#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/table.h"
#include "client/outcome_json.h"

namespace loopfleet::client {
namespace {

struct WorkerFlags {
  bool json = false;
};

std::string_view StateName(wire::WorkerState state) {
  switch (state) {
    case wire::WorkerState::kReady: return "ready";
    case wire::WorkerState::kDraining: return "draining";
    case wire::WorkerState::kLost: return "lost";
  }
  return "";
}

Json WorkerJson(const wire::WorkerInfo& info) {
  return Json{{"worker", info.worker.ToString()},
              {"name", info.name},
              {"state", StateName(info.state)},
              {"pid", info.pid},
              {"host", info.hardware.host},
              {"device", DeviceKindName(info.hardware.device)},
              {"slots", info.slots},
              {"leased_jobs", info.leased_jobs},
              {"finished_jobs", info.finished_jobs},
              {"since_heartbeat_ms", info.since_heartbeat_ms},
              {"http", info.http.empty() ? Json(nullptr) : Json(info.http)},
              {"hardware", HardwareJson(info.hardware)},
              {"compiler",
               {{"llvm", info.compiler.llvm},
                {"tier", info.compiler.tier},
                {"revision", info.compiler.revision}}}};
}

int RunList(const WorkerFlags& flags, const CommandRun& run) {
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto list = client->ListWorkers();
  if (!list) return Report(list.error());
  if (flags.json) {
    Json array = Json::array();
    for (const auto& info : list->workers) array.push_back(WorkerJson(info));
    fmt::print("{}\n", Dump(array));
    return kExitOk;
  }
  Table table({"WORKER", "STATE", "PID", "DEVICE", "LEASED", "FINISHED", "HEARD", "MODEL"});
  for (const auto& info : list->workers) {
    table.Add({info.name, std::string(StateName(info.state)), std::to_string(info.pid),
               std::string(DeviceKindName(info.hardware.device)), std::to_string(info.leased_jobs),
               std::to_string(info.finished_jobs),
               fmt::format("{:.1f} s ago", info.since_heartbeat_ms / 1e3),
               fmt::format("{} ({})", info.hardware.model, info.hardware.isa)});
  }
  fmt::print("{}", table.Text());
  return kExitOk;
}

}  // namespace

void AddWorkerCommands(CommandLine& line) {
  CLI::App& noun = line.AddNoun({.name = "worker",
                                 .description = "Look at the workers of the fleet",
                                 .examples = "loopfleet worker list"});
  const auto flags = std::make_shared<WorkerFlags>();
  CLI::App& list = line.AddCommand(
      noun, {.name = "list", .description = "Who is up, and how busy", .examples = {}},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunList(*flags, run); });
  list.add_flag("--json", flags->json, "print one JSON array");
}

}  // namespace loopfleet::client

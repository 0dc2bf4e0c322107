#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>

#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/table.h"
#include "client/cli/worker_state_name.h"
#include "client/outcome_json.h"

namespace loopfleet::client {
namespace {

struct WorkerFlags {
  std::string name;
  bool json = false;
};

Json WorkerJson(const wire::WorkerInfo& info) {
  return Json{{"worker", info.worker.ToString()},
              {"name", info.name},
              {"state", WorkerStateName(info.state)},
              {"pid", info.pid},
              {"host", info.hardware.host},
              {"device", DeviceKindName(info.hardware.device)},
              {"slots", info.slots},
              {"leased_jobs", info.leased_jobs},
              {"finished_jobs", info.finished_jobs},
              {"since_heartbeat_ms", info.since_heartbeat_ms},
              {"max_threads", info.max_threads},
              {"labels", info.labels},
              {"canary_ratio", info.canary_ratio > 0 ? Json(info.canary_ratio) : Json(nullptr)},
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
    table.Add({info.name, std::string(WorkerStateName(info.state)), std::to_string(info.pid),
               std::string(DeviceKindName(info.hardware.device)), std::to_string(info.leased_jobs),
               std::to_string(info.finished_jobs),
               fmt::format("{:.1f} s ago", info.since_heartbeat_ms / 1e3),
               fmt::format("{} ({})", info.hardware.model, info.hardware.isa)});
  }
  fmt::print("{}", table.Text());
  return kExitOk;
}

// The workers whose name or id starts so.
std::vector<wire::WorkerInfo> Named(const wire::WorkerList& list, const std::string& name) {
  std::vector<wire::WorkerInfo> found;
  for (const wire::WorkerInfo& info : list.workers) {
    if (info.name.starts_with(name) || info.worker.ToString().starts_with(name)) {
      found.push_back(info);
    }
  }
  return found;
}

std::string RateText(double per_second, std::string_view unit) {
  if (per_second <= 0) return "not measured";
  return fmt::format("{:.4g} {}", per_second / 1e9, unit);
}

std::string WorkerText(const wire::WorkerInfo& info) {
  const HardwareFacts& hardware = info.hardware;
  std::string text = fmt::format("{} ({})\n", info.name, info.worker.ToString());
  text += fmt::format("state: {}, {} jobs leased, {} finished, heard {:.1f} s ago\n",
                      WorkerStateName(info.state), info.leased_jobs, info.finished_jobs,
                      info.since_heartbeat_ms / 1e3);
  text += fmt::format("device: {} ({}), reference clock {:.0f} MHz, up to {} threads\n",
                      hardware.model, hardware.isa, hardware.clock_mhz, info.max_threads);
  text += fmt::format("peak: {}; memory read {}, triad {}\n",
                      RateText(hardware.peaks.flop_per_second, "GFLOP/s"),
                      RateText(hardware.peaks.read_bytes_per_second, "GB/s"),
                      RateText(hardware.peaks.triad_bytes_per_second, "GB/s"));
  text += fmt::format("labels: {}\n", fmt::join(info.labels, ", "));
  text += info.canary_ratio > 0
              ? fmt::format("canaries: {:.4f} of their time at start\n", info.canary_ratio)
              : std::string("canaries: not compared yet\n");
  text += fmt::format("class: {}\n", hardware.hardware_class);
  text += fmt::format("compiler: LLVM {} tier {} revision {}\n", info.compiler.llvm,
                      info.compiler.tier, info.compiler.revision);
  return text;
}

int RunShow(const WorkerFlags& flags, const CommandRun& run) {
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto list = client->ListWorkers();
  if (!list) return Report(list.error());
  const std::vector<wire::WorkerInfo> found = Named(*list, flags.name);
  if (found.size() != 1) {
    std::vector<std::string> names;
    for (const wire::WorkerInfo& info : list->workers) names.push_back(info.name);
    fmt::print(stderr, "loopfleet: {} workers are called '{}'; there are: {}\n", found.size(),
               flags.name, fmt::join(names, ", "));
    return kExitFailed;
  }
  if (flags.json) {
    fmt::print("{}\n", Dump(WorkerJson(found.front())));
  } else {
    fmt::print("{}", WorkerText(found.front()));
  }
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
  CLI::App& show =
      line.AddCommand(noun,
                      {.name = "show",
                       .description = "What one worker is: its device, measured peaks, canaries",
                       .examples = "loopfleet worker show $(hostname) --json"},
                      CommandLine::Talks::kToCoordinator,
                      [flags](const CommandRun& run) { return RunShow(*flags, run); });
  show.add_option("worker", flags->name, "its name or id, or how that begins")
      ->required()
      ->type_name("WORKER");
  show.add_flag("--json", flags->json, "print one JSON object");
}

}  // namespace loopfleet::client

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/text/table.h"
#include "client/outcome_json.h"
#include "common/base/counted.h"
#include "common/base/host_name.h"
#include "common/base/printable.h"
#include "common/fleet/attention.h"
#include "common/fleet/fleet_json.h"

namespace loopfleet::client {
namespace {

struct WorkerFlags {
  std::string name;
  std::string reason;
  bool json = false;
};

void PrintJson(const std::vector<wire::WorkerInfo>& workers) {
  Json array = Json::array();
  for (const auto& info : workers) array.push_back(WorkerJson(info));
  fmt::print("{}\n", Dump(array));
}

int RunList(const WorkerFlags& flags, const CommandRun& run) {
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto list = client->ListWorkers();
  if (!list) return Report(list.error());
  if (flags.json) {
    PrintJson(list->workers);
    return kExitOk;
  }
  if (list->workers.empty()) {
    fmt::print("no worker is connected: start one with loopfleet-worker --coordinator ENDPOINT\n");
    return kExitOk;
  }
  Table table({"WORKER", "STATE", "PID", "DEVICE", "LEASED", "FINISHED", "HEARD", "MODEL", "WHY"});
  for (const auto& info : list->workers) {
    table.Add({info.name, std::string(WorkerStateName(info.state)), std::to_string(info.pid),
               std::string(EnumName(info.hardware.device)), std::to_string(info.leased_jobs),
               std::to_string(info.finished_jobs),
               fmt::format("{:.1f} s ago", info.since_heartbeat_ms / 1e3),
               fmt::format("{} ({})", info.hardware.model, info.hardware.isa), WhyLimited(info)});
  }
  fmt::print("{}", table.Text());
  return kExitOk;
}

// The worker with this name; else those of the host; else those whose name or id starts with it.
std::vector<wire::WorkerInfo> Named(const wire::WorkerList& list, const std::string& name) {
  std::vector<wire::WorkerInfo> of_host;
  std::vector<wire::WorkerInfo> found;
  for (const wire::WorkerInfo& info : list.workers) {
    if (info.name == name) return {info};
    if (info.hardware.host == name) of_host.push_back(info);
    if (info.name.starts_with(name) || info.worker.ToString().starts_with(name)) {
      found.push_back(info);
    }
  }
  return of_host.empty() ? found : of_host;
}

std::string RateText(double per_second, std::string_view unit) {
  if (per_second <= 0) return "not measured";
  return fmt::format("{:.4g} {}", per_second / 1e9, unit);
}

std::string WorkerText(const wire::WorkerInfo& info) {
  const HardwareFacts& hardware = info.hardware;
  std::string text = fmt::format("{} ({})\n", info.name, info.worker.ToString());
  text += fmt::format("state: {}, {} leased, {} finished, heard {:.1f} s ago\n",
                      WorkerStateName(info.state), Counted(info.leased_jobs, "job", "jobs"),
                      info.finished_jobs, info.since_heartbeat_ms / 1e3);
  if (const std::string why = WhyLimited(info); !why.empty()) text += fmt::format("why: {}\n", why);
  text +=
      fmt::format("device: {} ({}), reference clock {:.0f} MHz, up to {}\n", hardware.model,
                  hardware.isa, hardware.clock_mhz, Counted(info.max_threads, "thread", "threads"));
  text += fmt::format("peak: {}; memory read {}, triad {}\n",
                      RateText(hardware.peaks.flop_per_second, "GFLOP/s"),
                      RateText(hardware.peaks.read_bytes_per_second, "GB/s"),
                      RateText(hardware.peaks.triad_bytes_per_second, "GB/s"));
  text += fmt::format("labels: {}\n", fmt::join(info.labels, ", "));
  text += info.canary_ratio > 0
              ? fmt::format("canaries: {:.4f} of their time at start\n", info.canary_ratio)
              : std::string("canaries: not compared yet\n");
  for (const std::string& hindrance : info.hindrances) {
    text += fmt::format("spoils its figures: {}\n", hindrance);
  }
  text += fmt::format("class: {}\n", hardware.hardware_class);
  text += fmt::format("compiler: LLVM {} tier {} revision {}\n", info.compiler.llvm,
                      info.compiler.tier, info.compiler.revision);
  return Printable(text, "\n");
}

int RunShow(const WorkerFlags& flags, const CommandRun& run) {
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto list = client->ListWorkers();
  if (!list) return Report(list.error());
  const std::vector<wire::WorkerInfo> found = Named(*list, flags.name);
  if (found.size() != 1) {
    std::vector<std::string> names;
    for (const wire::WorkerInfo& info : found.empty() ? list->workers : found) {
      names.push_back(Printable(info.name));
    }
    fmt::print(
        stderr, "loopfleet: {} called '{}'; {}\n",
        found.empty() ? "no worker is" : Counted(found.size(), "worker is", "workers are"),
        flags.name,
        names.empty() ? "none is connected" : fmt::format("there are: {}", fmt::join(names, ", ")));
    return kExitFailed;
  }
  if (flags.json) {
    fmt::print("{}\n", Dump(WorkerJson(found.front())));
  } else {
    fmt::print("{}", WorkerText(found.front()));
  }
  return kExitOk;
}

// The target of a drain: a host or a worker's name as it is given, or the id that begins so. The
// beginning of a name could be that of another host, whose worker was not meant: "node1", "node12".
std::string TargetOf(const wire::WorkerList& list, const std::string& given) {
  std::vector<std::string> ids;
  for (const wire::WorkerInfo& info : list.workers) {
    if (info.hardware.host == given || info.name == given) return given;
    std::string id = info.worker.ToString();
    if (id.starts_with(given)) ids.push_back(std::move(id));
  }
  return ids.size() == 1 ? ids.front() : given;  // the coordinator's error lists the workers
}

// "ada@build-7"
std::string Myself() {
  const struct passwd* user = ::getpwuid(::getuid());
  return fmt::format("{}@{}", user != nullptr ? user->pw_name : std::to_string(::getuid()),
                     HostName());
}

int RunSetDrain(const WorkerFlags& flags, const CommandRun& run, wire::DrainAction wish) {
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto list = client->ListWorkers();
  if (!list) return Report(list.error());
  const auto concerned = client->SetDrain({.target = TargetOf(*list, flags.name),
                                           .wish = wish,
                                           .reason = flags.reason,
                                           .by = Myself()});
  if (!concerned) return Report(concerned.error());
  if (flags.json) {
    PrintJson(concerned->workers);
    return kExitOk;
  }
  for (const auto& info : concerned->workers) {
    fmt::print("{}: {}, {} leased\n", Printable(info.name), WorkerStateName(info.state),
               Counted(info.leased_jobs, "job", "jobs"));
  }
  if (concerned->workers.empty()) fmt::print("no worker of that name is connected now\n");
  return kExitOk;
}

void AddDrainCommand(CommandLine& line, CLI::App& noun, const std::shared_ptr<WorkerFlags>& flags,
                     const CommandText& text, wire::DrainAction wish) {
  CLI::App& verb = line.AddCommand(
      noun, text, CommandLine::Talks::kToCoordinator,
      [flags, wish](const CommandRun& run) { return RunSetDrain(*flags, run, wish); });
  verb.add_option("worker", flags->name,
                  "a host (all its workers, also those started later), or one worker's name or id")
      ->required()
      ->type_name("WORKER");
  if (wish == wire::DrainAction::kDrain) {
    verb.add_option("--reason", flags->reason, "shown by worker list and show")->type_name("TEXT");
  }
  verb.add_flag("--json", flags->json, "print one JSON array: the workers that it concerns");
}

}  // namespace

void AddWorkerCommands(CommandLine& line) {
  CLI::App& noun = line.AddNoun({.name = "worker",
                                 .description = "Look at workers, drain and resume them",
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
  show.add_option("worker", flags->name, "its name or id, or how that begins, or its host")
      ->required()
      ->type_name("WORKER");
  show.add_flag("--json", flags->json, "print one JSON object");
  AddDrainCommand(line, noun, flags,
                  {.name = "drain",
                   .description = "Let workers finish what they have begun and take nothing new",
                   .examples = "loopfleet worker drain build-7 --reason 'new memory'"},
                  wire::DrainAction::kDrain);
  AddDrainCommand(line, noun, flags,
                  {.name = "resume",
                   .description = "End a drain",
                   .examples = "loopfleet worker resume build-7"},
                  wire::DrainAction::kResume);
}

}  // namespace loopfleet::client

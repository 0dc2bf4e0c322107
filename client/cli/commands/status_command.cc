// `loopfleet status`, `top` and `events`: the fleet now, live, and its recent events. The numbers
// come from the coordinator's FleetStatus (coordinator/shell/fleet_status.h).

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "client/cli/command_line.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/interrupt.h"
#include "client/cli/text/status_text.h"
#include "client/cli/text/terminal.h"

namespace loopfleet::client {
namespace {

constexpr std::uint32_t kBatchesShown = 50;

struct FleetFlags {
  bool json = false;
  bool once = false;
  bool follow = false;
  double interval_s = 1;
  std::uint64_t count = 0;  // 0: unlimited
};

Answer<FleetReplies> AskForAll(Client& client, std::uint64_t after_event,
                               std::uint32_t max_events) {
  FleetReplies replies;
  LF_TRY(replies.fleet, client.ShowFleet({.after_event = after_event, .max_events = max_events}));
  LF_TRY(replies.workers, client.ListWorkers());
  LF_TRY(replies.batches, client.ListBatches(kBatchesShown));
  return replies;
}

int RunStatus(const FleetFlags& flags, const CommandRun& run) {
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto replies = AskForAll(*client, 0, 0);
  if (!replies) return Report(replies.error());
  if (flags.json) {
    fmt::print("{}\n", Dump(StatusJson(*replies)));
  } else {
    fmt::print("{}", StatusText(*replies));
  }
  return kExitOk;
}

// ---- top ----------------------------------------------------------------------------------------

Answer<void> Update(Client& client, ReplyHistory& history) {
  LF_TRY(FleetReplies replies, AskForAll(client, history.last_event(), wire::kMaxEventsPerList));
  history.Add(std::move(replies));
  return {};
}

// False: the user quits.
bool WaitForKey(const Terminal& terminal, std::chrono::milliseconds wait) {
  const auto until = std::chrono::steady_clock::now() + wait;
  while (!InterruptFlag()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    const std::optional<char> key = terminal.ReadKey(left);
    if (key == 'q' || key == 'Q') return false;
  }
  return false;
}

int RunTop(const FleetFlags& flags, const CommandRun& run) {
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  ReplyHistory history;
  if (const auto updated = Update(*client, history); !updated) return Report(updated.error());
  if (flags.once || !Terminal::IsThere()) {
    constexpr ScreenSize kUnbounded{.columns = 4'096, .rows = 4'096};
    for (const std::string& line : TopScreen(history, kUnbounded)) fmt::print("{}\n", line);
    return kExitOk;
  }
  const std::chrono::milliseconds interval(static_cast<int>(flags.interval_s * 1e3));
  std::optional<CallError> error;
  {
    const Terminal terminal;
    while (!error) {
      terminal.Draw(TopScreen(history, terminal.Size()));
      if (!WaitForKey(terminal, interval)) break;
      if (auto updated = Update(*client, history); !updated) error = std::move(updated).error();
    }
  }
  // Quitting is not a failure.
  if (!error || error->kind == ErrorKind::kClosed) return kExitOk;
  return Report(*error);
}

// ---- events -------------------------------------------------------------------------------------

int RunEvents(const FleetFlags& flags, const CommandRun& run) {
  constexpr auto kPause = std::chrono::milliseconds(250);  // between two requests
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  std::uint64_t epoch = 0;
  std::uint64_t last = 0;
  std::uint64_t shown = 0;
  for (;;) {
    const auto fleet =
        client->ShowFleet({.after_event = last, .max_events = wire::kMaxEventsPerList});
    if (!fleet) {
      // Ending --follow is not a failure.
      if (flags.follow && fleet.error().kind == ErrorKind::kClosed) return kExitOk;
      return Report(fleet.error());
    }
    if (epoch != 0 && fleet->epoch != epoch) {  // restarted: its events start again at 1
      epoch = 0;
      last = 0;
      continue;
    }
    epoch = fleet->epoch;
    for (const wire::FleetEvent& event : fleet->events) {
      fmt::print("{}\n", flags.json ? Dump(EventJson(event)) : EventText(event));
      last = event.sequence;
      if (++shown == flags.count) return kExitOk;
    }
    if (std::fflush(stdout) != 0) return kExitFailed;
    const bool is_all = last >= fleet->last_event || fleet->events.empty();
    if (is_all && !flags.follow) return kExitOk;
    if (is_all) std::this_thread::sleep_for(kPause);
    if (InterruptFlag()) return kExitOk;
  }
}

}  // namespace

void AddWatchCommands(CommandLine& line) {
  const auto flags = std::make_shared<FleetFlags>();
  CLI::App& status = line.AddCommand(
      line.root(),
      {.name = "status",
       .description = "Whether the fleet is healthy, in a sentence and a few numbers",
       .examples = "loopfleet status --json | jq .health"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunStatus(*flags, run); });
  status.add_flag("--json", flags->json, "print one JSON object");
  CLI::App& top = line.AddCommand(
      line.root(),
      {.name = "top",
       .description = "The fleet, live: workers, batches, events (q quits; prints once when piped)",
       .examples = "loopfleet top --interval 0.5"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunTop(*flags, run); });
  top.add_flag("--once", flags->once, "print once and exit");
  top.add_option("--interval", flags->interval_s, "refresh interval (default 1)")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("SECONDS");
  CLI::App& events = line.AddCommand(
      line.root(),
      {.name = "events",
       .description = "What happened to the fleet: workers, batches, the coordinator",
       .examples = "loopfleet events --follow --json | jq -r .kind"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunEvents(*flags, run); });
  events.add_flag("--follow,-f", flags->follow, "follow until Ctrl-C, across restarts");
  events.add_flag("--json", flags->json, "print one JSON object a line");
  events.add_option("--count", flags->count, "stop after N events")->type_name("N");
}

}  // namespace loopfleet::client

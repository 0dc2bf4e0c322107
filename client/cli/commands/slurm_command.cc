// `loopfleet fleet`: requests and releases workers on a cluster with a scheduler.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/commands/slurm.h"
#include "client/cli/connection.h"
#include "client/cli/exit_code.h"
#include "client/cli/interrupt.h"
#include "client/cli/text/table.h"
#include "client/local_cluster.h"
#include "client/outcome_json.h"
#include "common/base/counted.h"
#include "common/base/subprocess.h"
#include "common/fleet/fleet_json.h"

namespace loopfleet::client {
namespace {

// A very busy controller answers within its MessageTimeout, 10 s by default, and Slurm's programs
// retry by themselves.
constexpr std::chrono::seconds kSlurmPatience{120};
// Interval for asking Slurm whether draining workers have ended.
constexpr std::chrono::milliseconds kReleasePollInterval{500};

struct SlurmFlags {
  SlurmRequest request;
  int drain_before_s = static_cast<int>(kDefaultDrainBefore.count());
  bool exclusive = false;
  bool dry_run = false;
  bool json = false;
};

struct TasksFlags {
  std::string choice = "all";
  int within_s = 120;
  bool json = false;
};

int Complain(const Error& error) {
  fmt::print(stderr, "loopfleet: {}\n", error.message);
  switch (error.kind) {
    case ErrorKind::kInvalid: return kExitUsage;
    case ErrorKind::kTimeout: return kExitTimedOut;
    case ErrorKind::kClosed: return kExitInterrupted;
    default: return kExitFailed;
  }
}

std::string ContentOf(const UniqueFd& file) {
  std::string content;
  char buffer[4096];
  (void)::lseek(file.get(), 0, SEEK_SET);
  for (ssize_t got; (got = ::read(file.get(), buffer, sizeof buffer)) > 0;) {
    content.append(buffer, static_cast<std::size_t>(got));
  }
  return content;
}

// Runs one of Slurm's programs to its end and returns its output.
Result<std::string> CallSlurm(const std::vector<std::string>& command, std::string_view input) {
  LF_TRY(const UniqueFd in, MemoryFile(input));
  LF_TRY(const UniqueFd out, MemoryFile(""));
  LF_TRY(const UniqueFd err, MemoryFile(""));
  auto process = Subprocess::Start(
      {.argv = command, .stdin_fd = in.get(), .stdout_fd = out.get(), .stderr_fd = err.get()});
  if (!process) {
    return Fail(process.error().kind, process.error().message +
                                          "; run this where Slurm's commands are, such as on the "
                                          "cluster's login machine");
  }
  const auto status = process->WaitFor(kSlurmPatience);
  if (!status) {
    return Fail(ErrorKind::kTimeout,
                fmt::format("{} did not end within {} s", command.front(), kSlurmPatience.count()));
  }
  if (status->code == 0) return ContentOf(out);
  return Fail(ErrorKind::kUnavailable,
              fmt::format("{} {}: {}", command.front(), ToString(*status), ContentOf(err)));
}

Result<std::vector<SlurmTask>> ListTasks(const TaskChoice& choice) {
  LF_TRY(const std::string output, CallSlurm(SqueueCommand(), ""));
  LF_TRY(auto tasks, ParseTasks(output));
  std::erase_if(tasks, [&](const SlurmTask& task) { return !choice.Includes(task); });
  std::ranges::sort(tasks, {},
                    [](const SlurmTask& task) { return std::pair(task.allocation, task.index); });
  return tasks;
}

// Quoted where a shell would read it otherwise.
std::string ShellWord(const std::string& text) {
  const bool is_plain = text.find_first_of(" \t\n'\"\\$`*?[](){}<>|&;#~") == std::string::npos;
  return is_plain ? text : ShellQuoted(text);
}

int RunSlurm(const SlurmFlags& flags) {
  SlurmRequest request = flags.request;
  request.drain_before = std::chrono::seconds(flags.drain_before_s);
  if (flags.exclusive) request.sbatch.emplace_back("--exclusive");
  if (request.program.empty()) request.program = (OwnDirectory() / "loopfleet-worker").native();
  if (!request.keys.empty()) request.keys = std::filesystem::absolute(request.keys).native();
  const auto command = SbatchCommand(request);
  if (!command) return Complain(command.error());
  if (flags.dry_run) {
    std::vector<std::string> words;
    for (const std::string& word : *command) words.push_back(ShellWord(word));
    fmt::print("{} <<'SCRIPT'\n{}SCRIPT\n", fmt::join(words, " "), SlurmWorkerScript());
    return kExitOk;
  }
  const auto answer = CallSlurm(*command, SlurmWorkerScript());
  if (!answer) return Complain(answer.error());
  // The output is "123" or "123;cluster".
  const std::string allocation = answer->substr(0, answer->find_first_of(";\n"));
  if (flags.json) {
    fmt::print("{}\n", Dump(Json{{"allocation", allocation}, {"workers", request.workers}}));
  } else {
    fmt::print("{}\n", allocation);
    fmt::print(stderr,
               "{} asked for. They appear in `loopfleet fleet status {}`; "
               "`loopfleet fleet release {}` gives them back\n",
               Counted(request.workers, "worker", "workers"), allocation, allocation);
  }
  return kExitOk;
}

// Summary of one allocation.
struct Allocation {
  std::map<std::string, int> tasks_by_state;
  std::string coordinator;
  std::string left;    // of the first running task
  std::string reason;  // of the first waiting task
};

int RunList(const TasksFlags& flags) {
  const auto tasks = ListTasks({});
  if (!tasks) return Complain(tasks.error());
  std::map<std::uint64_t, Allocation> allocations;
  for (const SlurmTask& task : *tasks) {
    Allocation& allocation = allocations[task.allocation];
    ++allocation.tasks_by_state[task.state];
    allocation.coordinator = task.coordinator;
    if (!task.pending() && allocation.left.empty()) allocation.left = task.left;
    if (task.pending() && allocation.reason.empty()) allocation.reason = task.reason;
  }
  if (flags.json) {
    Json array = Json::array();
    for (const auto& [id, allocation] : allocations) {
      array.push_back({{"allocation", std::to_string(id)},
                       {"coordinator", allocation.coordinator},
                       {"workers", allocation.tasks_by_state},
                       {"time_left", allocation.left},
                       {"reason", allocation.reason}});
    }
    fmt::print("{}\n", Dump(array));
    return kExitOk;
  }
  Table table({"ALLOCATION", "WORKERS", "TIME LEFT", "COORDINATOR", "WAITS FOR"});
  for (const auto& [id, allocation] : allocations) {
    std::vector<std::string> counts;
    for (const auto& [state, count] : allocation.tasks_by_state) {
      counts.push_back(fmt::format("{} {}", count, state));
    }
    table.Add({std::to_string(id), fmt::format("{}", fmt::join(counts, ", ")), allocation.left,
               allocation.coordinator, allocation.reason});
  }
  fmt::print("{}", table.Text());
  return kExitOk;
}

// The newest worker with this label: a requeued task has had earlier ones.
const wire::WorkerInfo* WorkerOf(const wire::WorkerList& list, const SlurmTask& task) {
  const wire::WorkerInfo* found = nullptr;
  for (const wire::WorkerInfo& info : list.workers) {
    if (std::ranges::find(info.labels, task.label()) == info.labels.end()) continue;
    if (found == nullptr || info.since_heartbeat_ms < found->since_heartbeat_ms) found = &info;
  }
  return found;
}

Json TaskJson(const SlurmTask& task, const wire::WorkerInfo* worker) {
  Json json = {{"task", task.id()},    {"slurm_state", task.state}, {"node", task.node},
               {"time_ran", task.ran}, {"time_left", task.left},    {"reason", task.reason},
               {"worker", nullptr}};
  if (worker != nullptr) {
    json["worker"] = {{"name", worker->name},
                      {"state", WorkerStateName(worker->state)},
                      {"leased_jobs", worker->leased_jobs},
                      {"finished_jobs", worker->finished_jobs}};
  }
  return json;
}

int RunStatus(const TasksFlags& flags, const CommandRun& run) {
  const auto choice = ParseTaskChoice(flags.choice);
  if (!choice) return Complain(choice.error());
  const auto tasks = ListTasks(*choice);
  if (!tasks) return Complain(tasks.error());
  auto client = Connect(run.settings);
  if (!client) return Report(client.error());
  const auto list = client->ListWorkers();
  if (!list) return Report(list.error());
  if (flags.json) {
    Json array = Json::array();
    for (const SlurmTask& task : *tasks) array.push_back(TaskJson(task, WorkerOf(*list, task)));
    fmt::print("{}\n", Dump(array));
    return kExitOk;
  }
  Table table(
      {"TASK", "SLURM", "NODE", "TIME LEFT", "WORKER", "STATE", "LEASED", "FINISHED", "WAITS FOR"});
  for (const SlurmTask& task : *tasks) {
    const wire::WorkerInfo* worker = WorkerOf(*list, task);
    std::vector<std::string> row = {task.id(), task.state, task.node, task.left};
    if (worker == nullptr) {
      row.insert(row.end(), {"none yet", "", "", ""});
    } else {
      row.insert(row.end(),
                 {worker->name, std::string(WorkerStateName(worker->state)),
                  std::to_string(worker->leased_jobs), std::to_string(worker->finished_jobs)});
    }
    row.push_back(task.reason);
    table.Add(std::move(row));
  }
  fmt::print("{}", table.Text());
  return kExitOk;
}

std::vector<std::string> IdsOf(const std::vector<SlurmTask>& tasks) {
  std::vector<std::string> ids;
  for (const SlurmTask& task : tasks) ids.push_back(task.id());
  return ids;
}

// Tells Slurm to end `tasks`. --quiet: a task that has already ended is no error.
Status Cancel(const std::vector<SlurmTask>& tasks, std::vector<std::string> options) {
  if (tasks.empty()) return {};
  std::vector<std::string> command = {"scancel", "--quiet"};
  std::ranges::move(options, std::back_inserter(command));
  for (std::string& id : IdsOf(tasks)) command.push_back(std::move(id));
  LF_TRY_VOID(CallSlurm(command, ""));
  return {};
}

struct Released {
  std::vector<std::string> drained;    // ended by themselves, or never started
  std::vector<std::string> cancelled;  // did not end in time
};

Result<Released> Release(const TaskChoice& choice, std::chrono::seconds within) {
  const auto& stop = InterruptFlag();
  LF_TRY(const auto all, ListTasks(choice));
  std::vector<SlurmTask> waiting;
  std::vector<SlurmTask> running;
  for (const SlurmTask& task : all) (task.pending() ? waiting : running).push_back(task);
  LF_TRY_VOID(Cancel(waiting, {}));
  // Not TERM: to a worker that drains already, as after the command was interrupted, that says to
  // end at once.
  LF_TRY_VOID(Cancel(running, {"--batch", "--signal=USR1"}));
  const auto end = std::chrono::steady_clock::now() + within;
  while (true) {
    LF_TRY(const auto left, ListTasks(choice));
    const bool out_of_time = std::chrono::steady_clock::now() >= end;
    if (left.empty() || out_of_time) {
      LF_TRY_VOID(Cancel(left, {}));
      Released released{.drained = {}, .cancelled = IdsOf(left)};
      for (const std::string& id : IdsOf(all)) {
        if (std::ranges::find(released.cancelled, id) == released.cancelled.end()) {
          released.drained.push_back(id);
        }
      }
      return released;
    }
    if (stop) {
      return Fail(ErrorKind::kClosed,
                  "the workers go on draining; run this again to wait for them");
    }
    std::this_thread::sleep_for(kReleasePollInterval);
  }
}

int RunRelease(const TasksFlags& flags) {
  const auto choice = ParseTaskChoice(flags.choice);
  if (!choice) return Complain(choice.error());
  const auto released = Release(*choice, std::chrono::seconds(flags.within_s));
  if (!released) return Complain(released.error());
  if (flags.json) {
    fmt::print("{}\n",
               Dump(Json{{"drained", released->drained}, {"cancelled", released->cancelled}}));
    return kExitOk;
  }
  fmt::print("{} drained, {} cancelled after {} s{}{}\n", released->drained.size(),
             released->cancelled.size(), flags.within_s, released->cancelled.empty() ? "" : ": ",
             fmt::join(released->cancelled, " "));
  return kExitOk;
}

void AddSlurmCommand(CommandLine& line, CLI::App& noun) {
  const auto flags = std::make_shared<SlurmFlags>();
  SlurmRequest& request = flags->request;
  CLI::App& slurm = line.AddCommand(
      noun,
      {.name = "slurm",
       .description = "Ask Slurm for workers, as one job array; prints the allocation's number",
       .examples =
           "loopfleet fleet slurm --workers 16 --time 8:00:00 --cpus 4 \\\n"
           "  --coordinator tcp://head:5571 --worker-keys ~/keys/worker\n"
           "Further flags of the workers go into their environment (LOOPFLEET_WORKER_...),\n"
           "further options of sbatch into --sbatch."},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return RunSlurm(*flags); });
  slurm.add_option("--workers", request.workers, "how many")
      ->check(CLI::Range(1, kMostSlurmWorkers))
      ->required();
  slurm
      .add_option("--coordinator", request.coordinator,
                  "the coordinator's endpoint for workers, as the nodes reach it")
      ->type_name("ENDPOINT")
      ->envname("LOOPFLEET_WORKER_ADDRESS")
      ->required();
  slurm.add_option("--worker-keys", request.keys, "the workers' --keys, as the nodes see it")
      ->type_name("DIR");
  slurm
      .add_option("--program", request.program,
                  "loopfleet-worker, as the nodes see it (default: the one beside this command)")
      ->type_name("FILE");
  slurm.add_option("--device", request.device, "the workers' --device (default cpu)");
  slurm
      .add_option("--labels", request.labels,
                  "the workers' --labels, as a,b; each has slurm=ALLOCATION and "
                  "slurm=ALLOCATION_INDEX besides")
      ->delimiter(',');
  slurm.add_option("--partition", request.partition, "sbatch's");
  slurm.add_option("--account", request.account, "sbatch's");
  slurm.add_option("--time", request.time, "time limit of each worker, in Slurm's notation");
  slurm.add_option("--cpus", request.cpus, "CPUs for each worker (sbatch's --cpus-per-task)")
      ->check(IsPositive());
  slurm.add_option("--gres", request.gres, "sbatch's, such as gpu:1");
  slurm.add_flag("--exclusive", flags->exclusive, "a whole node for each worker");
  slurm
      .add_option("--drain-before", flags->drain_before_s,
                  fmt::format("begin to drain so many seconds before the time limit (default {})",
                              kDefaultDrainBefore.count()))
      ->check(CLI::Range(1, 65'535));  // as in sbatch
  slurm.add_option("--sbatch", request.sbatch, "a further option of sbatch; may be repeated")
      ->type_name("OPTION");
  slurm.add_flag("--dry-run", flags->dry_run, "print what would be run, and run nothing");
  slurm.add_flag("--json", flags->json, "print one JSON object");
}

}  // namespace

void AddFleetCommands(CommandLine& line) {
  CLI::App& noun = line.AddNoun({.name = "fleet",
                                 .description = "Get workers from Slurm, and give them back",
                                 .examples = "loopfleet fleet slurm --workers 16 --time 8:00:00 "
                                             "--coordinator tcp://head:5571\n"
                                             "loopfleet fleet release all"});
  AddSlurmCommand(line, noun);
  const auto flags = std::make_shared<TasksFlags>();
  CLI::App& list = line.AddCommand(
      noun, {.name = "list", .description = "Your allocations, as Slurm sees them", .examples = {}},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return RunList(*flags); });
  list.add_flag("--json", flags->json, "print one JSON array");
  CLI::App& status = line.AddCommand(
      noun,
      {.name = "status",
       .description = "Each worker of an allocation, as Slurm and as the coordinator see it",
       .examples = "loopfleet fleet status 123"},
      CommandLine::Talks::kToCoordinator,
      [flags](const CommandRun& run) { return RunStatus(*flags, run); });
  status.add_flag("--json", flags->json, "print one JSON array");
  CLI::App& release = line.AddCommand(
      noun,
      {.name = "release",
       .description = "Give workers back: each finishes what it runs, and what waits is not begun",
       .examples = "loopfleet fleet release 123\nloopfleet fleet release 123_4 --within 600"},
      CommandLine::Talks::kOffline, [flags](const CommandRun&) { return RunRelease(*flags); });
  release
      .add_option("--within", flags->within_s, "cancel what has not ended by then (default 120)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 86'400));
  release.add_flag("--json", flags->json, "print one JSON object");
  for (CLI::App* command : {&status, &release}) {
    CLI::Option* choice =
        command->add_option("allocation", flags->choice, "123, 123_4 for one worker of it, or all");
    choice->type_name("ALLOCATION");
    if (command == &release) choice->required();
  }
}

}  // namespace loopfleet::client

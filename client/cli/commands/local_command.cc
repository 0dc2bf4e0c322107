#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"
#include "client/cli/interrupt.h"
#include "client/local_cluster.h"
#include "client/outcome_json.h"
#include "common/base/counted.h"
#include "common/base/failpoint.h"
#include "common/base/subprocess.h"

namespace loopfleet::client {
namespace {

// The longest time until the end of a daemon is noticed.
constexpr timespec kPollInterval{.tv_sec = 0, .tv_nsec = 100'000'000};
// How long a command may take to end after SIGTERM or SIGHUP.
constexpr auto kCommandGrace = std::chrono::seconds(10);

struct LocalFlags {
  int workers = 1;
  std::string database;
  std::string programs;
  pid_t parent = 0;
  bool verbose = false;
  bool json = false;
};

// Makes this process end with `parent`. False: `parent` is not its parent, or has ended.
bool EndWith(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  return ::getppid() == parent;  // after prctl: the parent may have ended before it
}

// Signals that end `local` or are forwarded, blocked and taken one by one.
class SignalQueue {
 public:
  SignalQueue() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set_, signal);
    ::sigprocmask(SIG_BLOCK, &set_, nullptr);
  }

  struct Signal {
    int number = 0;
    bool from_terminal = false;  // the whole foreground group has received it already
  };
  std::optional<Signal> Next() {
    siginfo_t info{};
    const int number = ::sigtimedwait(&set_, &info, &kPollInterval);
    if (number < 0 || number == SIGCHLD) return std::nullopt;
    return Signal{.number = number, .from_terminal = info.si_code == SI_KERNEL};
  }

 private:
  sigset_t set_;
};

// Reports daemons that have ended. False: the coordinator is one of them.
bool TellDeaths(LocalCluster& cluster) {
  bool coordinator_lives = true;
  for (const auto& death : cluster.TakeExits()) {
    fmt::print(stderr, "loopfleet: the {} {}{}\n", death.daemon, ToString(death.status),
               death.last_lines);
    if (death.is_coordinator) coordinator_lives = false;
  }
  return coordinator_lives;
}

int RunCommand(LocalCluster& cluster, SignalQueue& signals,
               const std::vector<std::string>& command) {
  auto process = Subprocess::Start({.argv = command, .set_environment = cluster.Environment()});
  if (!process) {
    fmt::print(stderr, "loopfleet: {}\n", process.error().message);
    return process.error().kind == ErrorKind::kNotFound ? 127 : 126;  // as in shells
  }
  std::optional<std::chrono::steady_clock::time_point> kill_at;
  while (true) {
    if (const auto status = process->Poll()) return status->code;
    TellDeaths(cluster);
    const auto now = std::chrono::steady_clock::now();
    if (kill_at && now >= *kill_at) process->Signal(SIGKILL);
    const auto signal = signals.Next();
    if (!signal) continue;
    if (!signal->from_terminal) process->Signal(signal->number);
    if (signal->number == SIGTERM || signal->number == SIGHUP) {
      kill_at = kill_at ? now : now + kCommandGrace;
    }
  }
}

void PrintEndpoints(const LocalCluster& cluster, const LocalFlags& flags) {
  if (flags.json) {
    Json json = {{"address", cluster.address()},
                 {"worker_address", cluster.worker_address()},
                 {"http", cluster.http()},
                 {"database", cluster.database().native()},
                 {"coordinator_pid", cluster.coordinator_pid()}};
    fmt::print("{}\n", Dump(json));
  } else {
    fmt::print(
        "A coordinator and {} run until Ctrl-C. In another terminal:\n"
        "  export LOOPFLEET_ADDRESS={}\n"
        "  loopfleet eval benchmark://mm-v0/mm64_64_64 --actions split_16\n"
        "Metrics: http://{}/metrics\n"
        "Results: {}{}\n",
        Counted(flags.workers, "worker", "workers"), cluster.address(), cluster.http(),
        cluster.database().native(),
        flags.database.empty() ? " (gone afterwards; --db keeps them)" : "");
  }
  std::fflush(stdout);
}

int RunForeground(LocalCluster& cluster, SignalQueue& signals, const LocalFlags& flags) {
  PrintEndpoints(cluster, flags);
  while (true) {
    if (!TellDeaths(cluster)) return kExitUnreachable;
    if (const auto signal = signals.Next()) {
      return signal->number == SIGTERM ? kExitOk : kExitInterrupted;
    }
  }
}

int RunLocal(const LocalFlags& flags, const CommandRun& run) {
  if (flags.parent != 0 && !EndWith(flags.parent)) {
    fmt::print(stderr, "loopfleet: --parent {} is not the process that started this one\n",
               flags.parent);
    return kExitUsage;
  }
  const auto& stop = InterruptFlag();
  LocalClusterOptions options{.programs = OwnDirectory(),
                              .workers = flags.workers,
                              .logs = flags.verbose ? LocalLogs::kStderr : LocalLogs::kFiles,
                              .stop = &stop};
  if (!flags.database.empty()) options.database = flags.database;
  if (!flags.programs.empty()) {
    options.worker_arguments = {"--llvm-programs", std::filesystem::absolute(flags.programs)};
  }
  auto cluster = LocalCluster::Start(options);
  LF_FAILPOINT("local.started");
  // From here on signals stay in the queue. Earlier ones are in the flag, even if they came after
  // the last check in LocalCluster::Start.
  SignalQueue signals;
  if (stop) return kExitInterrupted;
  if (!cluster) {
    fmt::print(stderr, "loopfleet: {}\n", cluster.error().message);
    return kExitFailed;
  }
  const int code = run.after_dashes.empty() ? RunForeground(*cluster, signals, flags)
                                            : RunCommand(*cluster, signals, run.after_dashes);
  cluster->Stop();
  return code;
}

}  // namespace

void AddLocalCommand(CommandLine& line) {
  auto flags = std::make_shared<LocalFlags>();
  CLI::App& app = line.AddCommand(
      line.root(),
      {.name = "local",
       .description =
           "Run a whole cluster on this machine, until Ctrl-C or for a COMMAND given behind --",
       .examples = "loopfleet local --workers 2\n"
                   "loopfleet local -- loopfleet eval benchmark://mm-v0/mm64_64_64\n"
                   "loopfleet local --db results.db -- python3 train.py\n"
                   "The command finds the cluster by LOOPFLEET_ADDRESS, LOOPFLEET_WORKER_ADDRESS,\n"
                   "LOOPFLEET_HTTP and LOOPFLEET_DB; its exit code is the exit code."},
      CommandLine::Talks::kOffline,
      [flags](const CommandRun& run) { return RunLocal(*flags, run); });
  app.add_option("--workers", flags->workers, "how many CPU workers (default 1)")
      ->check(CLI::Range(0, 1024));
  app.add_option("--db", flags->database, "where to keep results (default: gone afterwards)")
      ->type_name("FILE");
  app.add_option("--llvm-programs", flags->programs,
                 "the workers' folder of bitcode for jobs of LLVM passes (loopfleet-worker --help)")
      ->type_name("FOLDER");
  app.add_option("--parent", flags->parent,
                 "end when this process, which must have started this one, ends")
      ->type_name("PID");
  app.add_flag("--verbose", flags->verbose, "show the daemons' logs on standard error");
  app.add_flag("--json", flags->json, "without a command: print the endpoints as one JSON object");
}

}  // namespace loopfleet::client

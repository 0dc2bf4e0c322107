#include "worker/coordinator_link/service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/base/log.h"
#include "common/base/service_manager.h"
#include "common/job/outcome_json.h"
#include "common/wire/transport/endpoint.h"
#include "monitoring/http_server.h"
#include "worker/coordinator_link/connection.h"
#include "worker/coordinator_link/liveness.h"
#include "worker/sandbox/exit_reason.h"
#include "worker/timing/slot_time.h"

namespace loopfleet::worker {
namespace {

// One iteration of the connection's loop takes at most its longest wait; far more means it is
// stuck.
constexpr std::chrono::seconds kStuckAfter{30};

void PrintReadyLine(const wire::WorkerHello& hello) {
  const Json line = {
      {"ready", true}, {"worker", hello.name}, {"http", hello.http}, {"pid", hello.pid}};
  fmt::print("{}\n", Dump(line));
  std::fflush(stdout);
}

// Whether this process's id is unique on its host. In each container the first process is 1, and
// containers with the host's network have its name, too.
bool HasPidsOfTheHost() {
  constexpr std::string_view kOfTheHost = "pid:[4026531836]";  // PROC_PID_INIT_INO of Linux
  std::error_code failed;
  const auto own = std::filesystem::read_symlink("/proc/self/ns/pid", failed);
  return failed || own.native() == kOfTheHost;
}

}  // namespace

Result<std::optional<wire::PeerKeys>> LoadWorkerKeys(const WorkerConfig& config) {
  std::optional<wire::PeerKeys> keys;
  if (!config.keys.empty()) {
    constexpr std::array kRoles = {wire::Role::kWorker};
    LF_TRY(keys, wire::LoadPeerKeys(config.keys, kRoles));
  }
  LF_TRY_VOID(wire::CheckConnectEndpoint(config.coordinator,
                                         keys ? wire::Protection::kKeys : wire::Protection::kNone));
  return keys;
}

monitoring::WorkerLabels MetricLabels(std::span<const ChildRole> children) {
  monitoring::WorkerLabels labels;
  labels.outcomes = {"ok"};
  for (const FailureInfo& info : FailureTable()) labels.outcomes.emplace_back(info.name);
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    labels.stages.emplace_back(StageName(stage));
  }
  labels.stages.emplace_back(kSlotOverheadLabel);
  for (std::size_t i = 0; i < kSlotSteps; ++i) {
    labels.stages.emplace_back(SlotStepLabel(static_cast<SlotStep>(i)));
  }
  for (const ChildRole role : children) labels.children.emplace_back(ChildRoleName(role));
  labels.restart_reasons = RestartReasons();
  for (std::size_t i = 0; i < kActivities; ++i) {
    labels.activities.emplace_back(ActivityName(static_cast<Activity>(i)));
  }
  for (const Grade grade : kAllGrades) {
    labels.grades.emplace_back(EnumName(grade));
  }
  return labels;
}

wire::WorkerHello MakeHello(const WorkerConfig& config, const Conditions& conditions,
                            std::uint32_t max_threads) {
  wire::WorkerHello hello;
  hello.worker = Uuid::Random();
  hello.pid = static_cast<std::uint32_t>(::getpid());
  hello.name = fmt::format("{}-{}", conditions.hardware.host, hello.pid);
  if (!HasPidsOfTheHost()) hello.name += "-" + hello.worker.ToString().substr(0, 8);
  hello.slots = config.slots;
  hello.credit = config.slots * config.credit_per_slot;
  hello.hardware = conditions.hardware;
  hello.compiler = conditions.compiler;
  hello.policy = conditions.policy;
  hello.isolation = conditions.isolation;
  hello.max_threads = max_threads;
  hello.labels = config.labels;
  return hello;
}

std::vector<std::string> FindHindrances(std::span<const monitoring::Finding> findings,
                                        Isolation isolation) {
  std::vector<std::string> hindrances;
  const auto add = [&](const std::string& text) {
    if (hindrances.size() < wire::kMaxHindrances) {
      hindrances.push_back(text.substr(0, wire::kMaxHindranceBytes));
    }
  };
  if (isolation != Isolation::kSeccomp) add("sandbox: system calls of kernels are not filtered");
  for (const monitoring::Finding& finding : findings) {
    if (finding.severity != monitoring::Severity::kProblem) continue;
    add(fmt::format("{}: {}", finding.check, finding.what));
    log::Warning("worker.hindrance check={} what=\"{}\" mend=\"{}\"", finding.check, finding.what,
                 finding.mend);
  }
  return hindrances;
}

void DeviceRetirement::Retire(std::string reason) {
  std::lock_guard lock(mutex_);
  if (reason_) return;
  reason_ = std::move(reason);
  if (wake_) wake_();
}

void DeviceRetirement::OnRetire(std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
  if (reason_ && wake_) wake_();
}

std::optional<std::string> DeviceRetirement::reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

Status Serve(const WorkerConfig& config, ServiceParts parts, wire::WorkerHello hello) {
  Liveness liveness(parts.clock);
  monitoring::RegisterProcess(parts.registry);
  const auto why_not_ready = [&] {
    std::vector<std::string> reasons;
    if (!parts.metrics.is_connected()) {
      reasons.emplace_back("not registered with the coordinator");
    }
    return reasons;
  };
  LF_TRY(const std::unique_ptr<monitoring::HttpServer> http,
         monitoring::HttpServer::Start(
             {.listen = config.http,
              .build = {.component = "worker", .version = LOOPFLEET_VERSION},
              .ready = why_not_ready},
             parts.registry, [&] {
               std::vector<std::string> reasons;
               if (!parts.fork_server.IsAlive()) {
                 reasons.emplace_back("the process that starts children ended");
               }
               if (liveness.SinceLastBeat() > kStuckAfter) {
                 reasons.emplace_back("the session with the coordinator is stuck");
               }
               if (parts.retirement != nullptr) {
                 if (auto reason = parts.retirement->reason())
                   reasons.push_back(*std::move(reason));
               }
               return reasons;
             }));
  hello.http = http->address();
  Connection connection({.coordinator = config.coordinator,
                         .keys = std::move(parts.keys),
                         .protocol = {.canaries = parts.canaries}},
                        {.context = parts.context,
                         .wakeup = parts.wakeup,
                         .runner = parts.runner,
                         .metrics = parts.metrics,
                         .clock = parts.clock,
                         .liveness = liveness,
                         .set_reference_clock = parts.set_reference_clock,
                         .check_children = [&]() -> Status {
                           if (parts.fork_server.IsAlive()) return {};
                           return Fail(ErrorKind::kClosed,
                                       "the process that starts children ended");
                         }},
                        hello);
  const auto service =
      ServiceManager::FromEnvironment([&] { return liveness.SinceLastBeat() < kStuckAfter; });
  parts.signals.Watch([&] {
    service->Stopping();
    connection.RequestDrain();
  });
  if (parts.retirement != nullptr) parts.retirement->OnRetire([&] { connection.RequestDrain(); });
  PrintReadyLine(hello);
  service->Ready();
  log::Info("worker.ready name={} coordinator={} http={} class=\"{}\"", hello.name,
            config.coordinator, hello.http, hello.hardware.hardware_class);
  const Status ended = connection.Run();
  parts.signals.Forget();  // it refers to the connection, which is destroyed first
  if (parts.retirement == nullptr) return ended;
  parts.retirement->OnRetire(nullptr);
  const auto reason = parts.retirement->reason();
  if (ended && reason) return Fail(ErrorKind::kUnavailable, *reason);
  return ended;
}

}  // namespace loopfleet::worker

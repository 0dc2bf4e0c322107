#include "tests/simulation/simulated_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/simulation/message_text.h"
#include "tests/simulation/serial_runner.h"

namespace loopfleet::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Two workers share a host.
std::string HostOf(std::size_t index) { return fmt::format("host {}", index / 2); }

Conditions ConditionsOf(DeviceKind device) {
  return {.hardware = {.device = device,
                       .hardware_class = device == DeviceKind::kCpu ? "cpu class" : "cuda class"},
          .compiler = {.llvm = "19", .tier = "general", .revision = "1"},
          .policy = "simulated",
          .isolation = "none"};
}

}  // namespace

class SimulatedWorker::Runner final : public SerialRunner {
 public:
  explicit Runner(SimulatedWorker& worker)
      : SerialRunner(2UL * worker.hello_.credit), worker_(worker) {}

 private:
  void Run(wire::Lease lease) override {
    const bool hangs = worker_.parts_.pool.NatureOf(lease.spec) == Nature::kHanging;
    const Nanos took =
        hangs ? kRunLimit
              : worker_.dice_.Between(Nanos(milliseconds(1)), worker_.parts_.mix.longest_run);
    worker_.After(took, [this, lease] { Finish(lease); });
  }
  void Finish(const wire::Lease& lease) {
    if (const Nanos left = worker_.frozen_until_ - worker_.parts_.agenda.now(); left > Nanos{0}) {
      return worker_.After(left, [this, lease] { Finish(lease); });
    }
    std::optional<wire::Report> report = worker_.RunOf(lease);
    if (!report)
      return worker_.Die(worker_.dice_.Between(Nanos(milliseconds(50)), Nanos(milliseconds(800))));
    Over(*std::move(report));
    worker_.Step();
  }

  SimulatedWorker& worker_;
};

SimulatedWorker::SimulatedWorker(const Parts& parts, std::size_t index, std::uint64_t seed)
    : parts_(parts), index_(index), dice_(seed, 100 + index) {
  link_ = parts_.port.Add([this](wire::WorkerCommand command) { Hear(std::move(command)); });
}

SimulatedWorker::~SimulatedWorker() = default;

template <class Action>
void SimulatedWorker::After(Nanos delay, Action action) {
  parts_.agenda.After(delay, [this, life = life_, action] {
    if (life_ == life) action();
  });
}

void SimulatedWorker::Start() {
  ++life_;
  frozen_until_ = {};
  drifts_until_ = {};
  unread_.clear();
  wakes_at_.reset();
  connections_ = 0;
  const DeviceKind device = index_ < parts_.mix.cuda_workers ? DeviceKind::kCuda : DeviceKind::kCpu;
  const Conditions conditions = ConditionsOf(device);
  hello_ = {.name = fmt::format("worker {}/{}", index_, life_),
            .credit = dice_.Between(1U, parts_.mix.most_credit),
            .hardware = conditions.hardware,
            .compiler = conditions.compiler,
            .policy = conditions.policy};
  hello_.hardware.host = HostOf(index_);
  if (index_ + parts_.mix.labelled_workers >= parts_.mix.workers) hello_.labels = {"big"};
  hello_.worker.bytes[0] = static_cast<std::uint8_t>(index_ + 1);
  hello_.worker.bytes[1] = static_cast<std::uint8_t>(life_);
  hello_.worker.bytes[2] = static_cast<std::uint8_t>(life_ >> 8);
  runner_ = std::make_unique<Runner>(*this);
  Line& line = *this;
  worker::Protocol::Options options;
  options.canaries = [this] {
    const Instant now = parts_.agenda.now();
    worker::CanaryHealth health{.ratio = 1, .steady_until = now};
    if (now < drifts_until_) {
      health = {.ratio = 1.5, .drifting = Canary::kMemory, .steady_until = drifted_at_};
    }
    return health;
  };
  protocol_ = std::make_unique<worker::Protocol>(options, line, *runner_, hello_);
  (void)protocol_->Open(parts_.agenda.now());
  Step();
  After(seconds(1), [this] { SecondPasses(); });
}

bool SimulatedWorker::Send(const wire::WorkerMessage& message) {
  parts_.port.Send(link_, message);
  return true;
}

Status SimulatedWorker::Reconnect() {
  parts_.port.Connect(link_);
  if (++connections_ > 1) parts_.checker.Surprised("a worker heard nothing and connected again");
  return {};
}

void SimulatedWorker::Hear(wire::WorkerCommand command) {
  if (!protocol_) return;
  if (parts_.agenda.now() < frozen_until_) {
    unread_.push_back(std::move(command));
    return;
  }
  if (!protocol_->Hear(std::move(command), parts_.agenda.now())) {
    parts_.checker.Violate("workers are not sent away", hello_.name);
    return;
  }
  Step();
}

void SimulatedWorker::Step() {
  const Instant now = parts_.agenda.now();
  if (!protocol_ || now < frozen_until_) return;
  const std::uint64_t life = life_;
  const auto phase = protocol_->Step(now);
  if (life_ != life) return;
  if (phase.value() == worker::Protocol::Phase::kOver) {
    return Die(dice_.Between(Nanos(milliseconds(100)), Nanos(seconds(3))));
  }
  WakeUpAt(std::max(protocol_->NextTimer(), now + milliseconds(1)));
}

void SimulatedWorker::WakeUpAt(Instant when) {
  if (wakes_at_ && *wakes_at_ <= when) return;
  wakes_at_ = when;
  After(when - parts_.agenda.now(), [this, when] {
    if (wakes_at_ != when) return;  // replaced by an earlier wake-up
    wakes_at_.reset();
    Step();
  });
}

void SimulatedWorker::SecondPasses() {
  After(seconds(1), [this] { SecondPasses(); });
  if (dice_.Chance(Rate(Fault::kPartition))) {
    parts_.port.Part(link_, dice_.Between(Nanos(milliseconds(500)), Nanos(seconds(8))),
                     static_cast<WorkerPort::Deaf>(dice_.Between(0, 2)));
    if (dice_.Chance(0.5)) parts_.port.Cut(link_);
  }
  if (dice_.Chance(Rate(Fault::kFreezeWorker)) && parts_.agenda.now() >= frozen_until_) {
    const Nanos pause = dice_.Between(Nanos(milliseconds(500)), Nanos(seconds(8)));
    frozen_until_ = parts_.agenda.now() + pause;
    After(pause, [this] { Thaw(); });
  }
  if (dice_.Chance(Rate(Fault::kDriftWorker)) && parts_.agenda.now() >= drifts_until_) {
    drifted_at_ = parts_.agenda.now();
    const Nanos drift = dice_.Between(Nanos(seconds(1)), Nanos(seconds(6)));
    // With drifts_stay the drift is permanent, as after a hardware change.
    drifts_until_ = parts_.mix.drifts_stay ? Instant::max() : drifted_at_ + drift;
  }
  if (dice_.Chance(Rate(Fault::kDrainWorker)) && !protocol_->is_draining()) {
    protocol_->StartDrain(parts_.agenda.now());
    Step();
  } else if (dice_.Chance(Rate(Fault::kKillWorker))) {
    Die(dice_.Between(Nanos(milliseconds(10)), Nanos(seconds(4))));
  }
}

void SimulatedWorker::Thaw() {
  const std::uint64_t life = life_;
  while (life_ == life && !unread_.empty()) {
    wire::WorkerCommand next = std::move(unread_.front());
    unread_.pop_front();
    Hear(std::move(next));
  }
  if (life_ == life) Step();
}

void SimulatedWorker::Die(Nanos until_restart) {
  parts_.trace.Note(parts_.agenda.now(), 20, index_, life_,
                    [&] { return fmt::format("{} ends", hello_.name); });
  ++life_;
  // The caller may be the protocol or the runner, so they are destroyed later.
  parts_.agenda.After(Nanos{0}, [old_runner = std::shared_ptr<Runner>(std::move(runner_)),
                                 old = std::shared_ptr<worker::Protocol>(std::move(protocol_))] {});
  parts_.port.Disconnect(link_);
  parts_.agenda.After(until_restart, [this] { Start(); });
}

std::optional<wire::Report> SimulatedWorker::RunOf(const wire::Lease& lease) {
  const Nature nature = parts_.pool.NatureOf(lease.spec);
  if (nature == Nature::kPoison) return std::nullopt;
  const std::uint64_t made = ++parts_.reports_made;
  const auto measure = std::get<ResolvedTask>(JobPool::Replay(lease.spec));
  // Workers of a class agree about a tree within 3 %; no two figures are equal.
  const auto ns =
      1000.0 * (1 + measure.subject.bytes[0]) + static_cast<double>(made % 30'000) / 1000;
  Conditions conditions = ConditionsOf(hello_.hardware.device);
  conditions.hardware.host = hello_.hardware.host;
  wire::Report report{.lease = lease.lease,
                      .job = lease.job,
                      .evaluation = {.verdict = Measurement{.elapsed_ns = ns,
                                                            .elapsed_low_ns = ns - 1,
                                                            .elapsed_high_ns = ns + 1,
                                                            .elapsed_min_ns = ns - 1,
                                                            .elapsed_mean_ns = ns,
                                                            .spread = 1 / ns,
                                                            .grade = Grade::kA,
                                                            .iterations_per_sample = 1,
                                                            .samples_ns = {ns - 1, ns, ns + 1},
                                                            .sample_flags = {0, 0, 0}},
                                     .subject = measure.subject,
                                     .flop_count = measure.flop_count,
                                     .conditions = conditions,
                                     .scratch_bytes = made}};
  auto& verdict = report.evaluation.verdict;
  Truth truth = Truth::kHonest;
  if (nature == Nature::kHanging) {
    verdict = Failure{.code = FailureCode::kRunTimeout, .message = "it ran for too long"};
  } else if (nature == Nature::kCrashing) {
    verdict = Failure{.code = FailureCode::kRunCrash, .message = "it crashed", .signal = 11};
  } else if (dice_.Chance(Rate(Fault::kFlakyDevice))) {
    verdict =
        Failure{.code = dice_.Chance(0.5) ? FailureCode::kDeviceFault : FailureCode::kWorkerCrashed,
                .message = "the device failed"};
  } else if (dice_.Chance(Rate(Fault::kNoise))) {
    verdict = Failure{.code = FailureCode::kUnstableTiming, .message = "the host is busy"};
  } else if (dice_.Chance(Rate(Fault::kLie))) {
    truth = Truth::kLie;
    auto& lie = std::get<Measurement>(verdict);
    switch (dice_.Between(0, 8)) {
      case 0: lie.elapsed_ns = -ns; break;
      case 1:
        lie.samples_ns.clear();
        lie.sample_flags.clear();
        break;
      case 2: report.evaluation.subject->bytes[0] ^= 1; break;
      case 3: report.evaluation.conditions->hardware.hardware_class = "a better one"; break;
      case 4: report.evaluation.conditions->threads = 2; break;
      case 5: ++report.evaluation.flop_count; break;
      case 6: lie.elapsed_high_ns = 1e12; break;
      case 7: lie.elapsed_ns = lie.elapsed_low_ns = 0.7 * ns; break;
      default: lie.elapsed_low_ns = ns + 2; break;
    }
  }
  parts_.checker.WillReport(report, truth, hello_.name);
  return report;
}

}  // namespace loopfleet::simulation

#include "bench/rigs/stub_workers.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/job/job_spec.h"
#include "common/job/loop_schedule.h"
#include "common/looptree/tree/key.h"
#include "common/wire/codec/codec.h"
#include "common/wire/message.h"

namespace loopfleet::bench {
namespace {

constexpr Nanos kHeartbeat = std::chrono::milliseconds(500);
constexpr std::size_t kSamples = 15;

const HardwareFacts kHardware{.hardware_class = "stub", .model = "stub", .isa = "none"};
const CompilerFacts kCompiler{.llvm = "0", .tier = "stub", .revision = "0"};
constexpr const char* kPolicy = "stub";

// The coordinator has replayed the job, so replaying it here succeeds.
Evaluation ResultOf(const JobSpec& job) {
  const auto replayed = ReplayJob(job);
  LF_CHECK(replayed.has_value(), "{}", replayed.error().message);
  Measurement measurement{.elapsed_ns = 1000,
                          .elapsed_low_ns = 990,
                          .elapsed_high_ns = 1010,
                          .elapsed_min_ns = 1000,
                          .elapsed_mean_ns = 1000,
                          .spread = 0.01,
                          .grade = Grade::kA,
                          .iterations_per_sample = 60,
                          .samples_ns = std::vector<double>(kSamples, 1000),
                          .sample_flags = std::vector<std::uint8_t>(kSamples, 0)};
  return {
      .verdict = std::move(measurement),
      .subject = looptree::KeyOf(replayed->tree),
      .flop_count = looptree::FlopCount(replayed->tree.program()),
      .conditions =
          Conditions{
              .hardware = kHardware, .compiler = kCompiler, .policy = kPolicy, .isolation = "stub"},
      .code_hash = "00000000000000000000000000000000"};
}

// One stub worker: its connection and its unsent reports.
class Stub {
 public:
  Stub(wire::Context& context, const StubWorkersOptions& options, std::uint32_t number)
      : dealer_(wire::Dealer::Connect(context, options.coordinator).value()),
        hello_{.worker = Uuid::Random(),
               .name = fmt::format("stub-{}", number),
               .pid = number,
               .credit = options.credit,
               .hardware = kHardware,
               .compiler = kCompiler,
               .policy = kPolicy,
               .labels = options.labels} {
    Send(hello_);
  }

  wire::Dealer& dealer() { return dealer_; }

  void Work() {
    Flush();
    while (const auto frame = dealer_.Receive()) {
      const auto command = wire::DecodeWorkerCommand(*frame);
      LF_CHECK(command.has_value(), "{}", command.error().message);
      if (const auto* leases = std::get_if<wire::Leases>(&*command)) Answer(*leases);
      if (std::holds_alternative<wire::HelloWanted>(*command)) Send(hello_);
      if (const auto* refused = std::get_if<wire::Refused>(&*command)) {
        LF_CHECK(false, "refused: {}", refused->failure.message);
      }
    }
  }

  void Beat() { Send(wire::Heartbeat{}); }

 private:
  void Answer(const wire::Leases& leases) {
    wire::Reports reports;
    std::size_t bytes = 0;
    for (const wire::Lease& lease : leases.leases) {
      const Evaluation& result = ResultFor(lease.spec);
      const std::size_t next = wire::EncodedSize(result);
      if (reports.reports.size() == wire::kMaxReportsPerMessage ||
          bytes + next > wire::kMaxMessageBytes - wire::kMessageOverheadBytes) {
        Send(std::exchange(reports, {}));
        bytes = 0;
      }
      reports.reports.push_back({.lease = lease.lease, .job = lease.job, .evaluation = result});
      bytes += next;
    }
    if (!reports.reports.empty()) Send(reports);
  }

  // Jobs of one benchmark share one result.
  const Evaluation& ResultFor(const JobSpec& job) {
    const std::string& text = std::visit(
        [](const auto& source) -> const std::string& { return source.text; }, job.source);
    const auto known = results_.find(text);
    return known != results_.end() ? known->second
                                   : results_.emplace(text, ResultOf(job)).first->second;
  }

  void Send(const wire::WorkerMessage& message) {
    unsent_.push_back(wire::Encode(message));
    Flush();
  }

  void Flush() {
    while (!unsent_.empty() && dealer_.Send(unsent_.front()) == wire::SendResult::kSent) {
      unsent_.pop_front();
    }
  }

  wire::Dealer dealer_;
  wire::WorkerHello hello_;
  std::unordered_map<std::string, Evaluation> results_;  // by benchmark
  std::deque<std::string> unsent_;                       // reports; bounded by the credit
};

}  // namespace

StubAnswer AnswerTo(const JobSpec& job) {
  return {.hello = {.pid = 1, .hardware = kHardware, .compiler = kCompiler, .policy = kPolicy},
          .evaluation = ResultOf(job)};
}

StubWorkers::StubWorkers(const StubWorkersOptions& options)
    : options_(options), thread_([this] { Serve(); }) {}

StubWorkers::~StubWorkers() {
  stopping_ = true;
  stop_.Signal();
  thread_.join();
}

void StubWorkers::Serve() {
  wire::Context context;
  std::deque<Stub> stubs;
  wire::Poller poller;
  poller.Add(stop_);
  for (std::uint32_t i = 0; i < options_.workers; ++i) {
    poller.Add(stubs.emplace_back(context, options_, i).dealer());
  }
  auto next_beat = std::chrono::steady_clock::now() + kHeartbeat;
  while (!stopping_) {
    poller.Wait(std::chrono::milliseconds(10));
    for (Stub& stub : stubs) stub.Work();
    if (std::chrono::steady_clock::now() < next_beat) continue;
    for (Stub& stub : stubs) stub.Beat();
    next_beat += kHeartbeat;
  }
}

}  // namespace loopfleet::bench

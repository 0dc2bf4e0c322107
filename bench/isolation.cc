// What isolation costs: an evaluation by an executor child with and without the filter of system
// calls, in turns; and how long it takes until the next kernel runs after one that crashed or hung.
// Real children and a kernel that does nothing, so what is measured is all that is round a kernel.

#include "worker/isolation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/result_line.h"
#include "common/base/check.h"
#include "common/looptree/benchmark.h"
#include "monitoring/host/core_plan.h"
#include "worker/arena.h"
#include "worker/code_arena.h"
#include "worker/executor_child.h"
#include "worker/executor_process.h"
#include "worker/nursery.h"

namespace loopfleet::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 300;
constexpr int kFaults = 30;
constexpr std::chrono::milliseconds kRunLimit{100};
// Until there is a spare child again.
constexpr std::chrono::milliseconds kBetweenFaults{10};

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::string CodeOf(const std::string& kernel) {
#if defined(__x86_64__)
  if (kernel == "returns") return "\xc3";      // ret
  if (kernel == "crashes") return "\x0f\x0b";  // ud2
  return "\xeb\xfe";                           // a jump to itself
#else
  LF_CHECK(false, "there is no machine code for {} on this processor", kernel);
#endif
}

// An executor on the timing core, with its nursery.
// Of the core's time, what is not sampling.
double HandoverMicroseconds(const worker::Timed& timed) {
  return static_cast<double>(timed.outside[worker::SlotStep::kTake] +
                             timed.outside[worker::SlotStep::kMap]) /
         1e3;
}

class Rig {
 public:
  explicit Rig(worker::Isolation isolation) {
    code_ = worker::CodeArena::Create({}).value();
    const monitoring::CorePlan cores =
        monitoring::PlanCores(monitoring::AllowedProcessors().value(), {});
    worker::ChildProgram& program = programs_.by_role[worker::ChildRole::kExecutor];
    if (!cores.others.empty()) program.limits.cpu_core = cores.slot_core;
    program.run = [isolation](worker::Channel& channel) {
      return worker::RunExecutorChild(channel, {.isolation = isolation});
    };
    programs_.prepare = [this] {
      LF_CHECK(code_->LeaveWritingToParent().has_value(), "the code arena");
    };
    nursery_ = worker::Nursery::Start(programs_).value();
    executor_ = std::make_unique<worker::ExecutorProcess>(
        *nursery_, worker::ExecutorProcess::Options{.run_limit = kRunLimit},
        [](worker::ChildRole, worker::ChildEnd::Cause) {});
    const auto add =
        looptree::OpenBenchmark(looptree::BenchmarkUri{"benchmark://loop_tool-cpu-v0/1024"});
    workload_ = worker::MakeWorkload(
                    add->start, 1,
                    [](const auto& tree, std::uint64_t seed, const auto& inputs,
                       const auto& reference) -> std::expected<std::vector<bool>, Failure> {
                      return worker::ComputeReference(tree.program(), seed, inputs.bytes(),
                                                      reference.bytes());
                    })
                    .value();
    const std::uint64_t elements = 1024;
    arena_ = arenas_.Take(worker::LayOut({&elements, 1}, 2)).value();
  }

  // One evaluation, from the question to the answer.
  worker::Timed Time() {
    const worker::SamplingPolicy policy{.least_samples = 1,
                                        .most_samples = 1,
                                        .min_repetition_ns = 1,
                                        .least_timed_ns = 0,
                                        .max_samples = 1};
    executor_->Begin(CallOf("returns"), policy, std::chrono::milliseconds(1));
    return executor_->Finish().value();
  }
  // The time that the core takes from one kernel to the next, which is there already: for each of
  // so many looks of 0.2 ms.
  std::vector<double> TimeInQueue(int looks) {
    const worker::SamplingPolicy policy{.least_samples = 3,
                                        .most_samples = 3,
                                        .min_repetition_ns = 60'000,
                                        .least_timed_ns = 0,
                                        .max_samples = 3};
    const auto begin = [&] {
      executor_->Begin(CallOf("returns"), policy, std::chrono::milliseconds(1));
    };
    std::vector<double> took;
    begin();
    for (int i = 0; i < looks; ++i) {
      begin();
      took.push_back(HandoverMicroseconds(executor_->Finish().value()));
    }
    static_cast<void>(executor_->Finish());
    return took;
  }
  // The time from the question for a kernel that goes wrong until the next one has run.
  double RecoverFrom(const std::string& kernel) {
    LF_CHECK(executor_->Run(CallOf("returns")).has_value(), "the kernel that returns");
    std::this_thread::sleep_for(kBetweenFaults);
    const worker::KernelCall bad = CallOf(kernel);
    const worker::KernelCall good = CallOf("returns");
    const auto start = Clock::now();
    LF_CHECK(!executor_->Run(bad).has_value(), "it {}", kernel);
    LF_CHECK(executor_->Run(good).has_value(), "the kernel that returns");
    return MicrosecondsSince(start);
  }

 private:
  worker::KernelCall CallOf(const std::string& kernel) {
    places_.push_back(std::make_unique<worker::CodeArena::Place>(code_->Take()));
    if (places_.size() > 4) places_.erase(places_.begin());
    return {.entry = places_.back()->Write({.bytes = CodeOf(kernel)}).value(),
            .workload = workload_,
            .arena = arena_};
  }

  std::unique_ptr<worker::CodeArena> code_;
  worker::ChildPrograms programs_;
  std::unique_ptr<worker::Nursery> nursery_;
  std::unique_ptr<worker::ExecutorProcess> executor_;
  std::shared_ptr<const worker::Workload> workload_;
  worker::ArenaPool arenas_{{}};
  std::shared_ptr<worker::Arena> arena_;
  std::vector<std::unique_ptr<worker::CodeArena::Place>> places_;
};

void Run() {
  const worker::Isolation best = worker::ProbeIsolation();
  Rig filtered(best);
  Rig open(worker::Isolation::kProcess);
  struct Costs {
    std::vector<double> round_trip;
    std::vector<double> handover;
  };
  Costs with;
  Costs without;
  for (int i = 0; i < kRounds; ++i) {
    for (auto [rig, costs] : {std::pair(&filtered, &with), std::pair(&open, &without)}) {
      const auto start = Clock::now();
      const worker::Timed timed = rig->Time();
      costs->round_trip.push_back(MicrosecondsSince(start));
      costs->handover.push_back(HandoverMicroseconds(timed));
    }
  }
  const std::string name(worker::IsolationName(best));
  const auto print = [&](const char* what, const std::vector<double>& of,
                         const std::vector<double>& peer) {
    Print({.bench = "isolation",
           .name = fmt::format("{}, {}", what, name),
           .value = MedianOf(of),
           .unit = "us",
           .peer = "the same without a filter of system calls",
           .peer_value = MedianOf(peer),
           .details = {{"difference_us", MedianOf(of) - MedianOf(peer)}}});
  };
  print("evaluation of an empty kernel, question to answer", with.round_trip, without.round_trip);
  print("of that on the timing core, without sampling", with.handover, without.handover);
  print("from one kernel to the next in the queue", filtered.TimeInQueue(kRounds),
        open.TimeInQueue(kRounds));
  for (const std::string kernel : {"crashes", "hangs"}) {
    std::vector<double> took;
    for (int i = 0; i < kFaults; ++i) took.push_back(filtered.RecoverFrom(kernel));
    const double limit = kernel == "hangs" ? static_cast<double>(kRunLimit.count()) * 1e3 : 0;
    Print({.bench = "isolation",
           .name = fmt::format("after a kernel that {}, until the next has run{}", kernel,
                               limit > 0 ? ", without the limit on its run" : ""),
           .value = MedianOf(took) - limit,
           .unit = "us",
           .details = {{"longest", *std::ranges::max_element(took) - limit}}});
  }
}

}  // namespace
}  // namespace loopfleet::bench

int main() {
  loopfleet::bench::Run();
  return 0;
}

// What isolation costs: evaluations by an executor child, with and without the syscall filter,
// beside the same kernel linked into this process and timed by the same sampler, in turns. Also how
// long it takes until the next kernel runs after one that crashed or hung. The children are real
// and have several kernels prepared, as in a worker.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/rigs/result_line.h"
#include "bench/rigs/stopwatch.h"
#include "bench/rigs/timing_core.h"
#include "common/base/check.h"
#include "common/base/quantile.h"
#include "common/looptree/datasets/benchmark.h"
#include "monitoring/host/core_plan.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/cpu/linker.h"
#include "worker/isa/core_kernels.h"
#include "worker/isa/isa_support.h"
#include "worker/processes/executor_child.h"
#include "worker/processes/executor_process.h"
#include "worker/sandbox/fork_server.h"
#include "worker/sandbox/syscall_filter.h"
#include "worker/timing/host_core_probe.h"
#include "worker/verification/code_arena.h"
#include "worker/verification/guarded_buffers.h"

namespace loopfleet::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 40;
constexpr std::size_t kKernels = 12;  // in a round: the most that a core has prepared at a time
constexpr int kFaults = 30;
constexpr std::chrono::milliseconds kRunLimit{100};
// Long enough for a new spare child to start.
constexpr std::chrono::milliseconds kBetweenFaults{10};

std::string CodeOf(const std::string& kernel) {
#if defined(__x86_64__)
  if (kernel == "returns") return "\xc3";      // ret
  if (kernel == "crashes") return "\x0f\x0b";  // ud2
  return "\xeb\xfe";                           // a jump to itself
#else
  LF_CHECK(false, "there is no machine code for {} on this processor", kernel);
#endif
}

// What every arm evaluates.
struct Subject {
  Kernel kernel;
  std::shared_ptr<const worker::Workload> workload;

  // The layout of the kernel's non-input buffers.
  worker::BufferLayout Layout() const {
    std::vector<std::uint64_t> counts;
    for (const BufferSpec& buffer : kernel.buffers) {
      if (buffer.role != BufferSpec::Role::kInput) counts.push_back(buffer.element_count);
    }
    return worker::LayOut(counts, kernel.buffers.size() - counts.size());
  }
};

Subject MakeSubject() {
  const auto product =
      looptree::OpenBenchmark(looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"});
  Subject subject;
  subject.kernel = worker::CpuCompiler::Create().value()->Compile(product->start).value();
  subject.workload =
      worker::MakeWorkload(
          product->start, {1},
          [](const auto& tree, worker::InputSeed seed, const auto& inputs, const auto& reference) {
            return worker::ComputeReference(tree.program(), seed, inputs.bytes(),
                                            reference.bytes());
          })
          .value();
  return subject;
}

// A round always has five repetitions, however noisy the core, so that all arms do the same work.
constexpr std::uint32_t kRepetitions = 5;
worker::SamplingPolicy PolicyOf(std::uint64_t iterations, std::uint64_t probe_steps) {
  return {.min_samples = kRepetitions,
          .most_samples = kRepetitions,
          .give_up_after = kRepetitions,
          .max_samples = kRepetitions,
          .iterations = iterations,
          .probe_steps = probe_steps};
}

// The time that evaluations use the timing core outside their repetitions. Two rounds each, as the
// daemon gives a kernel whose rounds agree.
struct Costs {
  std::vector<double> outside;          // total, microseconds
  std::vector<worker::SlotTime> steps;  // the same by step, as a child accounts for it
  std::vector<double> run_ns;           // one run of the kernel, the median of a round
};

double MedianRunNs(const worker::Samples& samples) { return Quantile(samples.ns, 0.5); }

// The baseline without isolation: the sampler calls the kernel directly.
class InProcess {
 public:
  InProcess(const Subject& subject, const monitoring::CorePlan& cores)
      : subject_(subject), cores_(cores) {
    for (std::size_t i = 0; i < kKernels; ++i) {
      linked_.push_back(worker::Linker().Link(subject.kernel.object).value());
      arenas_.push_back(pool_.Take(subject.Layout()).value());
    }
    const OnTimingCore here(cores_);
    probe_.emplace(*worker::HostIsa().core_kernels, stopwatch_);
    constexpr double kRepetitionNs = 60'000;
    Runner runner(*linked_.front(), BuffersOf(*arenas_.front()));
    const worker::Samples samples = Look(PolicyOf(0, probe_->steps()), runner);
    policy_ = PolicyOf(static_cast<std::uint64_t>(std::ceil(kRepetitionNs / MedianRunNs(samples))),
                       probe_->steps());
  }

  // The policy of the rounds in all arms.
  const worker::SamplingPolicy& policy() const { return policy_; }

  void Evaluate(Costs& costs) {
    const OnTimingCore here(cores_);
    std::vector<double> outside(kKernels);
    std::uint64_t since = stopwatch_.NowNs();
    for (int look = 0; look < 2; ++look) {
      for (std::size_t i = 0; i < kKernels; ++i) {
        Runner runner(*linked_[i], BuffersOf(*arenas_[i]));
        const worker::Samples samples = Look(policy_, runner);
        costs.run_ns.push_back(MedianRunNs(samples));
        const std::uint64_t now = stopwatch_.NowNs();
        outside[i] += (static_cast<double>(now - since) - TotalNs(samples)) / 1e3;
        since = now;
      }
    }
    costs.outside.insert(costs.outside.end(), outside.begin() + 1, outside.end());
  }
  double LookMicroseconds() {
    const OnTimingCore here(cores_);
    const auto start = Clock::now();
    Runner runner(*linked_.front(), BuffersOf(*arenas_.front()));
    Look(policy_, runner);
    return Since<std::micro>(start);
  }

 private:
  // Runs its kernel as an executor child's runner does.
  class Runner final : public worker::IterationRunner {
   public:
    Runner(const worker::LinkedKernel& kernel, std::vector<std::span<std::byte>> memory)
        : function_(kernel.function()), memory_(std::move(memory)) {
      for (const std::span<std::byte> buffer : memory_) {
        pointers_.push_back(reinterpret_cast<float*>(buffer.data()));
      }
    }
    void Run(std::uint64_t iterations) override {
      for (std::uint64_t i = 0; i < iterations; ++i) function_(pointers_.data());
    }
    void WarmCaches() override {
      constexpr std::size_t kLineBytes = 64;
      for (const std::span<std::byte> buffer : memory_) {
        for (std::size_t i = 0; i < buffer.size(); i += kLineBytes) {
          static_cast<void>(*static_cast<const volatile std::byte*>(buffer.data() + i));
        }
      }
    }
    void EvictCaches() override { LF_CHECK(false, "looks are warm here"); }

   private:
    KernelFunction function_;
    std::vector<std::span<std::byte>> memory_;
    std::vector<float*> pointers_;
  };

  std::vector<std::span<std::byte>> BuffersOf(const worker::GuardedBuffers& arena) const {
    std::vector<std::span<std::byte>> memory;
    const auto add = [&](std::span<std::byte> bytes, const worker::BufferLayout& layout) {
      for (const auto& [offset, size] : layout.buffers) {
        memory.push_back(bytes.subspan(offset, size));
      }
    };
    add(subject_.workload->inputs.bytes(), subject_.workload->layout);
    add(arena.memory().bytes(), arena.layout());
    return memory;
  }

  worker::Samples Look(const worker::SamplingPolicy& policy, Runner& runner) {
    return worker::SampleRound(policy, {.stopwatch = stopwatch_, .probe = *probe_}, runner);
  }

  const Subject& subject_;
  const monitoring::CorePlan& cores_;
  const worker::SystemStopwatch stopwatch_;
  std::optional<worker::HostCoreProbe> probe_;
  worker::SamplingPolicy policy_;
  worker::GuardedBufferPool pool_{{}};
  std::vector<std::unique_ptr<worker::LinkedKernel>> linked_;
  std::vector<std::shared_ptr<worker::GuardedBuffers>> arenas_;
};

// An executor on the timing core, with its fork server.
class Rig {
 public:
  Rig(worker::Isolation isolation, const Subject& subject, const monitoring::CorePlan& cores)
      : subject_(subject) {
    code_ = worker::CodeArena::Create({}).value();
    worker::ChildProgram& program = programs_.by_role[worker::ChildRole::kExecutor];
    if (!cores.others.empty()) program.limits.cpu_core = cores.slot_core;
    program.run = [isolation](Channel& channel) {
      return worker::RunExecutorChild(channel, {.isolation = isolation});
    };
    programs_.prepare = [this] { LF_CHECK(code_->MakeExecutable().has_value(), "the code arena"); };
    fork_server_ = worker::ForkServer::Start(programs_).value();
    executor_ = std::make_unique<worker::ExecutorProcess>(
        *fork_server_, worker::ExecutorProcess::Options{.run_limit = kRunLimit},
        [](worker::ChildRole, worker::ExitReason::Cause) {});
    for (std::size_t i = 0; i < kKernels; ++i) {
      worker::CodeArena::Place& place =
          *places_.emplace_back(std::make_unique<worker::CodeArena::Place>(code_->Take()));
      const auto image = worker::Linker().LinkAt(
          subject.kernel.object, {.address = place.address(), .max_bytes = place.size()});
      kernels_.push_back({.entry = place.Write(*image).value(),
                          .workload = subject.workload,
                          .arena = arenas_.Take(subject.Layout()).value()});
    }
  }

  enum class Memory { kMappedBefore, kNew };  // to the executor
  void Evaluate(const worker::SamplingPolicy& policy, Memory memory, Costs& costs) {
    for (const worker::KernelCall& call : kernels_) {
      if (memory == Memory::kNew) call.arena->SetLayout(subject_.Layout());
      Begin(call, policy);
    }
    std::vector<worker::SlotTime> outside(kKernels);
    for (int look = 0; look < 2; ++look) {
      for (std::size_t i = 0; i < kKernels; ++i) {
        const worker::Timed timed = executor_->Finish().value();
        if (look == 0) Begin(kernels_[i], policy);
        outside[i] += timed.outside;
        costs.run_ns.push_back(MedianRunNs(timed.samples));
      }
    }
    for (std::size_t i = 1; i < kKernels; ++i) {  // the first one includes the child's waiting
      costs.outside.push_back(static_cast<double>(outside[i].total_ns()) / 1e3);
      costs.steps.push_back(outside[i]);
    }
  }
  // From request to answer, with no other kernel in the executor.
  double LookMicroseconds(const worker::SamplingPolicy& policy) {
    const auto start = Clock::now();
    Begin(kernels_.front(), policy);
    LF_CHECK(executor_->Finish().has_value(), "a look");
    return Since<std::micro>(start);
  }
  // The time from the request for a faulty kernel until the next one has run.
  double RecoverFrom(const std::string& kernel) {
    LF_CHECK(executor_->Run(CallOf("returns")).has_value(), "the kernel that returns");
    std::this_thread::sleep_for(kBetweenFaults);
    const worker::KernelCall bad = CallOf(kernel);
    const worker::KernelCall good = CallOf("returns");
    const auto start = Clock::now();
    LF_CHECK(!executor_->Run(bad).has_value(), "it {}", kernel);
    LF_CHECK(executor_->Run(good).has_value(), "the kernel that returns");
    return Since<std::micro>(start);
  }

 private:
  void Begin(const worker::KernelCall& call, const worker::SamplingPolicy& policy) {
    executor_->Begin(call, policy, std::chrono::milliseconds(1));
  }
  worker::KernelCall CallOf(const std::string& kernel) {
    worker::KernelCall call = kernels_.front();
    fault_places_.push_back(std::make_unique<worker::CodeArena::Place>(code_->Take()));
    if (fault_places_.size() > 4) fault_places_.erase(fault_places_.begin());
    call.entry = fault_places_.back()->Write({.bytes = CodeOf(kernel)}).value();
    return call;
  }

  const Subject& subject_;
  std::unique_ptr<worker::CodeArena> code_;
  worker::ChildPrograms programs_;
  std::unique_ptr<worker::ForkServer> fork_server_;
  std::unique_ptr<worker::ExecutorProcess> executor_;
  worker::GuardedBufferPool arenas_{{}};
  std::vector<std::unique_ptr<worker::CodeArena::Place>> places_;
  std::vector<worker::KernelCall> kernels_;
  std::vector<std::unique_ptr<worker::CodeArena::Place>> fault_places_;  // the newest four
};

struct Arms {
  Costs filtered;
  Costs open;
  Costs in_process;
};

nlohmann::ordered_json MedianSteps(const std::vector<worker::SlotTime>& evaluations) {
  nlohmann::ordered_json medians;
  for (std::size_t i = 0; i < worker::kSlotSteps; ++i) {
    const auto step = static_cast<worker::SlotStep>(i);
    std::vector<double> us;
    for (const worker::SlotTime& time : evaluations) {
      us.push_back(static_cast<double>(time[step]) / 1e3);
    }
    medians[std::string(worker::SlotStepLabel(step))] = Quantile(us, 0.5);
  }
  return medians;
}

void PrintCosts(const std::string& name, const std::string& isolation, const Arms& arms) {
  const auto median = [](const std::vector<double>& values) { return Quantile(values, 0.5); };
  const double filtered = median(arms.filtered.outside);
  const double open = median(arms.open.outside);
  const double in_process = median(arms.in_process.outside);
  Print({.bench = "isolation",
         .name = fmt::format("{}, {}", name, isolation),
         .value = filtered,
         .unit = "us",
         .peer = "the same sampler and kernel in one process",
         .peer_value = in_process,
         .details = {{"isolation_costs_us", filtered - in_process},
                     {"of_that_the_filter_us", filtered - open},
                     {"without_filter_us", open},
                     {"steps_us", MedianSteps(arms.filtered.steps)},
                     {"p90_us", Quantile(arms.filtered.outside, 0.9)},
                     {"peer_p90_us", Quantile(arms.in_process.outside, 0.9)},
                     {"kernel_run_ns", median(arms.filtered.run_ns)},
                     {"peer_kernel_run_ns", median(arms.in_process.run_ns)},
                     {"evaluations", arms.filtered.outside.size()}}});
}

void Run() {
  const worker::Isolation best = worker::ProbeIsolation();
  const std::string isolation(worker::IsolationName(best));
  const monitoring::CorePlan cores =
      monitoring::PlanCores(monitoring::AllowedProcessors().value(), {});
  if (!cores.others.empty())
    RunOn(cores.others);  // as the daemon does, to keep off the timing core
  const Subject subject = MakeSubject();
  Rig filtered(best, subject, cores);
  Rig open(worker::Isolation::kProcess, subject, cores);
  InProcess in_process(subject, cores);
  const worker::SamplingPolicy& policy = in_process.policy();

  Arms mapped_before;
  Arms in_new_memory;
  std::vector<double> alone;
  std::vector<double> alone_open;
  std::vector<double> alone_in_process;
  for (int i = 0; i < kRounds; ++i) {
    for (const auto& [memory, arms] : {std::pair(Rig::Memory::kMappedBefore, &mapped_before),
                                       std::pair(Rig::Memory::kNew, &in_new_memory)}) {
      filtered.Evaluate(policy, memory, arms->filtered);
      open.Evaluate(policy, memory, arms->open);
      in_process.Evaluate(arms->in_process);
    }
    alone.push_back(filtered.LookMicroseconds(policy));
    alone_open.push_back(open.LookMicroseconds(policy));
    alone_in_process.push_back(in_process.LookMicroseconds());
  }
  PrintCosts("an evaluation of two looks, besides its repetitions", isolation, mapped_before);
  PrintCosts("the same in memory that the executor has not mapped yet", isolation, in_new_memory);
  Print({.bench = "isolation",
         .name = fmt::format("a look alone, question to answer, {}", isolation),
         .value = Quantile(alone, 0.5),
         .unit = "us",
         .peer = "the same sampler and kernel in one process",
         .peer_value = Quantile(alone_in_process, 0.5),
         .details = {{"without_filter_us", Quantile(alone_open, 0.5)}}});

  for (const std::string kernel : {"crashes", "hangs"}) {
    std::vector<double> took;
    for (int i = 0; i < kFaults; ++i) took.push_back(filtered.RecoverFrom(kernel));
    const double limit = kernel == "hangs" ? static_cast<double>(kRunLimit.count()) * 1e3 : 0;
    Print({.bench = "isolation",
           .name = fmt::format("after a kernel that {}, until the next has run{}", kernel,
                               limit > 0 ? ", without the limit on its run" : ""),
           .value = Quantile(took, 0.5) - limit,
           .unit = "us, median",
           .details = {{"p90", Quantile(took, 0.9) - limit},
                       {"longest", Quantile(took, 1) - limit},
                       {"times", kFaults}}});
  }
}

}  // namespace
}  // namespace loopfleet::bench

int main() {
  loopfleet::bench::Run();
  return 0;
}

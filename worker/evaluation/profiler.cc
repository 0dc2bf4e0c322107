#include "worker/evaluation/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/result.h"

namespace loopfleet::worker {
namespace {

using looptree::TreeRef;

// Counts turns until there were enough.
class Turns {
 public:
  explicit Turns(const Profiler::Rules& rules) : rules_(rules) {}
  bool Next() {
    constexpr std::size_t kLeast = 3;
    const bool is_late = std::chrono::steady_clock::now() - begun_ > rules_.longest;
    return taken_++ < (is_late ? kLeast : rules_.turns);
  }

 private:
  const Profiler::Rules rules_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::size_t taken_ = 0;
};

// The cells of a copy, in the shared memory that it writes to: at the end of scratch, which is the
// last buffer.
std::span<std::byte> CellsOf(const PlacedKernel& copy, const ProbeCells& probes) {
  const PlacedBuffer& scratch = copy.call.arena->layout().buffers.back();
  return copy.call.arena->memory().bytes().subspan(scratch.offset + probes.offset,
                                                   probes.sites.size() * sizeof(ProbeCount));
}

// How many buffers the kernel gets behind its inputs.
std::uint32_t WrittenBuffers(const Kernel& kernel) {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      kernel.buffers, [](const auto& buffer) { return buffer.role != BufferSpec::Role::kInput; }));
}

ProbeReading Read(std::span<const std::byte> cells) {
  ProbeReading reading(cells.size() / sizeof(ProbeCount));
  std::memcpy(reading.data(), cells.data(), cells.size());
  return reading;
}

// The compiler's answer says where this process reads and writes, so it is checked.
std::optional<Failure> WhyNoProbes(const PlacedKernel& copy) {
  const auto& probes = copy.compiled.kernel.profile.probes;
  const std::uint64_t scratch = copy.call.arena->layout().buffers.back().size;
  const bool fits = probes && !probes->sites.empty() && probes->offset <= scratch &&
                    probes->sites.size() * sizeof(ProbeCount) <= scratch - probes->offset;
  const bool is_tree = fits && std::ranges::all_of(probes->sites, [&](const ProbeSite& site) {
                         return site.parent < probes->sites.size() && site.entries >= 1;
                       });
  if (is_tree) return std::nullopt;
  return Failure{.code = FailureCode::kCompileError,
                 .message = "the instrumented copy of the kernel does not say where it counts"};
}

}  // namespace

std::expected<Profile, Failure> Profiler::Run(ProfileLevel level) {
  auto profile = level == ProfileLevel::kLines ? RunLines() : RunLoops(level);
  if (profile) KeepMost(*profile);
  return profile;
}

std::expected<Profiler::Counted, Failure> Profiler::Count(const PlacedKernel& plain,
                                                          const std::set<TreeRef>& loops) {
  LF_TRY(const PlacedKernel copy,
         parts_.prepare({.kind = Instrumentation::Kind::kCounters, .loops = loops}));
  if (auto failure = WhyNoProbes(copy)) return std::unexpected(*std::move(failure));
  const ProbeCells& probes = *copy.compiled.kernel.profile.probes;
  const std::span<std::byte> cells = CellsOf(copy, probes);
  Counted counted{.sites = probes.sites, .readings = {}};
  double copy_ns = 0;
  std::expected<void, Failure> ran;
  KernelCall beside = plain.call;
  beside.workload = copy.call.workload;
  beside.arena = copy.call.arena;
  beside.arena_buffers = WrittenBuffers(plain.compiled.kernel);
  const auto run = [&](ExecutorProcess& profiler, const KernelCall& call,
                       double& quickest) -> std::expected<void, Failure> {
    LF_TRY(const double run_ns, profiler.Repeat(call, rules_.turn));
    if (quickest == 0 || run_ns < quickest) quickest = run_ns;
    return {};
  };
  LF_TRY_VOID(parts_.on_slot([&](ExecutorProcess& profiler) {
    Turns turns(rules_);
    while (ran && turns.Next()) {
      ran = run(profiler, beside, counted.run_ns);
      std::ranges::fill(cells, std::byte{0});
      if (ran) ran = run(profiler, copy.call, copy_ns);
      if (ran) counted.readings.push_back(Read(cells));
    }
    // What the plain kernel wrote must not pass for what the copy writes.
    copy.call.arena->Poison();
    if (ran) ran = run(profiler, copy.call, copy_ns);
  }));
  if (!ran) return std::unexpected(std::move(ran).error());
  counted.overhead = copy_ns / counted.run_ns - 1;
  LF_TRY_VOID(copy.call.arena->Check(copy.call.workload->expected));
  return counted;
}

std::expected<Profile, Failure> Profiler::RunLoops(ProfileLevel level) {
  LF_TRY(PlacedKernel plain, parts_.prepare({}));
  plain.call.workload.reset();
  plain.call.arena.reset();
  std::set<TreeRef> loops;
  LF_TRY(Counted counted, Count(plain, loops));
  Profile profile{.level = level, .overhead = counted.overhead, .run_ns = counted.run_ns};
  profile.lines = LinesOfReadings(counted.sites, loops, counted.readings);
  if (level == ProfileLevel::kRoots) return profile;
  std::set<TreeRef> tried;
  for (;;) {
    std::set<TreeRef> inside =
        LoopsInside(counted.sites, loops, counted.readings, rules_.least_ticks);
    std::erase_if(inside, [&](TreeRef loop) { return tried.contains(loop); });
    if (inside.empty()) return profile;
    std::set<TreeRef> wanted = loops;
    wanted.insert(inside.begin(), inside.end());
    LF_TRY(Counted deeper, Count(plain, wanted));
    if (deeper.overhead > rules_.most_overhead) {
      profile.note = fmt::format("counting L{} as well takes {:.0f} % longer: not shown",
                                 fmt::join(inside, ", L"), 100 * deeper.overhead);
      return profile;
    }
    tried.insert(inside.begin(), inside.end());
    counted = std::move(deeper);
    loops = LongLoops(counted, wanted);
    profile.overhead = counted.overhead;
    profile.run_ns = counted.run_ns;
    profile.lines = LinesOfReadings(counted.sites, loops, counted.readings);
  }
}

// Those of `loops` whose entries turned out to be long enough.
std::set<TreeRef> Profiler::LongLoops(const Counted& counted, std::set<TreeRef> loops) const {
  for (std::size_t site = 1; site < counted.sites.size(); ++site) {
    if (TicksOfEntry(counted.readings, site) < rules_.least_ticks) {
      loops.erase(counted.sites[site].place.ref);
    }
  }
  return loops;
}

std::expected<Profile, Failure> Profiler::RunLines() {
  LF_TRY(const PlacedKernel plain, parts_.prepare({.kind = Instrumentation::Kind::kLines}));
  Profile profile{.level = ProfileLevel::kLines};
  CodeSamples samples;
  std::expected<void, Failure> ran;
  const auto sample = [&](ExecutorProcess& profiler) -> std::expected<void, Failure> {
    for (Turns turns(rules_); turns.Next();) {
      LF_TRY(const double run_ns, profiler.Repeat(plain.call, rules_.turn));
      if (profile.run_ns == 0 || run_ns < profile.run_ns) profile.run_ns = run_ns;
    }
    plain.call.arena->Poison();  // what it wrote so far must not pass for what it writes later
    constexpr double kLookEveryNs = 500'000;  // a look takes a system call
    const auto nanoseconds = [](auto duration) {
      return static_cast<std::uint64_t>(Nanos(duration).count());
    };
    LF_TRY(samples,
           profiler.Sample(plain.call, {.code_address = plain.code.address(),
                                        .code_bytes = plain.compiled.code.bytes.size(),
                                        .duration_ns = nanoseconds(rules_.sampling),
                                        .interval_ns = nanoseconds(rules_.between_samples),
                                        .runs_between_looks = static_cast<std::uint64_t>(std::max(
                                            1.0, kLookEveryNs / std::max(1.0, profile.run_ns)))}));
    return {};
  };
  LF_TRY_VOID(parts_.on_slot([&](ExecutorProcess& profiler) { ran = sample(profiler); }));
  if (!ran) return std::unexpected(std::move(ran).error());
  LF_TRY_VOID(plain.call.arena->Check(plain.call.workload->expected));
  const double sampled_ns =
      static_cast<double>(samples.processor_ns) / static_cast<double>(samples.runs);
  profile.overhead = sampled_ns / profile.run_ns - 1;
  profile.lines =
      LinesOfSamples(tree_.nodes().size(), plain.compiled.kernel.profile, samples.offsets);
  return profile;
}

}  // namespace loopfleet::worker

// loopfleet-simulation: runs seeds, replays one, hunts planted bugs. See README.md in this folder.

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/log.h"
#include "common/base/number_in.h"
#include "tests/simulation/planted/planted_bugs.h"
#include "tests/simulation/world.h"

namespace loopfleet::simulation {
namespace {

constexpr std::string_view kUsage = R"(loopfleet-simulation [OPTIONS]
  --seeds FIRST LAST   runs these seeds (default 1 1000); prints each one that breaks a promise
  --seed N             runs one
  --trace              prints what happens in it
  --without a,b        takes these kinds of faults out of it
  --shrink             takes out every kind of fault that the violation does not need
  --twice              runs each seed twice: the traces have to be the same
  --disk               the real storage, on a file system that crashes, in every seed
  --hashes             prints the hash of each seed's trace
  --bug NAME           plants this bug (--bugs lists them)
  --hunt MOST          plants each bug in turn and counts seeds until it is found
  --hunt-every N I     of the bugs, only each N-th, from the I-th on
  --bugs               lists the bugs that can be planted
)";

std::uint64_t running_seed = 0;

// A check in the product failed and printed its message; this adds the seed.
void OnAbort(int) {
  char text[96];
  const auto end = fmt::format_to_n(
      text, sizeof text, "reproduce: loopfleet-simulation --seed {} --trace\n", running_seed);
  (void)!::write(STDERR_FILENO, text, std::min(end.size, sizeof text));
}

struct Options {
  std::uint64_t first = 1;
  std::uint64_t last = 1000;
  bool is_traced = false;
  bool is_shrunk = false;
  bool is_run_twice = false;
  bool shows_hashes = false;
  bool is_on_disk = false;
  std::vector<Fault> without;
  const PlantedBugInfo* bug = nullptr;
  std::uint64_t hunt = 0;  // maximum seeds per bug; 0: no hunt
  std::size_t hunt_stride = 1;
  std::size_t hunt_offset = 0;
};

FaultMix MixOf(std::uint64_t seed, const Options& options) {
  FaultMix mix = FaultMix::Draw(seed);
  for (const Fault fault : options.without) mix[fault] = 0;
  if (options.is_on_disk) mix.medium = Medium::kSqlite;
  if (options.bug != nullptr) {
    mix.medium = options.bug->medium;
  }
  return mix;
}

Verdict RunSeed(std::uint64_t seed, const FaultMix& mix, Trace::Text text,
                const PlantedBugInfo* bug) {
  running_seed = seed;
  return RunWorld(seed, mix, text, bug);
}

// Removes every kind of fault that the violation does not need.
FaultMix Shrink(std::uint64_t seed, FaultMix mix, const PlantedBugInfo* bug,
                const Violation& violation) {
  for (std::size_t i = 0; i < kFaults; ++i) {
    FaultMix less = mix;
    less.rates[i] = 0;
    if (mix.rates[i] == 0) continue;
    const Verdict verdict = RunSeed(seed, less, Trace::Text::kNone, bug);
    if (verdict.violation && verdict.violation->rule == violation.rule) mix = less;
  }
  return mix;
}

std::string WithoutText(const FaultMix& whole, const FaultMix& shrunk) {
  std::string text;
  for (std::size_t i = 0; i < kFaults; ++i) {
    if (whole.rates[i] > 0 && shrunk.rates[i] == 0) {
      text += (text.empty() ? " --without " : ",");
      text += FaultName(static_cast<Fault>(i));
    }
  }
  return text;
}

void Report(std::uint64_t seed, const Options& options, const Violation& violation) {
  const FaultMix mix = MixOf(seed, options);
  FaultMix shrunk = mix;
  if (options.is_shrunk) shrunk = Shrink(seed, mix, options.bug, violation);
  std::string without = WithoutText(FaultMix::Draw(seed), shrunk);
  fmt::print("seed {}: {}: {}\n  {}\n  reproduce: loopfleet-simulation --seed {}{}{} --trace\n",
             seed, violation.rule, violation.text, shrunk.Describe(), seed, without,
             options.bug != nullptr ? fmt::format(" --bug {}", options.bug->name) : std::string());
  std::fflush(stdout);
}

int RunSeeds(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t violations = 0;
  std::uint64_t steps = 0;
  std::uint64_t outcomes = 0;
  std::uint64_t differ = 0;
  Nanos lasted{};
  for (std::uint64_t seed = options.first; seed <= options.last; ++seed) {
    const FaultMix mix = MixOf(seed, options);
    const auto text = options.is_traced ? Trace::Text::kPrinted : Trace::Text::kNone;
    if (options.is_traced) fmt::print("{}\n", mix.Describe());
    const Verdict verdict = RunSeed(seed, mix, text, options.bug);
    if (verdict.violation) {
      ++violations;
      Report(seed, options, *verdict.violation);
      if (violations == 20) break;  // enough to look at
    }
    if (options.shows_hashes) fmt::print("{} {:016x}\n", seed, verdict.hash);
    if (options.is_run_twice &&
        RunSeed(seed, mix, Trace::Text::kNone, options.bug).hash != verdict.hash) {
      ++differ;
      fmt::print("seed {}: a second run went another way\n", seed);
    }
    steps += verdict.steps;
    outcomes += verdict.outcomes;
    lasted += verdict.lasted;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print(
      "{} seeds, {} violations, {:.1f} M steps, {} outcomes, {:.1f} h simulated in {:.1f} s\n",
      options.last - options.first + 1, violations, static_cast<double>(steps) / 1e6, outcomes,
      std::chrono::duration<double>(lasted).count() / 3600, took.count());
  return violations == 0 && differ == 0 ? 0 : 1;
}

// Hunts run in a child, because the product's own checks may catch the bug and abort.
struct Found {
  std::uint64_t seeds = 0;  // seeds needed; 0: not found
  char rule[64] = "";
};
void HuntInChild(const PlantedBugInfo& bug, std::uint64_t most, Found& found) {
  Options options{.bug = &bug};
  for (std::uint64_t seed = 1; seed <= most; ++seed) {
    found.seeds = seed;
    const Verdict verdict = RunSeed(seed, MixOf(seed, options), Trace::Text::kNone, &bug);
    if (!verdict.violation) continue;
    const auto end =
        fmt::format_to_n(found.rule, sizeof found.rule - 1, "{}", verdict.violation->rule);
    *end.out = '\0';
    return;
  }
  found.seeds = 0;
}

int Hunt(const Options& options) {
  auto* found = static_cast<Found*>(
      ::mmap(nullptr, sizeof(Found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::size_t hunted = 0;
  std::size_t missed = 0;
  for (std::size_t i = options.hunt_offset; i < PlantedBugs().size(); i += options.hunt_stride) {
    const PlantedBugInfo& bug = PlantedBugs()[i];
    ++hunted;
    *found = {};
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGABRT, SIG_DFL);
      (void)!std::freopen("/dev/null", "w", stderr);
      HuntInChild(bug, options.hunt, *found);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool aborted = WIFSIGNALED(status);
    if (found->seeds == 0) ++missed;
    fmt::print("{:32} {}\n", bug.name,
               found->seeds == 0 ? fmt::format("not found in {} seeds", options.hunt)
                                 : fmt::format("seed {:>4}: {}", found->seeds,
                                               aborted ? "the core's own checks" : found->rule));
  }
  fmt::print("{} of {} planted bugs found\n", hunted - missed, hunted);
  return missed * 20 <= hunted ? 0 : 1;  // 95 %
}

// Empty: the usage is wrong.
std::optional<Options> Parse(std::vector<std::string_view> words) {
  Options options;
  for (auto word = words.begin(); word != words.end();) {
    const std::string_view name = *word++;
    const auto number = [&]() -> std::optional<std::uint64_t> {
      if (word == words.end()) return std::nullopt;
      return NumberIn<std::uint64_t>(*word++);
    };
    if (name == "--seeds") {
      const auto first = number();
      const auto last = number();
      if (!first || !last) return std::nullopt;
      options.first = *first;
      options.last = *last;
    } else if (name == "--seed") {
      const auto seed = number();
      if (!seed) return std::nullopt;
      options.first = options.last = *seed;
    } else if (name == "--hunt") {
      const auto most = number();
      if (!most) return std::nullopt;
      options.hunt = *most;
    } else if (name == "--hunt-every") {
      const auto stride = number();
      const auto offset = number();
      if (!stride || *stride == 0 || !offset) return std::nullopt;
      options.hunt_stride = *stride;
      options.hunt_offset = *offset;
    } else if (name == "--trace") {
      options.is_traced = true;
    } else if (name == "--shrink") {
      options.is_shrunk = true;
    } else if (name == "--twice") {
      options.is_run_twice = true;
    } else if (name == "--disk") {
      options.is_on_disk = true;
    } else if (name == "--hashes") {
      options.shows_hashes = true;
    } else if (name == "--bug" && word != words.end()) {
      options.bug = FindPlantedBug(*word++);
      if (options.bug == nullptr) return std::nullopt;
    } else if (name == "--without" && word != words.end()) {
      std::string_view rest = *word++;
      while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const auto fault = ParseFault(rest.substr(0, comma));
        if (!fault) return std::nullopt;
        options.without.push_back(*fault);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
      }
    } else {
      return std::nullopt;
    }
  }
  return options;
}

int Main(int argc, const char* const* argv) {
  std::vector<std::string_view> words(argv + 1, argv + argc);
  if (std::ranges::find(words, "--bugs") != words.end()) {
    for (const PlantedBugInfo& bug : PlantedBugs()) fmt::print("{:32} {}\n", bug.name, bug.what);
    return 0;
  }
  const auto options = Parse(std::move(words));
  if (!options) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  // Errors only: the daemons' code warns about every injected fault.
  log::Init("loopfleet-simulation", log::Level::kError);
  ::signal(SIGABRT, OnAbort);
  return options->hunt > 0 ? Hunt(*options) : RunSeeds(*options);
}

}  // namespace
}  // namespace loopfleet::simulation

int main(int argc, char** argv) { return loopfleet::simulation::Main(argc, argv); }

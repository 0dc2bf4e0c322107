// Pass ordering: steps per second of one core, beside a process of opt-19 for each pass. A step is
// a random pass of Passes19, verified if it changed the module, then InstCount and Autophase.
// Batches are 64 episodes of 40 steps. Processor time, because the machine may be shared.

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/rigs/result_line.h"
#include "common/base/check.h"
#include "common/base/random.h"
#include "common/base/subprocess.h"
#include "common/llvm_passes/pass_action.h"
#include "worker/llvm_env/pass_child.h"
#include "worker/llvm_env/pass_process.h"
#include "worker/llvm_env/programs/program_source.h"
#include "worker/llvm_env/x86_target.h"

namespace loopfleet::bench {
namespace {

using passes::Observation;
using worker::Episode;

constexpr std::size_t kEpisodes = 64;
constexpr std::size_t kSteps = 40;
constexpr std::size_t kPeerPasses = 20;

using Bitcode = std::shared_ptr<const std::string>;

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Of the children that have ended and were waited for.
double ChildrenSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  return SecondsOf(used.ru_utime) + SecondsOf(used.ru_stime);
}

std::vector<std::string> RandomPasses(SplitMix64& random, std::size_t count) {
  const auto actions = passes::ActionsOf(passes::ActionSpace::kDistinct);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    texts.emplace_back(actions[random.Next() % actions.size()].text);
  }
  return texts;
}

Episode EpisodeOf(std::vector<std::string> texts) {
  std::vector<std::uint32_t> steps;
  for (std::uint32_t step = 1; step <= texts.size(); ++step) steps.push_back(step);
  return {.passes = std::move(texts),
          .wanted = {{Observation::kInstCount, steps}, {Observation::kAutophase, steps}}};
}

// A child like the daemon's. Its processor time is known when it has ended.
class Rig {
 public:
  Rig() {
    const worker::Isolation isolation = worker::ProbeIsolation();
    programs_.prepare = worker::InitializeX86;
    programs_.by_role[worker::ChildRole::kPasses] = {
        .run =
            [isolation](Channel& channel) { return worker::RunPassChild(channel, {}, isolation); },
        .limits = worker::PassChildLimits()};
  }

  struct Outcome {
    std::size_t steps = 0;
    std::map<std::string, std::size_t> failures;  // code -> episodes
    double processor_seconds = 0;                 // all processes but this one
  };
  // Each batch in turn; steps are counted once for each episode that they belong to.
  Outcome Run(const Bitcode& bitcode, const std::vector<std::vector<Episode>>& batches,
              const worker::PassProcess::Options& options = {}) {
    const double before = ChildrenSeconds();
    Outcome outcome;
    {
      auto fork_server = worker::ForkServer::Start(programs_);
      LF_CHECK(fork_server.has_value(), "{}", fork_server.error().message);
      auto process = std::make_unique<worker::PassProcess>(
          **fork_server, options, [](worker::ChildRole, worker::ExitReason::Cause) {});
      for (const std::vector<Episode>& batch : batches) {
        const auto result = process->Run(bitcode, batch);
        LF_CHECK(result.has_value(), "{}", result.error().message);
        for (const worker::EpisodeResult& episode : result->episodes) {
          outcome.steps += episode.changed.size();
          if (!episode.failure) continue;
          ++outcome.failures[std::string(InfoOf(ToFailure(*episode.failure).code).name)];
        }
      }
      // Processor time is added up when a child is reaped: the passes' by the fork server, and all
      // of it by this process when the fork server has ended.
      process.reset();
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    outcome.processor_seconds = ChildrenSeconds() - before;
    return outcome;
  }

 private:
  worker::ChildPrograms programs_;
};

// Passes per second when each is a process of opt-19 that reads and writes a file; no features.
std::optional<double> OptRate(const Bitcode& bitcode, SplitMix64& random) {
  char folder[] = "/tmp/loopfleet_bench_llvm.XXXXXX";
  LF_CHECK(::mkdtemp(folder) != nullptr, "no folder in /tmp");
  const std::filesystem::path path = folder;
  std::ofstream(path / "in.bc", std::ios::binary) << *bitcode;
  const double before = ChildrenSeconds();
  bool is_installed = true;
  for (const std::string& text : RandomPasses(random, kPeerPasses)) {
    const auto null = MemoryFile("");
    LF_CHECK(null.has_value(), "{}", null.error().message);
    auto process = Subprocess::Start(
        {.argv = {"opt-19", "-passes=" + text, path / "in.bc", "-o", path / "out.bc"},
         .stderr_fd = null->get()});
    if (!process) {
      is_installed = false;
      break;
    }
    // A pass that crashes leaves no file, and the next one starts from the last.
    if (process->WaitFor(std::chrono::seconds(60)) == ExitStatus{}) {
      std::filesystem::rename(path / "out.bc", path / "in.bc");
    }
  }
  const double seconds = ChildrenSeconds() - before;
  std::filesystem::remove_all(path);
  if (!is_installed) return std::nullopt;
  return static_cast<double>(kPeerPasses) / seconds;
}

struct Subject {
  std::string name;
  Bitcode bitcode;
};

void RunRate(Rig& rig, const Subject& subject, std::size_t batches) {
  SplitMix64 random(17);
  std::vector<std::vector<Episode>> work(batches);
  for (std::vector<Episode>& batch : work) {
    for (std::size_t i = 0; i < kEpisodes; ++i) {
      batch.push_back(EpisodeOf(RandomPasses(random, kSteps)));
    }
  }
  const Rig::Outcome outcome = rig.Run(subject.bitcode, work);
  const double rate = static_cast<double>(outcome.steps) / outcome.processor_seconds;
  Print({.bench = "llvm",
         .name = "steps, " + subject.name,
         .value = rate,
         .unit = "steps/s of processor time",
         .peer = "opt-19, a process for each pass, without features",
         .peer_value = OptRate(subject.bitcode, random),
         .details = {{"steps", outcome.steps},
                     {"failures", outcome.failures},
                     {"processor_seconds", outcome.processor_seconds}}});
}

// What one environment asks: a job for each step, with all passes so far. Beside a replay of them.
void RunEnvironment(Rig& rig, const Subject& subject, std::size_t episodes) {
  SplitMix64 random(29);
  std::vector<std::vector<Episode>> jobs;
  for (std::size_t i = 0; i < episodes; ++i) {
    const std::vector<std::string> passes = RandomPasses(random, kSteps);
    for (std::uint32_t step = 1; step <= passes.size(); ++step) {
      jobs.push_back(
          {{.passes = {passes.begin(), passes.begin() + step},
            .wanted = {{Observation::kInstCount, {step}}, {Observation::kAutophase, {step}}}}});
    }
  }
  const Rig::Outcome kept = rig.Run(subject.bitcode, jobs);
  const Rig::Outcome replayed = rig.Run(subject.bitcode, jobs, {.heads = 0});
  const auto steps = static_cast<double>(jobs.size());
  Print({.bench = "llvm",
         .name = "steps of one environment, " + subject.name,
         .value = steps / kept.processor_seconds,
         .unit = "steps/s of processor time",
         .peer = "the same without states kept between jobs",
         .peer_value = steps / replayed.processor_seconds,
         .details = {{"failures", kept.failures}}});
}

// What a greedy search asks: every pass after one state.
void RunGreedy(Rig& rig, const Subject& subject) {
  SplitMix64 random(23);
  const std::vector<std::string> prefix = RandomPasses(random, 20);
  std::vector<Episode> together;
  for (const passes::PassAction& action : passes::ActionsOf(passes::ActionSpace::kAll)) {
    std::vector<std::string> texts = prefix;
    texts.emplace_back(action.text);
    const auto last = static_cast<std::uint32_t>(texts.size());
    together.push_back(
        {.passes = std::move(texts), .wanted = {{Observation::kIrInstructionCount, {last}}}});
  }
  std::vector<std::vector<Episode>> one_by_one;
  for (const Episode& episode : together) one_by_one.push_back({episode});
  const Rig::Outcome shared = rig.Run(subject.bitcode, {together});
  const Rig::Outcome replayed = rig.Run(subject.bitcode, one_by_one);
  const auto episodes = static_cast<double>(together.size());
  Print({.bench = "llvm",
         .name = "124 passes after a prefix of 20, " + subject.name,
         .value = episodes / shared.processor_seconds,
         .unit = "episodes/s of processor time",
         .peer = "the same without a shared prefix",
         .peer_value = episodes / replayed.processor_seconds,
         .details = {{"failures", shared.failures}}});
}

Bitcode Made(const std::string& uri, const std::filesystem::path& debian) {
  const auto program = passes::ParseProgramUri(uri);
  LF_CHECK(program.has_value(), "{}", program.error().message);
  auto bitcode = worker::ProgramSource({.programs = debian}).BitcodeOf(*program);
  LF_CHECK(bitcode.has_value(), "{}", bitcode.error().message);
  return std::make_shared<const std::string>(*std::move(bitcode));
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("steps per second of pass ordering");
  std::string debian;
  std::size_t batches = 2;
  app.add_option("--debian", debian,
                 "folder of the programs that deploy/llvm/build_debian.py made");
  app.add_option("--batches", batches, "batches of 64 episodes for each program");
  CLI11_PARSE(app, argc, argv);
  Rig rig;
  std::vector<Subject> subjects = {{"csmith 5", Made("generator://csmith-v0/5", debian)},
                                   {"csmith 0", Made("generator://csmith-v0/0", debian)}};
  if (!debian.empty()) {
    for (const char* name : {"gsm", "bzip2"}) {
      subjects.push_back({name, Made(fmt::format("benchmark://debian-v0/{}", name), debian)});
    }
  }
  for (const Subject& subject : subjects) RunRate(rig, subject, batches);
  for (const Subject& subject : subjects) RunEnvironment(rig, subject, 4 * batches);
  RunGreedy(rig, subjects[1]);
  return 0;
}

}  // namespace loopfleet::bench

int main(int argc, char** argv) { return loopfleet::bench::Main(argc, argv); }

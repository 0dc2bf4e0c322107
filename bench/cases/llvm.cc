// Pass ordering: steps per second of one core, beside a process of opt-19 for each pass, one for 40
// passes, and llvmlite. A step is a random pass, verified if it changed the module, then InstCount
// and Autophase. Batches are 64 episodes of 40 steps over Passes19, of modules of 1 MB and more 8
// episodes. An environment sends a job a step, over all 124 actions: what a step of a running head
// costs, and what starting one does, are lines of their own. Processor time of all processes, the
// daemon's part included, because the machine may be shared; without what a worker does once, and
// without reading the program.

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
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

namespace loopfleet::bench {
namespace {

using passes::Observation;
using worker::Episode;

constexpr std::size_t kSteps = 40;
constexpr std::size_t kPeerPasses = 20;
constexpr std::size_t kSequencesTogether = 6;  // of kSteps passes

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

// Of a process that has not ended, to the nanosecond; 0: it is gone.
double SecondsOfProcess(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double OwnSeconds() { return SecondsOfProcess(::getpid()); }

// Of each process below the fork server: its children, and the heads, which are theirs.
using Clocks = std::map<pid_t, double>;

Clocks ClocksOf(pid_t parent) {
  Clocks clocks;
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", parent));
  for (pid_t pid = 0; children >> pid;) {
    clocks[pid] = SecondsOfProcess(pid);
    clocks.merge(ClocksOf(pid));
  }
  return clocks;
}

// When they have nothing left to do.
Clocks SettledClocksOf(pid_t fork_server) {
  Clocks last;
  for (Clocks now = ClocksOf(fork_server); now != last; now = ClocksOf(fork_server)) {
    last = std::move(now);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return last;
}

// nullopt: a process has come or gone.
std::optional<double> SecondsBetween(const Clocks& before, const Clocks& after) {
  const bool are_same =
      std::ranges::equal(before, after, {}, &Clocks::value_type::first, &Clocks::value_type::first);
  if (!are_same) return std::nullopt;
  double seconds = 0;
  for (const auto& [pid, clock] : after) seconds += clock - before.at(pid);
  return seconds;
}

std::vector<std::string> RandomPasses(SplitMix64& random, std::size_t count,
                                      passes::ActionSpace space = passes::ActionSpace::kDistinct) {
  const auto actions = passes::ActionsOf(space);
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
    LF_CHECK(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "no children of children");
    programs_.by_role[worker::ChildRole::kPasses] =
        worker::PassChildProgram({}, worker::ProbeIsolation());
  }

  struct Outcome {
    std::size_t steps = 0;
    std::map<std::string, std::size_t> failures;  // code -> episodes
    double processor_seconds = 0;
    double start_seconds = 0;  // before these: of the fork server and of reading the program
  };
  // Each batch in turn; steps are counted once for each episode that they belong to.
  Outcome Run(const Bitcode& bitcode, const std::vector<std::vector<Episode>>& batches,
              const worker::PassProcess::Options& options = {}) {
    Outcome outcome;
    InProcess(bitcode, options, outcome, [&](worker::PassProcess& process, pid_t) {
      for (const std::vector<Episode>& batch : batches) RunOne(process, bitcode, batch, outcome);
    });
    return outcome;
  }

  // Of the jobs of one environment, one after the other.
  struct Steps {
    Outcome all;
    std::vector<double> in_place;  // seconds of each step that a running head took
  };
  Steps RunSteps(const Bitcode& bitcode, const std::vector<std::vector<Episode>>& jobs) {
    Steps steps;
    InProcess(bitcode, {}, steps.all, [&](worker::PassProcess& process, pid_t server) {
      Clocks before = SettledClocksOf(server);
      const pid_t walker = before.begin()->first;  // it runs what no head does
      for (const std::vector<Episode>& job : jobs) {
        const double took = RunOne(process, bitcode, job, steps.all);
        Clocks after = ClocksOf(server);
        const auto children = SecondsBetween(before, after);
        if (children && after[walker] == before[walker]) {
          steps.in_place.push_back(took + *children);
          before = std::move(after);
        } else {
          before = SettledClocksOf(server);
        }
      }
    });
    return steps;
  }

 private:
  // Adds the processor seconds of the children, for as long as `body` runs and until they end.
  void InProcess(const Bitcode& bitcode, const worker::PassProcess::Options& options,
                 Outcome& outcome, const std::function<void(worker::PassProcess&, pid_t)>& body) {
    const double before = ChildrenSeconds();
    {
      auto fork_server = worker::ForkServer::Start(programs_);
      LF_CHECK(fork_server.has_value(), "{}", fork_server.error().message);
      auto process = std::make_unique<worker::PassProcess>(
          **fork_server, options, [](worker::ChildRole, worker::ExitReason::Cause) {});
      const pid_t server = (*fork_server)->pid();
      LF_CHECK(process->Run(bitcode, {}).has_value(), "the program");
      outcome.start_seconds = SecondsOfProcess(server);
      for (const auto& [pid, seconds] : SettledClocksOf(server)) outcome.start_seconds += seconds;
      body(*process, server);
      // Processor time is added up when a child is reaped: the passes' by the fork server, and all
      // of it by this process when the fork server has ended.
      process.reset();
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    while (::waitpid(-1, nullptr, 0) > 0) {  // whose parents have ended before them
    }
    outcome.processor_seconds += ChildrenSeconds() - before - outcome.start_seconds;
  }

  // Adds and returns the processor seconds of this process.
  static double RunOne(worker::PassProcess& process, const Bitcode& bitcode,
                       std::span<const Episode> batch, Outcome& outcome) {
    const double before = OwnSeconds();
    const auto result = process.Run(bitcode, batch);
    const double took = OwnSeconds() - before;
    LF_CHECK(result.has_value(), "{}", result.error().message);
    outcome.processor_seconds += took;
    for (const worker::EpisodeResult& episode : result->episodes) {
      outcome.steps += episode.changed.size();
      if (!episode.failure) continue;
      ++outcome.failures[std::string(InfoOf(ToFailure(*episode.failure).code).name)];
    }
    return took;
  }

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

// Passes per second when one process of opt-19 runs 40 of them with the analyses that they leave to
// each other, neither verifies nor observes: what LLVM itself takes, reading included.
std::optional<double> OptTogetherRate(const Bitcode& bitcode, std::size_t episodes) {
  SplitMix64 random(17);
  std::size_t passes = 0;
  double seconds = 0;
  for (std::size_t i = 0; i < episodes; ++i) {
    const auto file = MemoryFile(*bitcode), null = MemoryFile("");
    LF_CHECK(file.has_value() && null.has_value(), "no file in memory");
    const double before = ChildrenSeconds();
    auto process = Subprocess::Start(
        {.argv = {"opt-19", "-disable-verify", "-disable-output",
                  fmt::format("-passes={}", fmt::join(RandomPasses(random, kSteps), ",")), "-"},
         .stdin_fd = file->get(),
         .stderr_fd = null->get()});
    if (!process) return std::nullopt;
    // Without those that LLVM ends, and those that take longer: that favours LLVM.
    if (process->WaitFor(std::chrono::seconds(120)) != ExitStatus{}) continue;
    passes += kSteps;
    seconds += ChildrenSeconds() - before;
  }
  if (passes == 0) return std::nullopt;
  return static_cast<double>(passes) / seconds;
}

// What bench/peers/llvmlite_peer.py prints; nullptr: llvmlite is not installed, or its LLVM ended
// the process.
nlohmann::json LlvmliteRates(const Bitcode& bitcode) {
  const auto file = MemoryFile(*bitcode), said = MemoryFile(""), null = MemoryFile("");
  LF_CHECK(file.has_value() && said.has_value() && null.has_value(), "no file in memory");
  auto process = Subprocess::Start(
      {.argv = {LOOPFLEET_SOURCE_DIR "/build/llvmlite/bin/python",
                LOOPFLEET_SOURCE_DIR "/bench/peers/llvmlite_peer.py", "/dev/stdin", "5"},
       .stdin_fd = file->get(),
       .stdout_fd = said->get(),
       .stderr_fd = null->get()});
  if (!process || process->WaitFor(std::chrono::seconds(300)) != ExitStatus{}) return nullptr;
  std::ifstream text(fmt::format("/proc/self/fd/{}", said->get()));
  return nlohmann::json::parse(text);
}

struct Subject {
  std::string name;
  Bitcode bitcode;
  std::size_t episodes = 0;  // of a batch
};

void RunRate(Rig& rig, const Subject& subject, std::size_t batches) {
  SplitMix64 random(17);
  std::vector<std::vector<Episode>> work(batches);
  for (std::vector<Episode>& batch : work) {
    for (std::size_t i = 0; i < subject.episodes; ++i) {
      batch.push_back(EpisodeOf(RandomPasses(random, kSteps)));
    }
  }
  const Rig::Outcome outcome = rig.Run(subject.bitcode, work);
  const double rate = static_cast<double>(outcome.steps) / outcome.processor_seconds;
  const auto together = OptTogetherRate(subject.bitcode, kSequencesTogether);
  Print(
      {.bench = "llvm",
       .name = "steps, " + subject.name,
       .value = rate,
       .unit = "steps/s of processor time",
       .peer = "opt-19, a process for each pass, without features",
       .peer_value = OptRate(subject.bitcode, random),
       .details = {{"steps", outcome.steps},
                   {"bitcode_bytes", subject.bitcode->size()},
                   {"failures", outcome.failures},
                   {"llvmlite", LlvmliteRates(subject.bitcode)},
                   {"opt_with_40_passes_a_process", together ? nlohmann::json(*together) : nullptr},
                   {"processor_seconds", outcome.processor_seconds},
                   {"start_seconds", outcome.start_seconds}}});
}

// What one environment asks: a job for each step, with all passes so far.
std::vector<std::vector<Episode>> JobsOfEnvironment(std::size_t episodes) {
  SplitMix64 random(29);
  std::vector<std::vector<Episode>> jobs;
  for (std::size_t i = 0; i < episodes; ++i) {
    const std::vector<std::string> passes = RandomPasses(random, kSteps, passes::ActionSpace::kAll);
    for (std::uint32_t step = 1; step <= passes.size(); ++step) {
      jobs.push_back(
          {{.passes = {passes.begin(), passes.begin() + step},
            .wanted = {{Observation::kInstCount, {step}}, {Observation::kAutophase, {step}}}}});
    }
  }
  return jobs;
}

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void RunEnvironment(Rig& rig, const Subject& subject, std::size_t episodes) {
  const auto jobs = JobsOfEnvironment(episodes);
  Rig::Steps steps = rig.RunSteps(subject.bitcode, jobs);
  // Without the end of the fork server and of the child that holds the program.
  const double all = steps.all.processor_seconds - rig.Run(subject.bitcode, {}).processor_seconds;
  const Rig::Outcome replayed =
      rig.Run(subject.bitcode, {jobs.begin(), jobs.begin() + kSteps}, {.heads = 0});
  LF_CHECK(!steps.in_place.empty(), "no step was taken by a running head");
  std::ranges::sort(steps.in_place);
  const auto microseconds_at = [&](double share) {
    const auto place = static_cast<std::size_t>(share * static_cast<double>(steps.in_place.size()));
    return steps.in_place[std::min(place, steps.in_place.size() - 1)] * 1e6;
  };
  const double in_place = Sum(steps.in_place);
  Print({.bench = "llvm",
         .name = "a step of a running head, " + subject.name,
         .value = static_cast<double>(steps.in_place.size()) / in_place,
         .unit = "steps/s of processor time",
         .peer = "a replay of all passes at each step",
         .peer_value = static_cast<double>(kSteps) / replayed.processor_seconds,
         .details = {{"steps", steps.in_place.size()},
                     {"us_mean", in_place * 1e6 / static_cast<double>(steps.in_place.size())},
                     {"us_p50", microseconds_at(0.5)},
                     {"us_p90", microseconds_at(0.9)},
                     {"us_p99", microseconds_at(0.99)},
                     {"failures", steps.all.failures}}});
  Print({.bench = "llvm",
         .name = "starting a head, with an episode's first step, " + subject.name,
         .value = (all - in_place) * 1e3 / static_cast<double>(episodes),
         .unit = "ms of processor time",
         .peer = "",
         .peer_value = std::nullopt,
         .details = {{"episodes", episodes}}});
  Print({.bench = "llvm",
         .name = "steps of one environment, heads included, " + subject.name,
         .value = static_cast<double>(jobs.size()) / all,
         .unit = "steps/s of processor time",
         .peer = "",
         .peer_value = std::nullopt,
         .details = {{"steps_of_an_episode", kSteps}}});
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

constexpr std::size_t kLargeBytes = 1'000'000;

Subject SubjectOf(std::string name, Bitcode bitcode) {
  const std::size_t episodes = bitcode->size() < kLargeBytes ? 64 : 8;
  return {.name = std::move(name), .bitcode = std::move(bitcode), .episodes = episodes};
}

std::vector<Subject> SubjectsOf(const std::filesystem::path& debian) {
  std::vector<Subject> subjects = {SubjectOf("csmith 5", Made("generator://csmith-v0/5", debian)),
                                   SubjectOf("csmith 0", Made("generator://csmith-v0/0", debian))};
  if (debian.empty()) return subjects;
  for (const char* name : {"gsm", "bzip2", "zstd", "jpeg"}) {
    subjects.push_back(
        SubjectOf(name, Made(fmt::format("benchmark://debian-v0/{}", name), debian)));
  }
  return subjects;
}

std::vector<Subject> SubjectsIn(std::span<const std::string> files) {
  std::vector<Subject> subjects;
  for (const std::string& path : files) {
    std::ifstream file(path, std::ios::binary);
    subjects.push_back(
        SubjectOf(path, std::make_shared<const std::string>(std::istreambuf_iterator<char>(file),
                                                            std::istreambuf_iterator<char>())));
  }
  return subjects;
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("steps per second of pass ordering");
  std::string debian;
  std::size_t batches = 2;
  app.add_option("--llvm-programs", debian,
                 "folder of the programs that deploy/llvm/build_debian.py made");
  app.add_option("--batches", batches,
                 "batches of 64 episodes for each program, of 8 for those of 1 MB and more");
  std::vector<std::string> only = {"batches", "environment", "prefix"};
  app.add_option("--only", only, "which of batches, environment and prefix")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(only)));
  std::vector<std::string> names;
  app.add_option("--program", names,
                 "which programs, such as 'csmith 5' or bzip2; all if not given")
      ->delimiter(',');
  std::vector<std::string> files;
  app.add_option("--bitcode", files, "files of bitcode, instead of the programs")
      ->check(CLI::ExistingFile)
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  const auto is_wanted = [&](const char* part) {
    return std::ranges::find(only, part) != only.end();
  };
  Rig rig;
  for (const Subject& subject : files.empty() ? SubjectsOf(debian) : SubjectsIn(files)) {
    if (!names.empty() && std::ranges::find(names, subject.name) == names.end()) continue;
    if (is_wanted("batches")) RunRate(rig, subject, batches);
    if (is_wanted("environment")) {
      RunEnvironment(rig, subject, std::max<std::size_t>(1, batches * subject.episodes / 16));
    }
    if (is_wanted("prefix") && subject.name == "csmith 0") RunGreedy(rig, subject);
  }
  return 0;
}

}  // namespace loopfleet::bench

int main(int argc, char** argv) { return loopfleet::bench::Main(argc, argv); }

#include "worker/llvm_env/tree_walk.h"

#include <fmt/format.h>
#include <llvm/IR/Module.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/check.h"
#include "worker/llvm_env/observations/module_bitcode.h"
#include "worker/llvm_env/observations/observe.h"
#include "worker/sandbox/last_words.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kLastWords = 2048;  // bytes of stderr that are kept
constexpr std::size_t kFlushBytes = std::size_t{256} << 10;
constexpr std::chrono::milliseconds kFlushInterval{200};

Instant Now() { return std::chrono::steady_clock::now(); }

void SetTimer(__itimer_which_t which, std::chrono::milliseconds time) {
  itimerval timer{};
  timer.it_value.tv_sec = time.count() / 1000;
  timer.it_value.tv_usec = time.count() % 1000 * 1000;
  ::setitimer(which, &timer, nullptr);
}

// The end of what was written to stderr, which is emptied.
std::string TakeStderr() {
  struct stat file{};
  if (::fstat(STDERR_FILENO, &file) != 0 || file.st_size == 0) return {};
  std::string text(std::min<std::size_t>(kLastWords, static_cast<std::size_t>(file.st_size)), '\0');
  const ssize_t count = ::pread(STDERR_FILENO, text.data(), text.size(),
                                file.st_size - static_cast<off_t>(text.size()));
  text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  if (::ftruncate(STDERR_FILENO, 0) == 0) ::lseek(STDERR_FILENO, 0, SEEK_SET);
  return text;
}

bool IsCodeSize(passes::Observation observation) {
  return observation == passes::Observation::kObjectTextSizeBytes ||
         observation == passes::Observation::kObjectTextSizeO2Bytes;
}

std::string_view PipelineOf(passes::Baseline baseline) {
  switch (baseline) {
    case passes::Baseline::kNone: break;
    case passes::Baseline::kO0: return "default<O0>";
    case passes::Baseline::kO3: return "default<O3>";
    case passes::Baseline::kOz:
    case passes::Baseline::kOzAttr: return "default<Oz>";
  }
  LF_CHECK(false, "baseline {}", static_cast<int>(baseline));
}

PassFailure ToPassFailure(const PassRunner::Problem& problem) {
  const bool is_broken = problem.kind == PassRunner::Problem::Kind::kBrokenModule;
  return {
      .reason = is_broken ? PassFailure::Reason::kBrokeModule : PassFailure::Reason::kUnknownPass,
      .pass_index = {},
      .message = problem.message};
}

}  // namespace

void StartTimers(std::chrono::milliseconds processor_time, std::chrono::milliseconds wall_time) {
  SetTimer(ITIMER_PROF, processor_time);
  SetTimer(ITIMER_REAL, wall_time);
}

void StopTimers() { StartTimers({}, {}); }

bool WasTimer(int signal) { return signal == SIGPROF || signal == SIGALRM || signal == SIGXCPU; }

pid_t ForkWithin() {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kExitOk);  // it ended before that call
  }
  return pid;
}

TreeWalk::TreeWalk(const WalkRequest& request, const ProgramModule& program, KnownSizes& known,
                   PassRunner& runner, const PassLimits& limits, Journal& journal, Channel& channel)
    : request_(request),
      program_(program),
      known_(known),
      runner_(runner),
      limits_(limits),
      journal_(journal),
      channel_(channel),
      children_(ChildrenOf(request.tree)),
      most_instructions_(
          std::max(limits.instructions,
                   limits.growth * (request.in_place ? request.in_place->program_instructions
                                                     : program.InstructionCount()))),
      spent_(request.in_place ? request.in_place->spent : Nanos{0}),
      last_flush_(Now()) {}

void TreeWalk::Run() {
  if (request_.in_place) {
    journal_.place() = {};
    StartStepTimers();
    ObserveNode(0);
    return Walk(0);
  }
  TakeStderr();  // of forks that other channels lead to
  for (const auto baseline : {passes::Baseline::kO0, passes::Baseline::kO3, passes::Baseline::kOz,
                              passes::Baseline::kOzAttr}) {
    RunBaseline(baseline);
  }
  journal_.place() = {};
  const auto failure = InFork([&] {
    StartStepTimers();
    ObserveNode(0);
    Walk(0);
  });
  if (failure) Note(FailureRecord{.node = journal_.place().node, .failure = *failure});
}

void TreeWalk::RunBaseline(passes::Baseline baseline) {
  std::vector<passes::Observation> wanted;
  for (const passes::ObservationInfo& info : passes::ObservationTable()) {
    const auto bit = std::uint32_t{1} << static_cast<unsigned>(info.observation);
    if ((request_.baselines & bit) != 0 && info.baseline == baseline) {
      wanted.push_back(info.observation);
    }
  }
  for (const passes::Observation observation : wanted) {
    journal_.place() = {.node = kBaselineNode};
    const auto failure = InFork([&] {
      StartStepTimers();
      if (baseline == passes::Baseline::kOzAttr) AddSizeAttributes(program_.module());
      const auto changed = runner_.Run(PipelineOf(baseline), program_.module());
      if (changed) {
        ObserveOne(kBaselineNode, observation);
      } else {
        Note(NoValueRecord{.node = kBaselineNode,
                           .observation = observation,
                           .failure = ToPassFailure(changed.error())});
      }
    });
    if (failure) {
      Note(NoValueRecord{.node = kBaselineNode, .observation = observation, .failure = *failure});
    }
  }
}

void TreeWalk::Walk(std::uint32_t node) {
  while (!children_[node].empty()) {
    const std::vector<std::uint32_t>& children = children_[node];
    for (std::size_t i = 0; i + 1 < children.size(); ++i) {
      journal_.place() = {.node = children[i]};
      const auto failure = InFork([&] {
        if (Step(children[i])) Walk(children[i]);
      });
      if (failure) Note(FailureRecord{.node = journal_.place().node, .failure = *failure});
    }
    node = children.back();
    if (!Step(node)) return;
  }
}

bool TreeWalk::Step(std::uint32_t node) {
  journal_.place() = {.node = node};
  const Instant start = Now();
  StartStepTimers();
  const std::string& text = request_.tree.texts[request_.tree.nodes[node].text];
  const auto changed = runner_.Run(text, program_.module());
  if (!changed) {
    Note(FailureRecord{.node = node, .failure = ToPassFailure(changed.error())});
    return false;
  }
  ForgetSizesAfter(*changed);
  const std::uint64_t count = *changed ? program_.InstructionCount() : 0;
  if (count > most_instructions_) {
    Note(FailureRecord{
        .node = node,
        .failure = {.reason = PassFailure::Reason::kModuleTooLarge,
                    .message = fmt::format("{} left {} instructions; at most {} are allowed", text,
                                           count, most_instructions_)}});
    return false;
  }
  Note(StepRecord{.node = node, .changed = *changed});
  ObserveNode(node);
  spent_ += Now() - start;
  if (spent_ > limits_.episode_wall_time && !children_[node].empty()) {
    for (const std::uint32_t child : children_[node]) {
      Note(FailureRecord{
          .node = child,
          .failure = {.reason = PassFailure::Reason::kTimeout,
                      .message = fmt::format("the passes before took longer than {} s",
                                             limits_.episode_wall_time.count() / 1000)}});
    }
    return false;
  }
  if (journal_.records().size() > kFlushBytes || Now() - last_flush_ > kFlushInterval) Flush();
  return true;
}

void TreeWalk::ObserveNode(std::uint32_t node) {
  const std::uint32_t wanted = request_.tree.nodes[node].wanted;
  for (const passes::ObservationInfo& info : passes::ObservationTable()) {
    if ((wanted >> static_cast<unsigned>(info.observation) & 1) == 0) continue;
    journal_.place() = {
        .node = node, .activity = Activity::kObservation, .observation = info.observation};
    if (IsCodeSize(info.observation)) {
      ObserveCodeSize(node, info.observation);
    } else {
      ObserveOne(node, info.observation);
    }
  }
}

void TreeWalk::ObserveCodeSize(std::uint32_t node, passes::Observation observation) {
  if (const auto known = known_.sizes.find(observation); known != known_.sizes.end()) {
    return Note(ValueRecord{.node = node, .observation = observation, .value = known->second});
  }
  const std::size_t before = journal_.records().size();
  const auto failure = InFork([&] {
    StartStepTimers();
    ObserveOne(node, observation);
  });
  StartStepTimers();
  if (failure) {
    Note(NoValueRecord{.node = node, .observation = observation, .failure = *failure});
    return;
  }
  // Unless the fork has sent them, and the journal begins again.
  const std::string_view all = journal_.records();
  const auto records = DecodeRecords(all.substr(std::min(before, all.size())));
  if (!records || records->size() != 1) return;
  if (const auto* found = std::get_if<ValueRecord>(&records->front())) {
    if (known_.sizes.empty()) known_.module = ContentKey::Of(BitcodeOf(program_.module()));
    known_.sizes.emplace(observation, found->value);
  }
}

void TreeWalk::ForgetSizesAfter(bool changed) {
  if (known_.sizes.empty()) return;
  if (changed || known_.module != ContentKey::Of(BitcodeOf(program_.module()))) {
    known_.sizes.clear();
  }
}

void TreeWalk::ObserveOne(std::uint32_t node, passes::Observation observation) {
  auto value = Observe(observation, program_.module());
  if (value) {
    Note(ValueRecord{.node = node, .observation = observation, .value = *std::move(value)});
  } else {
    Note(NoValueRecord{
        .node = node,
        .observation = observation,
        .failure = {.reason = PassFailure::Reason::kNoValue, .message = value.error().message}});
  }
}

std::optional<PassFailure> TreeWalk::InFork(const std::function<void()>& body) {
  StopTimers();
  const pid_t pid = ForkWithin();
  if (pid == 0) {
    body();
    ::_exit(kExitOk);
  }
  if (pid < 0) {
    return PassFailure{.reason = PassFailure::Reason::kOutOfMemory,
                       .message = fmt::format("fork: {}", std::strerror(errno))};
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  last_flush_ = Now();  // the fork has sent what there was
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitOk) return std::nullopt;
  return FailureOf(status);
}

PassFailure TreeWalk::FailureOf(int status) {
  const std::string last_words = TakeStderr();
  const Journal::Place& place = journal_.place();
  const std::string what = place.activity == Activity::kObservation
                               ? fmt::format("observing {}", passes::InfoOf(place.observation).name)
                           : place.node == kBaselineNode
                               ? std::string("a reference pipeline")
                               : request_.tree.texts[request_.tree.nodes[place.node].text];
  const auto failed = [&](PassFailure::Reason reason, int signal, std::string_view how) {
    return PassFailure{.reason = reason,
                       .signal = signal,
                       .message = last_words.empty()
                                      ? fmt::format("{} {}", what, how)
                                      : fmt::format("{} {}: {}", what, how, last_words)};
  };
  using enum PassFailure::Reason;
  const bool is_out_of_memory = last_words.find("LLVM ERROR: out of memory") != std::string::npos;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (WasTimer(signal)) return failed(kTimeout, 0, "took too long");
    // Nobody here may send this signal: it came from the system's out-of-memory killer.
    if (signal == SIGKILL || is_out_of_memory) return failed(kOutOfMemory, 0, "ran out of memory");
    return failed(kCrashed, signal, fmt::format("was ended by SIG{}", ::sigabbrev_np(signal)));
  }
  const int code = WEXITSTATUS(status);
  if (code == kExitOutOfMemory || is_out_of_memory) {
    return failed(kOutOfMemory, 0, "ran out of memory");
  }
  if (code == kExitForbiddenCall) {
    return failed(kForbiddenCall, 0, "made a forbidden system call");
  }
  if (code == kExitAborted) return failed(kCrashed, SIGABRT, "was ended by SIGABRT");
  return failed(kCrashed, 0, fmt::format("exited with code {}", code));
}

void TreeWalk::StartStepTimers() {
  const auto left =
      limits_.episode_wall_time - std::chrono::duration_cast<std::chrono::milliseconds>(spent_);
  StartTimers(limits_.pass_processor_time,
              std::clamp(left, std::chrono::milliseconds(1), limits_.pass_wall_time));
}

void TreeWalk::Note(const PassRecord& record) {
  const std::string bytes = Encode(record);
  if (journal_.Append(bytes)) return;
  // A closed channel is found out by the process that waits for requests.
  if (Flush() && journal_.Append(bytes)) return;
  const auto* value = std::get_if<ValueRecord>(&record);
  if (value == nullptr) return;
  Note(NoValueRecord{
      .node = value->node,
      .observation = value->observation,
      .failure = {.reason = PassFailure::Reason::kNoValue,
                  .message = fmt::format("{} has {} bytes, which is too much",
                                         passes::InfoOf(value->observation).name, bytes.size())}});
}

bool TreeWalk::Flush() {
  last_flush_ = Now();
  if (journal_.records().empty()) return true;
  // A timer must not cut a message off.
  StopTimers();
  const bool sent =
      channel_.Send(Encode(PassReply(RecordsReply{std::string(journal_.records())})), std::nullopt)
          .has_value();
  journal_.Clear();
  StartStepTimers();
  return sent;
}

}  // namespace loopfleet::worker

#include "coordinator/code_maker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "common/base/subprocess.h"
#include "common/base/unique_fd.h"
#include "common/job/outcome_json.h"

namespace loopfleet::coordinator {
namespace {

constexpr std::size_t kMaxTalk = 4096;  // of what the child says beside the code
constexpr std::array<std::string_view, 4> kVectorSets = {"avx512", "avx2", "baseline", "aarch64"};

const HardwareFacts* HardwareOf(const storage::StoredJob& job) {
  if (!job.outcome || !job.outcome->evaluation.conditions) return nullptr;
  return &job.outcome->evaluation.conditions->hardware;
}

bool IsOfGpu(const storage::StoredJob& job) {
  const HardwareFacts* hardware = HardwareOf(job);
  return hardware != nullptr && hardware->device == DeviceKind::kCuda;
}

// What makes the tree, as `loopfleet submit` takes it.
std::string LineOf(const JobSpec& spec) {
  Json line;
  if (const auto* ir = std::get_if<looptree::IrText>(&spec.source)) {
    line["ir"] = ir->text;
  } else {
    line["benchmark"] = std::get<looptree::BenchmarkUri>(spec.source).text;
  }
  line["actions"] = Json::array();
  for (const auto& action : spec.actions) line["actions"].push_back(looptree::ActionName(action));
  if (spec.rules == looptree::RuleSet::kLoopNest) line["rules"] = "loop_nest";
  if (spec.rules == looptree::RuleSet::kLoopNest58) line["rules"] = "loop_nest_58";
  if (spec.on_illegal == looptree::OnIllegal::kSkip) line["on_illegal"] = "skip";
  if (spec.dialect) {
    line["dialect"] = *spec.dialect == looptree::Dialect::kSimple ? "simple" : "agent";
  }
  if (spec.merge_all_first) line["merge_all_first"] = true;
  line["threads"] = spec.threads;
  return Dump(line) + "\n";
}

std::unexpected<Error> SystemFailure(const char* what) {
  return Fail(ErrorKind::kSystem, fmt::format("{}: {}", what, std::strerror(errno)));
}

struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};
Result<SocketPair> OpenSocketPair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return SystemFailure("no pair of sockets");
  }
  return SocketPair{.ours = UniqueFd(fds[0]), .theirs = UniqueFd(fds[1])};
}

// One end of what a program says.
struct Stream {
  int fd = -1;
  std::string text = {};
  bool is_over = false;

  void Read() {
    char bytes[16384];
    const ssize_t got = ::read(fd, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return;
    if (got > 0) {
      text.append(bytes, static_cast<std::size_t>(got));
    } else {
      is_over = true;
    }
  }
};

struct Said {
  Stream code;
  Stream talk;

  // Until both are over or there is too much code; of the talk the end is kept. False: time was
  // over first.
  bool ReadAll(std::size_t max_code, Nanos limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!(code.is_over && talk.is_over) && code.text.size() <= max_code) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      const auto wanted = [](const Stream& stream) {
        return pollfd{.fd = stream.is_over ? -1 : stream.fd, .events = POLLIN, .revents = 0};
      };
      std::array<pollfd, 2> ends = {wanted(code), wanted(talk)};
      if (::poll(ends.data(), ends.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
        return false;
      }
      if (ends[0].revents != 0) code.Read();
      if (ends[1].revents != 0) talk.Read();
      if (talk.text.size() > kMaxTalk) talk.text.erase(0, talk.text.size() - kMaxTalk);
    }
    return true;
  }
};

// Of what a program said, the last line without its name before it.
std::string LastWord(std::string talk) {
  while (talk.ends_with('\n')) talk.pop_back();
  const auto line = talk.rfind('\n');
  if (line != std::string::npos) talk.erase(0, line + 1);
  constexpr std::string_view kName = "loopfleet-worker emit: ";
  if (talk.starts_with(kName)) talk.erase(0, kName.size());
  return talk;
}

}  // namespace

std::vector<std::string_view> CodeMaker::FormatsOf(const storage::StoredJob& job) {
  if (IsOfGpu(job)) return {"c", "llvm-ir", "ptx"};
  return {"c", "llvm-ir", "asm"};
}

CodeMaker::Run CodeMaker::RunFor(const storage::StoredJob& job, std::string_view format) {
  Run run{.arguments = {"emit", "--sealed", "--format", std::string(format)},
          .line = LineOf(job.spec)};
  const HardwareFacts* hardware = HardwareOf(job);
  if (hardware == nullptr || format == "c") return run;  // C is the same for all of them
  if (IsOfGpu(job)) {
    run.arguments.insert(run.arguments.end(), {"--gpu-arch", hardware->isa});
    return run;
  }
  const bool is_known = std::ranges::find(kVectorSets, hardware->isa) != kVectorSets.end();
  if (is_known) run.arguments.insert(run.arguments.end(), {"--isa", hardware->isa});
  const std::string& code_hash = job.outcome->evaluation.code_hash;
  if (!code_hash.empty()) run.arguments.insert(run.arguments.end(), {"--code-hash", code_hash});
  return run;
}

Result<std::shared_ptr<const JobCode>> CodeMaker::Make(const storage::StoredJob& job,
                                                       std::string_view format) {
  const Run run = RunFor(job, format);
  const std::string question = fmt::format("{} {}", fmt::join(run.arguments, " "), run.line);
  const std::unique_lock turn(one_at_a_time_, options_.patience);
  if (!turn) return Fail(ErrorKind::kUnavailable, "other code is being made right now");
  const auto known = std::ranges::find(answers_, question, &Answer::question);
  if (known != answers_.end()) return known->code;
  LF_TRY(JobCode code, Ask(run));
  auto answer = std::make_shared<const JobCode>(std::move(code));
  answers_.push_back({.question = question, .code = answer});
  if (answers_.size() > options_.remembered) answers_.pop_front();
  return answer;
}

Result<JobCode> CodeMaker::Ask(const Run& run) const {
  LF_TRY(const UniqueFd line, MemoryFile(run.line));
  LF_TRY(SocketPair code, OpenSocketPair());
  LF_TRY(Pipe talk, OpenPipe());
  std::vector<std::string> argv = {options_.program.native()};
  argv.insert(argv.end(), run.arguments.begin(), run.arguments.end());
  LF_TRY(Subprocess child, Subprocess::Start({.argv = std::move(argv),
                                              .group = Subprocess::Group::kOwn,
                                              .stdin_fd = line.get(),
                                              .stdout_fd = code.theirs.get(),
                                              .stderr_fd = talk.write.get()}));
  code.theirs.Reset();
  talk.write.Reset();
  Said said{.code = {.fd = code.ours.get()}, .talk = {.fd = talk.read.get()}};
  const auto began = std::chrono::steady_clock::now();
  const bool is_over = said.ReadAll(options_.max_bytes, options_.limit);
  JobCode answer{.text = std::move(said.code.text), .note = LastWord(std::move(said.talk.text))};
  if (answer.text.size() > options_.max_bytes) {
    // The child is ended when it goes out of scope: nobody reads the rest.
    answer.text.resize(options_.max_bytes);
    answer.text.resize(answer.text.rfind('\n') + 1);  // whole lines
    answer.note.clear();
    answer.is_whole = false;
    return answer;
  }
  const Nanos left = options_.limit - (std::chrono::steady_clock::now() - began);
  const auto status = is_over ? child.WaitFor(left) : std::nullopt;
  if (!status) {
    return Fail(ErrorKind::kTimeout, fmt::format("the code was not made in {} s",
                                                 options_.limit / std::chrono::seconds(1)));
  }
  if (status->code == 0) return answer;
  return Fail(ErrorKind::kInvalid, answer.note.empty()
                                       ? fmt::format("loopfleet-worker emit {}", ToString(*status))
                                       : answer.note);
}

}  // namespace loopfleet::coordinator

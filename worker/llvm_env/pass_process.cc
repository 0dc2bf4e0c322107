#include "worker/llvm_env/pass_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "worker/llvm_env/batch_records.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {
namespace {

using Cause = ExitReason::Cause;

// Bitcode of the programs that a child holds: in memory they are dozens of times as large.
constexpr std::size_t kMaxHeldBytes = std::size_t{20} << 20;

Instant In(std::chrono::milliseconds time) {
  return Instant(std::chrono::steady_clock::now()) + time;
}

std::string TextOf(const ExitReason& end) {
  switch (end.cause) {
    case Cause::kTimeout: return "took too long";
    case Cause::kMemory: return "ran out of memory";
    case Cause::kSignal: return fmt::format("was ended by signal {}", end.number);
    case Cause::kExit: return fmt::format("exited with code {}", end.number);
    case Cause::kJunk: return "gave an answer that could not be read";
    case Cause::kForbidden: return "made a forbidden system call";
    case Cause::kNoChild: return "could not be started: " + end.message;
  }
  return {};
}

// Why a walk has no end: the process at the root of its forks failed, not one of them.
PassFailure ToInterruption(const ExitReason& end) {
  PassFailure failure{.reason = PassFailure::Reason::kNoProcess,
                      .message = "the process that runs passes " + TextOf(end)};
  if (end.cause == Cause::kTimeout) failure.reason = PassFailure::Reason::kTimeout;
  if (end.cause == Cause::kMemory) failure.reason = PassFailure::Reason::kOutOfMemory;
  if (end.cause == Cause::kForbidden) failure.reason = PassFailure::Reason::kForbiddenCall;
  return failure;
}

bool SharesAllButTheLast(const Episode& one, const Episode& other) {
  return one.passes.size() == other.passes.size() && !one.passes.empty() &&
         std::equal(one.passes.begin(), one.passes.end() - 1, other.passes.begin());
}

// The program alone can have caused it, unless there was no process, or this host stood still: what
// a program takes to read is processor time.
Failure ToLoadFailure(const ExitReason& end) {
  if (end.cause == Cause::kNoChild) {
    return {.code = FailureCode::kDeviceFault,
            .message = "this worker has no process that runs passes: " + end.message};
  }
  if (end.cause == Cause::kTimeout || (end.cause == Cause::kSignal && end.number == SIGALRM)) {
    return {.code = FailureCode::kDeviceFault,
            .message =
                "reading the bitcode took too long, though little processor time: this host "
                "stood still or is overloaded"};
  }
  return {.code = FailureCode::kInvalidBenchmark,
          .message = "the process that read the bitcode " + TextOf(end)};
}

}  // namespace

PassProcess::PassProcess(ForkServer& fork_server, const Options& options,
                         RestartListener on_restart)
    : fork_server_(fork_server),
      options_(options),
      on_restart_(std::move(on_restart)),
      heads_(options.heads) {}

std::expected<BatchResult, Failure> PassProcess::Run(
    const std::shared_ptr<const std::string>& bitcode, std::span<const Episode> episodes) {
  const Instant deadline = In(options_.batch_limit);
  BatchResult result{.module_hash = {}, .episodes = std::vector<EpisodeResult>(episodes.size())};
  std::vector<std::size_t> left;
  const auto take = [&](std::size_t place, std::optional<PassHeads::Result> from_head) {
    if (!from_head) return left.push_back(place);
    result.module_hash = from_head->program.module_hash;
    result.instruction_count = from_head->program.instruction_count;
    result.episodes[place] = std::move(from_head->episode);
    heads_.Saw(from_head->program, episodes[place]);
  };
  // Episodes that branch where another one does share what they have in common in one walk.
  const bool uses_heads = episodes.size() <= options_.heads;
  const auto is_alone = [&](const Episode& episode) {
    return uses_heads && std::ranges::count_if(episodes, [&](const Episode& other) {
                           return SharesAllButTheLast(episode, other);
                         }) == 1;
  };
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    take(i, is_alone(episodes[i]) ? heads_.Run(bitcode, episodes[i], deadline) : std::nullopt);
  }
  if (left.empty() && !episodes.empty()) return result;
  LF_TRY(Program* const program, Load(bitcode));
  std::vector<Episode> rest;
  for (const std::size_t place : std::exchange(left, {})) {
    take(place, is_alone(episodes[place])
                    ? heads_.RunOnNew({.bitcode = bitcode,
                                       .slot = SlotOf(*program),
                                       .facts = program->facts,
                                       .baselines = program->baselines},
                                      episodes[place], deadline, child_->channel())
                    : std::nullopt);
  }
  if (left.empty() && !episodes.empty()) return result;
  for (const std::size_t place : left) rest.push_back(episodes[place]);
  LF_TRY(BatchResult walked, Walk(*program, rest, deadline));
  result.module_hash = walked.module_hash;
  result.instruction_count = walked.instruction_count;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const bool is_whole = !walked.episodes[i].failure;
    result.episodes[left[i]] = std::move(walked.episodes[i]);
    if (uses_heads && is_whole) {
      heads_.Saw({.module_hash = result.module_hash, .instruction_count = result.instruction_count},
                 rest[i]);
    }
  }
  return result;
}

std::expected<BatchResult, Failure> PassProcess::Walk(Program& program,
                                                      std::span<const Episode> episodes,
                                                      Instant deadline) {
  PlantedBatch batch = Plant(episodes);
  for (const auto& [observation, value] : program.baselines) {
    batch.baselines &= ~(std::uint32_t{1} << static_cast<unsigned>(observation));
  }
  BatchResult result{.module_hash = program.facts.module_hash,
                     .instruction_count = program.facts.instruction_count,
                     .episodes = {}};
  BatchRecords records(batch.tree.nodes.size(), program.baselines);
  std::optional<PassFailure> interruption;
  auto reply = Ask(
      WalkRequest{
          .slot = SlotOf(program), .baselines = batch.baselines, .tree = std::move(batch.tree)},
      deadline);
  for (;; reply = Receive(deadline)) {
    if (!reply) {
      interruption = ToInterruption(reply.error());
      break;
    }
    const auto* part = std::get_if<RecordsReply>(&*reply);
    if (part == nullptr || !records.Add(part->records)) {
      interruption = ToInterruption(Replace(ErrorKind::kCorrupt));
      break;
    }
    if (part->instructions_at_end) break;
  }
  if (!interruption) program.baselines = records.baselines();
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    result.episodes.push_back(records.ResultOf(episodes[i], batch.paths[i], interruption));
  }
  return result;
}

std::expected<PassProcess::Program*, Failure> PassProcess::Load(
    const std::shared_ptr<const std::string>& bitcode) {
  // An idle child says nothing: it has ended since the last call.
  if (child_ && child_->channel().IsReadable()) Replace(ErrorKind::kClosed);
  std::size_t held_bytes = bitcode->size();
  for (Program& program : programs_) {
    if (!program.bitcode) continue;
    if (program.bitcode == bitcode || *program.bitcode == *bitcode) {
      program.last_use = ++uses_;
      return &program;
    }
    held_bytes += program.bitcode->size();
  }
  if (held_bytes > kMaxHeldBytes) {
    child_.reset();
    programs_ = {};
  }
  Program& program = *std::ranges::min_element(programs_, {}, &Program::last_use);
  program = {};
  auto reply =
      Ask(LoadRequest{.slot = SlotOf(program), .bitcode = *bitcode}, In(options_.load_limit));
  if (!reply) return std::unexpected(ToLoadFailure(reply.error()));
  if (const auto* refused = std::get_if<RefusedReply>(&*reply)) {
    return std::unexpected(
        Failure{.code = FailureCode::kInvalidBenchmark, .message = refused->message});
  }
  auto* const loaded = std::get_if<LoadedReply>(&*reply);
  if (loaded == nullptr) return std::unexpected(ToLoadFailure(Replace(ErrorKind::kCorrupt)));
  program = {.bitcode = bitcode, .last_use = ++uses_, .facts = std::move(*loaded), .baselines = {}};
  return &program;
}

std::expected<PassReply, ExitReason> PassProcess::Ask(const PassRequest& request,
                                                      Instant deadline) {
  if (const Status started = EnsureChild(); !started) {
    return std::unexpected(
        ExitReason{.cause = Cause::kNoChild, .message = started.error().message});
  }
  if (const Status sent = child_->channel().Send(Encode(request), deadline); !sent) {
    return std::unexpected(Replace(sent.error().kind));
  }
  return Receive(deadline);
}

std::expected<PassReply, ExitReason> PassProcess::Receive(Instant deadline) {
  const Result<std::string> bytes = child_->channel().Receive(deadline, kMaxPassMessageBytes);
  if (!bytes) return std::unexpected(Replace(bytes.error().kind));
  std::optional<PassReply> reply = DecodePassReply(*bytes);
  if (!reply) return std::unexpected(Replace(ErrorKind::kCorrupt));
  return *std::move(reply);
}

Status PassProcess::EnsureChild() {
  if (child_) return {};
  LF_TRY(child_, fork_server_.Spawn(ChildRole::kPasses));
  return {};
}

ExitReason PassProcess::Replace(ErrorKind error) {
  const ExitReason reason = EndChild(*child_, error);
  child_.reset();
  programs_ = {};
  on_restart_(ChildRole::kPasses, reason.cause);
  return reason;
}

}  // namespace loopfleet::worker

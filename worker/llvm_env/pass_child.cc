#include "worker/llvm_env/pass_child.h"

#include <llvm/Support/TargetSelect.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <new>
#include <optional>

#include "common/base/check.h"
#include "common/base/subprocess.h"
#include "worker/llvm_env/huge_code.h"
#include "worker/llvm_env/journal.h"
#include "worker/llvm_env/pass_message.h"
#include "worker/llvm_env/pass_runner.h"
#include "worker/llvm_env/x86_target.h"
#include "worker/sandbox/last_words.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kJournalBytes = std::size_t{64} << 20;
constexpr std::uint64_t kStderrBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMemory = std::uint64_t{4} << 30;

using Slots = std::array<std::optional<ProgramModule>, kProgramSlots>;

PassReply Load(const LoadRequest& request, Slots& slots, const PassLimits& limits) {
  std::optional<ProgramModule>& slot = slots[request.slot];
  slot.reset();
  StartTimers(limits.pass_processor_time, limits.pass_wall_time);
  Result<ProgramModule> program = ProgramModule::Read(request.bitcode, limits.program);
  StopTimers();
  if (!program) return RefusedReply{.message = program.error().message};
  slot = *std::move(program);
  return LoadedReply{.module_hash = slot->hash(), .instruction_count = slot->InstructionCount()};
}

// Of a function as clang makes it and of one as llvm-stress does: forks then find what LLVM makes
// once in a process, such as the tables of a processor, ready made.
void WarmUp(PassRunner& runner) {
  const auto program = ProgramModule::Parse(R"(
define i32 @f(ptr %p, i64 %n) #0 {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %sum = phi i32 [ 0, %0 ], [ %more, %loop ]
  %at = getelementptr i32, ptr %p, i64 %i
  %x = load i32, ptr %at
  %y = call i32 @g(i32 %x)
  %more = add i32 %sum, %y
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, %n
  br i1 %again, label %loop, label %end
end:
  ret i32 %more
}
define internal i32 @g(i32 %x) {
  %p = alloca i32
  store i32 %x, ptr %p
  %y = load i32, ptr %p
  %z = mul i32 %y, 8
  ret i32 %z
}
attributes #0 = { nounwind uwtable "min-legal-vector-width"="0" "no-trapping-math"="true"
  "stack-protector-buffer-size"="8" "target-cpu"="x86-64"
  "target-features"="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+x87" "tune-cpu"="generic" }
)");
  LF_CHECK(program.has_value(), "{}", program.error().message);
  LF_CHECK(runner.Run("default<O3>", program->module()).has_value(), "default<O3>");
}

// The tree comes from our own daemon; a bug there must not become a wild access here.
bool IsWellFormed(const WalkRequest& request, const Slots& slots) {
  const PrefixTree& tree = request.tree;
  if (!slots[request.slot] || tree.nodes.empty()) return false;
  for (std::size_t i = 1; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].parent >= i || tree.nodes[i].text >= tree.texts.size()) return false;
  }
  return true;
}

// A fork of this process returns with `journal` and `channel` replaced by its own; this one returns
// without them. The channel takes over the number of the old one, which the filter of system calls
// knows.
void Branch(const UniqueFd& fd, Channel& channel, std::optional<Journal>& journal) {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {  // earlier ones that have ended
  }
  if (ForkWithin() != 0) return;
  Result<Journal> own = Journal::Make(kJournalBytes);
  const int number = channel.TakeFd().Release();
  if (!own || ::dup3(fd.get(), number, 0) < 0) ::_exit(kExitOutOfMemory);
  channel = Channel(UniqueFd(number));
  journal.emplace(*std::move(own));
}

// What LLVM writes to stderr goes to a file in memory, which the processes of a walk share.
bool CatchStderr() {
  const Result<UniqueFd> file = MemoryFile("");
  return file && ::dup2(file->get(), STDERR_FILENO) >= 0;
}

// Returns the exit code.
int RunPassChild(Channel& channel, const PassLimits& limits, Isolation isolation) {
  std::set_new_handler(ExitOutOfMemory);
  Result<Journal> made = Journal::Make(kJournalBytes);
  PassRunner runner;
  WarmUp(runner);
  if (!made || !CatchStderr()) return kExitNotConfined;
  std::optional<Journal> journal(*std::move(made));
  if (!SealProcess(ChildRole::kPasses, isolation, channel.fd())) return kExitNotConfined;
  Slots slots;
  KnownSizes known;  // of the program that is walked in place: a process does so with one alone
  for (;;) {
    const Result<Channel::Message> message = channel.ReceiveWithFds(kMaxPassMessageBytes);
    if (!message) return kExitOk;
    const std::optional<PassRequest> request = DecodePassRequest(message->bytes);
    if (!request) return kExitBadRequest;
    if (std::holds_alternative<BranchRequest>(*request)) {
      if (message->fds.size() != 1) return kExitBadRequest;
      Branch(message->fds.front(), channel, journal);
      continue;
    }
    if (const auto* load = std::get_if<LoadRequest>(&*request)) {
      if (!channel.Send(Encode(Load(*load, slots, limits)), std::nullopt)) return kExitOk;
      continue;
    }
    const auto& walk = std::get<WalkRequest>(*request);
    if (!IsWellFormed(walk, slots)) return kExitBadRequest;
    const ProgramModule& program = *slots[walk.slot];
    TreeWalk(walk, program, known, runner, limits, *journal, channel).Run();
    const RecordsReply last{.records = std::string(journal->records()),
                            .instructions_at_end = program.InstructionCount()};
    journal->Clear();
    StopTimers();  // they must not cut the message off
    if (!channel.Send(Encode(PassReply(last)), std::nullopt)) return kExitOk;
  }
}

}  // namespace

ChildProgram PassChildProgram(const PassLimits& limits, Isolation isolation) {
  return {.run = [limits,
                  isolation](Channel& channel) { return RunPassChild(channel, limits, isolation); },
          .limits = {.private_bytes = kMemory,
                     .address_space_bytes = kMemory,
                     .file_bytes = kStderrBytes},
          .prepare =
              [] {
                InitializeX86();
                MoveCodeToHugePages(reinterpret_cast<const void*>(&LLVMInitializeX86Target));
              }};
}

}  // namespace loopfleet::worker

#pragma once
// PassProcess: the daemon's handle on a child that runs passes, and the entry to this folder.
// Whatever a program or a pass does to the child, Run returns a result for every episode, and the
// next call starts a new child if it needs one. Belongs to one thread; for more cores, have more of
// them.

#include <array>
#include <chrono>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/job/failure.h"
#include "worker/llvm_env/episode.h"
#include "worker/llvm_env/pass_heads.h"
#include "worker/llvm_env/pass_message.h"
#include "worker/sandbox/exit_reason.h"
#include "worker/sandbox/fork_server.h"

namespace loopfleet::worker {

struct BatchResult {
  std::string module_hash;              // of the program: keys name it by this
  std::uint64_t instruction_count = 0;  // of the program
  std::vector<EpisodeResult> episodes;  // in the order of the request
};

class PassProcess {
 public:
  struct Options {
    // Of reading a program; of a whole batch.
    std::chrono::milliseconds load_limit{60'000};
    std::chrono::milliseconds batch_limit{600'000};
    std::size_t heads = 8;  // states kept between jobs (pass_heads.h)
  };
  // Called for each child that has to be replaced.
  using RestartListener = std::function<void(ChildRole, ExitReason::Cause)>;

  // `fork_server` has a program for ChildRole::kPasses (pass_child.h).
  PassProcess(ForkServer& fork_server, const Options& options, RestartListener on_restart);

  std::size_t heads() const { return heads_.size(); }
  void DropHeads() { heads_.DropAll(); }  // no job is expected soon

  // Runs each episode on the program; common prefixes are run once. A failure of the whole: the
  // bitcode is no sound program (INVALID_BENCHMARK), or there is no child (DEVICE_FAULT). The child
  // keeps the last few programs, so batches over one program should follow each other.
  std::expected<BatchResult, Failure> Run(const std::shared_ptr<const std::string>& bitcode,
                                          std::span<const Episode> episodes);

 private:
  struct Program {
    std::shared_ptr<const std::string> bitcode;  // null: the slot is empty
    std::uint64_t last_use = 0;
    LoadedReply facts;
    std::map<passes::Observation, passes::ObservationValue> baselines;  // those known
  };

  // All of it in one walk from the program on.
  std::expected<BatchResult, Failure> Walk(Program& program, std::span<const Episode> episodes,
                                           Instant deadline);
  // The program, which is sent to the child if it does not hold it.
  std::expected<Program*, Failure> Load(const std::shared_ptr<const std::string>& bitcode);
  std::expected<PassReply, ExitReason> Ask(const PassRequest& request, Instant deadline);
  std::expected<PassReply, ExitReason> Receive(Instant deadline);
  Status EnsureChild();
  ExitReason Replace(ErrorKind error);
  std::uint8_t SlotOf(const Program& program) const {
    return static_cast<std::uint8_t>(&program - programs_.data());
  }

  ForkServer& fork_server_;
  const Options options_;
  const RestartListener on_restart_;
  std::optional<ChildProcess> child_;
  std::array<Program, kProgramSlots> programs_;
  PassHeads heads_;
  std::uint64_t uses_ = 0;
};

}  // namespace loopfleet::worker

#pragma once
// TreeWalk: runs the passes of a PrefixTree on a program, in the child. A process walks down a
// chain in place. It forks where a node has several children, for all but the last of them, and
// waits; a fork that crashes, hangs or runs out of memory becomes a FailureRecord. One process runs
// at a time. Deadlines are timers that end the process that set them, so no process needs the right
// to kill.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/content_key.h"
#include "kernel/channel.h"
#include "worker/llvm_env/journal.h"
#include "worker/llvm_env/pass_message.h"
#include "worker/llvm_env/pass_runner.h"
#include "worker/llvm_env/program_module.h"

namespace loopfleet::worker {

struct PassLimits {
  // Of one pass with the observations after it.
  std::chrono::milliseconds pass_processor_time{10'000};
  std::chrono::milliseconds pass_wall_time{20'000};
  std::chrono::milliseconds episode_wall_time{120'000};
  // A pass may leave as many instructions as the larger of these: a multiple of the program's, or a
  // number.
  std::uint64_t growth = 16;
  std::uint64_t instructions = 1'000'000;
  ProgramLimits program;
};

// Ends the process after so much time, unless it is set again or stopped; a parent recognises the
// end by WasTimer.
void StartTimers(std::chrono::milliseconds processor_time, std::chrono::milliseconds wall_time);
void StopTimers();
bool WasTimer(int signal);

// As fork() does it; the fork ends when this process does.
pid_t ForkWithin();

// The sizes of the code since a pass last changed the module: half of all passes change nothing,
// and a size takes LLVM's code generator. That a pass says so is not enough: of 64,856 such steps
// 10 had changed instructions (6 of -reassociate).
struct KnownSizes {
  ContentKey module;  // of its bitcode
  std::map<passes::Observation, passes::ObservationValue> sizes;
};

class TreeWalk {
 public:
  // `known`: of the program as it is; of a walk in place, also when it is over. Standard error must
  // be a file of this process and its forks alone. All must outlive the walk.
  TreeWalk(const WalkRequest& request, const ProgramModule& program, KnownSizes& known,
           PassRunner& runner, const PassLimits& limits, Journal& journal, Channel& channel);

  // Leaves the program as it is, unless it is told to run in place: the first pass is run in a
  // fork. Sends records as they come, but for the last ones, which are in the journal.
  void Run();

 private:
  using Activity = Journal::Place::Activity;

  // Computes the baselines of one reference pipeline.
  void RunBaseline(passes::Baseline baseline);
  // From `node`, whose pass has been run, to the leaves.
  void Walk(std::uint32_t node);
  // Runs the pass of `node`, and notes how it went. False: the walk ends here.
  bool Step(std::uint32_t node);
  void ObserveNode(std::uint32_t node);
  void ObserveOne(std::uint32_t node, passes::Observation observation);
  // In a fork: LLVM's code generator gives up on some modules, which must not end the walk.
  void ObserveCodeSize(std::uint32_t node, passes::Observation observation);
  void ForgetSizesAfter(bool changed);

  // Runs `body` in a fork and waits for its end. Returns why it failed, if it did.
  std::optional<PassFailure> InFork(const std::function<void()>& body);
  PassFailure FailureOf(int status);
  void StartStepTimers();

  void Note(const PassRecord& record);
  bool Flush();

  const WalkRequest& request_;
  const ProgramModule& program_;
  KnownSizes& known_;
  PassRunner& runner_;
  const PassLimits& limits_;
  Journal& journal_;
  Channel& channel_;
  const std::vector<std::vector<std::uint32_t>> children_;
  const std::uint64_t most_instructions_;
  Nanos spent_;  // on the passes from the program to here
  Instant last_flush_;
};

}  // namespace loopfleet::worker

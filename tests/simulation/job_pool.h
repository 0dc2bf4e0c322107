#pragma once
// JobPool: the jobs of one seed's world, and what each does to the worker that runs it. Trees are
// real: requests are replayed as the coordinator replays them.

#include <cstdint>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/shell/job_resolver.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/fault_mix.h"

namespace loopfleet::simulation {

enum class Nature : std::uint8_t {
  kGood,
  kPoison,   // ends the worker that runs it
  kHanging,  // RUN_TIMEOUT
  kCrashing  // RUN_CRASH
};

// How long a worker lets a job run.
inline constexpr Nanos kRunLimit = std::chrono::seconds(10);

class JobPool {
 public:
  JobPool(const FaultMix& mix, std::uint64_t seed);

  JobSpec Draw(Dice& dice);
  Nature NatureOf(const JobSpec& spec) const;

  // What requests lead to: shared by all seeds, because it depends on the requests only.
  static coordinator::ReplayMemory& Memory();
  // Replays a request as the coordinator does: its tree, or why it is invalid.
  static std::variant<ResolvedTask, Failure> Replay(const JobSpec& spec);
  static ResolvedTask Recall(const storage::ReplayResult& stored, const JobSpec& spec);

 private:
  struct Tree {
    std::string uri;
    Nature nature = Nature::kGood;
  };
  const Tree* Find(const JobSpec& spec) const;

  double invalid_;
  double fresh_;
  double any_device_;
  const FaultMix& mix_;
  std::uint64_t drawn_ = 0;
  std::vector<Tree> trees_;
};

}  // namespace loopfleet::simulation

#pragma once
// FaultMix: which faults one seed has, and how often; and the shape of its world. Swarm testing:
// each seed draws a random subset at random rates, so that faults meet in every combination and
// none hides behind another.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "coordinator/core/contract/limits.h"

namespace loopfleet::simulation {

enum class Fault : std::uint8_t {
  kLose,               // a message vanishes although its connection goes on
  kDuplicate,          // a message arrives twice
  kDelay,              // a message arrives much later, and others overtake it
  kCut,                // a connection breaks, with what is under way on it
  kPartition,          // one party and the coordinator do not hear each other for a while
  kCorrupt,            // bytes are flipped, or cut off (in encoded seeds)
  kKillCoordinator,    // kill -9, sometimes in the middle of what it is doing
  kStopCoordinator,    // SIGTERM
  kFreezeCoordinator,  // it stands still for a while
  kSlowDisk,
  kFullDisk,
  kFailDisk,  // EIO
  kKillWorker,
  kFreezeWorker,
  kDrainWorker,
  kOperator,     // somebody drains a host, and resumes it
  kDriftWorker,  // its canaries drift for a while
  kFlakyDevice,  // a run fails for reasons that are not the job's
  kNoise,        // a host is too busy for a figure
  kLie,          // a report that cannot be true
  kVanish,       // a client is gone, perhaps for ever
  kRepeat,       // a client sends a request that was answered again
  kConflict,     // ... with other content
  kStranger,     // a client that does not say hello first
  kCancel,       // a batch is cancelled
  kClockJump,    // wall time jumps by years
};
inline constexpr std::size_t kFaults = 26;
std::string_view FaultName(Fault fault);
std::optional<Fault> ParseFault(std::string_view name);

enum class Bytes : std::uint8_t { kValues, kEncoded };  // do messages pass the real encoders?
enum class Medium : std::uint8_t { kModel, kSqlite };   // the disk: a model, or the real storage

struct FaultMix {
  std::array<double, kFaults> rates{};  // probability of each occasion; 0: it does not happen
  double operator[](Fault fault) const { return rates[static_cast<std::size_t>(fault)]; }
  double& operator[](Fault fault) { return rates[static_cast<std::size_t>(fault)]; }
  bool has_faults() const;

  Bytes bytes = Bytes::kValues;
  Medium medium = Medium::kModel;

  bool checks_core = false;  // the core's own invariants, after every event

  std::size_t clients = 1;
  std::size_t workers = 1;
  std::size_t cuda_workers = 0;  // of those
  std::uint32_t most_credit = 1;
  std::size_t batches_per_client = 1;
  std::size_t most_messages = 1;     // of a batch
  std::size_t most_jobs = 4;         // of a message
  std::size_t trees = 4;             // that jobs are about
  double poison = 0;                 // share of trees that end their worker
  double hang = 0;                   // ... that never end
  double crash = 0;                  // ... whose kernel crashes
  double invalid = 0;                // share of jobs that no tree can be made of
  double fresh = 0;                  // share of jobs that want to be measured anew
  double prioritised = 0;            // ... that have another priority than 0
  double labelled = 0;               // ... that demand the label "big"
  std::size_t labelled_workers = 0;  // the last ones, which carry it
  double bound = 0;                  // share of jobs that have an affinity
  std::size_t affinities = 1;        // that they share
  double hurried = 0;                // share of jobs with a deadline
  double longest_deadline_s = 1;
  bool drifts_stay = false;  // a worker that drifts does so until it ends, also when all is calm
  Nanos longest_run{};
  Nanos latency{};      // of the network, at least
  Nanos jitter{};       // and at most this much more
  Nanos commit_time{};  // of the disk
  Nanos tick{};         // of the coordinator
  Nanos faults_last{};  // from then on everything works
  coordinator::Limits limits;

  static FaultMix Draw(std::uint64_t seed);
  std::string Describe() const;
};

}  // namespace loopfleet::simulation

#pragma once
// FaultMix: the faults of one seed, their rates, and the shape of its world. Swarm testing: each
// seed draws a random subset of faults at random rates, so that all combinations occur and no fault
// hides another.

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
  kLose,               // a message is lost although its connection stays up
  kDuplicate,          // a message arrives twice
  kDelay,              // a message arrives much later; others overtake it
  kCut,                // a connection breaks and loses its messages in flight
  kPartition,          // messages between a party and the coordinator are held back for a while
  kCorrupt,            // bytes are flipped or cut off (in encoded seeds)
  kKillCoordinator,    // kill -9, sometimes in the middle of an event
  kStopCoordinator,    // SIGTERM
  kFreezeCoordinator,  // the coordinator is suspended for a while
  kSlowDisk,
  kFullDisk,
  kFailDisk,  // EIO
  kKillWorker,
  kFreezeWorker,
  kDrainWorker,
  kOperator,     // an operator drains a host and resumes it
  kDriftWorker,  // a worker's canaries drift for a while
  kFlakyDevice,  // a run fails because of the device, not the job
  kNoise,        // a host is too busy for a figure
  kLie,          // a worker sends a report that cannot be true
  kVanish,       // a client disconnects, perhaps permanently
  kRepeat,       // a client resends a request that was answered
  kConflict,     // ... with other content
  kStranger,     // a client sends a request before its hello
  kCancel,       // a batch is cancelled
  kClockJump,    // wall time jumps by years
};
inline constexpr std::size_t kFaults = 26;
std::string_view FaultName(Fault fault);
std::optional<Fault> ParseFault(std::string_view name);

enum class Bytes : std::uint8_t { kValues, kEncoded };  // kEncoded: through the real encoders
enum class Medium : std::uint8_t { kModel, kSqlite };   // kSqlite: the real storage

struct FaultMix {
  std::array<double, kFaults> rates{};  // probability per occasion; 0: never
  double operator[](Fault fault) const { return rates[static_cast<std::size_t>(fault)]; }
  double& operator[](Fault fault) { return rates[static_cast<std::size_t>(fault)]; }
  bool has_faults() const;

  Bytes bytes = Bytes::kValues;
  Medium medium = Medium::kModel;

  bool checks_core = false;  // check the core's own invariants after every event

  std::size_t clients = 1;
  std::size_t workers = 1;
  std::size_t cuda_workers = 0;  // among `workers`
  std::uint32_t most_credit = 1;
  std::size_t batches_per_client = 1;
  std::size_t most_messages = 1;     // in a batch
  std::size_t most_jobs = 4;         // in a message
  std::size_t trees = 4;             // distinct trees of all jobs
  double poison = 0;                 // share of trees that end their worker
  double hang = 0;                   // ... that hang
  double crash = 0;                  // ... whose kernel crashes
  double invalid = 0;                // share of jobs without a valid tree
  double fresh = 0;                  // share of jobs that demand a fresh measurement
  double prioritised = 0;            // ... with a priority other than 0
  double labelled = 0;               // ... that demand the label "big"
  std::size_t labelled_workers = 0;  // the last workers, which carry that label
  double bound = 0;                  // share of jobs with an affinity
  std::size_t affinities = 1;        // distinct affinities of those jobs
  double hurried = 0;                // share of jobs with a deadline
  double longest_deadline_s = 1;
  bool drifts_stay = false;  // a drifting worker drifts until it ends, even after the faults
  Nanos longest_run{};
  Nanos latency{};      // minimum of the network
  Nanos jitter{};       // maximum on top of `latency`
  Nanos commit_time{};  // of the disk
  Nanos tick{};         // of the coordinator
  Nanos faults_last{};  // after this time no fault occurs
  coordinator::Limits limits;

  static FaultMix Draw(std::uint64_t seed);
  std::string Describe() const;
};

}  // namespace loopfleet::simulation

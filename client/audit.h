#pragma once
// Audit: chooses which stored results are measured or observed again and on which workers, compares
// the figures or values, and finds the outlier. Pure: `loopfleet audit` does the I/O.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/random.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/job/observed.h"
#include "common/job/outcome.h"
#include "common/wire/message.h"

namespace loopfleet::client {

// Draws jobs of these batches at random, without repetition. The same seed draws the same jobs.
class JobSampler {
 public:
  struct Batch {
    BatchId batch;
    std::uint32_t job_count = 0;
  };
  JobSampler(std::vector<Batch> batches, std::uint64_t seed);

  std::uint64_t size() const { return size_; }  // jobs in all the batches
  std::optional<JobId> Next();                  // nullopt: all were drawn

 private:
  std::vector<Batch> batches_;
  std::uint64_t size_ = 0;
  std::uint64_t drawn_ = 0;
  // A shuffle of 0 .. size_ - 1; only the swapped places are stored.
  std::unordered_map<std::uint64_t, std::uint64_t> shuffled_;
  SplitMix64 random_;
};

// The identity behind a figure: the worker's key, or its host in a fleet without keys. A restarted
// or renamed worker is the same witness.
struct Witness {
  std::string key;  // "": no keys
  std::string host;
  const std::string& name() const { return key.empty() ? host : key; }
};
bool IsSame(const Witness& a, const Witness& b);
Witness WitnessOf(const wire::WorkerInfo& worker);
// The witness of an outcome. In a fleet with keys, a worker's name begins with its key's name.
enum class Keys : std::uint8_t { kNone, kInUse };
Witness WitnessOf(const Outcome& outcome, Keys keys);

// What one witness reports about a job.
struct Opinion {
  Witness witness;
  std::string worker;  // its name, for display
  JobId job;           // whose outcome it is
  std::optional<Failure> failure;
  std::optional<Observed> observed;  // of a job of LLVM passes
  double elapsed_ns = 0;             // with its interval; 0: failed, or observed
  double low_ns = 0;
  double high_ns = 0;
  std::uint64_t cut_above_ns = 0;  // of a CUT: a run takes longer than this
};

// Nullopt: another host cannot confirm the outcome, because it was not measured for this job,
// failed by circumstances (UNSTABLE_TIMING, EXPIRED, WORKER_LOST ...), or tells of the host itself
// (a probe, a profile).
std::optional<Opinion> OpinionOf(const Outcome& outcome, const JobSpec& spec, Keys keys);

// Two figures disagree if the relative distance of their intervals exceeds kAuditTolerance. An
// interval is limited to kMaxHalfWidth on each side of its median: a wider one would agree with
// everything.
inline constexpr double kAuditTolerance = 0.10;
inline constexpr double kMaxHalfWidth = 0.03;
// Observed values agree if they are equal: LLVM's passes are deterministic. Failures agree if their
// codes are equal. A failure and a figure disagree, except a CUT and a figure that is not faster
// than its bound.
bool Agree(const Opinion& a, const Opinion& b);

enum class OddKind : std::uint8_t { kQuicker, kSlower, kOther };  // kOther: a failure, or observed
struct Odd {
  std::size_t which = 0;
  OddKind kind = OddKind::kOther;
  friend bool operator==(const Odd&, const Odd&) = default;
};
// Of three opinions, the one that disagrees with the two others, which agree. Nullopt: undecided.
std::optional<Odd> FindOutlier(std::span<const Opinion> opinions);
// The observed values that another opinion has otherwise, such as "IrInstructionCount 24".
std::string DifferencesOf(const Opinion& opinion, std::span<const Opinion> opinions);
// Jobs whose outcomes are in doubt: the outlier's, else those of all opinions that disagree with
// another.
std::vector<JobId> InDoubt(std::span<const Opinion> opinions);

// One result under audit.
struct AuditCase {
  JobSpec spec;
  Conditions conditions;
  std::vector<Opinion> opinions;  // that of the stored result, then those of the new measurements
};
// Nullopt: the job has no outcome that can be audited.
std::optional<AuditCase> CaseOf(const wire::JobInfo& info, Keys keys);

enum class SameHost : std::uint8_t { kNotAllowed, kAllowed };
// A random worker that can measure it again: ready, of the same hardware class and compiler, and a
// witness without an opinion yet. With kAllowed, if there is only one witness, it may measure
// again. Null: no such worker.
const wire::WorkerInfo* NextWitness(const AuditCase& audit, const wire::WorkerList& workers,
                                    SameHost same_host, SplitMix64& random);

// The same job, to be measured by this worker's witness.
JobSpec AuditJob(const AuditCase& audit, const wire::WorkerInfo& worker);
// Adds the outcome of an AuditJob. False: it holds no opinion, or was measured under other
// conditions.
bool AddOpinion(AuditCase& audit, const Outcome& outcome, Keys keys);

}  // namespace loopfleet::client

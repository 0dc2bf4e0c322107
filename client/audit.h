#pragma once
// Audit: which stored results are measured again and by whom, whether the figures agree, and which
// of them is the odd one. Pure: `loopfleet audit` does the talking.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/random.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/job/outcome.h"
#include "common/wire/message.h"

namespace loopfleet::client {

// Draws jobs of these batches at random, none twice. The same seed draws the same jobs.
class JobSampler {
 public:
  struct Batch {
    BatchId batch;
    std::uint32_t job_count = 0;
  };
  JobSampler(std::vector<Batch> batches, std::uint64_t seed);

  std::uint64_t size() const { return size_; }  // jobs in all the batches
  std::optional<JobId> Next();                  // none: all were drawn

 private:
  std::vector<Batch> batches_;
  std::uint64_t size_ = 0;
  std::uint64_t drawn_ = 0;
  // A shuffle of 0 .. size_ - 1 of which only the touched places are kept.
  std::unordered_map<std::uint64_t, std::uint64_t> shuffled_;
  SplitMix64 random_;
};

// Who answers for a figure: the key that a worker came with, or its host where there are no keys. A
// worker that is restarted, or that takes another name, is the same witness.
struct Witness {
  std::string key;  // "": without keys
  std::string host;
  const std::string& name() const { return key.empty() ? host : key; }
};
bool IsSame(const Witness& a, const Witness& b);
Witness WitnessOf(const wire::WorkerInfo& worker);
// Of an outcome that a worker made; in a fleet with keys, a worker's name begins with its key's.
enum class Keys : std::uint8_t { kNone, kInUse };
Witness WitnessOf(const Outcome& outcome, Keys keys);

// What one witness says of a job.
struct Opinion {
  Witness witness;
  std::string worker;  // its name, for people
  JobId job;           // whose outcome says it
  std::optional<Failure> failure;
  double elapsed_ns = 0;  // unless it failed, with its interval
  double low_ns = 0;
  double high_ns = 0;
  std::uint64_t cut_above_ns = 0;  // of a CUT: what a run is known to take more than
};

// None: the outcome says nothing about the job that another host could confirm. It was not measured
// for this job, or failed by circumstances (UNSTABLE_TIMING, EXPIRED, WORKER_LOST ...).
std::optional<Opinion> OpinionOf(const Outcome& outcome, const JobSpec& spec, Keys keys);

// Two figures disagree if their intervals are further apart than this, relative. An interval counts
// for no more than kMostCredit to each side of its median: a wide one would agree with everything.
inline constexpr double kAuditTolerance = 0.10;
inline constexpr double kMostCredit = 0.03;
// Failures agree if their codes are equal; a failure and a figure disagree, but for a CUT and a
// figure that is not quicker than its bound.
bool Agree(const Opinion& a, const Opinion& b);

enum class OddKind : std::uint8_t { kQuicker, kSlower, kOther };  // kOther: a failure is involved
struct Odd {
  std::size_t which = 0;
  OddKind kind = OddKind::kOther;
  friend bool operator==(const Odd&, const Odd&) = default;
};
// Of three, the one that disagrees with two that agree; none: it cannot be told.
std::optional<Odd> OddOne(std::span<const Opinion> opinions);
// Whose outcomes are in doubt: the odd one, else each that disagrees with another.
std::vector<JobId> InDoubt(std::span<const Opinion> opinions);

// One result under audit.
struct AuditCase {
  JobSpec spec;
  Conditions conditions;
  std::vector<Opinion> opinions;  // that of the stored result, then of those who measured it again
};
// Nothing was stored that other jobs would be answered with: none.
std::optional<AuditCase> CaseOf(const wire::JobInfo& info, Keys keys);

enum class SameHost : std::uint8_t { kIsNoWitness, kMayDo };
// One of the workers that can measure it again: ready, of its hardware class and compiler, and a
// witness that has no opinion yet. With kMayDo, if there is none, the one witness that there is may
// be asked again. Null: there is none.
const wire::WorkerInfo* NextWitness(const AuditCase& audit, const wire::WorkerList& workers,
                                    SameHost same_host, SplitMix64& random);

// The same question, to be measured by this worker's witness.
JobSpec AuditJob(const AuditCase& audit, const wire::WorkerInfo& worker);
// What became of it. False: it says nothing, or was not measured under the same conditions.
bool AddOpinion(AuditCase& audit, const Outcome& outcome, Keys keys);

}  // namespace loopfleet::client

#pragma once
// SingleFlightTable: one measurement serves all jobs with the same question. For every question
// being answered it holds the leader (the job that a worker runs), the followers (waiting for the
// leader's answer), and, once the leader has reported, the answer.
//
// Until a worker has the question, its jobs stand in line for it, each client in its own place: a
// client must lose neither its turn nor its priority because others asked the same before. The
// first job that gets a worker leads, and the others leave the line.
//
// No equal submission falls between the store and this table. The shell looks up the store when a
// submission arrives, just before the core handles the Submission event; from then on the
// submission's interest (Expect) keeps the entry, and an answer stays until it is on disk (Settle)
// and no submission expects it. So a submission either saw the stored row or finds the entry. (One
// that waited for PostgreSQL, shell/postgres, looked a moment earlier: an equal job that ended
// meanwhile is measured twice.)
//
// Followers get the answer a few at a time (TakePendingReplies): there may be any number of them,
// and other requests must not wait for all of them.
//
// Invariant: an entry is here exactly while it has a leader, followers, an expectation, or an
// unsettled answer; followers wait only behind a leader or for an answer that is here. The line
// consists of the leader and followers that are in the ReadyQueue, at most one for each client and
// priority.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/looptree/tree/key.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

// Two jobs with equal questions may share a measurement. Covers the conditions that a job may
// choose, and the requested precision and grade, so that a request for less precision does not
// replace one for more.
struct Question {
  SubjectKey subject;
  Placement placement = Placement::kCpu;
  std::uint32_t threads = 1;
  CacheState cache = CacheState::kWarm;
  double precision = 0;
  Grade min_grade = Grade::kD;
  double budget_ms = 0;
  std::uint64_t cut_above_ns = 0;
  std::vector<std::string> labels;  // ascending, none twice
  std::string affinity;
  friend bool operator==(const Question&, const Question&) = default;
};
// Hashes every field: a client chooses them all, and questions of equal hash are compared one by
// one. A client that knew the key could make up thousands of such questions, so it is a secret.
using QuestionHashKey = std::array<std::uint8_t, 16>;
struct QuestionHash {
  QuestionHashKey key;
  // Not noexcept, so that the table keeps each hash and does not compute it again.
  std::size_t operator()(const Question& question) const;
};

// A job's place in line.
struct LinePlace {
  Uuid client;
  std::int32_t below_most = 0;  // kMostPriority - priority
  friend auto operator<=>(const LinePlace&, const LinePlace&) = default;
};

class SingleFlightTable {
 public:
  struct Entry {
    std::optional<JobId> leader;
    std::set<JobId> followers;  // in order of acceptance
    std::map<LinePlace, JobId> line;
    storage::StoredAnswer answer;
    std::uint32_t expected = 0;  // jobs of submissions on their way to disk
    bool unsettled = false;      // the answer is not on disk yet
  };

  explicit SingleFlightTable(const QuestionHashKey& key = {})
      : entries_(/*bucket_count=*/0, QuestionHash{key}) {}

  // A job with this question is on its way to disk.
  void Expect(const Question& question);
  // It got there, or was refused. The entry may be removed with this: call Join first.
  void Forget(const Question& question);

  // Makes the job lead or follow, or returns the answer.
  enum class Role { kLeads, kFollows };
  using Joined = std::variant<Role, storage::StoredAnswer>;
  Joined Join(const Question& question, JobId job);

  // Whether a following job must stand in line itself: no job of this question has a worker yet,
  // and no other job of its client, of at least its priority, stands there.
  bool NeedsToStand(const Question& question, const LinePlace& place) const;
  void Stand(const Question& question, const LinePlace& place, JobId job);
  void StepOut(const Question& question, const LinePlace& place, JobId job);
  // The job has a worker and leads from now on. Returns the others in line, which must leave it.
  std::vector<JobId> Lead(const Question& question, JobId job);

  // The leader has the answer; its followers are owed it.
  void Answer(const Question& question, storage::StoredAnswer answer);
  // Up to `most` followers of one question, to be given its answer; they are removed from the
  // table. No jobs: nothing is owed. Questions take turns.
  struct Owed {
    std::vector<JobId> jobs;
    storage::StoredAnswer answer;
  };
  Owed TakePendingReplies(std::size_t most);
  void Settle(const Question& question);  // the answer is on disk

  // The job gets no answer that others could share, or goes its own way; it must not stand in line.
  // If it led, returns the next leader: a job that stands in line, or else the first follower.
  // nullopt if there is none, or if it only followed.
  std::optional<JobId> Leave(const Question& question, JobId job);

  const Entry* Find(const Question& question) const;
  std::size_t size() const { return entries_.size(); }
  // The most questions that one look-up may have to compare.
  std::size_t WorstBucket() const;
  void CheckInvariants() const;

 private:
  using Entries = std::unordered_map<Question, Entry, QuestionHash>;
  Entries::iterator At(const Question& question);
  void DropIfIdle(Entries::iterator entry);

  Entries entries_;  // looked up, never iterated by transitions
  // Questions whose followers are owed an answer; may include some whose followers have left.
  std::deque<Question> owing_;
};

}  // namespace loopfleet::coordinator

#pragma once
// SingleFlightTable: one measurement, many askers. For every question that is being answered: who
// leads (has the worker's turn), who follows (waits for the leader's answer), and, once the leader
// has reported, the answer.
//
// Until a worker has the question, the askers stand in line for it, each client's by itself: it
// must not cost a client its turn, or its priority, that others asked the same before. Who comes
// first to a worker leads, and the others leave the line.
//
// No equal submission falls between the store and this table. The shell looks the store up when a
// submission arrives, in the same turn as the core's Submission event; from then on the
// submission's interest (Expect) keeps the entry, and an answer stays until it is on disk (Settle)
// and nobody expects it any more. So a submission either saw the stored row, or finds the entry.
//
// Followers are given the answer a few at a time (TakePendingReplies): there may be any number of
// them, and others are to be served meanwhile.
//
// Invariant: an entry is here exactly while it has a leader, followers, an expectation, or an
// unsettled answer; followers wait only behind a leader or for an answer that is here. The line is
// the leader and followers that are in the ReadyQueue; of one client and one priority there is one
// at most.

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

// What makes two questions equal: the conditions that a job may choose, and how it wants to be
// measured: who asks for less precision does not get in the way of who asks for more.
struct Question {
  looptree::TreeKey tree;
  Placement placement = Placement::kCpu;
  std::uint32_t threads = 1;
  CacheState cache = CacheState::kWarm;
  double precision = 0;
  double budget_ms = 0;
  std::uint64_t cut_above_ns = 0;
  std::vector<std::string> labels;  // ascending, none twice
  std::string affinity;
  friend bool operator==(const Question&, const Question&) = default;
};
// Of every field: a client chooses them all, and equal hashes cost a look at each other one.
struct QuestionHash {
  std::size_t operator()(const Question& question) const noexcept;
};

// Where a job would stand in line.
struct LinePlace {
  Uuid client;
  std::int32_t below_most = 0;  // kMostPriority - priority
  friend auto operator<=>(const LinePlace&, const LinePlace&) = default;
};

class SingleFlightTable {
 public:
  struct Entry {
    std::optional<JobId> leader;
    std::set<JobId> followers;  // in the order of acceptance
    std::map<LinePlace, JobId> line;
    storage::StoredAnswer answer;
    std::uint32_t expected = 0;  // jobs of submissions that are on their way to disk
    bool unsettled = false;      // the answer is not on disk yet
  };

  // A job that asks this is on its way to disk.
  void Expect(const Question& question);
  // It got there, or was refused. The entry may go with it: Join first.
  void Forget(const Question& question);

  // The job leads, follows, or gets the answer.
  enum class Role { kLeads, kFollows };
  using Joined = std::variant<Role, storage::StoredAnswer>;
  Joined Join(const Question& question, JobId job);

  // Whether a job that follows is to stand in line itself: nobody has a worker yet, and no other
  // job of its client, of as high a priority, stands there.
  bool NeedsToStand(const Question& question, const LinePlace& place) const;
  void Stand(const Question& question, const LinePlace& place, JobId job);
  void StepOut(const Question& question, const LinePlace& place, JobId job);
  // The job has a worker: it leads. The others in line, which are to leave it.
  std::vector<JobId> Lead(const Question& question, JobId job);

  // The leader has the answer; its followers are owed it.
  void Answer(const Question& question, storage::StoredAnswer answer);
  // Followers of one question, `most` of them, whose turn it is to share its answer: they are in
  // the table no more. No job: nobody is owed any. Questions take turns.
  struct Owed {
    std::vector<JobId> jobs;
    storage::StoredAnswer answer;
  };
  Owed TakePendingReplies(std::size_t most);
  void Settle(const Question& question);  // the answer is on disk

  // The job gets no answer that others could share, or goes its own way; it stands in no line. If
  // it led, another one leads from now on, and is returned: one that stands in line, or the first
  // follower. A follower just leaves.
  std::optional<JobId> Leave(const Question& question, JobId job);

  const Entry* Find(const Question& question) const;
  std::size_t size() const { return entries_.size(); }
  // The most questions that one look-up may have to be compared with.
  std::size_t WorstBucket() const;
  void CheckInvariants() const;

 private:
  using Entries = std::unordered_map<Question, Entry, QuestionHash>;
  Entries::iterator At(const Question& question);
  void DropIfIdle(Entries::iterator entry);

  Entries entries_;  // looked up, never iterated by transitions
  // Those with an answer that followers are owed; and some whose followers have left.
  std::deque<Question> owing_;
};

}  // namespace loopfleet::coordinator

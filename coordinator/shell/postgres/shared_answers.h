#pragma once
// SharedAnswers: submissions that wait for PostgreSQL's answer before they go to the core: another
// coordinator may have measured what they ask. None waits for long. They leave in the order in
// which they came: a batch's messages must not overtake each other. Belongs to the event loop's
// thread.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/content_key.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/shell/job_resolver.h"
#include "coordinator/shell/postgres/shared_lookups.h"
#include "monitoring/metrics.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

class SharedAnswers {
 public:
  // How long a submission waits. While one has waited longer for an answer that has not come,
  // PostgreSQL is not asked anything else.
  static constexpr std::chrono::milliseconds kPatience{250};
  // How long an answer is used again without asking whether it came into doubt.
  static constexpr std::chrono::seconds kMemory{30};

  SharedAnswers(SharedLookups& lookups, monitoring::CoordinatorMetrics& metrics, const Clock& clock)
      : lookups_(lookups), metrics_(metrics), clock_(clock) {}

  // `conditions`: those under which its jobs were resolved.
  void Add(Submission submission, const StoredConditions& conditions);
  // The next submission that waits no longer, with the answers that were found.
  std::optional<Submission> TakeNext();
  bool empty() const { return waiting_.empty(); }
  std::size_t job_count() const { return job_count_; }  // of those that wait
  std::uint64_t bytes() const { return bytes_; }        // memory of these jobs

 private:
  // About 2 KiB each; a full table is cleared.
  static constexpr std::size_t kMostRemembered = 16'384;

  struct Asked {
    ContentKey name;                // of what is asked, but for how old the answer may be
    std::vector<std::size_t> jobs;  // places in the submission
  };
  struct Waiting {
    Submission submission;
    std::uint64_t bytes = 0;     // of its jobs
    std::uint64_t question = 0;  // 0: none
    std::vector<Asked> asked;
    Instant until{};
  };
  struct Remembered {
    storage::StoredAnswer answer;
    Instant until{};
  };

  bool MayAsk(Instant now) const;
  // Fills in remembered answers, and asks for the others.
  void Ask(Waiting& waiting, const StoredConditions& conditions);
  storage::StoredAnswer FindRemembered(const ContentKey& name, WallTime measured_since) const;
  void Remember(const ContentKey& name, const storage::StoredAnswer& answer);
  void Answer(ResolvedJob& job, const storage::StoredAnswer& answer);
  void TakeIn(const SharedLookups::Answer& answer);

  SharedLookups& lookups_;
  monitoring::CoordinatorMetrics& metrics_;
  const Clock& clock_;
  std::deque<Waiting> waiting_;
  std::size_t job_count_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t last_question_ = 0;
  std::uint64_t last_answer_ = 0;
  std::deque<Instant> asked_at_;  // of the questions without an answer, in order
  std::map<ContentKey, Remembered> remembered_;
};

}  // namespace loopfleet::coordinator

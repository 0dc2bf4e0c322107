#pragma once
// SharedLookups: asks PostgreSQL what other coordinators measured (storage/postgres/
// shared_results.h), on a thread of its own: PostgreSQL can be slow, or gone.
//
// Public methods: any thread.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/uuid.h"
#include "common/wire/transport/wakeup.h"
#include "storage/postgres/shared_results.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

class SharedLookups {
 public:
  struct Options {
    std::string results;  // the database, as libpq reads it
    Uuid incarnation;     // of this coordinator's database
  };
  // Signals `wakeup` when there are answers.
  SharedLookups(Options options, const Clock& clock, wire::Wakeup& wakeup);
  ~SharedLookups();  // a question under way may keep it for a while
  SharedLookups(const SharedLookups&) = delete;
  SharedLookups& operator=(const SharedLookups&) = delete;

  // Whether the database can be asked, and other coordinators write to it.
  bool IsOpen() const { return is_open_; }

  // Answers come in the order of the questions.
  void Ask(std::uint64_t question, std::vector<storage::ResultKey> keys);
  struct Answer {
    std::uint64_t question = 0;
    std::vector<storage::StoredAnswer> found;  // as SharedResults::Find; empty: it failed
  };
  std::vector<Answer> TakeAnswers();

 private:
  static constexpr std::chrono::seconds kRetryPause{5};  // after an error
  static constexpr std::chrono::seconds kLookForOthers{5};

  struct Question {
    std::uint64_t number = 0;
    std::vector<storage::ResultKey> keys;
  };
  void Run();
  // The next question; none: none came for half a second.
  std::optional<Question> Next();
  Status LookForOthers();
  Result<std::vector<storage::StoredAnswer>> Find(const Question& question);
  void Fail(const Error& error);

  const Options options_;
  const Clock& clock_;
  wire::Wakeup& wakeup_;
  std::atomic<bool> is_open_{false};
  // Of the thread.
  std::unique_ptr<storage::SharedResults> results_;  // null: not connected
  Instant next_look_{};                              // for others, or to connect
  std::string logged_;                               // the error that was logged last

  std::mutex mutex_;
  std::condition_variable something_to_do_;
  bool is_stopping_ = false;  // guarded by mutex_, like what follows
  std::deque<Question> questions_;
  std::vector<Answer> answers_;
  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace loopfleet::coordinator

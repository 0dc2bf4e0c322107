#pragma once
// BlobExchange: brings programs' bitcode from the coordinator, and large observed values there,
// piece by piece. A thread that runs jobs asks and waits; the connection's thread sends the
// questions and brings the answers. A question without an answer is asked again, so a restart of
// the coordinator is waited out, within the limit for a blob. Safe from any thread; one blob at a
// time.

#include <chrono>
#include <condition_variable>
#include <expected>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/job/failure.h"
#include "common/job/observed.h"
#include "worker/coordinator_link/lease_runner.h"

namespace loopfleet::worker {

class BlobExchange {
 public:
  struct Options {
    std::chrono::milliseconds ask_again{5'000};
    std::chrono::milliseconds limit{120'000};  // for all of it
  };
  // `on_question` is called when there is one to take.
  BlobExchange(const Options& options, std::function<void()> on_question)
      : options_(options), on_question_(std::move(on_question)) {}

  // The program's bitcode, whose SHA-256 was checked. INVALID_BENCHMARK: the coordinator has no
  // such program; says what to do. DEVICE_FAULT: the limit has passed, or what came has another
  // hash.
  std::expected<std::string, Failure> Fetch(const std::string& sha256);
  // Gives 1 to wire::kMaxBlobBytes to the coordinator, which has them on disk afterwards. What it
  // holds already is not sent. UNSUPPORTED: it is too old. STORAGE_FULL: it has no room.
  // DEVICE_FAULT: the limit has passed.
  std::expected<Blob, Failure> Keep(std::string_view bytes);
  void Stop();  // ends both soon

  // For the connection's thread.
  std::optional<BlobQuestion> TakeQuestion();
  void Answer(const BlobAnswer& answer);

 private:
  // None: the limit has passed. `Answered` is the kind of answer to this question.
  template <class Answered>
  std::optional<Answered> Await(BlobQuestion question, Instant deadline);

  const Options options_;
  const std::function<void()> on_question_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  std::optional<BlobQuestion> asked_;     // being waited for
  std::optional<BlobQuestion> question_;  // not taken yet
  std::optional<BlobAnswer> answer_;      // to `asked_`
};

}  // namespace loopfleet::worker

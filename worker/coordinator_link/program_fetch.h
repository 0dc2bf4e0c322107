#pragma once
// ProgramFetch: brings a program's bitcode from the coordinator, piece by piece. A thread that runs
// jobs asks and waits; the connection's thread sends the questions and brings the answers. A
// question without an answer is asked again, so a restart of the coordinator is waited out, within
// the limit for a program. Safe from any thread; one program at a time.

#include <chrono>
#include <condition_variable>
#include <expected>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/job/failure.h"
#include "common/wire/message.h"

namespace loopfleet::worker {

class ProgramFetch {
 public:
  struct Options {
    std::chrono::milliseconds ask_again{5'000};
    std::chrono::milliseconds limit{120'000};  // for all of it
  };
  // `on_question` is called when there is one to take.
  ProgramFetch(const Options& options, std::function<void()> on_question)
      : options_(options), on_question_(std::move(on_question)) {}

  // The bytes, whose SHA-256 was checked. INVALID_BENCHMARK: the coordinator has no such program;
  // says what to do. DEVICE_FAULT: the limit has passed, or what came has another hash.
  std::expected<std::string, Failure> Fetch(const std::string& sha256);
  void Stop();  // ends Fetch soon

  // For the connection's thread.
  std::optional<wire::BlobWanted> TakeQuestion();
  void Answer(const wire::BlobPiece& piece);

 private:
  // None: the limit has passed.
  std::optional<wire::BlobPiece> Await(const wire::BlobWanted& wanted, Instant deadline);

  const Options options_;
  const std::function<void()> on_question_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  std::optional<wire::BlobWanted> wanted_;    // being waited for
  std::optional<wire::BlobWanted> question_;  // not taken yet
  std::optional<wire::BlobPiece> answer_;     // to `wanted_`
};

}  // namespace loopfleet::worker

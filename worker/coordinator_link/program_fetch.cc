#include "worker/coordinator_link/program_fetch.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/sha256.h"
#include "common/wire/bounds.h"

namespace loopfleet::worker {
namespace {

std::unexpected<Failure> Refuse(FailureCode code, std::string message) {
  return std::unexpected(Failure{.code = code, .message = std::move(message)});
}

}  // namespace

std::expected<std::string, Failure> ProgramFetch::Fetch(const std::string& sha256) {
  const Instant deadline = std::chrono::steady_clock::now() + options_.limit;
  std::string bytes;
  std::uint64_t total = 0;
  do {
    const auto piece = Await({.sha256 = sha256, .offset = bytes.size()}, deadline);
    if (!piece) {
      return Refuse(FailureCode::kDeviceFault,
                    fmt::format("bitcode://sha256/{} did not come from the coordinator in {} s: {} "
                                "bytes of it",
                                sha256, options_.limit.count() / 1000, bytes.size()));
    }
    if (piece->total == 0) {
      return Refuse(FailureCode::kInvalidBenchmark,
                    fmt::format("bitcode://sha256/{}: the coordinator has no such program; "
                                "loopfleet llvm add FILE sends it there",
                                sha256));
    }
    if (piece->bytes.empty() || (total != 0 && piece->total != total)) {
      return Refuse(FailureCode::kDeviceFault,
                    fmt::format("bitcode://sha256/{} came with a gap", sha256));
    }
    total = piece->total;
    bytes += piece->bytes;
  } while (bytes.size() < total);
  if (const std::string found = Sha256Of(bytes); found != sha256) {
    return Refuse(FailureCode::kDeviceFault,
                  fmt::format("bitcode://sha256/{} came with the SHA-256 {}", sha256, found));
  }
  return bytes;
}

std::optional<wire::BlobPiece> ProgramFetch::Await(const wire::BlobWanted& wanted,
                                                   Instant deadline) {
  std::unique_lock lock(mutex_);
  wanted_ = wanted;
  answer_.reset();
  const auto over = [this] { return answer_.has_value() || stopping_; };
  while (!over() && std::chrono::steady_clock::now() < deadline) {
    question_ = wanted;
    lock.unlock();
    on_question_();
    lock.lock();
    changed_.wait_for(lock, options_.ask_again, over);
  }
  wanted_.reset();
  question_.reset();
  return std::exchange(answer_, std::nullopt);
}

void ProgramFetch::Stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

std::optional<wire::BlobWanted> ProgramFetch::TakeQuestion() {
  std::lock_guard lock(mutex_);
  return std::exchange(question_, std::nullopt);
}

void ProgramFetch::Answer(const wire::BlobPiece& piece) {
  std::lock_guard lock(mutex_);
  const bool is_answer = wanted_ && piece.sha256 == wanted_->sha256 &&
                         (piece.total == 0 || piece.offset == wanted_->offset);
  if (!is_answer) return;  // to a question that was asked again
  answer_ = piece;
  changed_.notify_all();
}

}  // namespace loopfleet::worker

#include "worker/coordinator_link/blob_exchange.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/sha256.h"
#include "common/wire/bounds.h"

namespace loopfleet::worker {
namespace {

std::unexpected<Failure> Refuse(FailureCode code, std::string message) {
  return std::unexpected(Failure{.code = code, .message = std::move(message)});
}

// An answer to a question that was asked again may come late.
struct Answers {
  const BlobAnswer& answer;
  bool operator()(const wire::BlobWanted& wanted) const {
    const auto* piece = std::get_if<wire::BlobPiece>(&answer);
    return piece != nullptr && piece->sha256 == wanted.sha256 &&
           (piece->total == 0 || piece->offset == wanted.offset);
  }
  bool operator()(const wire::BlobPiece& piece) const {
    const auto* held = std::get_if<wire::WorkerBlobHeld>(&answer);
    return held != nullptr && held->sha256 == piece.sha256;
  }
};

}  // namespace

std::expected<std::string, Failure> BlobExchange::Fetch(const std::string& sha256) {
  const Instant deadline = std::chrono::steady_clock::now() + options_.limit;
  std::string bytes;
  std::uint64_t total = 0;
  do {
    const auto piece = Await<wire::BlobPiece>(
        wire::BlobWanted{.sha256 = sha256, .offset = bytes.size()}, deadline);
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

std::expected<Blob, Failure> BlobExchange::Keep(std::string_view bytes) {
  constexpr int kMostSetbacks = 16;  // late answers, and parts that another sender spoiled
  const Instant deadline = std::chrono::steady_clock::now() + options_.limit;
  const Blob blob{.sha256 = Sha256Of(bytes), .bytes = bytes.size()};
  const auto refuse = [&](FailureCode code, std::string_view why) {
    return Refuse(code,
                  fmt::format("the coordinator did not keep an observed value of {} bytes: {}",
                              bytes.size(), why));
  };
  std::uint64_t held = 0;
  bool is_known = false;  // how much it holds: the first message asks
  for (int setbacks = 0; held < bytes.size();) {
    wire::BlobPiece piece{.sha256 = blob.sha256, .total = bytes.size(), .offset = held};
    if (is_known) piece.bytes = bytes.substr(held, wire::kMaxBlobPieceBytes);
    const auto answer = Await<wire::WorkerBlobHeld>(std::move(piece), deadline);
    if (!answer) {
      return refuse(FailureCode::kDeviceFault,
                    fmt::format("no answer within {} s", options_.limit.count() / 1000));
    }
    const bool is_wrong =
        answer->failure && answer->failure->code == FailureCode::kInvalidBenchmark;
    if (answer->failure && !is_wrong) {
      return refuse(answer->failure->code, answer->failure->message);
    }
    const std::uint64_t now_held = is_wrong ? 0 : answer->bytes;
    if ((is_wrong || (is_known && now_held <= held)) && ++setbacks == kMostSetbacks) {
      return refuse(FailureCode::kDeviceFault, "what came of it was lost again and again");
    }
    held = now_held;
    is_known = true;
  }
  return blob;
}

template <class Answered>
std::optional<Answered> BlobExchange::Await(BlobQuestion question, Instant deadline) {
  std::unique_lock lock(mutex_);
  asked_ = std::move(question);
  answer_.reset();
  const auto over = [this] { return answer_.has_value() || stopping_; };
  while (!over() && std::chrono::steady_clock::now() < deadline) {
    question_ = asked_;
    lock.unlock();
    on_question_();
    lock.lock();
    changed_.wait_for(lock, options_.ask_again, over);
  }
  asked_.reset();
  question_.reset();
  if (!answer_) return std::nullopt;
  return std::get<Answered>(*std::exchange(answer_, std::nullopt));
}

void BlobExchange::Stop() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

std::optional<BlobQuestion> BlobExchange::TakeQuestion() {
  std::lock_guard lock(mutex_);
  return std::exchange(question_, std::nullopt);
}

void BlobExchange::Answer(const BlobAnswer& answer) {
  std::lock_guard lock(mutex_);
  if (!asked_ || !std::visit(Answers{answer}, *asked_)) return;
  answer_ = answer;
  changed_.notify_all();
}

}  // namespace loopfleet::worker

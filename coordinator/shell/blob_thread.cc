#include "coordinator/shell/blob_thread.h"

#include <chrono>
#include <utility>

#include "common/base/log.h"
#include "coordinator/core/contract/limits.h"

namespace loopfleet::coordinator {

BlobThread::BlobThread(BlobFolder folder, monitoring::CoordinatorMetrics& metrics,
                       wire::Wakeup& done)
    : folder_(std::move(folder)), metrics_(metrics), done_(done), thread_([this] { Run(); }) {}

BlobThread::~BlobThread() {
  queue_.Close();
  answers_.Close();
  thread_.join();
}

bool BlobThread::Add(Request& request) {
  const bool is_piece = std::holds_alternative<KeepBlob>(request);
  if (is_piece && pieces_ >= kMaxPieces) return false;
  pieces_ += is_piece ? 1 : 0;
  if (queue_.TryPush(request)) return true;
  pieces_ -= is_piece ? 1 : 0;
  return false;
}

Effects BlobThread::TakeAnswers() {
  Effects answers;
  for (std::size_t left = answers_.size(); left > 0; --left) {
    answers.push_back(*answers_.TryPop());
  }
  return answers;
}

void BlobThread::Run() {
  while (true) {
    metrics_.SetPrograms({.programs = folder_.programs(),
                          .bytes = folder_.bytes(),
                          .removed = folder_.removed(),
                          .damaged = folder_.damaged()});
    const auto request = queue_.Pop();
    if (!request) return;
    if (std::holds_alternative<KeepBlob>(*request)) --pieces_;
    auto answer = std::visit([this](const auto& one) { return Do(one); }, *request);
    if (!answer) continue;
    if (!answers_.Push(*std::move(answer))) return;
    done_.Signal();
  }
}

std::optional<Effect> BlobThread::Do(const KeepBlob& keep) {
  const auto held = folder_.Put(keep.piece, keep.client);
  metrics_.ProgramReceived(keep.piece.bytes.size());
  ReplyToClient reply{.peer = keep.peer, .number = keep.number, .message = {}};
  if (held) {
    reply.message = wire::BlobHeld{.bytes = *held};
  } else {
    if (const auto count = refused_log_.Count(std::chrono::steady_clock::now())) {
      log::Warning("program.refused count={} last=\"{}\"", *count, held.error().message);
    }
    const FailureInfo& info = InfoOf(held.error().code);
    metrics_.Refused(info.name);
    reply.message =
        wire::Refused{.failure = held.error(),
                      .retry_after_ms = info.policy.is_passing ? Limits{}.retry_after_ms : 0};
  }
  return reply;
}

// A file that cannot be read now gives no answer: the worker asks again.
std::optional<Effect> BlobThread::Do(const SendBlob& send) {
  Result<wire::BlobPiece> piece = folder_.Get(send.wanted);
  if (!piece) {
    if (const auto count = refused_log_.Count(std::chrono::steady_clock::now())) {
      log::Warning("program.unreadable count={} last=\"{}\"", *count, piece.error().message);
    }
    return std::nullopt;
  }
  metrics_.ProgramSent(piece->bytes.size());
  return SendToWorker{.peer = send.peer, .command = *std::move(piece)};
}

}  // namespace loopfleet::coordinator

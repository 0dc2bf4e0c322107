#include "coordinator/shell/blob_thread.h"

#include <chrono>
#include <utility>

#include "common/base/log.h"
#include "coordinator/core/contract/limits.h"

namespace loopfleet::coordinator {
namespace {

wire::Refused RefusalOf(Failure failure) {
  const bool is_passing = InfoOf(failure.code).policy.is_passing;
  return {.failure = std::move(failure),
          .retry_after_ms = is_passing ? Limits{}.retry_after_ms : 0};
}

ReplyToClient Reply(const BlobPeer& client, wire::CoordinatorMessage message) {
  return {.peer = client.peer, .number = *client.number, .message = std::move(message)};
}

}  // namespace

BlobThread::BlobThread(BlobFolder folder, monitoring::CoordinatorMetrics& metrics,
                       wire::Wakeup& done)
    : folder_(std::move(folder)), metrics_(metrics), done_(done), thread_([this] { Run(); }) {}

BlobThread::~BlobThread() {
  queue_.Close();
  answers_.Close();
  thread_.join();
}

bool BlobThread::Add(Request& request) {
  if (!waiting_.Enter(request)) return false;
  if (queue_.TryPush(request)) return true;
  waiting_.Leave(request);
  return false;
}

bool BlobThread::Waiting::Enter(const Request& request) {
  std::lock_guard lock(mutex_);
  if (const auto* want = std::get_if<SendBlob>(&request)) {
    if (!want->to.number) return true;
    if (clients_wants_ >= kMaxClientsWants) return false;
    ++clients_wants_;
    return true;
  }
  const auto& keep = std::get<KeepBlob>(request);
  std::size_t& pieces = keep.from.number ? clients_pieces_ : workers_pieces_;
  if (pieces >= kMaxPieces) return false;
  if (keep.from.number) {
    const auto own = pieces_of_.find(keep.client);
    if (own != pieces_of_.end() && own->second >= kMaxPiecesPerClient) return false;
    ++pieces_of_[keep.client];
  }
  ++pieces;
  return true;
}

void BlobThread::Waiting::Leave(const Request& request) {
  std::lock_guard lock(mutex_);
  if (const auto* want = std::get_if<SendBlob>(&request)) {
    if (want->to.number) --clients_wants_;
    return;
  }
  const auto& keep = std::get<KeepBlob>(request);
  --(keep.from.number ? clients_pieces_ : workers_pieces_);
  if (!keep.from.number) return;
  const auto own = pieces_of_.find(keep.client);
  if (--own->second == 0) pieces_of_.erase(own);
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
    metrics_.SetBlobs({.blobs = folder_.blobs(),
                       .bytes = folder_.bytes(),
                       .removed = folder_.removed(),
                       .damaged = folder_.damaged()});
    const auto request = queue_.Pop();
    if (!request) return;
    waiting_.Leave(*request);
    auto answer = std::visit([this](const auto& one) { return Do(one); }, *request);
    if (!answer) continue;
    if (!answers_.Push(*std::move(answer))) return;
    done_.Signal();
  }
}

std::optional<Effect> BlobThread::Do(const KeepBlob& keep) {
  const auto held = folder_.Put(keep.piece, keep.client);
  metrics_.BlobReceived(keep.piece.bytes.size());
  if (!held) {
    if (const auto count = refused_log_.Count(std::chrono::steady_clock::now())) {
      log::Warning("blob.refused count={} last=\"{}\"", *count, held.error().message);
    }
    metrics_.Refused(InfoOf(held.error().code).name);
  }
  if (!keep.from.number) {
    wire::WorkerBlobHeld answer{.sha256 = keep.piece.sha256, .bytes = held.value_or(0)};
    if (!held) answer.failure = held.error();
    return SendToWorker{.peer = keep.from.peer, .command = std::move(answer)};
  }
  if (held) return Reply(keep.from, wire::BlobHeld{.bytes = *held});
  return Reply(keep.from, RefusalOf(held.error()));
}

// A file that cannot be read now gives a worker no answer: it asks again.
std::optional<Effect> BlobThread::Do(const SendBlob& send) {
  Result<wire::BlobPiece> piece = folder_.Get(send.wanted);
  if (!piece) {
    if (const auto count = refused_log_.Count(std::chrono::steady_clock::now())) {
      log::Warning("blob.unreadable count={} last=\"{}\"", *count, piece.error().message);
    }
    if (!send.to.number) return std::nullopt;
    return Reply(send.to, RefusalOf({.code = FailureCode::kStorageFull,
                                     .message = std::move(piece).error().message}));
  }
  metrics_.BlobSent(piece->bytes.size());
  if (send.to.number) return Reply(send.to, *std::move(piece));
  return SendToWorker{.peer = send.to.peer, .command = *std::move(piece)};
}

}  // namespace loopfleet::coordinator

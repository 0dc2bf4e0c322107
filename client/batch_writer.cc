#include "client/batch_writer.h"

#include <string>
#include <utility>

#include "client/request_id.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kMessageBudget = wire::kMaxMessageBytes - wire::kMessageOverheadBytes;

}  // namespace

Answer<void> BatchWriter::Add(JobSpec job) {
  auto refusal = wire::OutOfBounds(job);
  if (!refusal) refusal = wire::CheckTag(job);
  if (refusal) {
    std::string message = refusal->message;
    return std::unexpected(CallError{
        .kind = ErrorKind::kInvalid, .message = std::move(message), .refusal = std::move(refusal)});
  }
  const std::size_t bytes = wire::EncodedSize(job);
  if (pending_.size() == wire::kMaxJobsPerMessage || pending_bytes_ + bytes > kMessageBudget) {
    LF_TRY_VOID(Send(wire::BatchEnd::kMoreFollows));
  }
  pending_.push_back(std::move(job));
  pending_bytes_ += bytes;
  return {};
}

Answer<void> BatchWriter::Finish() { return Send(wire::BatchEnd::kComplete); }

Answer<void> BatchWriter::Send(wire::BatchEnd end) {
  wire::SubmitJobs message{.request_id = NewRequestId(), .end = end, .jobs = std::move(pending_)};
  if (batch_) message.append_to = batch_;
  pending_.clear();
  pending_bytes_ = 0;
  LF_TRY(const auto accepted, client_.SubmitMessage(std::move(message)));
  batch_ = accepted.batch;
  accepted_ += accepted.job_count;
  return {};
}

Answer<BatchId> Client::Submit(std::span<const JobSpec> jobs) {
  BatchWriter writer(*this);
  for (const JobSpec& job : jobs) LF_TRY_VOID(writer.Add(job));
  LF_TRY_VOID(writer.Finish());
  return writer.batch();
}

}  // namespace loopfleet::client

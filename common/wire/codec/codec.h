#pragma once
// Converts messages to bytes and back. One frame is one Cap'n Proto message. Decoding never throws,
// never reads beyond the frame, and bounds the memory it uses. A frame that it cannot read is
// MALFORMED, with the reason; an unknown union member becomes UnknownMember (inside a job,
// UNSUPPORTED). A lease whose job cannot be read becomes an UnreadableLease beside the others.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "common/job/failure.h"
#include "common/wire/codec/outcome_columns.h"
#include "common/wire/message.h"

namespace loopfleet::wire {

// The caller keeps the message within its bounds. UnknownMember cannot be encoded (checked). Texts
// for people (failures, names, facts) are truncated and converted to UTF-8; jobs are unchanged.
std::string Encode(const ClientRequest& request);
// Encodes `submit` with these jobs in place of its own.
std::string EncodeSubmission(std::uint64_t number, const SubmitJobs& submit,
                             std::span<const JobSpec* const> jobs);
std::string Encode(const CoordinatorReply& reply);
std::string Encode(const WorkerMessage& message);
std::string Encode(const WorkerCommand& command);

// Why a frame was refused, and the request's number (0: it could not be read), so that the client
// can match the refusal.
struct DecodeFailure {
  Failure failure;
  std::uint64_t number = 0;
};

std::expected<ClientRequest, DecodeFailure> DecodeClientRequest(std::string_view frame);
// The part of a request that is needed before the rest is decoded.
struct RequestHead {
  enum class Kind : std::uint8_t { kHello, kSubmission, kOther };
  std::uint64_t number = 0;  // for matching a refusal
  Kind kind = Kind::kOther;
};
// For a frame that cannot be read: kOther, with number 0.
RequestHead PeekAtRequest(std::string_view frame);
std::expected<CoordinatorReply, Failure> DecodeCoordinatorReply(std::string_view frame);
// The same, with the outcomes of a page left in columns.
struct ColumnPage {
  std::uint64_t number = 0;
  BatchInfo batch;
  OutcomeColumns outcomes;
};
std::expected<std::variant<CoordinatorReply, ColumnPage>, Failure> DecodeCoordinatorReplyInColumns(
    std::string_view frame);
std::expected<WorkerMessage, Failure> DecodeWorkerMessage(std::string_view frame);
std::expected<WorkerCommand, Failure> DecodeWorkerCommand(std::string_view frame);

// A digest of a submission's content: equal exactly for equal jobs, batch and end.
std::string ContentDigest(const SubmitJobs& submit);

// Upper bounds on the bytes that Encode needs for one part of a message, for splitting long
// submissions, pages, reports and lists into messages. A message needs at most the sum over its
// parts and kMessageOverheadBytes, which must not exceed kMaxMessageBytes.
std::size_t EncodedSize(const JobSpec& spec);
std::size_t EncodedSize(const Evaluation& evaluation);  // in a Report
std::size_t EncodedSize(const Outcome& outcome);
std::size_t EncodedSize(const WorkerInfo& worker);
std::size_t EncodedSize(const FleetEvent& event);

// Why the decoder would refuse a message with this job (bounds.h, not UTF-8, not a number), so that
// a sender can fail that job alone and send the others.
std::optional<Failure> OutOfBounds(const JobSpec& spec);
// Why a submission of this job is refused although it is within bounds: its tag is not JSON, which
// all readers of tags expect, or is nested deeper than kMaxTagNesting. Jobs accepted by earlier
// versions may have such a tag.
std::optional<Failure> CheckTag(const JobSpec& spec);

}  // namespace loopfleet::wire

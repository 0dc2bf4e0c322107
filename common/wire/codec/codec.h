#pragma once
// Messages to bytes and back. One frame is one Cap'n Proto message. Decoding never throws, never
// reads beyond the frame, and bounds what it makes of it; what it cannot read is MALFORMED with the
// reason, a union member it does not know becomes UnknownMember (or, inside a job, UNSUPPORTED).

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

// The message is within its bounds: the sender cuts. UnknownMember cannot be encoded (a check).
// Texts that people read (failures, names, facts) are cut and made UTF-8 where they are not; jobs
// are not touched.
std::string Encode(const ClientRequest& request);
// A SubmitJobs with jobs that lie elsewhere; its own are not looked at.
std::string EncodeSubmission(std::uint64_t number, const SubmitJobs& submit,
                             std::span<const JobSpec* const> jobs);
std::string Encode(const CoordinatorReply& reply);
std::string Encode(const WorkerMessage& message);
std::string Encode(const WorkerCommand& command);

// Why a frame was refused, and the request's number if that much could be read (else 0), so that
// the refusal can be matched by the client.
struct DecodeFailure {
  Failure failure;
  std::uint64_t number = 0;
};

std::expected<ClientRequest, DecodeFailure> DecodeClientRequest(std::string_view frame);
// What has to be known of a request before anybody looks at the rest of it.
struct RequestHead {
  enum class Kind : std::uint8_t { kHello, kSubmission, kOther };
  std::uint64_t number = 0;  // so that a refusal can be matched
  Kind kind = Kind::kOther;
};
// Of what cannot be read: kOther, with number 0.
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

// Upper bounds on the bytes that Encode needs for one part of a message: to cut long submissions,
// pages, reports and lists into messages. A message needs at most the sum over its parts and
// kMessageOverheadBytes, which has to stay within kMaxMessageBytes.
std::size_t EncodedSize(const JobSpec& spec);
std::size_t EncodedSize(const Evaluation& evaluation);  // of a Report
std::size_t EncodedSize(const Outcome& outcome);
std::size_t EncodedSize(const WorkerInfo& worker);
std::size_t EncodedSize(const FleetEvent& event);

// Why the decoder would refuse a message with this job (bounds.h, not UTF-8, not a number), so that
// a sender can answer for that job alone and send the others.
std::optional<Failure> OutOfBounds(const JobSpec& spec);
// Why a submission of this job is refused although it may travel: its tag is not JSON, which
// everybody reads it as. (Jobs that were accepted before this was asked may have such a tag.)
std::optional<Failure> UnreadableTag(const JobSpec& spec);

}  // namespace loopfleet::wire

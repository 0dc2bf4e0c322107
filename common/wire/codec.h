#pragma once
// Messages to bytes and back. One frame is one Cap'n Proto message. Decoding never throws, never reads
// beyond the frame, and bounds what it makes of it; what it cannot read is MALFORMED with the reason,
// a union member it does not know becomes UnknownMember (or, inside a job, UNSUPPORTED).

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include "common/job/failure.h"
#include "common/wire/message.h"

namespace loopfleet::wire {

std::string Encode(const ClientRequest& request);
std::string Encode(const CoordinatorReply& reply);
std::string Encode(const WorkerMessage& message);
std::string Encode(const WorkerCommand& command);

// Why a frame was refused, and the request's number if that much could be read (else 0), so that the
// refusal can be matched by the client.
struct DecodeFailure {
  Failure failure;
  std::uint64_t number = 0;
};

std::expected<ClientRequest, DecodeFailure> DecodeClientRequest(std::string_view frame);
std::expected<CoordinatorReply, Failure> DecodeCoordinatorReply(std::string_view frame);
std::expected<WorkerMessage, Failure> DecodeWorkerMessage(std::string_view frame);
std::expected<WorkerCommand, Failure> DecodeWorkerCommand(std::string_view frame);

// A digest of a submission's content: equal exactly for equal jobs, batch and end.
std::string ContentDigest(const SubmitJobs& submit);

// Bytes that Encode would need for one job, about: to cut a long submission into messages that stay
// under kMaxMessageBytes.
std::size_t EncodedSize(const JobSpec& spec);

}  // namespace loopfleet::wire

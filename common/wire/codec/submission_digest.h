#pragma once
// SubmissionDigest: a digest of a submission's content without its request id, equal exactly for
// equal jobs, batch and end. It is stored with the accepted request. A request that an earlier
// version accepted is compared by that version's digest, ContentDigest (codec.h), which costs ten
// times as much.

#include <string>
#include <string_view>

#include "common/wire/message.h"

namespace loopfleet::wire {

std::string SubmissionDigest(const SubmitJobs& submit);

// The digest of `submit`, of the same kind as `kept`.
std::string SubmissionDigestOfSameKind(std::string_view kept, const SubmitJobs& submit);

}  // namespace loopfleet::wire

#pragma once
// SubmissionDigest: of what a submission asks, whoever sends it and under whatever id: equal
// exactly for equal jobs, batch and end. It is kept with what was accepted, so a request that an
// earlier version accepted is compared by the digest of that version, ContentDigest (codec.h),
// which costs ten times as much.

#include <string>
#include <string_view>

#include "common/wire/message.h"

namespace loopfleet::wire {

std::string SubmissionDigest(const SubmitJobs& submit);

// Of the same kind as `kept`.
std::string SubmissionDigestLike(std::string_view kept, const SubmitJobs& submit);

}  // namespace loopfleet::wire

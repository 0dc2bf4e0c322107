#pragma once
// Internal to the codec. What a submission asks, without who asks it and under what id: on its way
// to the coordinator, and under its digest.

#include "common/wire/message.h"
#include "schema/client.capnp.h"

namespace loopfleet::wire {

void WriteSubmissionContent(const SubmitJobs& submit, schema::SubmitJobs::Builder builder);

}  // namespace loopfleet::wire

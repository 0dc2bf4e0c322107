#pragma once
// Submissions: jobs sent by a client, from the message to their acceptance on disk.

#include <vector>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnSubmission(Transaction& tx, Submission submission);

// Submits a batch of the coordinator itself, without a reply. Dropped if there is no room for it.
void SubmitInternalBatch(Transaction& tx, std::vector<ResolvedJob> jobs);

// Storage has answered: the jobs of one message were accepted or refused.
void OnAcceptanceDurable(Transaction& tx, AcceptanceCommit commit);
void OnAcceptanceRefused(Transaction& tx, AcceptanceCommit commit, const Failure& failure);

}  // namespace loopfleet::coordinator

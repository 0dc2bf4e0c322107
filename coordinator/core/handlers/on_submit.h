#pragma once
// Submissions: jobs that a client sends, from the message to their acceptance on disk.

#include <vector>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnSubmission(Transaction& tx, Submission submission);

// A batch of the coordinator's own, with no client to reply to. Dropped if there is no room for it.
void SubmitInternalBatch(Transaction& tx, std::vector<AdmittedJob> jobs);

// What became of the jobs of one message, once storage has answered.
void OnAcceptanceDurable(Transaction& tx, AcceptanceCommit commit);
void OnAcceptanceRefused(Transaction& tx, AcceptanceCommit commit, const Failure& failure);

}  // namespace loopfleet::coordinator

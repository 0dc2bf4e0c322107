#pragma once
// Submissions: jobs that a client sends, from the message to their acceptance on disk.

#include <vector>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnSubmission(Turn& turn, Submission submission);

// A batch of the coordinator's own, with no client to reply to. Dropped if there is no room for it.
void SubmitOwnBatch(Turn& turn, std::vector<AdmittedJob> jobs);

// What became of the jobs of one message, once storage has answered.
void OnAcceptanceDurable(Turn& turn, AcceptanceCommit commit);
void OnAcceptanceRefused(Turn& turn, AcceptanceCommit commit, const Failure& failure);

}  // namespace loopfleet::coordinator

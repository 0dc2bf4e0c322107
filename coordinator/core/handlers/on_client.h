#pragma once
// What clients ask: cancellations and questions. (Submissions: on_submit.h.)

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnClientAsked(Transaction& tx, ClientAsked event);
void OnClientUnreachable(Transaction& tx, const ClientUnreachable& event);

// Clients and workers that came with one of these keys are gone.
void OnKeysRevoked(Transaction& tx, const KeysRevoked& event);

// Fetches whose time is over get what there is.
void AnswerExpiredWaiters(Transaction& tx);

}  // namespace loopfleet::coordinator

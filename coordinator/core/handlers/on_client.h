#pragma once
// What clients ask: cancellations and questions. (Submissions: on_submit.h.)

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnClientAsked(Turn& turn, ClientAsked event);
void OnClientUnreachable(Turn& turn, const ClientUnreachable& event);

// Clients and workers that came with one of these keys are gone.
void OnKeysRevoked(Turn& turn, const KeysRevoked& event);

// Fetches whose time is over get what there is.
void AnswerExpiredWaiters(Turn& turn);

}  // namespace loopfleet::coordinator

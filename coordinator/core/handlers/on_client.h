#pragma once
// Client requests: cancellations and queries. (Submissions: on_submit.h.)

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnClientAsked(Transaction& tx, ClientAsked event);
void OnClientUnreachable(Transaction& tx, const ClientUnreachable& event);

// Drops the clients and workers whose connection uses one of these keys.
void OnKeysRevoked(Transaction& tx, const KeysRevoked& event);

// Answers long polls past their deadline with what there is.
void AnswerExpiredWaiters(Transaction& tx);

}  // namespace loopfleet::coordinator

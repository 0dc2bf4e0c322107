#pragma once
// One message of each kind with known content: the meanings of the golden bytes under
// tests/golden/wire. They must not change; a new kind or version adds messages.

#include <string>
#include <utility>
#include <vector>

#include "common/wire/message.h"

namespace loopfleet::wire {

template <class Message>
using Named = std::vector<std::pair<std::string, Message>>;

Named<ClientRequest> FixedRequests();
Named<ClientRequest> FixedRequestsOf12();  // with what 1.2 added
Named<ClientRequest> FixedRequestsOf13();  // kinds that 1.3 added
Named<CoordinatorReply> FixedRepliesOf13();
Named<WorkerMessage> FixedWorkerMessagesOf13();
Named<WorkerCommand> FixedWorkerCommandsOf13();
Named<ClientRequest> FixedRequestsOf14();  // kinds that 1.4 added
Named<CoordinatorReply> FixedRepliesOf14();
Named<WorkerMessage> FixedWorkerMessagesOf14();
Named<WorkerCommand> FixedWorkerCommandsOf14();
Named<CoordinatorReply> FixedReplies();
Named<WorkerMessage> FixedWorkerMessages();
Named<WorkerMessage> FixedLaterReports();  // with what was added since
Named<WorkerCommand> FixedWorkerCommands();

JobSpec FixedSpec();
Outcome FixedMeasuredOutcome();
Outcome FixedFailedOutcome();

}  // namespace loopfleet::wire

#pragma once
// How commands reach the coordinator, and how they say that they could not.

#include <string>

#include "client/cli/command_line.h"
#include "client/client.h"

namespace loopfleet::client {

// Bounded by the settings' timeout, and by Ctrl-C.
Answer<Client> Connect(const ClientSettings& settings);

// Says on standard error what went wrong; gives the exit code.
int Report(const CallError& error);

// "12", or "last" for the newest one of a client. Asks the coordinator what "last" is.
Answer<BatchId> FindBatch(Client& client, const std::string& text);

}  // namespace loopfleet::client

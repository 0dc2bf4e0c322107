#pragma once
// Connects commands to the coordinator and reports their errors.

#include <string>

#include "client/cli/command_line.h"
#include "client/client.h"

namespace loopfleet::client {

// Ended by the timeout of the settings or by Ctrl-C.
Answer<Client> Connect(const ClientSettings& settings);

// Prints the error to standard error; returns the exit code.
int Report(const CallError& error);

// Parses "12", or "last", for which it asks the coordinator: the newest batch of any client.
Answer<BatchId> FindBatch(Client& client, const std::string& text);

}  // namespace loopfleet::client

#pragma once
// Interrupt: Ctrl-C and SIGTERM as a flag, so that a command can say goodbye properly. The second
// one ends the process as it always did.

#include <atomic>

namespace loopfleet::client {

// Takes over SIGINT and SIGTERM at the first call. Set once one of them has come.
const std::atomic<bool>& InterruptFlag();

}  // namespace loopfleet::client

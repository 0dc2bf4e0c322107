#pragma once
// Interrupt: turns Ctrl-C and SIGTERM into a flag, so that a command can end cleanly. A second
// signal ends the process at once.

#include <atomic>

namespace loopfleet::client {

// Installs the handlers for SIGINT and SIGTERM. The flag is set once one of them has arrived.
const std::atomic<bool>& InterruptFlag();

}  // namespace loopfleet::client

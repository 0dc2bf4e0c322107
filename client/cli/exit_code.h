#pragma once
// What `loopfleet` exits with. Where a number has a name in sysexits.h, it is that one.

namespace loopfleet::client {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,        // jobs failed, lines were bad, a refusal, or output without room
  kExitUsage = 2,         // the command line makes no sense
  kExitUnreachable = 69,  // no coordinator answers
  kExitTimedOut = 75,     // --timeout passed
  kExitBadConfig = 78,    // configuration file or environment
  kExitInterrupted = 130,
};

}  // namespace loopfleet::client

#pragma once
// Exit codes of `loopfleet`, as in sysexits.h where it defines one.

namespace loopfleet::client {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,        // jobs failed, lines were bad, a refusal, or unwritable output
  kExitUsage = 2,         // invalid command line
  kExitUnreachable = 69,  // no coordinator answers
  kExitTimedOut = 75,     // --timeout passed
  kExitBadConfig = 78,    // configuration file or environment
  kExitInterrupted = 130,
};

}  // namespace loopfleet::client

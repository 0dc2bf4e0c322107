#pragma once
// RunReplay: implements `loopfleet replay`. Applies actions to benchmarks without a cluster: one
// JSON object per line in, one per line out, in order and flushed; blank lines are skipped. For a
// bad line it prints {"error": {"code", "message", "action_index"}} and continues.

#include <iosfwd>

namespace loopfleet::client {

// Returns kExitOk, or kExitFailed if a line was bad. Lines over 1 MiB are refused and not kept in
// memory.
int RunReplay(std::istream& in, std::ostream& out);

}  // namespace loopfleet::client

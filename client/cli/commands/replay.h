#pragma once
// RunReplay: what `loopfleet replay` does. Applies actions to benchmarks without a cluster: one
// JSON object per line in, one per line out, in order and flushed, blank lines left out. A bad line
// gives
// {"error": {"code", "message", "action_index"}} and the next line is read.

#include <iosfwd>

namespace loopfleet::client {

// kExitOk, or kExitFailed if any line was bad. Lines over 1 MiB are refused without being held.
int RunReplay(std::istream& in, std::ostream& out);

}  // namespace loopfleet::client

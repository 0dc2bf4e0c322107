#pragma once
// `loopfleet-worker serve`: compiles kernels for the process that started it, which runs them
// itself, and verifies each once in a child. Requests come over the socket that is its standard
// input (kernel/serve_message.h); it ends when that is closed. Listens to nothing else.

#include "worker/backend/backend.h"

namespace loopfleet::worker {

// `argv` starts at "serve". Returns the exit code: 2 for a wrong command line. The process must
// have one thread.
int ServeMain(int argc, const char* const* argv, const Backend& backend);

}  // namespace loopfleet::worker

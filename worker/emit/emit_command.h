#pragma once
// `loopfleet-worker emit`: prints the code of a job as C, LLVM IR, assembly, an object file, PTX or
// a cubin, or the facts about it. Needs no coordinator: the code is compiled, never run.

namespace loopfleet::worker {

// `argv` starts at "emit". Returns the exit code: 1 if the job has no code, 2 for a wrong command
// line. Code goes to standard output, messages to standard error.
int EmitMain(int argc, const char* const* argv);

}  // namespace loopfleet::worker

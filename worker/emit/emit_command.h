#pragma once
// `loopfleet-worker emit`: the code of a job, as C, LLVM IR, assembly, an object file, or the facts
// about it. Needs no coordinator: the code is made, never run.

namespace loopfleet::worker {

// Takes the command line from "emit" on; gives the exit code: 1 if the job has no code, 2 for a
// wrong command line. Code goes to standard output, talk to standard error.
int EmitMain(int argc, const char* const* argv);

}  // namespace loopfleet::worker

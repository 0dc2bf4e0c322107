#pragma once
// ParallelFor: how generated code runs a parallel loop: the C interface between a kernel and the
// threads of the process that runs it. worker/verification/thread_pool.h is one.

#include <cstdint>

namespace loopfleet::worker {

struct ParallelFor {
  // Iterations [begin, end) of the loop. `thread` is less than `threads` below, and no two calls
  // that run at the same time have the same: it names the scratch that the call may use.
  using Task = void (*)(const void* frame, std::int64_t begin, std::int64_t end,
                        std::int64_t thread);
  // Runs all of [0, count), each once, on up to `threads` threads, and returns when all is done.
  // What was written before is seen in the tasks, what they write is seen after. Not to be called
  // from a task.
  void (*run)(const ParallelFor* self, Task task, const void* frame, std::int64_t count,
              std::int64_t threads);
};

}  // namespace loopfleet::worker

#pragma once
// ParallelFor: the C interface through which generated code runs a parallel loop on the threads of
// its process. Implemented by kernel/thread_pool.h.

#include <cstdint>

namespace loopfleet {

struct ParallelFor {
  // Runs iterations [begin, end) of the loop. `thread` is less than `threads` below and unique
  // among the calls that run at the same time; it selects the scratch that the call may use.
  using Task = void (*)(const void* frame, std::int64_t begin, std::int64_t end,
                        std::int64_t thread);
  // Runs all of [0, count), each once, on up to `threads` threads, and returns when all is done.
  // Tasks see earlier writes, and the caller sees theirs. Must not be called from a task.
  void (*run)(const ParallelFor* self, Task task, const void* frame, std::int64_t count,
              std::int64_t threads);
};

}  // namespace loopfleet

#pragma once
// A peer of `queue`: a job queue on redis lists. A client pushes jobs, a worker pops each and
// pushes its result, and the client counts the results. Every write is on disk first (appendfsync
// always).

#include <cstdint>
#include <optional>

#include "common/base/result.h"

namespace loopfleet::bench {

struct RedisLoad {
  std::uint32_t jobs = 10'000;
  std::uint32_t jobs_per_message = 1;  // pushed and popped in one command
  std::uint32_t outstanding = 64;      // commands in flight
  std::uint32_t job_bytes = 200;
  std::uint32_t result_bytes = 400;
};

// Jobs per second, from push to stored result; nullopt: redis-server is not installed.
Result<std::optional<double>> RedisRate(const RedisLoad& load);

}  // namespace loopfleet::bench

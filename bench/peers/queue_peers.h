#pragma once
// The peers of `queue`: servers that job queues are commonly built on. A client puts jobs in, a
// worker takes each and puts a result in, and a job counts when its result is in. Each function
// states how durable that is.

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"

namespace loopfleet::bench {

struct PeerLoad {
  std::uint32_t jobs = 10'000;
  std::uint32_t outstanding = 256;  // jobs in flight
  std::uint32_t job_bytes = 200;
  std::uint32_t result_bytes = 400;
};

// Jobs per second; nullopt: the server is not installed.
using PeerJobs = Result<std::optional<double>>;

// The binlog is synced at every write (-f0). Each worker reserves, puts its result and deletes.
PeerJobs BeanstalkdRate(const PeerLoad& load);

// Publish and subscribe in memory: lost messages are not sent again.
PeerJobs NatsRate(const PeerLoad& load);

// Streams on disk, each message acknowledged; nats-server 2.9 syncs them every 2 minutes.
PeerJobs JetStreamRate(const PeerLoad& load);

}  // namespace loopfleet::bench

#pragma once
// The peers of `queue`: what people build job queues on. A client puts jobs in, a worker takes each
// and puts its result in, and a job counts when its result is in. How durable that is, the text
// says.

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"

namespace loopfleet::bench {

struct PeerLoad {
  std::uint32_t jobs = 10'000;
  std::uint32_t outstanding = 256;  // under way at once
  std::uint32_t job_bytes = 200;
  std::uint32_t result_bytes = 400;
};

// Jobs per second. No value: the server is not installed.
using PeerJobs = Result<std::optional<double>>;

// A binlog that is synced at every write (-f0); each worker reserves, puts its result and deletes.
PeerJobs BeanstalkdRate(const PeerLoad& load);

// Publish and subscribe, in memory: what is lost on the way is lost.
PeerJobs NatsRate(const PeerLoad& load);

// Streams on disk with an acknowledgement each; nats-server 2.9 syncs them every 2 minutes.
PeerJobs JetStreamRate(const PeerLoad& load);

}  // namespace loopfleet::bench

#pragma once
// QueueRig: what the cases of `queue` share: a coordinator with a database of its own on the
// project's disk, null jobs, and what a stretch of work cost each process.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "bench/rigs/scratch_directory.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "common/job/job_spec.h"

namespace loopfleet::bench {

// 20 actions, and measured anew each time, so that nothing is answered from the store or by an
// equal job.
JobSpec NullJob();
// One of many different jobs, and a stored result may answer it.
JobSpec RepeatableJob(std::uint32_t which);

Error ToError(const client::CallError& error);

// Wall time, and the processor time of both sides; since it was made.
struct QueueCost {
  double seconds = 0;
  double coordinator_cpu_seconds = 0;
  double generator_cpu_seconds = 0;  // this process: clients and stub workers
};

class QueueRig {
 public:
  static Result<QueueRig> Start();
  QueueRig(QueueRig&&) noexcept = default;

  // kill -9, and a new coordinator on the same database.
  Status Restart();

  const client::LocalCluster& cluster() const { return *cluster_; }
  Result<client::Client> Connect() const;
  std::filesystem::path database() const { return directory_.path() / "queue.db"; }

  class Watch {
   public:
    explicit Watch(const QueueRig& rig);
    QueueCost Read() const;

   private:
    const QueueRig& rig_;
    std::chrono::steady_clock::time_point start_;
    double coordinator_;
    double generator_;
  };

 private:
  QueueRig(ScratchDirectory directory, client::LocalCluster cluster)
      : directory_(std::move(directory)), cluster_(std::move(cluster)) {}

  ScratchDirectory directory_;  // goes last
  std::optional<client::LocalCluster> cluster_;
};

// Until all jobs of the batch are stored. An error if one failed.
Status AwaitStored(client::Client& client, BatchId batch);

}  // namespace loopfleet::bench

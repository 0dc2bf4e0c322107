#pragma once
// QueueRig: shared by the cases of `queue`: a coordinator with its own database on the project's
// disk, null jobs, and the cost of an interval in each process.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/rigs/scratch_dir.h"
#include "client/client.h"
#include "client/local_cluster.h"
#include "common/job/job_spec.h"

namespace loopfleet::bench {

// A job of 20 actions that is always measured fresh: neither the store nor an equal job answers it.
JobSpec NullJob();
// A different job for each `which`; a stored result may answer it.
JobSpec RepeatableJob(std::uint32_t which);

Error ToError(const client::CallError& error);

// Wall time and processor time of both sides, since the Watch was created.
struct QueueCost {
  double seconds = 0;
  double coordinator_cpu_seconds = 0;
  double generator_cpu_seconds = 0;  // this process: clients and stub workers
};

class QueueRig {
 public:
  // `fill` writes what the database contains when the coordinator first opens it.
  using Fill = std::function<Status(const std::filesystem::path& database)>;
  struct Options {
    Fill fill = {};
    std::vector<std::string> arguments = {};  // more of the coordinator's
  };
  static Result<QueueRig> Start(const Options& options);
  static Result<QueueRig> Start() { return Start(Options()); }
  QueueRig(QueueRig&&) noexcept = default;

  // Kills the coordinator (kill -9) and starts a new one on the same database.
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
  QueueRig(client::ScratchDir directory, std::vector<std::string> arguments,
           client::LocalCluster cluster)
      : directory_(std::move(directory)),
        arguments_(std::move(arguments)),
        cluster_(std::move(cluster)) {}

  client::ScratchDir directory_;  // destroyed last
  std::vector<std::string> arguments_;
  std::optional<client::LocalCluster> cluster_;
};

// Waits until all jobs of the batch are stored. An error if one failed.
Status AwaitStored(client::Client& client, BatchId batch);

}  // namespace loopfleet::bench

#pragma once
// Slurm's side of `loopfleet fleet`: builds the commands of sbatch and squeue, and parses squeue's
// output. Pure: slurm_command.cc runs those programs. Workers requested together are one job array,
// called an allocation; each worker is one of its tasks.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace loopfleet::client {

// Several times what a running job may still take: a compilation and a run at their limits (10 s
// each), and sending the outcome to the coordinator.
inline constexpr std::chrono::seconds kDefaultDrainBefore{120};
// Slurm's default MaxArraySize is 1,001.
inline constexpr int kMostSlurmWorkers = 1000;

struct SlurmRequest {
  int workers = 1;
  std::string program;      // path of the worker, as seen by the nodes
  std::string coordinator;  // the coordinator's endpoint for workers
  std::string keys;         // directory of the workers' keys, as seen by the nodes; "": none
  std::string device = "cpu";
  std::vector<std::string> labels;
  // Options of sbatch; "" and 0: the cluster's default.
  std::string partition;
  std::string account;
  std::string time;  // in Slurm's notation
  std::string gres;
  int cpus = 0;                                             // per worker
  std::chrono::seconds drain_before = kDefaultDrainBefore;  // before the time limit
  std::vector<std::string> sbatch;                          // further options, passed on unchanged
};

// Parses "90" (minutes), "8:00:00", "2-12" ..., as sbatch does; nullopt: no limit.
Result<std::optional<std::chrono::seconds>> ParseSlurmTime(std::string_view text);

// The sbatch command. sbatch reads the script from standard input and prints the allocation.
// kInvalid: an inconsistent request, such as a drain longer than the time limit.
Result<std::vector<std::string>> SbatchCommand(const SlurmRequest& request);

// deploy/slurm/worker.sbatch, embedded at build time.
std::string_view SlurmWorkerScript();

struct SlurmTask {
  std::uint64_t allocation = 0;
  std::uint32_t index = 0;
  std::string state;        // PENDING, RUNNING, COMPLETING, ...: Slurm's own word
  std::string node;         // "": none yet
  std::string ran;          // run time so far, in Slurm's notation
  std::string left;         // time left until its limit
  std::string reason;       // why it waits; "": not waiting
  std::string coordinator;  // given to its worker

  std::string id() const;     // "123_4", as for scancel
  std::string label() const;  // of its worker: "slurm=123_4"
  bool pending() const { return state == "PENDING"; }
};

// Lists this user's workers in the format that ParseTasks reads.
std::vector<std::string> SqueueCommand();
// kCorrupt: not the format of SqueueCommand.
Result<std::vector<SlurmTask>> ParseTasks(std::string_view output);

// "all", an allocation ("123") or one task ("123_4").
struct TaskChoice {
  std::optional<std::uint64_t> allocation;
  std::optional<std::uint32_t> index;
  bool Includes(const SlurmTask& task) const;
};
Result<TaskChoice> ParseTaskChoice(std::string_view text);

}  // namespace loopfleet::client

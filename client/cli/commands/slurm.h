#pragma once
// Slurm's side of `loopfleet fleet`: what is said to sbatch, squeue and scancel, and what squeue's
// answer means. Values only; who calls those programs is slurm_command.cc. A set of workers that
// was asked for together is one job array, here called an allocation; each worker is one of its
// tasks.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace loopfleet::client {

// Longer than what a worker may be in the middle of: a compilation and a run at their limits (10 s
// each), several times over, and the outcome's way to the coordinator.
inline constexpr std::chrono::seconds kDefaultDrainBefore{120};
// Slurm's default MaxArraySize is 1,001.
inline constexpr int kMostSlurmWorkers = 1000;

struct SlurmRequest {
  int workers = 1;
  std::string program;      // of the worker, as the nodes see it
  std::string coordinator;  // its endpoint for workers
  std::string keys;         // of the workers, as the nodes see it; "": none
  std::string device = "cpu";
  std::vector<std::string> labels;
  // What sbatch is told; "" and 0: nothing, so that the cluster's default holds.
  std::string partition;
  std::string account;
  std::string time;  // in Slurm's notation
  std::string gres;
  int cpus = 0;                                             // for each worker
  std::chrono::seconds drain_before = kDefaultDrainBefore;  // the time limit
  std::vector<std::string> sbatch;                          // further options, as they are
};

// "90" (minutes), "8:00:00", "2-12", ..., as sbatch takes them; empty: no limit.
Result<std::optional<std::chrono::seconds>> ParseSlurmTime(std::string_view text);

// sbatch and its arguments; it reads the script from its standard input and prints the allocation.
// kInvalid: a request that makes no sense, such as a drain longer than the time limit.
Result<std::vector<std::string>> SbatchCommand(const SlurmRequest& request);

// deploy/slurm/worker.sbatch, as it was when this was built.
std::string_view SlurmWorkerScript();

struct SlurmTask {
  std::uint64_t allocation = 0;
  std::uint32_t index = 0;
  std::string state;        // PENDING, RUNNING, COMPLETING, ...: Slurm's own word
  std::string node;         // "": none yet
  std::string ran;          // for how long, in Slurm's notation
  std::string left;         // of its time limit
  std::string reason;       // why it waits; "": it does not
  std::string coordinator;  // that its worker was told

  std::string id() const;     // "123_4", as scancel takes it
  std::string label() const;  // that its worker carries: "slurm=123_4"
  bool pending() const { return state == "PENDING"; }
};

// Asks for this user's workers, in the form that ParseTasks reads.
std::vector<std::string> SqueueCommand();
// kCorrupt: this is not what SqueueCommand asks for.
Result<std::vector<SlurmTask>> ParseTasks(std::string_view output);

// "all", an allocation ("123") or one task ("123_4").
struct TaskChoice {
  std::optional<std::uint64_t> allocation;
  std::optional<std::uint32_t> index;
  bool Includes(const SlurmTask& task) const;
};
Result<TaskChoice> ParseTaskChoice(std::string_view text);

}  // namespace loopfleet::client

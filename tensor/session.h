#pragma once
// Session: what tensors of one process share: the backend that runs them, the schedule of each
// program, and the plan of each graph that was evaluated, so that the same graph made again is
// found by its structure. One thread at a time, but for the run of a kernel.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/looptree/tree/key.h"
#include "common/looptree/tree/loop_tree.h"
#include "tensor/backend.h"
#include "tensor/node.h"

namespace loopfleet::tensor {

// The schedule of one program, for all graphs that compute it, and its code.
class Schedule {
 public:
  Schedule(looptree::ProgramKey key, looptree::LoopTree start)
      : key_(key),
        flop_count_(looptree::FlopCount(start.program())),
        start_(start),
        tree_(std::move(start)) {}

  const looptree::ProgramKey& key() const { return key_; }
  const looptree::LoopTree& start() const { return start_; }
  const looptree::LoopTree& tree() const { return tree_; }
  // Compiled with the session's backend when first asked for.
  Runnable& Code();
  // The same, kept alive by the caller.
  const std::shared_ptr<Runnable>& SharedCode();
  void Set(looptree::LoopTree tree);
  // Someone chose the tree.
  bool is_set() const { return is_set_; }
  void DropCode() { code_.reset(); }

  std::uint64_t flop_count() const { return flop_count_; }
  // How long a run takes, the shortest of the first few; 0: not yet known.
  double run_ns() const { return run_ns_; }
  bool wants_runs() const { return runs_ < kFewRuns; }
  void AddRun(double ns);

 private:
  static constexpr int kFewRuns = 8;

  const looptree::ProgramKey key_;
  const std::uint64_t flop_count_;
  const looptree::LoopTree start_;
  looptree::LoopTree tree_;
  std::shared_ptr<Runnable> code_;  // null: none yet
  bool is_set_ = false;
  double run_ns_ = 0;
  int runs_ = 0;
};

// How a graph is evaluated. Values are numbered: first those of its leaves, then one per segment.
struct Plan {
  struct Segment {
    std::shared_ptr<Schedule> schedule;
    std::vector<std::uint32_t> inputs;  // numbers of values
    std::size_t output_count = 0;       // elements
  };
  std::vector<std::uint32_t> leaves;     // places of the leaves that are read, by number of value
  std::vector<std::size_t> leaf_counts;  // their elements
  std::vector<Segment> segments;
  std::uint32_t result = 0;         // the number of the value that holds the root's elements
  bool needs_consumers = false;     // the graph alone does not tell all its sizes
  std::vector<std::int64_t> shape;  // of the root
  std::vector<std::vector<std::int64_t>> leaf_shapes;  // by number of value
};

class Session {
 public:
  static Session& Of();  // of this process

  // Throws TensorError; sizes may follow from consumers of `root`.
  std::shared_ptr<const Plan> PlanOf(Node& root);
  // Computes the elements of `root`, or finds them computed.
  std::shared_ptr<Buffer> Evaluate(Node& root);
  // Runs the plan's kernels. `leaves`: the elements of each leaf, by number of value. `out`: where
  // the result goes, 64-byte aligned memory; null: into a new buffer.
  std::shared_ptr<Buffer> Run(const Plan& plan, const float* const* leaves, float* out);

  // For programs that are not yet known, too.
  void SetSchedule(const looptree::LoopTree& tree);
  const std::map<looptree::ProgramKey, std::shared_ptr<Schedule>>& schedules() const {
    return schedules_;
  }

  // Drops all code.
  void SetBackend(std::shared_ptr<Backend> backend);
  Backend& backend();

  // Calls its argument; Python gives up its lock meanwhile. For kernels that run long.
  using LongRun = std::function<void(const std::function<void()>&)>;
  void SetLongRun(LongRun long_run) { long_run_ = std::move(long_run); }
  // Called with what the user should know: kernels that run elsewhere, or that nothing compared.
  using Warn = std::function<void(const std::string&)>;
  void SetWarn(Warn warn) { warn_ = std::move(warn); }
  void Tell(const std::string& remark) const {
    if (warn_) warn_(remark);
  }

 private:
  struct Hash {
    std::size_t operator()(const std::vector<std::uint64_t>& words) const;
  };
  using Plans = std::unordered_map<std::vector<std::uint64_t>, std::shared_ptr<const Plan>, Hash>;

  // `nodes`: as InOrder gave them just now.
  std::shared_ptr<const Plan> PlanOf(Node& root, const std::vector<Node*>& nodes);
  std::shared_ptr<Plan> MakePlan(const std::vector<Node*>& nodes,
                                 const std::vector<std::vector<std::int64_t>>& shapes);
  // Forgets all plans, and the schedules that were not set and are not used, so that a process that
  // always computes new programs does not grow.
  void Tidy();
  std::shared_ptr<Schedule> ScheduleOf(const looptree::LoopTree& start);
  void RunSegment(const Plan::Segment& segment, const float* const* inputs, float* output);

  std::shared_ptr<Backend> backend_;
  std::map<looptree::ProgramKey, std::shared_ptr<Schedule>> schedules_;
  Plans plans_;
  LongRun long_run_;
  Warn warn_;
};

// All live nodes that depend on one of `nodes`, and all that those depend on, for sizes that follow
// from consumers.
std::vector<Node*> WithConsumers(const std::vector<Node*>& nodes, std::vector<NodePtr>& kept);

}  // namespace loopfleet::tensor

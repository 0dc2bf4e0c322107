#include "tests/simulation/job_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "coordinator/shell/job_resolver.h"

namespace loopfleet::simulation {

coordinator::ReplayMemory& JobPool::Memory() {
  static coordinator::ReplayMemory memory(std::size_t{1} << 20);
  return memory;
}

JobPool::JobPool(const FaultMix& mix, std::uint64_t seed)
    : invalid_(mix.invalid),
      fresh_(mix.fresh),
      any_device_(mix.cuda_workers > 0 ? 0.3 : 0.05),
      mix_(mix) {
  Dice dice(seed, 1);
  for (std::size_t i = 0; i < mix.trees; ++i) {
    // Without a CUDA worker, jobs end with NO_MATCHING_WORKER. Rare, because the grace is long.
    const bool cuda = dice.Chance(mix.cuda_workers > 0 ? 0.3 : 0.03);
    Tree tree{.uri = fmt::format("benchmark://loop_tool-{}-v0/{}", cuda ? "cuda" : "cpu", 64 + i)};
    if (dice.Chance(mix.poison)) {
      tree.nature = Nature::kPoison;
    } else if (dice.Chance(mix.hang)) {
      tree.nature = Nature::kHanging;
    } else if (dice.Chance(mix.crash)) {
      tree.nature = Nature::kCrashing;
    }
    trees_.push_back(std::move(tree));
  }
}

JobSpec JobPool::Draw(Dice& dice) {
  JobSpec spec{.tag = std::to_string(++drawn_)};
  if (dice.Chance(invalid_)) {
    spec.source = looptree::BenchmarkUri{"benchmark://loop_tool-cpu-v0/0"};
    return spec;
  }
  spec.source = looptree::BenchmarkUri{dice.Of(trees_).uri};
  if (dice.Chance(any_device_)) spec.device = DeviceRequest::kAny;
  if (dice.Chance(fresh_)) spec.freshness = Freshness::kMeasureAgain;
  if (dice.Chance(mix_.prioritised)) spec.priority = dice.Between(-2, 2);
  if (dice.Chance(mix_.labelled)) spec.labels = {"big"};
  if (dice.Chance(mix_.bound)) {
    spec.affinity = fmt::format("affinity {}", dice.Index(mix_.affinities));
  }
  if (dice.Chance(mix_.hurried)) {
    spec.deadline_s =
        static_cast<double>(dice.Between(1, static_cast<int>(mix_.longest_deadline_s * 4))) / 4;
  }
  return spec;
}

const JobPool::Tree* JobPool::Find(const JobSpec& spec) const {
  const auto& uri = std::get<looptree::BenchmarkUri>(spec.source).text;
  const auto found = std::ranges::find(trees_, uri, &Tree::uri);
  return found == trees_.end() ? nullptr : &*found;
}

Nature JobPool::NatureOf(const JobSpec& spec) const {
  const Tree* tree = Find(spec);
  LF_CHECK(tree != nullptr, "a job that nobody asked for");
  return tree->nature;
}

std::variant<ResolvedTask, Failure> JobPool::Replay(const JobSpec& spec) {
  return Memory().Replay(spec);
}

ResolvedTask JobPool::Recall(const storage::ReplayResult& stored, const JobSpec& spec) {
  return Memory().Recall(stored, spec);
}

}  // namespace loopfleet::simulation

#include "bench/rigs/schedule_search.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "common/base/random.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/tree/key.h"

namespace loopfleet::bench {
namespace {

using looptree::Action;
using looptree::AgentWalk;

constexpr std::array<std::int64_t, 9> kFactors = {2, 4, 5, 8, 16, 32, 64, 128, 256};
constexpr std::size_t kKept = 12;        // best candidates, which the next ones are derived from
constexpr std::uint64_t kMostMoves = 8;  // in a random walk
// A candidate is given up after batch i if its best time exceeds the worst kept time by more than
// this factor. The first two batches are single runs, without waiting for a quiet core.
constexpr std::array<double, 8> kGiveUpFactor = {3, 2, 1.5, 1.25, 1.15, 1.1, 1.1, 1.1};
constexpr std::size_t kSingleRuns = 2;
constexpr double kBatchNs = 200e3;
constexpr Nanos kPatience = std::chrono::milliseconds(2);  // for a quiet moment, before each batch

struct Candidate {
  AgentWalk walk;
  double best_ns = 0;
};

class Search {
 public:
  Search(Toolchain& tools, QuietCore& core, const looptree::Benchmark& benchmark,
         const SearchOptions& options)
      : tools_(tools),
        core_(core),
        start_(benchmark, looptree::RuleSet::kStructural),
        expected_(start_.tree().program()),
        random_(options.seed),
        stop_(std::chrono::steady_clock::now() + options.budget) {}

  Result<Found> Run() {
    LF_TRY_VOID(Try(start_));
    while (std::chrono::steady_clock::now() < stop_) {
      // Every fifth walk begins at the start, to keep the candidates diverse.
      const bool anew = random_.Below(5) == 0;
      AgentWalk walk = anew ? start_ : kept_[PickKept()].walk;
      for (std::uint64_t moves = 1 + random_.Below(anew ? kMostMoves : 3); moves > 0; --moves) {
        Move(walk);
      }
      LF_TRY_VOID(Try(walk));
    }
    const std::span<const Action> actions = kept_.front().walk.history();
    return Found{.actions = {actions.begin(), actions.end()},
                 .best_ns = kept_.front().best_ns,
                 .evaluated = seen_.size()};
  }

 private:
  // Favours better candidates.
  std::size_t PickKept() {
    return std::min(
        {random_.Below(kept_.size()), random_.Below(kept_.size()), random_.Below(kept_.size())});
  }

  // Moves the cursor to a random loop and makes one change there.
  void Move(AgentWalk& walk) {
    for (std::uint64_t steps = random_.Below(8); steps > 0; --steps) {
      (void)walk.Apply(random_.Below(2) == 0 ? Action(looptree::Down{}) : Action(looptree::Up{}));
    }
    for (int tries = 0; tries < 8; ++tries) {
      if (walk.Apply(Change())) return;
    }
  }

  Action Change() {
    switch (random_.Below(8)) {
      case 0:
      case 1: return looptree::SwapUp{};
      case 2:
      case 3: return looptree::SwapDown{};
      case 4: return looptree::Merge{};
      default: return looptree::Split{.factor = kFactors[random_.Below(kFactors.size())]};
    }
  }

  Result<void> Try(const AgentWalk& walk) {
    if (!seen_.insert(looptree::KeyOf(walk.tree())).second) return {};
    LF_TRY(CompiledTree compiled, CompiledTree::Make(tools_, walk.tree(), expected_));
    const double worst =
        kept_.size() < kKept ? std::numeric_limits<double>::infinity() : kept_.back().best_ns;
    const std::optional<double> time = TimeOf(compiled, worst);
    if (!time.has_value() || *time >= worst) return {};
    const auto at = std::ranges::upper_bound(kept_, *time, {}, &Candidate::best_ns);
    kept_.insert(at, {.walk = walk, .best_ns = *time});
    if (kept_.size() > kKept) kept_.pop_back();
    return {};
  }

  // Best nanoseconds of one run; nullopt: given up, far slower than `worst`.
  std::optional<double> TimeOf(CompiledTree& compiled, double worst) {
    const auto batch = [&](int runs) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < runs; ++i) compiled.Run();
      return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
                 .count() /
             runs;
    };
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < kGiveUpFactor.size(); ++i) {
      int runs = 1;
      if (i >= kSingleRuns) {
        core_.Await(kPatience);
        runs = static_cast<int>(std::clamp(kBatchNs / best, 1.0, 1e5));
      }
      best = std::min(best, batch(runs));
      if (best > kGiveUpFactor[i] * worst) return std::nullopt;
    }
    return best;
  }

  Toolchain& tools_;
  QuietCore& core_;
  const AgentWalk start_;
  const Expected expected_;
  SplitMix64 random_;
  const std::chrono::steady_clock::time_point stop_;
  std::set<looptree::TreeKey> seen_;
  std::vector<Candidate> kept_;  // best first
};

}  // namespace

Result<Found> SearchSchedule(Toolchain& tools, QuietCore& core,
                             const looptree::Benchmark& benchmark, const SearchOptions& options) {
  return Search(tools, core, benchmark, options).Run();
}

}  // namespace loopfleet::bench

#include "client/search/loop_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "common/looptree/actions/walk.h"

namespace loopfleet::client {
namespace {

using looptree::Action;
using looptree::AgentWalk;
using looptree::LoopTree;
using looptree::TreeNode;
using looptree::TreeRef;

constexpr std::array<std::int64_t, 14> kFactors = {2,  3,  4,  5,  6,  8,   10,
                                                   12, 16, 20, 32, 64, 128, 256};
constexpr std::uint32_t kMostPlaces = 3;  // that one step drags a loop
// Longer sequences than any good schedule needs would only make the replay slow.
constexpr std::size_t kMostSteps = 32;
constexpr int kTries = 16;  // to draw a step that changes something

std::vector<TreeRef> LoopsOf(const LoopTree& tree) {
  std::vector<TreeRef> loops;
  for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    if (tree.IsLoop(ref)) loops.push_back(ref);
  }
  return loops;
}

bool GoTo(AgentWalk& walk, TreeRef loop) {
  while (walk.cursor() < loop) {
    if (!walk.Apply(looptree::Down{})) return false;
  }
  while (walk.cursor() > loop) {
    if (!walk.Apply(looptree::Up{})) return false;
  }
  return walk.cursor() == loop;
}

// As far as the drag is legal. False: illegal from the start.
bool Change(AgentWalk& walk, const Step& step) {
  for (std::uint32_t i = 0; i < step.times; ++i) {
    if (!walk.Apply(step.change)) return i > 0;
  }
  return true;
}

// Each change that may make sense on this loop.
std::vector<Step> StepsAt(std::uint32_t number, const TreeNode& loop) {
  std::vector<Step> steps;
  for (std::uint32_t places = 1; places <= kMostPlaces; ++places) {
    steps.push_back({.loop = number, .change = looptree::SwapDown{}, .times = places});
    steps.push_back({.loop = number, .change = looptree::SwapUp{}, .times = places});
  }
  for (const std::int64_t factor : kFactors) {
    if (factor < loop.size) steps.push_back({number, looptree::Split{.factor = factor}});
  }
  if (loop.dim_depth > 0) steps.push_back({number, looptree::Merge{}});
  steps.push_back({number, looptree::Vectorize{}});
  steps.push_back({number, looptree::Unroll{}});
  return steps;
}

Action DrawSplit(const TreeNode& loop, SplitMix64& random) {
  const auto useful = std::ranges::lower_bound(kFactors, loop.size) - kFactors.begin();
  if (useful == 0) return looptree::Merge{};
  return looptree::Split{.factor = kFactors[random.Below(static_cast<std::uint64_t>(useful))]};
}

// Half of the steps split, most others swap: these make most of the difference.
Step DrawStep(const LoopTree& tree, SplitMix64& random) {
  const std::vector<TreeRef> loops = LoopsOf(tree);
  if (loops.empty()) return {};
  const auto number = static_cast<std::uint32_t>(random.Below(loops.size()));
  const auto places = static_cast<std::uint32_t>(1 + random.Below(kMostPlaces));
  const std::uint64_t kind = random.Below(16);
  if (kind < 3) return {.loop = number, .change = looptree::SwapUp{}, .times = places};
  if (kind < 6) return {.loop = number, .change = looptree::SwapDown{}, .times = places};
  if (kind < 7) return {.loop = number, .change = looptree::Merge{}};
  if (kind < 8) {
    return {.loop = number,
            .change = random.Below(2) == 0 ? Action(looptree::Vectorize{}) : looptree::Unroll{}};
  }
  return {.loop = number, .change = DrawSplit(tree.nodes()[loops[number]], random)};
}

Candidate WithKey(Candidate candidate) {
  candidate.key = looptree::KeyOf(candidate.tree);
  return candidate;
}

}  // namespace

Result<std::shared_ptr<const LoopSpace>> LoopSpace::Open(const looptree::Source& source) {
  auto benchmark = looptree::OpenBenchmark(source);
  if (!benchmark) return Fail(ErrorKind::kInvalid, benchmark.error().message);
  if (benchmark->dialect != looptree::Dialect::kAgent) {
    return Fail(
        ErrorKind::kInvalid,
        "a search needs a benchmark of dialect agent, such as benchmark://mm-v0/mm64_64_64");
  }
  return std::shared_ptr<const LoopSpace>(new LoopSpace(source, *std::move(benchmark)));
}

Candidate LoopSpace::Start() const { return WithKey({.tree = benchmark_.start}); }

bool LoopSpace::Apply(Candidate& candidate, const Step& step) const {
  if (candidate.steps.size() >= kMostSteps) return false;
  const std::vector<TreeRef> loops = LoopsOf(candidate.tree);
  if (step.loop >= loops.size()) return false;
  AgentWalk walk(
      {.dialect = benchmark_.dialect, .target = benchmark_.target, .start = candidate.tree},
      looptree::RuleSet::kStructural, candidate.cursor);
  if (!GoTo(walk, loops[step.loop]) || !Change(walk, step)) return false;
  if (walk.tree().schedule() == candidate.tree.schedule()) return false;
  candidate.steps.push_back(step);
  candidate.actions.insert(candidate.actions.end(), walk.history().begin(), walk.history().end());
  candidate.tree = walk.tree();
  candidate.cursor = walk.cursor();
  return true;
}

std::optional<Candidate> LoopSpace::Extend(const Candidate& from, const Step& step) const {
  Candidate next = from;
  if (!Apply(next, step)) return std::nullopt;
  return WithKey(std::move(next));
}

void LoopSpace::Replay(Candidate& candidate, std::span<const Step> steps) const {
  candidate = {.tree = benchmark_.start};
  for (const Step& step : steps) (void)Apply(candidate, step);
}

Candidate LoopSpace::Follow(std::span<const Step> steps) const {
  Candidate at;
  Replay(at, steps);
  return WithKey(std::move(at));
}

std::vector<Candidate> LoopSpace::Neighbours(const Candidate& from) const {
  std::vector<Candidate> neighbours;
  std::set<looptree::TreeKey> seen = {from.key};
  const std::vector<TreeRef> loops = LoopsOf(from.tree);
  for (std::uint32_t i = 0; i < loops.size(); ++i) {
    for (const Step& step : StepsAt(i, from.tree.nodes()[loops[i]])) {
      auto next = Extend(from, step);
      if (next && seen.insert(next->key).second) neighbours.push_back(*std::move(next));
    }
  }
  return neighbours;
}

bool LoopSpace::ApplyRandom(Candidate& candidate, SplitMix64& random) const {
  for (int i = 0; i < kTries; ++i) {
    if (Apply(candidate, DrawStep(candidate.tree, random))) return true;
  }
  return false;
}

Candidate LoopSpace::RandomStep(const Candidate& from, SplitMix64& random) const {
  Candidate at = from;
  return ApplyRandom(at, random) ? WithKey(std::move(at)) : at;
}

Candidate LoopSpace::RandomWalk(std::size_t most, SplitMix64& random) const {
  Candidate at{.tree = benchmark_.start};
  for (std::size_t left = 1 + random.Below(most); left > 0; --left) (void)ApplyRandom(at, random);
  return WithKey(std::move(at));
}

Candidate LoopSpace::Mutate(const Candidate& from, SplitMix64& random) const {
  Candidate at = from;
  for (std::uint64_t left = 1 + random.Below(3); left > 0; --left) {
    const std::uint64_t kind = at.steps.empty() ? 0 : random.Below(8);
    if (kind < 5) {
      (void)ApplyRandom(at, random);
      continue;
    }
    std::vector<Step> steps = at.steps;
    const auto place = steps.begin() + static_cast<std::ptrdiff_t>(random.Below(steps.size()));
    switch (kind) {
      case 5: steps.erase(place); break;
      case 6: *place = DrawStep(at.tree, random); break;
      default: steps.insert(place, DrawStep(at.tree, random));
    }
    Replay(at, steps);
  }
  return WithKey(std::move(at));
}

Candidate LoopSpace::Cross(const Candidate& first, const Candidate& last,
                           SplitMix64& random) const {
  std::vector<Step> steps(
      first.steps.begin(),
      first.steps.begin() + static_cast<std::ptrdiff_t>(random.Below(first.steps.size() + 1)));
  steps.insert(
      steps.end(),
      last.steps.begin() + static_cast<std::ptrdiff_t>(random.Below(last.steps.size() + 1)),
      last.steps.end());
  return Follow(steps);
}

Result<Candidate> LoopSpace::FromActions(std::span<const Action> actions) const {
  AgentWalk walk(benchmark_, looptree::RuleSet::kStructural);
  std::vector<Step> steps;
  for (const Action& action : actions) {
    const LoopTree before = walk.tree();
    const std::vector<TreeRef> loops = LoopsOf(before);
    const auto at = std::ranges::find(loops, walk.cursor());
    if (auto applied = walk.Apply(action); !applied) {
      return Fail(ErrorKind::kInvalid, applied.error().message);
    }
    if (walk.tree().schedule() == before.schedule()) continue;
    steps.push_back({static_cast<std::uint32_t>(at - loops.begin()), action});
  }
  Candidate found = WithKey({.actions = {walk.history().begin(), walk.history().end()},
                             .tree = walk.tree(),
                             .cursor = walk.cursor()});
  // Not the same if there are more steps than allowed, or if an action undid others.
  if (Follow(steps).key == found.key) found.steps = std::move(steps);
  return found;
}

}  // namespace loopfleet::client

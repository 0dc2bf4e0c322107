#include "worker/gpu/sum_choice.h"

#include <algorithm>
#include <utility>

namespace loopfleet::worker {
namespace {

// As many points as a block has threads would leave most of a device idle.
constexpr std::int64_t kMostPoints = kMostBlockThreads;
// Terms of a sum that a thread adds up by itself, at least, and that make sharing it out pay.
constexpr std::int64_t kTermsOfThread = 16;
constexpr std::int64_t kLeastTerms = kTermsOfThread * kMostBlockThreads;
// Blocks of the first kernel together: enough for the largest devices.
constexpr std::int64_t kMostSumBlocks = 1024;
constexpr std::int64_t kMostTerms = std::int64_t{1} << 30;  // numbered: 32 bits

bool OnlyTheLastWrites(const Body& body) {
  return std::none_of(body.statements.begin(), body.statements.end() - 1,
                      [](const Statement& statement) { return statement.target.has_value(); });
}

}  // namespace

std::optional<SumMapping> ChooseSum(const KernelPlan& plan, const Nest& nest) {
  if (nest.reduction() == nullptr || !StartsInside(nest) || !OnlyTheLastWrites(*nest.body)) {
    return std::nullopt;
  }
  SumMapping sum{.points = PointsOf(plan, nest)};
  std::int64_t terms = 1;
  for (const LoopStep* step : sum.points.serial) {
    terms = std::min(terms * MostIterations(plan, step->loop), kMostTerms);
  }
  if (sum.points.points > kMostPoints || terms < kLeastTerms || terms >= kMostTerms) {
    return std::nullopt;
  }
  sum.blocks = std::clamp<std::int64_t>(terms / kLeastTerms, 1, kMostSumBlocks / sum.points.points);
  sum.part = sum.blocks == 1 ? SumMapping::Part::kAll : SumMapping::Part::kFirst;
  sum.numbers = terms;
  const LoopStep& innermost = *sum.points.serial.back();
  const StraightLine line = {sum.points.nest.body};
  if (sum.points.nest.loops.back() == &innermost && RunsInQuads(plan, {}, line, innermost.loop)) {
    const std::int64_t count = MostIterations(plan, innermost.loop);
    sum.quads = line;
    sum.numbers = terms / count * ((count + kQuad - 1) / kQuad);
  }
  return sum;
}

}  // namespace loopfleet::worker

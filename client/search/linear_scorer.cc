#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "client/search/scorer.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::client {
namespace {

using looptree::Annotation;
using looptree::LoopTree;
using looptree::TreeNode;

constexpr std::size_t kLoops = 6;  // the innermost ones; further out they make little difference
constexpr std::size_t kDims = 4;   // more dimensions share a place
constexpr std::size_t kOthers = 5;
// For each loop and dimension: log2 of the size and its square, so that there is a best size.
constexpr std::size_t kWidth = 2 * kLoops * kDims + kOthers;
constexpr double kRidge = 1;  // counts as one result that says "no effect", for each feature

using Features = std::array<double, kWidth>;

// The loops around the operation with the most, the innermost first.
std::vector<const TreeNode*> DeepestLoops(const LoopTree& tree) {
  const auto nodes = tree.nodes();
  const auto deepest = std::ranges::max_element(nodes, {}, &TreeNode::depth);
  std::vector<const TreeNode*> loops;
  for (looptree::TreeRef at = deepest->parent; at != looptree::kNoParent; at = nodes[at].parent) {
    loops.push_back(&nodes[at]);
  }
  return loops;
}

Features FeaturesOf(const LoopTree& tree) {
  Features features{};
  const std::vector<const TreeNode*> loops = DeepestLoops(tree);
  double* others = features.data() + 2 * kLoops * kDims;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const TreeNode& loop = *loops[i];
    others[0] += loop.annotation == Annotation::kVectorize ? 1 : 0;
    others[1] += loop.annotation == Annotation::kUnroll ? 1 : 0;
    others[2] += loop.tail != 0 ? 1 : 0;
    if (i >= kLoops) continue;
    const double bits = std::log2(static_cast<double>(loop.size));
    const std::size_t place = 2 * (i * kDims + loop.dim % kDims);
    features[place] = bits / 8;
    features[place + 1] = bits * bits / 64;
  }
  others[3] = std::log2(1 + static_cast<double>(tree.ScratchBytes())) / 16;
  others[4] = 1;
  return features;
}

// Ridge regression, updated result by result; the weights are solved when they are asked for.
class LinearScorer : public Scorer {
 public:
  LinearScorer() {
    for (std::size_t i = 0; i < kWidth; ++i) normal_[i][i] = kRidge;
  }

  std::vector<double> Score(std::span<const Candidate> candidates) override {
    if (!is_solved_) Solve();
    std::vector<double> scores;
    for (const Candidate& candidate : candidates) {
      const Features features = FeaturesOf(candidate.tree);
      double score = 0;
      for (std::size_t i = 0; i < kWidth; ++i) score += weights_[i] * features[i];
      scores.push_back(score);
    }
    return scores;
  }

  void Learn(std::span<const Evaluated> results) override {
    for (const Evaluated& one : results) {
      if (one.cost == kNoFigure) continue;
      if (!has_origin_) origin_ = std::log(one.cost);
      has_origin_ = true;
      const Features features = FeaturesOf(one.candidate.tree);
      const double target = std::log(one.cost) - origin_;
      for (std::size_t i = 0; i < kWidth; ++i) {
        for (std::size_t j = 0; j < kWidth; ++j) normal_[i][j] += features[i] * features[j];
        right_[i] += features[i] * target;
      }
      is_solved_ = false;
    }
  }

 private:
  // Cholesky decomposition of normal_, which is positive definite thanks to the ridge.
  void Solve() {
    auto lower = normal_;
    for (std::size_t j = 0; j < kWidth; ++j) {
      for (std::size_t k = 0; k < j; ++k) lower[j][j] -= lower[j][k] * lower[j][k];
      lower[j][j] = std::sqrt(lower[j][j]);
      for (std::size_t i = j + 1; i < kWidth; ++i) {
        for (std::size_t k = 0; k < j; ++k) lower[i][j] -= lower[i][k] * lower[j][k];
        lower[i][j] /= lower[j][j];
      }
    }
    weights_ = right_;
    for (std::size_t i = 0; i < kWidth; ++i) {
      for (std::size_t k = 0; k < i; ++k) weights_[i] -= lower[i][k] * weights_[k];
      weights_[i] /= lower[i][i];
    }
    for (std::size_t i = kWidth; i-- > 0;) {
      for (std::size_t k = i + 1; k < kWidth; ++k) weights_[i] -= lower[k][i] * weights_[k];
      weights_[i] /= lower[i][i];
    }
    is_solved_ = true;
  }

  std::array<Features, kWidth> normal_{};
  Features right_{};
  Features weights_{};
  bool is_solved_ = true;
  bool has_origin_ = false;
  double origin_ = 0;  // log(time) of the first result, so that the weights are about differences
};

}  // namespace

std::unique_ptr<Scorer> MakeLinearScorer() { return std::make_unique<LinearScorer>(); }

}  // namespace loopfleet::client

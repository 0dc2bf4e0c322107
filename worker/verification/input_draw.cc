#include "worker/verification/input_draw.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/looptree/interpreter/value_range.h"
#include "common/looptree/program/program_facts.h"

namespace loopfleet::worker {
namespace {

using looptree::Op;

constexpr int kSmall = 4;

bool NeedsPositiveInputs(const looptree::Program& program) {
  return std::any_of(program.nodes.begin(), program.nodes.end(), [](const looptree::Node& node) {
    return node.op == Op::kDivide || node.op == Op::kLog || node.op == Op::kSqrt ||
           node.op == Op::kReciprocal || node.op == Op::kPower;
  });
}

bool HasProductReduction(const looptree::Program& program) {
  for (looptree::NodeId id = 0; id < program.nodes.size(); ++id) {
    if (program.nodes[id].op == Op::kMultiply && !program.ReducedDims(id).empty()) return true;
  }
  return false;
}

class Draws {
 public:
  explicit Draws(const looptree::Program& program)
      : program_(program), facts_(looptree::ProgramFacts::OfValid(program)) {}

  // The largest numbers with which all of the program is exact.
  std::optional<InputDraw> Wide() const {
    for (const int largest : {1 << 20, 1 << 12}) {
      InputDraw draw = WideTo(largest);
      if (static_cast<std::size_t>(ExactNodes(draw)) == program_.nodes.size()) return draw;
    }
    return std::nullopt;
  }

  InputDraw WideTo(int largest) const {
    return {.largest = largest,
            .positive = NeedsPositiveInputs(program_),
            .mixed = true,
            .strides = std::vector<std::size_t>(program_.inputs.size(), 1)};
  }

  // The draw with which most of the program is exact; of several, the one with the most varied
  // inputs.
  InputDraw Best() const {
    InputDraw best;
    std::ptrdiff_t most_exact = -1;
    for (InputDraw& draw : All()) {
      const std::ptrdiff_t exact = ExactNodes(draw);
      if (exact <= most_exact) continue;
      most_exact = exact;
      best = std::move(draw);
    }
    return best;
  }

 private:
  std::vector<InputDraw> All() const {
    const bool positive = NeedsPositiveInputs(program_);
    const std::size_t inputs = program_.inputs.size();
    const std::vector<std::size_t> dense(inputs, 1);
    std::vector<InputDraw> all;
    for (const int largest : {kSmall, 2, 1}) {
      // Inputs that are all 1 make any product exact, and tell nothing.
      if (largest == 1 && positive && HasProductReduction(program_)) continue;
      all.push_back({.largest = largest, .positive = positive, .strides = dense});
    }
    if (positive || inputs == 0) return all;  // zeros could become divisors
    constexpr std::size_t kSparsest = 256;
    const std::size_t biggest = Biggest();
    for (std::size_t stride = 2; stride <= kSparsest; stride *= 2) {
      InputDraw draw{.largest = 1, .positive = false, .strides = dense};
      draw.strides[biggest] = stride;
      all.push_back(draw);
      draw.strides.assign(inputs, stride);
      all.push_back(draw);
    }
    return all;
  }

  std::size_t Biggest() const {
    const auto biggest = std::ranges::max_element(
        program_.inputs, {}, [&](looptree::NodeId id) { return program_.ElementCount(id); });
    return static_cast<std::size_t>(biggest - program_.inputs.begin());
  }

  std::ptrdiff_t ExactNodes(const InputDraw& draw) const {
    std::vector<looptree::ValueRange> inputs;
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const auto size = static_cast<std::size_t>(program_.ElementCount(program_.inputs[i]));
      const std::size_t stride = draw.strides[i];
      const std::size_t drawn = stride == 1 ? size : size / stride + 2;  // rest, and last element
      inputs.push_back({.exact = true,
                        .integer = true,
                        .magnitude = static_cast<double>(draw.largest),
                        .sum = static_cast<double>(draw.largest) * static_cast<double>(drawn)});
    }
    return std::ranges::count_if(looptree::RangesOf(program_, *facts_, inputs),
                                 &looptree::ValueRange::exact);
  }

  const looptree::Program& program_;
  const std::shared_ptr<const looptree::ProgramFacts> facts_;
};

}  // namespace

std::vector<InputDraw> InputDrawsFor(const looptree::Program& program, InputNumbers numbers) {
  std::vector<InputDraw> draws;
  if (numbers == InputNumbers::kFractions) {
    constexpr int kSteps = 1 << 22;  // float32 has 24 bits
    const std::vector<std::size_t> dense(program.inputs.size(), 1);
    const bool positive = NeedsPositiveInputs(program);
    for (const float largest : {0x1p2F, 0x1p0F, 0x1p-2F, 0x1p-4F, 0x1p-6F}) {
      draws.push_back({.largest = kSteps,
                       .positive = positive,
                       .strides = dense,
                       .scale = largest / static_cast<float>(kSteps)});
    }
    if (HasProductReduction(program)) {
      draws.insert(draws.begin() + 1,
                   {.largest = kSteps >> 6, .strides = dense, .scale = 0x1p-22F, .centre = 1});
    }
    for (const float largest : {0x1p8F, 0x1p20F}) {  // beyond thresholds
      draws.push_back(draws.front());
      draws.back().scale = largest / static_cast<float>(kSteps);
    }
    return draws;
  }
  const Draws whole(program);
  if (auto wide = whole.Wide()) draws.push_back(*std::move(wide));
  const InputDraw best = whole.Best();
  const auto add = [&](int largest, float scale) {
    draws.push_back(best);
    draws.back().largest = largest;
    draws.back().scale = scale;
    if (best.positive) return;
    draws.push_back(draws.back());  // terms of mixed sign cancel and leave mostly rounding
    draws.back().positive = true;
  };
  add(best.largest, 1);
  if (HasProductReduction(program)) {
    draws.push_back({.largest = 16,
                     .strides = std::vector<std::size_t>(program.inputs.size(), 1),
                     .scale = 0x1p-10F,
                     .centre = 1});
  }
  add(4096, 0x1p-10F);  // small whole numbers often cancel by chance: 0.1 x + 0.2 y - 0.3 z
  // For sums of many products in an exponent: they grow with the square of the scale.
  for (const float scale : {0x1p-2F, 0x1p-4F, 0x1p-6F, 0x1p-8F}) add(best.largest, scale);
  for (const int largest : {256, 1 << 20}) draws.push_back(whole.WideTo(largest));  // thresholds
  return draws;
}

looptree::Tensor DrawInput(const InputDraw& draw, std::size_t input, std::size_t size,
                           SplitMix64& random) {
  looptree::Tensor tensor(size);
  const auto largest = static_cast<std::uint64_t>(draw.largest);
  const auto draw_one = [&] {
    const std::uint64_t most = draw.mixed && random.Below(2) == 0 ? kSmall : largest;
    const std::uint64_t drawn = random.Below(2 * most);
    const float magnitude = draw.scale * static_cast<float>(drawn % most + 1);
    return draw.centre + (draw.positive || drawn < most ? magnitude : -magnitude);
  };
  const std::size_t stride = draw.strides[input];
  if (stride == 1) {
    std::ranges::generate(tensor, draw_one);
    return tensor;
  }
  for (std::size_t begin = 0; begin < size; begin += stride) {
    const std::size_t at = begin + random.Below(std::min(stride, size - begin));
    tensor[at] = draw_one();
  }
  tensor.back() = draw_one();
  return tensor;
}

}  // namespace loopfleet::worker

#include "tests/unit/worker/gpu/codegen/long_sums.h"

#include <fmt/format.h>

#include <memory>

#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {

using looptree::Op;

std::string LongSums::Name() const {
  return fmt::format("{} of {}, shift {} inner {}: {}", sums, terms, shift, inner,
                     looptree::OpName(op));
}

looptree::LoopTree LongSums::Tree() const {
  ProgramBuilder b;
  const auto m = b.Dim("m", sums);
  const auto n = b.Dim("n", terms);
  const auto wide = b.Dim("w", terms + shift);
  const auto view = b.View(b.Read({m, wide}), {m, n},
                           {{.input_dim = m, .terms = {{m, 1}}},
                            {.input_dim = wide, .terms = {{n, 1}}, .constant = shift}});
  const auto product = b.Apply(Op::kMultiply, {view, b.Read({n})}, {m, n});
  const auto total = b.Apply(op, {product}, {m});
  const auto result = b.Write(total, {m});
  looptree::Schedule schedule(b.program().nodes.size());
  std::vector<looptree::LoopSpec> loops = {{.dim = m, .size = sums}};
  if (inner == 0) {
    loops.push_back({.dim = n, .size = terms});
  } else {
    loops.push_back({.dim = n, .size = terms / inner, .tail = terms % inner});
    loops.push_back({.dim = n, .size = inner});
  }
  for (auto node : {product, total}) schedule[node].loops = loops;
  schedule[result].loops = {{.dim = m, .size = sums}};
  // The write does not share m with the sums: inside their loop it would prevent a nest.
  schedule[result].loops[0].reusable = false;
  return looptree::LoopTree::Build(std::make_shared<looptree::Program>(b.program()), schedule)
      .value();
}

std::vector<LongSums> AllLongSums() {
  std::vector<LongSums> all;
  for (const std::int64_t sums : {1, 3, 100}) {
    for (const std::int64_t terms : {4096, 5000, 9001}) {
      all.push_back({.sums = sums, .terms = terms});
      all.push_back({.sums = sums, .terms = terms, .shift = 1});
      all.push_back({.sums = sums, .terms = terms, .inner = 1000});
      all.push_back({.sums = sums, .terms = terms, .inner = 7});
    }
    for (const Op op : {Op::kMin, Op::kMax}) all.push_back({.sums = sums, .terms = 8192, .op = op});
  }
  all.push_back({.terms = 70'001});
  return all;
}

}  // namespace loopfleet::worker

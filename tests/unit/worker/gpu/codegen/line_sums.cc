#include "tests/unit/worker/gpu/codegen/line_sums.h"

#include <fmt/format.h>

#include <memory>

#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {

std::string LineSums::Name() const {
  return fmt::format("{}x{} shift {} inner {}{}", lines, width, shift, inner,
                     all_threaded ? ", all threaded" : "");
}

looptree::LoopTree LineSums::Tree() const {
  ProgramBuilder b;
  const auto m = b.Dim("m", lines);
  const auto n = b.Dim("n", width);
  const auto wide = b.Dim("w", width + shift);
  const auto view = b.View(b.Read({m, wide}), {m, n},
                           {{.input_dim = m, .terms = {{m, 1}}},
                            {.input_dim = wide, .terms = {{n, 1}}, .constant = shift}});
  const auto sum = b.Apply(looptree::Op::kAdd, {view, b.Read({n})}, {m, n});
  const auto result = b.Write(sum, {m, n});
  const auto total = b.Apply(looptree::Op::kAdd, {sum}, {m});
  const auto totals = b.Write(total, {m});
  using looptree::Annotation;
  const auto inside = all_threaded ? Annotation::kThread : Annotation::kNone;
  looptree::Schedule schedule(b.program().nodes.size());
  for (auto node : {sum, result, total}) {
    schedule[node].loops = {{.dim = m, .size = lines, .annotation = Annotation::kThread}};
    const auto annotation = node == total ? Annotation::kNone : inside;
    if (inner == 0) {
      schedule[node].loops.push_back({.dim = n, .size = width, .annotation = annotation});
      continue;
    }
    const std::int64_t outer = width / inner;
    const std::int64_t tail = width % inner;
    schedule[node].loops.push_back(
        {.dim = n, .size = outer, .tail = tail, .annotation = annotation});
    schedule[node].loops.push_back({.dim = n, .size = inner, .annotation = annotation});
  }
  schedule[totals].loops = {{.dim = m, .size = lines}};
  return looptree::LoopTree::Build(std::make_shared<looptree::Program>(b.program()), schedule)
      .value();
}

std::vector<LineSums> AllLineSums() {
  std::vector<LineSums> all;
  for (const bool all_threaded : {false, true}) {
    for (const std::int64_t lines : {1, 3, 40}) {
      for (const std::int64_t width : {1, 4, 7, 8, 61, 64, 130}) {
        for (const std::int64_t shift : {0, 1, 4}) {
          for (const std::int64_t inner : {0, 4, 5, 8, 12}) {
            if (inner <= width) all.push_back({lines, width, shift, inner, all_threaded});
          }
        }
      }
    }
  }
  return all;
}

}  // namespace loopfleet::worker

#include "common/looptree/tree/simple_tree.h"

#include <utility>

namespace loopfleet::looptree {

Checked<LoopTree> BuildSimpleTree(std::shared_ptr<const Program> program, const SimpleLoops& loops,
                                  const Limits& limits) {
  const auto annotation = [](bool threaded) {
    return threaded ? Annotation::kThread : Annotation::kNone;
  };
  Schedule schedule(program->nodes.size());
  for (NodeId id = 0; id < program->nodes.size(); ++id) {
    const bool first = id == 0;  // only the first operation's innermost loop may be threaded
    for (std::size_t i = 0; i < loops.orders.size(); ++i) {
      const bool innermost = i + 1 == loops.orders.size();
      schedule[id].loops.push_back(
          {.dim = 0,
           .size = loops.orders[i].size,
           .tail = loops.orders[i].tail,
           .annotation = annotation(loops.thread[i] && (first || !innermost)),
           .reusable = !innermost});
    }
  }
  return LoopTree::Build(std::move(program), std::move(schedule), limits);
}

}  // namespace loopfleet::looptree

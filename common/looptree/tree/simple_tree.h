#pragma once
// The trees of dialect simple: three loops over one dimension. All operations share the outer two;
// each has its own innermost loop of the same size (spec A.2, A.4).

#include <array>
#include <cstdint>
#include <memory>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

struct SimpleLoops {
  struct Order {
    std::int64_t size = 1;
    std::int64_t tail = 0;
    friend bool operator==(const Order&, const Order&) = default;
  };
  std::array<Order, 3> orders;
  std::array<bool, 3> thread{true, false, false};

  static SimpleLoops Initial(std::int64_t length) {
    SimpleLoops loops;
    loops.orders[0].size = length;
    return loops;
  }
};

Checked<LoopTree> BuildSimpleTree(std::shared_ptr<const Program> program, const SimpleLoops& loops,
                                  const Limits& limits);

}  // namespace loopfleet::looptree

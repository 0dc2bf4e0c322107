#pragma once
// Lowering: from a graph of tensor operations to programs of the core. A graph becomes one program,
// or several, its segments: at a reshape, where index arithmetic is not affine; and where a program
// would exceed the core's limits, or would read a view's element before it is computed.

#include <cstdint>
#include <vector>

#include "common/looptree/tree/loop_tree.h"
#include "tensor/node.h"

namespace loopfleet::tensor {

// One kernel: reads values, writes one. Values are named by places in the list of nodes.
struct LoweredSegment {
  looptree::LoopTree start;           // one loop per dim, in order of first use, no annotations
  std::vector<std::uint32_t> inputs;  // per Program::inputs: a node whose elements it reads
  std::uint32_t output = 0;           // the node whose elements it writes
};

struct Lowered {
  std::vector<LoweredSegment> segments;  // in order
  std::uint32_t result = 0;              // the place of the leaf or output that holds the root's
};

// `nodes`: as InOrder gave them for one root, the last of them; `shapes`: the sizes of each. Throws
// TensorError: kShape where the core's limits refuse the program, kView for an index that the core
// cannot express.
Lowered Lower(const std::vector<Node*>& nodes, const std::vector<std::vector<std::int64_t>>& shapes,
              const looptree::Limits& limits = {});

}  // namespace loopfleet::tensor

#pragma once
// Graph: a tree as nodes and edges, for graph networks and for drawing (spec B.10). Two views:
//
// - TreeGraph: the loop tree itself; an edge leads from each loop to what is directly inside it.
// - DataflowGraph: the tree's nodes and the tensors and buffers as data nodes besides. Control
//   edges are the tree's; access edges lead from the loops to the buffers that they walk over; flow
//   edges from a buffer to an operation that reads it, and from an operation to its own buffer.
//
// Parallel edges are possible (an operation may read one buffer twice), so it is a multigraph.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

struct GraphFeature {
  std::string_view name;
  std::int64_t value = 0;
};

struct GraphNode {
  // The numbers are the original's feature "type".
  enum class Kind : std::uint8_t { kOperation = 0, kLoop = 1, kData = 2 };
  Kind kind = Kind::kOperation;
  std::uint32_t number = 0;            // TreeRef; of kData the program's NodeId
  std::string label;                   // "for m in 4 r 1", "%3[m, n] <- add(%2)", "%0[ m k ]"
  std::vector<GraphFeature> features;  // by name, in alphabetical order; how many depends on kind

  std::string Id() const;  // "L3", "D0"
};

struct GraphEdge {
  enum class Kind : std::uint8_t { kControl, kAccess, kFlow };
  Kind kind = Kind::kControl;
  std::uint32_t source = 0;  // indices into Graph::nodes
  std::uint32_t target = 0;
  std::string label;  // kAccess: elements between one iteration's first access and the next one's
  std::vector<GraphFeature> features;  // as in GraphNode; "type" is 3 for control, 4 for data
};

struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
};

enum class GraphExtent : std::uint8_t {
  kWholeTree,
  kFirstNest,  // as the original draws: what is below the first root only
};

Graph TreeGraph(const LoopTree& tree, std::optional<TreeRef> cursor,
                GraphExtent extent = GraphExtent::kWholeTree);

// An access edge's feature "stride" is what the original puts there: the elements of the loop's
// dimension that one iteration covers. Loops outside a buffer's scope do not walk over it and have
// no edge to it. The edges of a buffer are those of the first operation that touches it.
Graph DataflowGraph(const LoopTree& tree, std::optional<TreeRef> cursor,
                    GraphExtent extent = GraphExtent::kWholeTree);

// Graphviz text of the two for the first nest, as the original's; and of the program's own graph
// with each operation's loops.
std::string TreeDot(const LoopTree& tree, std::optional<TreeRef> cursor);      // `dot_tree`
std::string DataflowDot(const LoopTree& tree, std::optional<TreeRef> cursor);  // `dot_graph`
// `dot`, whose text readers of the original's know, though Graphviz refuses braces inside a record;
// and `dot_ir`, the same with these escaped, which it draws.
enum class DotForm : std::uint8_t { kOriginal, kDrawable };
std::string ProgramDot(const LoopTree& tree, std::optional<TreeRef> cursor,
                       DotForm form = DotForm::kOriginal);

}  // namespace loopfleet::looptree

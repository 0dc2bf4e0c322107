#pragma once
// Graph: a tree as nodes and edges, for graph networks and for drawing (spec B.10). Two kinds:
//
// - TreeGraph: the loop tree. Edges lead from each loop to the nodes directly inside it.
// - DataflowGraph: the tree's nodes, and its tensors and buffers as data nodes. Control edges are
//   those of the tree. Access edges lead from loops to the buffers they walk over. Flow edges lead
//   from a buffer to each operation that reads it, and from an operation to its own buffer.
//
// Parallel edges occur (an operation may read one buffer twice), so this is a multigraph.

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
  std::uint32_t number = 0;            // TreeRef; for kData the program's NodeId
  std::string label;                   // "for m in 4 r 1", "%3[m, n] <- add(%2)", "%0[ m k ]"
  std::vector<GraphFeature> features;  // sorted by name; which ones depends on kind

  std::string Id() const;  // "L3", "D0"
};

struct GraphEdge {
  enum class Kind : std::uint8_t { kControl, kAccess, kFlow };
  Kind kind = Kind::kControl;
  std::uint32_t source = 0;  // indices into Graph::nodes
  std::uint32_t target = 0;
  std::string label;  // kAccess: stride between consecutive iterations, in elements
  std::vector<GraphFeature> features;  // as in GraphNode; "type" is 3 for control, 4 for data
};

struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
};

enum class GraphExtent : std::uint8_t {
  kWholeTree,
  kFirstNest,  // only the subtree of the first root, as the original draws
};

Graph TreeGraph(const LoopTree& tree, std::optional<TreeRef> cursor,
                GraphExtent extent = GraphExtent::kWholeTree);

// The feature "stride" of an access edge is the original's: the elements of the loop's dimension
// that one iteration covers. Loops outside a buffer's scope do not walk over it and have no edge to
// it. A buffer has the access edges of the first operation that accesses it.
Graph DataflowGraph(const LoopTree& tree, std::optional<TreeRef> cursor,
                    GraphExtent extent = GraphExtent::kWholeTree);

// Graphviz text of both graphs for the first nest, as the original writes it.
std::string TreeDot(const LoopTree& tree, std::optional<TreeRef> cursor);      // `dot_tree`
std::string DataflowDot(const LoopTree& tree, std::optional<TreeRef> cursor);  // `dot_graph`
// Graphviz text of the program's own graph, with each operation's loops. kOriginal (`dot`) is for
// readers of the original's text; Graphviz rejects its braces inside a record. kDrawable (`dot_ir`)
// escapes them.
enum class DotForm : std::uint8_t { kOriginal, kDrawable };
std::string ProgramDot(const LoopTree& tree, std::optional<TreeRef> cursor,
                       DotForm form = DotForm::kOriginal);
// The same graph for people: a record for each operation, its dims above its loops:
// "{multiply : [m, k, n]|{m:200|k:300|n:400}}". Remainders follow as "m:4 r 1".
std::string ScheduleDot(const LoopTree& tree);

}  // namespace loopfleet::looptree

#pragma once
// GraphJson: a graph as networkx's node-link JSON:
//
//   {"directed": true, "multigraph": true, "graph": {},
//    "nodes": [{"id": "L0", "kind": "loop", "label": "for m in 64 r 0", "cursor": 1, ...,
//               "features": [1, 64, 0, 1, 0, 0]}],
//    "edges": [{"source": "L0", "target": "D0", "key": 0, "kind": "access", ...}]}
//
// `networkx.node_link_graph(value, edges="edges")` (link="edges" before 3.4) gives the MultiDiGraph
// without loss. "features" holds the values of the node's or edge's features in alphabetical order
// of their names, as in the original's vectors. A loop has more of them than an operation.

#include "client/outcome_json.h"
#include "common/looptree/features/graph.h"

namespace loopfleet::client {

Json GraphJson(const looptree::Graph& graph);

}  // namespace loopfleet::client

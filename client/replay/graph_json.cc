#include "client/replay/graph_json.h"

#include <map>
#include <utility>

namespace loopfleet::client {
namespace {

using looptree::Graph;
using looptree::GraphEdge;
using looptree::GraphFeature;
using looptree::GraphNode;

std::string_view KindName(GraphNode::Kind kind) {
  switch (kind) {
    case GraphNode::Kind::kOperation: return "operation";
    case GraphNode::Kind::kLoop: return "loop";
    case GraphNode::Kind::kData: return "data";
  }
  return "";
}

std::string_view KindName(GraphEdge::Kind kind) {
  switch (kind) {
    case GraphEdge::Kind::kControl: return "control";
    case GraphEdge::Kind::kAccess: return "access";
    case GraphEdge::Kind::kFlow: return "flow";
  }
  return "";
}

void AddFeatures(const std::vector<GraphFeature>& features, Json& json) {
  Json values = Json::array();
  for (const auto& [name, value] : features) {
    json[std::string(name)] = value;
    values.push_back(value);
  }
  json["features"] = std::move(values);
}

}  // namespace

Json GraphJson(const Graph& graph) {
  Json json = {{"directed", true}, {"multigraph", true}, {"graph", Json::object()}};
  Json& nodes = json["nodes"] = Json::array();
  for (const GraphNode& node : graph.nodes) {
    Json& drawn = nodes.emplace_back(
        Json{{"id", node.Id()}, {"kind", KindName(node.kind)}, {"label", node.label}});
    AddFeatures(node.features, drawn);
  }
  Json& edges = json["edges"] = Json::array();
  std::map<std::pair<std::uint32_t, std::uint32_t>, int>
      parallel;  // edges so far between two nodes
  for (const GraphEdge& edge : graph.edges) {
    Json& drawn = edges.emplace_back(Json{{"source", graph.nodes[edge.source].Id()},
                                          {"target", graph.nodes[edge.target].Id()},
                                          {"key", parallel[{edge.source, edge.target}]++},
                                          {"kind", KindName(edge.kind)},
                                          {"label", edge.label}});
    AddFeatures(edge.features, drawn);
  }
  return json;
}

}  // namespace loopfleet::client

#pragma once
// ProgramlGraph: a module as ProGraML draws it, as columns. Instructions, variables and constants
// are nodes; control, data and calls are edges. Made by worker/llvm_env; clients decode it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace loopfleet::passes {

struct ProgramlGraph {
  enum class NodeType : std::uint8_t { kInstruction, kVariable, kConstant };
  enum class Flow : std::uint8_t { kControl, kData, kCall };

  std::vector<std::string> texts;  // the dictionary of node texts, in order of first use

  // A column for each property of nodes; all are equally long. Node 0 is "[external]".
  std::vector<NodeType> node_type;
  std::vector<std::uint16_t> node_text;  // an index into `texts`
  std::vector<std::uint32_t> node_function;
  std::vector<std::uint32_t> node_block;

  // A column for each property of edges; all are equally long.
  std::vector<Flow> edge_flow;
  std::vector<std::uint32_t> edge_position;
  std::vector<std::uint32_t> edge_source;  // a node
  std::vector<std::uint32_t> edge_target;  // a node

  friend bool operator==(const ProgramlGraph&, const ProgramlGraph&) = default;
};

// The columns one after the other, compressed with zstd: the value of the observation Programl.
// Numbers are little-endian.
std::string Encode(const ProgramlGraph& graph);
// kCorrupt: no such encoding. At most kMaxProgramlBytes are decompressed.
Result<ProgramlGraph> DecodePrograml(std::string_view bytes);
inline constexpr std::size_t kMaxProgramlBytes = std::size_t{1} << 30;

// NetworkX's node-link form. Parallel edges have different keys, so none is lost. `full_texts`:
// features.full_text of every node but the first; empty: there are no features.
std::string ToNodeLinkJson(const ProgramlGraph& graph,
                           std::span<const std::string> full_texts = {});

}  // namespace loopfleet::passes

#include "common/looptree/tree/loop_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/result.h"
#include "common/looptree/program/program_facts.h"

namespace loopfleet::looptree {

std::vector<TreeRef> LoopTree::Children(std::optional<TreeRef> parent) const {
  std::vector<TreeRef> children;
  const TreeRef end =
      parent ? body_->nodes[*parent].end : static_cast<TreeRef>(body_->nodes.size());
  for (TreeRef ref = parent ? *parent + 1 : 0; ref < end; ref = body_->nodes[ref].end) {
    children.push_back(ref);
  }
  return children;
}

std::optional<TreeRef> LoopTree::LeafOf(NodeId node) const {
  if (body_->leaves[node] == kNoParent) return std::nullopt;
  return body_->leaves[node];
}

std::span<const TreeRef> LoopTree::LoopsOf(NodeId node) const {
  return std::span(body_->loop_refs)
      .subspan(body_->loop_begins[node], body_->loop_begins[node + 1] - body_->loop_begins[node]);
}

std::vector<NodeId> LoopTree::ReadersOf(NodeId node) const {
  std::vector<NodeId> readers;
  for (const NodeId consumer : body_->facts->nodes[node].consumers) {
    if (body_->leaves[consumer] != kNoParent) {
      readers.push_back(consumer);
    } else {
      const auto further = ReadersOf(consumer);
      readers.insert(readers.end(), further.begin(), further.end());
    }
  }
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

std::optional<TreeRef> LoopTree::ScopeOf(NodeId node) const {
  if (body_->leaves[node] == kNoParent || body_->program->nodes[node].op == Op::kWrite)
    return std::nullopt;
  TreeRef scope = body_->nodes[body_->leaves[node]].parent;
  const auto widen = [&](const auto& self, NodeId producer) -> void {
    for (const NodeId consumer : body_->facts->nodes[producer].consumers) {
      const TreeRef leaf = body_->leaves[consumer];
      if (leaf == kNoParent) {
        self(self, consumer);
        continue;
      }
      while (scope != kNoParent && leaf >= body_->nodes[scope].end)
        scope = body_->nodes[scope].parent;
    }
  };
  widen(widen, node);
  if (scope == kNoParent) return std::nullopt;
  return scope;
}

std::int64_t LoopTree::BufferExtent(NodeId node, DimId dim) const {
  return ExtentBelow(node, dim, ScopeOf(node));
}

std::int64_t LoopTree::ExtentBelow(NodeId node, DimId dim, std::optional<TreeRef> scope) const {
  std::int64_t extent = body_->program->dims[dim].size;
  if (!scope) return extent;
  for (const TreeRef loop : LoopsOf(node)) {
    if (loop <= *scope && body_->nodes[loop].dim == dim) extent = body_->nodes[loop].inner;
  }
  return extent;
}

std::uint64_t LoopTree::ScratchBytes() const {
  std::uint64_t bytes = 0;
  for (NodeId id = 0; id < body_->program->nodes.size(); ++id) {
    if (body_->leaves[id] == kNoParent || body_->program->nodes[id].op == Op::kWrite) continue;
    const auto scope = ScopeOf(id);
    std::uint64_t elements = 1;
    for (const DimId dim : body_->program->nodes[id].dims) {
      elements *= static_cast<std::uint64_t>(ExtentBelow(id, dim, scope));
    }
    bytes += elements * sizeof(float);
  }
  return bytes;
}

std::uint64_t FlopCount(const Program& program) {
  std::uint64_t count = 0;
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    if (!IsArithmetic(program.nodes[id].op)) continue;
    auto points = static_cast<std::uint64_t>(program.ElementCount(id));
    for (const DimId dim : program.ReducedDims(id)) {
      points *= static_cast<std::uint64_t>(program.dims[dim].size);
    }
    count += points;
  }
  return count;
}

std::uint64_t TensorBytes(const Program& program) {
  std::uint64_t bytes = 0;
  for (NodeId id = 0; id < program.nodes.size(); ++id) {
    const Op op = program.nodes[id].op;
    if (op == Op::kRead || op == Op::kWrite) {
      bytes += static_cast<std::uint64_t>(program.ElementCount(id)) * sizeof(float);
    }
  }
  return bytes;
}

}  // namespace loopfleet::looptree

#include "tensor/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <string_view>

namespace loopfleet::tensor {
namespace {

std::uint64_t NextMark() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

std::function<std::string()>& OriginOf() {
  static auto* const origin = new std::function<std::string()>;
  return *origin;
}

// Those of the nodes of `root` that are not yet marked.
void Append(Node& root, std::uint64_t mark, std::vector<Node*>& order) {
  if (root.mark == mark) return;
  // A node and the next of its inputs to visit. Marked nodes without a place are on the stack.
  thread_local std::vector<std::pair<Node*, std::size_t>> stack;
  stack.clear();
  root.mark = mark;
  stack.emplace_back(&root, 0);
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < node->inputs.size()) {
      Node* const input = node->inputs[next++].get();
      if (input->mark != mark) {
        input->mark = mark;
        stack.emplace_back(input, 0);
      }
      continue;
    }
    node->place = static_cast<std::uint32_t>(order.size());
    order.push_back(node);
    stack.pop_back();
  }
}

}  // namespace

// A chain of many nodes would need a stack as deep: inputs are destroyed in a loop instead.
Node::~Node() {
  thread_local std::vector<NodePtr>* doomed = nullptr;
  if (inputs.empty()) return;
  if (doomed != nullptr) {
    for (NodePtr& input : inputs) doomed->push_back(std::move(input));
    return;
  }
  std::vector<NodePtr> mine = std::move(inputs);
  doomed = &mine;
  while (!mine.empty()) {
    const NodePtr last = std::move(mine.back());
    mine.pop_back();
  }
  doomed = nullptr;
}

void SetOriginOf(std::function<std::string()> origin) { OriginOf() = std::move(origin); }

NodePtr MakeNode(Node::Kind kind, std::vector<NodePtr> inputs, std::vector<Symbol> symbols) {
  auto node = std::make_shared<Node>(kind);
  node->inputs = std::move(inputs);
  node->symbols = std::move(symbols);
  node->needs_context = kind == Node::Kind::kView || kind == Node::Kind::kReshape;
  for (const NodePtr& input : node->inputs) node->needs_context |= input->needs_context;
  if (node->needs_context) {
    for (const NodePtr& input : node->inputs) {
      auto& consumers = input->consumers;
      if (consumers.size() >= input->prune_at) {
        std::erase_if(consumers, [](const auto& weak) { return weak.expired(); });
        input->prune_at = std::max<std::size_t>(16, 2 * consumers.size());
      }
      consumers.push_back(node);
    }
  }
  if (OriginOf()) node->origin = OriginOf()();
  return node;
}

std::span<const NodePtr> OperandsOf(const Node& node) {
  const std::span<const NodePtr> inputs = node.inputs;
  if (node.kind == Node::Kind::kCount) return {};
  return SizedLike(node) != nullptr ? inputs.first(1) : inputs;
}

const Node* SizedLike(const Node& node) {
  const bool may_be = node.kind == Node::Kind::kRename || node.kind == Node::Kind::kView ||
                      node.kind == Node::Kind::kReshape;
  return may_be && node.inputs.size() > 1 ? node.inputs[1].get() : nullptr;
}

std::vector<Node*> InOrder(Node& root) {
  std::vector<Node*> order;
  InOrder(root, order);
  return order;
}

void InOrder(Node& root, std::vector<Node*>& order) {
  order.clear();
  Append(root, NextMark(), order);
}

std::vector<Node*> InOrder(const std::vector<Node*>& roots) {
  const std::uint64_t mark = NextMark();
  std::vector<Node*> order;
  for (Node* const root : roots) Append(*root, mark, order);
  return order;
}

std::string Join(const std::vector<Symbol>& symbols) {
  std::string text;
  for (const Symbol& symbol : symbols) {
    if (!text.empty()) text += ", ";
    text += symbol.name();
  }
  return text;
}

std::string Describe(const Node& node) {
  const std::string dims = Join(node.symbols);
  std::string text;
  switch (node.kind) {
    case Node::Kind::kLeaf: text = fmt::format("Tensor({})", dims); break;
    case Node::Kind::kConstant: text = fmt::format("the number {}", node.value); break;
    case Node::Kind::kCount: text = "a number by sizes"; break;
    case Node::Kind::kPointwise:
      text = fmt::format("{}[{}]", looptree::OpName(node.op), dims);
      break;
    case Node::Kind::kReduce:
      text = fmt::format("reduction by {} to [{}]", looptree::OpName(node.op), dims);
      break;
    case Node::Kind::kMean: text = fmt::format("mean[{}]", dims); break;
    case Node::Kind::kRename: text = fmt::format("to({})", dims); break;
    case Node::Kind::kTranspose: text = fmt::format("transpose({})", dims); break;
    case Node::Kind::kView: text = fmt::format("view[{}]", dims); break;
    case Node::Kind::kConcat: text = fmt::format("concatenation[{}]", dims); break;
    case Node::Kind::kReshape: text = fmt::format("reshaped[{}]", dims); break;
  }
  if (!node.origin.empty()) text += fmt::format(" made at {}", node.origin);
  return text;
}

std::uint64_t NextVersion() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace loopfleet::tensor

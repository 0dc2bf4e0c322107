#include "worker/llvm_env/observations/programl.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ModuleSlotTracker.h>
#include <llvm/Support/raw_ostream.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loopfleet::worker {
namespace {

using passes::ProgramlGraph;
using enum ProgramlGraph::NodeType;
using enum ProgramlGraph::Flow;

using Node = std::uint32_t;
using Block = llvm::BasicBlock;

constexpr std::size_t kMostTexts = std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1;

std::string TextOf(const llvm::Type& type) {
  if (type.isStructTy()) return "struct";
  std::string text;
  llvm::raw_string_ostream stream(text);
  type.print(stream);
  return text;
}

template <class Value>
std::string Printed(const Value& value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  value.print(stream);
  return text;
}

// What LLVM prints for the values of one function, as if each were printed alone. Numbers the
// function's values once, where printing one alone would do so each time.
class FunctionTexts {
 public:
  explicit FunctionTexts(const llvm::Function& function) : numbers_(function.getParent(), false) {
    numbers_.incorporateFunction(function);
  }

  const std::string& Of(const llvm::Instruction& instruction) {
    std::string& text = instructions_[&instruction];
    if (text.empty()) text = llvm::StringRef(Print(instruction)).ltrim().str();
    return text;
  }
  std::string Of(const llvm::Argument& argument) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    argument.printAsOperand(stream, true, numbers_);
    return text;
  }
  // The type and the name of the result.
  std::string ResultOf(const llvm::Instruction& instruction) {
    const std::string& text = Of(instruction);
    return TextOf(*instruction.getType()) + " " + text.substr(0, text.find(" = "));
  }

 private:
  std::string Print(const llvm::Instruction& instruction) {
    // Printed alone, metadata operands have the numbers of the whole module's metadata.
    for (const llvm::Use& operand : instruction.operands()) {
      if (llvm::isa<llvm::MetadataAsValue>(operand.get())) return Printed(instruction);
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    instruction.print(stream, numbers_);
    return text;
  }

  llvm::ModuleSlotTracker numbers_;
  llvm::DenseMap<const llvm::Instruction*, std::string> instructions_;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(std::vector<std::string>* full_texts) : full_texts_(full_texts) {}

  Result<ProgramlGraph> Build(const llvm::Module& module) {
    AddNode(kInstruction, TextId("[external]"), 0, 0);
    AddFullText([] { return ""; });
    for (const llvm::Function& function : module) {
      AddFunction(function);
      ++function_;
    }
    AddCalls();
    for (const auto& [constant, uses] : constants_) {
      const Node node = AddNode(kConstant, TextId(*constant->getType()), 0, block_);
      AddFullText([&] { return llvm::StringRef(Printed(*constant)).ltrim().str(); });
      AddUses(node, uses);
    }
    if (graph_.texts.size() > kMostTexts) {
      return Fail(ErrorKind::kFull, "the graph has more than 65,536 different texts");
    }
    return std::move(graph_);
  }

 private:
  struct Use {
    Node consumer;
    std::uint32_t position;
  };
  using Uses = llvm::SmallVector<Use, 2>;
  // Nodes where control enters and leaves.
  struct Ends {
    Node entry = 0;
    std::vector<Node> exits;
  };
  struct BlockEnds {
    Node first = 0;
    Node last = 0;
  };

  std::uint16_t TextId(llvm::StringRef text) {
    const auto [found, is_new] =
        text_ids_.try_emplace(text, static_cast<std::uint32_t>(graph_.texts.size()));
    if (is_new) graph_.texts.push_back(text.str());
    return static_cast<std::uint16_t>(found->second);  // checked at the end
  }
  std::uint16_t TextId(const llvm::Type& type) {
    const auto found = type_ids_.find(&type);
    if (found != type_ids_.end()) return found->second;
    return type_ids_[&type] = TextId(TextOf(type));
  }

  Node AddNode(ProgramlGraph::NodeType type, std::uint16_t text, std::uint32_t function,
               std::uint32_t block) {
    graph_.node_type.push_back(type);
    graph_.node_text.push_back(text);
    graph_.node_function.push_back(function);
    graph_.node_block.push_back(block);
    return static_cast<Node>(graph_.node_type.size() - 1);
  }
  void AddEdge(ProgramlGraph::Flow flow, std::uint32_t position, Node source, Node target) {
    graph_.edge_flow.push_back(flow);
    graph_.edge_position.push_back(position);
    graph_.edge_source.push_back(source);
    graph_.edge_target.push_back(target);
  }
  // Of the node that was added last.
  template <class Text>
  void AddFullText(const Text& text) {
    if (full_texts_ != nullptr) full_texts_->push_back(text());
  }
  void AddUses(Node producer, const Uses& uses) {
    for (const Use& use : uses) AddEdge(kData, use.position, producer, use.consumer);
  }

  void AddFunction(const llvm::Function& function) {
    Ends& ends = functions_[&function];
    if (function.isDeclaration()) {
      ends.entry = AddNode(kInstruction, TextId("; undefined function"), function_, block_);
      AddFullText([] { return ""; });
      ends.exits = {ends.entry};
      return;
    }
    instructions_.clear();
    variables_.clear();
    arguments_.clear();
    if (full_texts_ != nullptr) texts_.emplace(function);
    llvm::DenseMap<const Block*, BlockEnds> blocks;
    for (const Block& block : function) {
      blocks[&block] = AddBlock(block);
      ++block_;
    }
    for (const auto& [argument, uses] : arguments_) {
      const Node node = AddNode(kVariable, TextId(*argument->getType()), function_, block_);
      AddFullText([&] { return texts_->Of(*argument); });
      AddUses(node, uses);
    }
    // The producer may stand behind its consumer.
    for (const auto& [variable, producer] : variables_) {
      AddEdge(kData, 0, instructions_.at(producer), variable);
    }
    ends.entry = blocks[&function.getEntryBlock()].first;
    ends.exits = ConnectBlocks(function, blocks);
  }

  BlockEnds AddBlock(const Block& block) {
    BlockEnds ends;
    for (const llvm::Instruction& instruction : block) {
      const Node node =
          AddNode(kInstruction, TextId(instruction.getOpcodeName()), function_, block_);
      AddFullText([&] { return texts_->Of(instruction); });
      if (&instruction == &block.front()) {
        ends.first = node;
      } else {
        AddEdge(kControl, 0, ends.last, node);
      }
      ends.last = node;
      instructions_[&instruction] = node;
      AddOperands(instruction, node);
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (call != nullptr && call->getCalledFunction() != nullptr) {
        calls_.emplace_back(node, call->getCalledFunction());
      }
    }
    return ends;
  }

  // Blocks, functions, metadata and inline assembly get no node, but they use up their position.
  void AddOperands(const llvm::Instruction& instruction, Node consumer) {
    for (const llvm::Use& operand : instruction.operands()) {
      const llvm::Value* value = operand.get();
      const std::uint32_t position = operand.getOperandNo();
      if (const auto* producer = llvm::dyn_cast<llvm::Instruction>(value)) {
        const Node variable = AddNode(kVariable, TextId(*producer->getType()), function_, block_);
        AddFullText([&] { return texts_->ResultOf(*producer); });
        AddEdge(kData, position, variable, consumer);
        variables_.emplace_back(variable, producer);
      } else if (const auto* argument = llvm::dyn_cast<llvm::Argument>(value)) {
        arguments_[argument].push_back({consumer, position});
      } else if (const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
                 constant != nullptr && !llvm::isa<llvm::Function>(constant)) {
        constants_[constant].push_back({consumer, position});
      }
    }
  }

  // Edges between the blocks that can be reached, breadth first. Returns where control leaves.
  std::vector<Node> ConnectBlocks(const llvm::Function& function,
                                  const llvm::DenseMap<const Block*, BlockEnds>& blocks) {
    std::vector<Node> exits;
    std::vector<const Block*> queue = {&function.getEntryBlock()};
    llvm::DenseSet<const Block*> seen = {queue.front()};
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const Node last = blocks.at(queue[i]).last;
      std::uint32_t position = 0;
      for (const Block* next : llvm::successors(queue[i])) {
        AddEdge(kControl, position++, last, blocks.at(next).first);
        if (seen.insert(next).second) queue.push_back(next);
      }
      if (position == 0) exits.push_back(last);
    }
    return exits;
  }

  void AddCalls() {
    constexpr Node kExternal = 0;
    for (const auto& [function, ends] : functions_) {
      AddEdge(kCall, 0, kExternal, ends.entry);
      for (const Node exit : ends.exits) AddEdge(kCall, 0, exit, kExternal);
    }
    for (const auto& [call, callee] : calls_) {
      const Ends& ends = functions_[callee];
      AddEdge(kCall, 0, call, ends.entry);
      for (const Node exit : ends.exits) AddEdge(kCall, 0, exit, call);
    }
  }

  ProgramlGraph graph_;
  llvm::StringMap<std::uint32_t> text_ids_;
  llvm::DenseMap<const llvm::Type*, std::uint16_t> type_ids_;
  std::uint32_t function_ = 0;  // the number of the function, and of the block, at work
  std::uint32_t block_ = 0;

  std::vector<std::string>* const full_texts_;  // null: not wanted

  // Of the function at work.
  std::optional<FunctionTexts> texts_;
  llvm::DenseMap<const llvm::Instruction*, Node> instructions_;
  std::vector<std::pair<Node, const llvm::Instruction*>> variables_;
  llvm::MapVector<const llvm::Argument*, Uses> arguments_;

  // Of the module. The vectors keep the order of first use.
  llvm::MapVector<const llvm::Constant*, Uses> constants_;
  llvm::MapVector<const llvm::Function*, Ends> functions_;
  std::vector<std::pair<Node, const llvm::Function*>> calls_;
};

}  // namespace

Result<passes::ProgramlGraph> ProgramlOf(const llvm::Module& module,
                                         std::vector<std::string>* full_texts) {
  return GraphBuilder(full_texts).Build(module);
}

}  // namespace loopfleet::worker

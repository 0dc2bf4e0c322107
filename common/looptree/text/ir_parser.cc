// ParseIr: parses untrusted text into a tree. Every syntax error names its line.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/looptree/program/checked_math.h"
#include "common/looptree/program/dim_set.h"
#include "common/looptree/program/number_text.h"
#include "common/looptree/text/text.h"
#include "common/looptree/text/view_text.h"
#include "common/looptree/tree/annotation_text.h"

namespace loopfleet::looptree {
namespace {

std::unexpected<Rejection> Invalid(std::string message) {
  return Reject(RejectionCode::kInvalidBenchmark, std::move(message));
}

// A list's name for error messages, and its largest number of items.
struct ListRule {
  std::string_view name;
  std::size_t most;
};

// The items of "3,4,"; none for "".
Checked<std::vector<std::string_view>> ParseItems(std::string_view text, ListRule rule) {
  auto items = SplitText(text, ',', rule.most + 2);
  if (items.empty()) return items;
  if (items.size() > rule.most + 1) {
    return Reject(RejectionCode::kLimitTree,
                  fmt::format("{}: more than {} in one list", rule.name, rule.most));
  }
  if (!items.back().empty()) return Invalid(fmt::format("{} must end in ','", rule.name));
  items.pop_back();
  return items;
}

Checked<std::vector<std::uint32_t>> ParseIds(std::string_view text, ListRule rule) {
  LF_TRY(const auto items, ParseItems(text, rule));
  std::vector<std::uint32_t> ids;
  for (const std::string_view item : items) {
    const auto id = ParseInteger(item);
    if (!id || *id < 0 || *id > UINT32_MAX) {
      return Invalid(fmt::format("{}: bad number {}", rule.name, Quoted(item)));
    }
    ids.push_back(static_cast<std::uint32_t>(*id));
  }
  return ids;
}

// The parts of a node's line, in order.
enum Chunk : std::size_t {
  kTag,
  kOp,
  kInputs,
  kVars,
  kConstraints,
  kSymbolMap,
  kPriority,
  kOrder,
  kNotReusable,
  kLoopAnnotations,
  kNodeAnnotation,
  kEnd,
  kChunkCount,
};

class IrParser {
 public:
  IrParser(const Limits& limits, Words words) : limits_(limits), words_(words) {}

  Checked<LoopTree> Parse(std::string_view text) {
    if (text.size() > limits_.text_bytes) {
      return Invalid(fmt::format("the program text has {} bytes; at most {} are allowed",
                                 text.size(), limits_.text_bytes));
    }
    std::size_t number = 0;
    while (!text.empty()) {
      ++number;
      const std::size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      auto parsed = ParseLine(line);
      if (!parsed) {
        parsed.error().message = fmt::format("program line {}: {}", number, parsed.error().message);
        return std::unexpected(std::move(parsed).error());
      }
    }
    if (section_ != Section::kDone)
      return Invalid("the program must end with an 'i:' and an 'o:' line");
    LF_TRY_VOID(ResolveViews());
    LF_TRY_VOID(ResolveSizes());
    LF_TRY(LoopTree tree, LoopTree::Build(std::make_shared<const Program>(std::move(program_)),
                                          std::move(schedule_), limits_));
    LF_TRY_VOID(CheckPrintable(tree.program()));
    return tree;
  }

 private:
  enum class Section { kVars, kNodes, kOutputs, kDone };

  Checked<void> ParseLine(std::string_view line) {
    if (line.empty() && section_ == Section::kDone) return {};  // trailing blank line
    if (line.starts_with("v:") && section_ == Section::kVars) {
      if (program_.dims.size() == kMaxDims) {
        return Reject(RejectionCode::kLimitTree, fmt::format("more than {} dimensions", kMaxDims));
      }
      program_.dims.push_back({std::string(line.substr(2)), 0});
      return {};
    }
    if (line.starts_with("n:") && section_ <= Section::kNodes) {
      section_ = Section::kNodes;
      return ParseNode(line);
    }
    if (line.starts_with("i:") && section_ == Section::kNodes) {
      section_ = Section::kOutputs;
      LF_TRY(program_.inputs, ParseIds(line.substr(2), {"inputs", limits_.tree_nodes}));
      return {};
    }
    if (line.starts_with("o:") && section_ == Section::kOutputs) {
      section_ = Section::kDone;
      LF_TRY(program_.outputs, ParseIds(line.substr(2), {"outputs", limits_.tree_nodes}));
      return {};
    }
    return Invalid(
        fmt::format("{} is not expected here: the text is lines 'v:', 'n:', one 'i:', one"
                    " 'o:', in this order",
                    Quoted(line)));
  }

  Checked<void> ParseNode(std::string_view line) {
    if (program_.nodes.size() >= limits_.tree_nodes) {
      return Reject(RejectionCode::kLimitTree,
                    fmt::format("more than {} operations", limits_.tree_nodes));
    }
    const auto chunks = SplitText(line, ':', kChunkCount + 1);
    if (chunks.size() != kChunkCount || !chunks[kEnd].empty()) {
      return Invalid(fmt::format("a node has 11 parts, each ended by ':', not {}",
                                 std::count(line.begin(), line.end(), ':')));
    }
    const auto number = ParseInteger(chunks[kOp]);
    const auto op = number ? OpOf(*number) : std::nullopt;
    if (!op) {
      return Invalid(fmt::format("operation {} must be a number from 0 to 17 or 32 to 44",
                                 Quoted(chunks[kOp])));
    }
    Node node{.op = *op};
    LF_TRY(node.inputs, ParseIds(chunks[kInputs], {"inputs", limits_.tree_nodes}));
    LF_TRY(node.dims, ParseIds(chunks[kVars], {"dimensions", kMaxDims}));
    LF_TRY_VOID(ParseConstraints(node, chunks[kConstraints], chunks[kSymbolMap]));
    LF_TRY_VOID(ParseNodeAnnotation(node, chunks[kNodeAnnotation]));
    LF_TRY(NodeSchedule schedule, ParseSchedule(chunks));
    program_.nodes.push_back(std::move(node));
    schedule_.push_back(std::move(schedule));
    return {};
  }

  // A constant's value, or what a guarded view reads outside of its input.
  Checked<void> ParseNodeAnnotation(Node& node, std::string_view text) {
    guarded_.push_back(false);
    const bool constant = node.op == Op::kConstant;
    const std::string_view name = constant ? "constant=" : "outside=";
    if (text.empty() && !constant) return {};
    if (!text.starts_with(name) || (!constant && node.op != Op::kView)) {
      return Reject(RejectionCode::kUnsupported,
                    fmt::format("annotation {} of an operation; valid: 'constant=0x0p+0' of a"
                                " constant, 'outside=0x0p+0' of a view",
                                Quoted(text)));
    }
    LF_TRY(const double number, ParseFloat(text.substr(name.size()), name));
    (constant ? node.constant : node.outside) = number;
    guarded_.back() = !constant;
    return {};
  }

  static Checked<double> ParseFloat(std::string_view text, std::string_view name) {
    const auto exact = ParseHexNumber(text);
    const auto number = exact ? exact : ParseNumber(text);
    const auto rounded = static_cast<double>(static_cast<float>(number.value_or(0)));
    if (exact && *exact == rounded) return rounded;
    return Invalid(
        fmt::format("{}{} must be a float32 number in C's hexadecimal form;"
                    " nearest: {}",
                    name, Quoted(text), HexNumberText(rounded)));
  }

  Checked<void> ParseConstraints(const Node& node, std::string_view constraints,
                                 std::string_view symbol_map) {
    if (node.op != Op::kView && !(constraints.empty() && symbol_map.empty())) {
      return Invalid("only a view has constraints");
    }
    LF_TRY(ViewConstraints parsed,
           ParseViewConstraints(constraints, symbol_map,
                                {.dim_count = program_.dims.size(),
                                 .view_dims = node.dims,
                                 .most_entries = kMaxViewEntries - view_entries_}));
    view_entries_ += parsed.entry_count;
    for (const auto& [dim, size] : parsed.sizes) LF_TRY_VOID(NoteSize(dim, size));
    constraints_.push_back(std::move(parsed));
    return {};
  }

  Checked<void> NoteSize(DimId dim, std::int64_t size) {
    std::int64_t& known = program_.dims[dim].size;
    if (size < 1 || (known != 0 && known != size)) {
      return Invalid(fmt::format("dimension {} cannot have size {}{}", program_.dims[dim].name,
                                 size, size < 1 ? "" : fmt::format(" and {}", known)));
    }
    known = size;
    return {};
  }

  Checked<NodeSchedule> ParseSchedule(const std::vector<std::string_view>& chunks) const {
    NodeSchedule schedule;
    const auto priority = ParseNumber(chunks[kPriority]);
    if (!priority) return Invalid(fmt::format("bad priority {}", Quoted(chunks[kPriority])));
    schedule.priority = *priority;
    const std::size_t most = limits_.tree_depth;
    LF_TRY(const auto order, ParseItems(chunks[kOrder], {"the loop order", most}));
    LF_TRY(const auto annotations,
           ParseItems(chunks[kLoopAnnotations], {"loop annotations", most}));
    LF_TRY(const auto not_reusable, ParseIds(chunks[kNotReusable], {"not reusable loops", most}));
    if (annotations.size() != order.size()) {
      return Invalid(
          fmt::format("{} loops but {} loop annotations", order.size(), annotations.size()));
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      LF_TRY(LoopSpec loop, ParseLoop(order[i], annotations[i]));
      schedule.loops.push_back(loop);
    }
    for (const std::uint32_t position : not_reusable) {
      if (position >= schedule.loops.size()) {
        return Invalid(fmt::format("loop {} cannot be not reusable: there are {}", position,
                                   schedule.loops.size()));
      }
      schedule.loops[position].reusable = false;
    }
    return schedule;
  }

  Checked<LoopSpec> ParseLoop(std::string_view item, std::string_view annotation_text) const {
    const auto fields = SplitText(item, ';', 4);
    const auto field = [&](std::size_t i) {
      return fields.size() == 3 ? ParseInteger(fields[i]) : std::nullopt;
    };
    const auto dim = field(0), size = field(1), tail = field(2);
    if (!dim || !size || !tail || *dim < 0 ||
        static_cast<std::size_t>(*dim) >= program_.dims.size()) {
      return Invalid(
          fmt::format("bad loop {}: it must be <dimension>;<size>;<tail>", Quoted(item)));
    }
    if (*size < 1 || *tail < 0) {
      return Invalid(fmt::format("bad loop {}: the size must be at least 1, the tail at least 0",
                                 Quoted(item)));
    }
    const auto annotation = words_ == Words::kKept ? AnnotationOfWord(annotation_text)
                                                   : ParseAnnotation(annotation_text);
    if (!annotation) {
      return Reject(RejectionCode::kUnsupported,
                    fmt::format("annotation {} of a loop; valid: cpu_parallel, unroll, vectorize",
                                Quoted(annotation_text)));
    }
    return LoopSpec{
        .dim = static_cast<DimId>(*dim), .size = *size, .tail = *tail, .annotation = *annotation};
  }

  Checked<void> ResolveViews() {
    for (NodeId id = 0; id < program_.nodes.size(); ++id) {
      Node& node = program_.nodes[id];
      if (node.op != Op::kView) continue;
      if (node.inputs.size() != 1 || node.inputs[0] >= program_.nodes.size()) {
        return Invalid(fmt::format("node {} (view) must have one input", id));
      }
      for (const DimId dim : program_.nodes[node.inputs[0]].dims) {
        if (dim >= program_.dims.size()) return Invalid("a node names an unknown dimension");
      }
      LF_TRY(node.view, SolveView(constraints_[id], program_.nodes[node.inputs[0]].dims, node.dims,
                                  program_, guarded_[id]));
    }
    return {};
  }

  // Trees go to compilers and stores as text, which spells out every view in full: that has to fit
  // the limit, too.
  static Checked<void> CheckPrintable(const Program& program) {
    std::size_t entries = 0;
    for (NodeId id = 0; id < program.nodes.size(); ++id) {
      if (program.nodes[id].op == Op::kView) entries += ViewTextOf(program, id).entry_count;
      if (entries > kMaxViewEntries) {
        return Reject(RejectionCode::kLimitTree,
                      fmt::format("the views of the program, written in full, have more than {}"
                                  " entries",
                                  kMaxViewEntries));
      }
    }
    return {};
  }

  // A dimension has the size that the loops over it cover. LoopTree::Build rejects loops that
  // disagree.
  Checked<void> ResolveSizes() {
    for (const NodeSchedule& node : schedule_) {
      std::vector<std::optional<std::int64_t>> covered(program_.dims.size());
      for (auto loop = node.loops.rbegin(); loop != node.loops.rend(); ++loop) {
        const std::int64_t inner = covered[loop->dim].value_or(1);
        covered[loop->dim] = CheckedMultiplyAdd(loop->size, inner, loop->tail);
        if (!covered[loop->dim]) {
          return Reject(RejectionCode::kLimitFlops,
                        fmt::format("the loops over {} cover more than 2^63 elements",
                                    program_.dims[loop->dim].name));
        }
      }
      for (DimId dim = 0; dim < program_.dims.size(); ++dim) {
        if (covered[dim] && program_.dims[dim].size == 0) program_.dims[dim].size = *covered[dim];
      }
    }
    std::vector<bool> used(program_.dims.size(), false);
    for (const Node& node : program_.nodes) {
      for (const DimId dim : node.dims) {
        if (dim < used.size()) used[dim] = true;
      }
    }
    for (DimId dim = 0; dim < program_.dims.size(); ++dim) {
      if (program_.dims[dim].size != 0) continue;
      if (used[dim]) {
        return Invalid(fmt::format("no loop and no view says how large dimension {} is",
                                   Quoted(program_.dims[dim].name)));
      }
      program_.dims[dim].size = 1;  // declared, but no operation uses it
    }
    return {};
  }

  const Limits& limits_;
  const Words words_;
  Section section_ = Section::kVars;
  Program program_;
  Schedule schedule_;
  std::vector<ViewConstraints> constraints_;  // per node; empty for all but views
  std::vector<bool> guarded_;                 // per node
  std::size_t view_entries_ = 0;              // of all views so far
};

}  // namespace

Checked<LoopTree> ParseIr(std::string_view text, const Limits& limits, Words words) {
  return IrParser(limits, words).Parse(text);
}

}  // namespace loopfleet::looptree

#include "worker/portable_c/c_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/enum_names.h"
#include "common/base/result.h"
#include "common/looptree/program/view_map.h"
#include "common/looptree/text/text.h"
#include "worker/portable_c/c_names.h"

namespace loopfleet::worker {
namespace {

using looptree::DimId;
using looptree::LoopTree;
using looptree::Node;
using looptree::NodeId;
using looptree::Op;
using looptree::Program;
using looptree::TreeRef;

std::string Number(double value) {
  const auto rounded = static_cast<float>(value);
  if (std::isnan(rounded)) return "NAN";
  if (std::isinf(rounded)) return rounded < 0 ? "-INFINITY" : "INFINITY";
  std::string text = fmt::format("{}", rounded);  // the shortest text that reads back equal
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

std::string Joined(const std::vector<std::string>& parts, std::string_view between) {
  return fmt::format("{}", fmt::join(parts, between));
}

// ---- the comment ------------------------------------------------------------------------------

std::string DimsText(const Program& program, const Node& node) {
  std::vector<std::string> names;
  for (DimId dim : node.dims) names.push_back(program.dims[dim].name);
  return Joined(names, ", ");
}

std::string IndexText(const Program& program, const looptree::ViewIndex& index) {
  std::string text;
  const char* sign = "";
  for (const looptree::AffineTerm& term : index.terms) {
    text += fmt::format("{}{} {}", sign, term.coefficient, program.dims[term.dim].name);
    sign = " + ";
  }
  if (index.constant != 0 || index.terms.empty()) {
    text += fmt::format("{}{}", sign, index.constant);
  }
  if (index.divisor != 1) text = fmt::format("({}) / {}", text, index.divisor);
  return fmt::format("{} = {}", program.dims[index.input_dim].name, text);
}

std::string NodeText(const Program& program, NodeId id) {
  const Node& node = program.nodes[id];
  std::vector<std::string> operands;
  for (NodeId input : node.inputs) operands.push_back(fmt::format("%{}", input));
  if (node.op == Op::kConstant) operands.push_back(fmt::format("{}", node.constant));
  std::string text = fmt::format("%{}[{}] = {}({})", id, DimsText(program, node),
                                 looptree::OpName(node.op), Joined(operands, ", "));
  std::vector<std::string> indices;
  for (const looptree::ViewIndex& index : node.view) indices.push_back(IndexText(program, index));
  if (!indices.empty()) text += " where " + Joined(indices, ", ");
  if (looptree::NeedsGuard(program, node)) text += fmt::format(", outside {}", node.outside);
  return text;
}

std::string ShapeText(const PlanBuffer& buffer) {
  std::string shape;
  for (std::int64_t extent : buffer.extents) {
    shape += fmt::format("{}{}", shape.empty() ? "" : " x ", extent);
  }
  if (buffer.extents.size() > 1) shape += fmt::format(" = {}", buffer.element_count);
  return fmt::format("{}{}", shape.empty() ? "1" : shape,
                     buffer.element_count == 1 ? " element" : " elements");
}

// ---- the function -----------------------------------------------------------------------------

class Writer {
 public:
  Writer(const LoopTree& tree, const KernelPlan& plan, const CSourceOptions& options)
      : tree_(tree),
        program_(tree.program()),
        plan_(plan),
        options_(options),
        names_(tree.program()),
        left_(plan.dim_sizes.size()),
        ref_of_(tree.program().nodes.size()),
        lines_(tree.nodes().size()) {
    for (DimId dim = 0; dim < plan.dim_sizes.size(); ++dim) {
      left_[dim] = {std::to_string(plan.dim_sizes[dim]), plan.dim_sizes[dim]};
    }
    for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
      const looptree::TreeNode& node = tree.nodes()[ref];
      if (node.kind != looptree::TreeNode::Kind::kLoop) ref_of_[node.node] = ref;
    }
    NameBuffers();
  }

  CSource Write() {
    WriteSteps(plan_.steps);  // first, to collect the buffers and functions that it uses
    const std::string code = std::move(out_);
    out_.clear();
    WriteComment();
    WriteIncludes();
    Line("void {}(float* const* buffers);", options_.function);
    Line("");
    Line("void {}(float* const* buffers) {{", options_.function);
    WritePointers();
    const auto above = static_cast<std::size_t>(std::ranges::count(out_, '\n'));
    for (CSource::Lines& lines : lines_) {
      if (lines.node) *lines.node += above;
      if (lines.start) *lines.start += above;
    }
    return {.text = out_ + code + "}\n", .lines = std::move(lines_)};
  }

 private:
  // The elements of a dim left to its next loop: as C, and, if constant, as a number.
  struct Left {
    std::string text;
    std::int64_t known = 0;  // 0: it varies
  };

  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    std::string line = fmt::format(format, std::forward<Args>(args)...);
    if (!line.empty()) out_.append(2 * depth_, ' ');
    out_ += line + "\n";
    ++line_;
  }

  void NameBuffers();
  void WriteComment();
  void WriteBufferTable();
  void WriteIncludes();
  void WritePointers();
  void WriteSteps(const std::vector<Step>& steps);
  void WriteLoop(const LoopStep& step);
  Left LeftInside(LoopId id);
  enum class Braces { kNone, kOwn };
  void WriteBody(const Body& body, Braces braces);
  void WriteStatement(const Body& body, std::uint32_t index);
  std::string ValueText(const Body& body, const Statement& statement);
  std::string OperandText(const Body& body, const Operand& operand);
  std::string Element(const Access& access);
  std::string IndexOf(const Access& access);
  std::string SumText(std::int64_t constant, const std::vector<AccessTerm>& terms);
  // `value` where all guards hold.
  std::string GuardedText(const std::string& value, const std::vector<AccessGuard>& guards);
  std::string NumberText(double value);
  std::string Extreme(Op op, const std::string& a, const std::string& b);
  std::string CallOf(std::string_view function, const std::vector<std::string>& operands);

  const std::string& OffsetOf(LoopId id);
  std::uint32_t DepthOf(LoopId id) const { return tree_.nodes()[*plan_.loops[id].ref].dim_depth; }
  std::string LoopComment(LoopId id) const;
  bool SharesMemory(const PlanBuffer& buffer) const;
  // The next line is the operation's.
  void Mark(NodeId node);

  const LoopTree& tree_;
  const Program& program_;
  const KernelPlan& plan_;
  const CSourceOptions& options_;
  CNames names_;
  std::vector<std::string> buffers_;            // names, by BufferId
  std::vector<Left> left_;                      // by DimId
  std::vector<std::optional<TreeRef>> ref_of_;  // by NodeId
  std::vector<CSource::Lines> lines_;           // counted from the first of the steps
  std::size_t line_ = 0;
  bool is_preparing_ = false;
  std::set<BufferId> used_;
  bool uses_smaller_ = false;
  bool uses_larger_ = false;
  bool uses_math_ = false;
  std::size_t depth_ = 0;
  std::string out_;
};

void Writer::NameBuffers() {
  int inputs = 0;
  int outputs = 0;
  for (const PlanBuffer& buffer : plan_.buffers) {
    switch (buffer.role) {
      case BufferSpec::Role::kInput: buffers_.push_back(fmt::format("in{}", inputs++)); break;
      case BufferSpec::Role::kOutput: buffers_.push_back(fmt::format("out{}", outputs++)); break;
      case BufferSpec::Role::kScratch: buffers_.push_back(fmt::format("t{}", buffer.node)); break;
    }
  }
}

void Writer::WriteComment() {
  std::string text = "A loop schedule as portable C, written by loopfleet.\n";
  text += "  cc -std=c11 -O3 -march=native -c FILE   (link with -lm)\n\nProgram, in float32:\n ";
  for (const looptree::Dim& dim : program_.dims)
    text += fmt::format(" {} = {}", dim.name, dim.size);
  text += "\n";
  for (NodeId id = 0; id < program_.nodes.size(); ++id) {
    text += fmt::format("  {}\n", NodeText(program_, id));
  }
  text += "\nLoops (\"4 r 1\": 4 full iterations, then a tail of 1 element):\n";
  std::string block = InComment(text) + InComment(TreeText(tree_, {}));
  out_ += "/* ";
  for (std::size_t begin = 0; begin < block.size();) {
    const std::size_t end = block.find('\n', begin);
    const std::string_view line = std::string_view(block).substr(begin, end - begin);
    if (begin > 0) out_ += line.empty() ? " *" : " * ";
    out_ += fmt::format("{}\n", line);
    begin = end + 1;
  }
  WriteBufferTable();
  out_ += " */\n";
}

void Writer::WriteBufferTable() {
  out_ +=
      " *\n * buffers: dense and row-major, none overlapping another. Inputs are only read, every\n"
      " * element of the outputs is written, scratch may hold anything before and after.\n";
  std::size_t index = 0;
  for (BufferId id = 0; id < plan_.buffers.size(); ++id) {
    const PlanBuffer& buffer = plan_.buffers[id];
    if (buffer.role == BufferSpec::Role::kScratch) continue;
    out_ += fmt::format(" *   [{}] {:<6} {:<6} %{}[{}]: {}, {} bytes\n", index++,
                        EnumName(buffer.role), buffers_[id], buffer.node,
                        InComment(DimsText(program_, program_.nodes[buffer.node])),
                        ShapeText(buffer), buffer.element_count * 4);
  }
  if (plan_.scratch_bytes == 0) {
    out_ += " * No scratch.\n";
    return;
  }
  out_ += fmt::format(" *   [{}] scratch: {} elements, {} bytes, of which\n", index,
                      plan_.scratch_bytes / 4, plan_.scratch_bytes);
  for (BufferId id = 0; id < plan_.buffers.size(); ++id) {
    const PlanBuffer& buffer = plan_.buffers[id];
    if (buffer.role != BufferSpec::Role::kScratch) continue;
    out_ += fmt::format(
        " *       {:<6} at {}: %{}[{}], {}\n", buffers_[id], buffer.scratch_offset / 4, buffer.node,
        InComment(DimsText(program_, program_.nodes[buffer.node])), ShapeText(buffer));
  }
}

void Writer::WriteIncludes() {
  if (uses_math_) Line("#include <math.h>");
  Line("#include <stdint.h>");
  Line("");
  if (uses_smaller_) {
    Line("static float smaller(float a, float b) {{ return a < b ? a : b; }}");
  }
  if (uses_larger_) Line("static float larger(float a, float b) {{ return a > b ? a : b; }}");
  if (uses_smaller_ || uses_larger_) Line("");
}

bool Writer::SharesMemory(const PlanBuffer& buffer) const {
  return std::ranges::any_of(plan_.buffers, [&](const PlanBuffer& other) {
    return &other != &buffer && other.role == BufferSpec::Role::kScratch &&
           other.scratch_offset < buffer.scratch_offset + buffer.element_count * 4 &&
           buffer.scratch_offset < other.scratch_offset + other.element_count * 4;
  });
}

void Writer::WritePointers() {
  depth_ = 1;
  if (used_.empty()) Line("(void)buffers;");
  std::size_t tensors = 0;
  for (BufferId id = 0; id < plan_.buffers.size(); ++id) {
    const PlanBuffer& buffer = plan_.buffers[id];
    const bool scratch = buffer.role == BufferSpec::Role::kScratch;
    const std::size_t index = scratch ? 0 : tensors++;
    if (!used_.contains(id)) continue;
    if (scratch) continue;
    Line("{}float* restrict {} = buffers[{}];",
         buffer.role == BufferSpec::Role::kInput ? "const " : "", buffers_[id], index);
  }
  for (BufferId id = 0; id < plan_.buffers.size(); ++id) {
    const PlanBuffer& buffer = plan_.buffers[id];
    if (buffer.role != BufferSpec::Role::kScratch || !used_.contains(id)) continue;
    const std::int64_t start = buffer.scratch_offset / 4;
    Line("float* {}{} = buffers[{}]{};", SharesMemory(buffer) ? "" : "restrict ", buffers_[id],
         tensors, start == 0 ? "" : fmt::format(" + {}", start));
  }
  depth_ = 0;
}

void Writer::WriteSteps(const std::vector<Step>& steps) {
  ++depth_;
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
      WriteLoop(*loop);
    } else {
      // A block of its own keeps the names of its values apart from those of other bodies.
      const auto& body = std::get<Body>(step.what);
      const bool alone = steps.size() == 1 || body.statements.size() == 1;
      WriteBody(body, alone ? Braces::kNone : Braces::kOwn);
    }
  }
  --depth_;
}

const std::string& Writer::OffsetOf(LoopId id) {
  const PlanLoop& loop = plan_.loops[id];
  return loop.ref.has_value() ? names_.Offset(loop.dim, DepthOf(id)) : names_.InitOffset(loop.dim);
}

std::string Writer::LoopComment(LoopId id) const {
  const PlanLoop& loop = plan_.loops[id];
  if (!loop.ref.has_value()) return "";
  const looptree::TreeNode& node = tree_.nodes()[*loop.ref];
  std::string text = fmt::format(" /* L{}: {}{} in {}", *loop.ref, program_.dims[node.dim].name,
                                 std::string(node.dim_depth, '\''), node.size);
  if (node.tail > 0) text += fmt::format(" r {}", node.tail);
  switch (node.annotation) {
    case looptree::Annotation::kNone: break;
    case looptree::Annotation::kThread: text += ", thread"; break;
    case looptree::Annotation::kUnroll: text += ", unroll"; break;
    case looptree::Annotation::kVectorize: text += ", vectorize"; break;
  }
  return " /*" + InComment(text.substr(3)) + " */";
}

void Writer::Mark(NodeId node) {
  const std::optional<TreeRef> ref = ref_of_[node];
  if (!ref) return;
  std::optional<std::size_t>& line = is_preparing_ ? lines_[*ref].start : lines_[*ref].node;
  if (!line) line = line_;
}

void Writer::WriteLoop(const LoopStep& step) {
  --depth_;
  const bool is_prepared_for = std::exchange(is_preparing_, true);
  WriteSteps(step.prepare);
  is_preparing_ = is_prepared_for;
  ++depth_;
  const PlanLoop& loop = plan_.loops[step.loop];
  if (loop.ref) lines_[*loop.ref].node = line_;
  const Left outside = left_[loop.dim];
  const std::string& offset = OffsetOf(step.loop);
  const std::string advance =
      loop.step == 1 ? "++" + offset : fmt::format("{} += {}", offset, loop.step);
  Line("for (int64_t {0} = 0; {0} < {1}; {2}) {{{3}", offset, outside.text, advance,
       LoopComment(step.loop));
  ++depth_;
  left_[loop.dim] = LeftInside(step.loop);
  --depth_;
  WriteSteps(step.steps);
  left_[loop.dim] = outside;
  Line("}}");
}

// The elements that one iteration leaves to the loops inside it. Writes a variable where that
// varies.
Writer::Left Writer::LeftInside(LoopId id) {
  const PlanLoop& loop = plan_.loops[id];
  const Left& outside = left_[loop.dim];
  const auto divides = [&](std::int64_t extent) { return extent % loop.step == 0; };
  if (outside.known > 0 ? divides(outside.known) : std::ranges::all_of(loop.extents, divides)) {
    return {std::to_string(loop.step), loop.step};
  }
  if (outside.known > 0 && outside.known < loop.step) return outside;  // nothing but a tail
  if (!loop.ref.has_value()) return {std::to_string(loop.step), loop.step};
  const std::string& name = names_.Left(loop.dim, DepthOf(id));
  std::set<std::int64_t> tails;
  for (std::int64_t extent : loop.extents) {
    if (!divides(extent)) tails.insert(extent % loop.step);
  }
  std::vector<std::string> texts;
  for (std::int64_t tail : tails) texts.push_back(std::to_string(tail));
  const std::string rest = fmt::format("{} - {}", outside.text, OffsetOf(id));
  Line("const int64_t {0} = {1} < {2} ? {1} : {2}; /* {2}, in the tail {3} */", name, rest,
       loop.step, Joined(texts, " or "));
  return {name, 0};
}

void Writer::WriteBody(const Body& body, Braces braces) {
  if (!body.once.empty()) {
    std::vector<std::string> conditions;
    for (LoopId loop : body.once) conditions.push_back(OffsetOf(loop) + " == 0");
    Line("if ({}) {{ /* the loops over these only repeat it */", Joined(conditions, " && "));
  } else if (braces == Braces::kOwn) {
    Line("{{");
  }
  const bool block = !body.once.empty() || braces == Braces::kOwn;
  if (block) ++depth_;
  for (std::uint32_t i = 0; i < body.statements.size(); ++i) WriteStatement(body, i);
  if (block) --depth_;
  if (block) Line("}}");
}

void Writer::WriteStatement(const Body& body, std::uint32_t index) {
  const Statement& statement = body.statements[index];
  const Op op = statement.op;
  Mark(statement.node);
  if (!statement.reduced.empty()) {
    const std::string target = Element(*statement.target);
    for (const Operand& from : statement.operands) {
      const std::string operand = OperandText(body, from);
      if (op == Op::kAdd || op == Op::kMultiply) {
        Line("{} {}= {}; /* %{} */", target, op == Op::kAdd ? '+' : '*', operand, statement.node);
      } else {
        Line("{} = {}; /* %{} */", target, Extreme(op, target, operand), statement.node);
      }
    }
    return;
  }
  const bool needed = std::ranges::any_of(body.statements, [&](const Statement& later) {
    return std::ranges::any_of(later.operands, [&](const Operand& operand) {
      const auto* value = std::get_if<ValueOf>(&operand);
      return value != nullptr && value->statement == index && &later > &statement;
    });
  });
  std::string value = ValueText(body, statement);
  if (needed) {
    Line("const float v{} = {}; /* {} */", statement.node, value, looptree::OpName(op));
    value = fmt::format("v{}", statement.node);
  }
  if (statement.target.has_value()) {
    Line("{} = {}; /* %{} */", Element(*statement.target), value, statement.node);
  }
}

std::string Writer::Extreme(Op op, const std::string& a, const std::string& b) {
  (op == Op::kMin ? uses_smaller_ : uses_larger_) = true;
  return fmt::format("{}({}, {})", op == Op::kMin ? "smaller" : "larger", a, b);
}

std::string Writer::CallOf(std::string_view function, const std::vector<std::string>& operands) {
  uses_math_ = true;
  return fmt::format("{}({})", function, Joined(operands, ", "));
}

std::string Writer::OperandText(const Body& body, const Operand& operand) {
  if (const auto* literal = std::get_if<Literal>(&operand)) {
    return GuardedText(NumberText(literal->value), literal->guards);
  }
  if (const auto* value = std::get_if<ValueOf>(&operand)) {
    return GuardedText(fmt::format("v{}", body.statements[value->statement].node), value->guards);
  }
  const Access& access = std::get<Access>(operand);
  return GuardedText(Element(access), access.guards);
}

std::string Writer::NumberText(double value) {
  std::string text = Number(value);
  if (text.find('N') != std::string::npos) uses_math_ = true;  // INFINITY, NAN
  return text;
}

std::string Writer::GuardedText(const std::string& value, const std::vector<AccessGuard>& guards) {
  if (guards.empty()) return value;
  std::string text;
  for (const AccessGuard& guard : guards) {
    std::vector<std::string> conditions;
    const std::string index = SumText(guard.index.constant, guard.index.terms);
    const bool may_be_negative =
        guard.index.constant < 0 ||
        std::ranges::any_of(
            guard.index.terms, [](const AccessTerm& term) { return term.stride < 0; });
    if (may_be_negative) conditions.push_back(index + " >= 0");
    conditions.push_back(fmt::format("{} <= {}", index, (guard.size - 1) * guard.divisor));
    if (guard.divisor != 1) {
      conditions.push_back(fmt::format("({}) % {} == 0", index, guard.divisor));
    }
    text += fmt::format("!({}) ? {} : ", Joined(conditions, " && "), NumberText(guard.outside));
  }
  return "(" + text + value + ")";
}

std::string Writer::ValueText(const Body& body, const Statement& statement) {
  std::vector<std::string> operands;
  for (const Operand& operand : statement.operands) operands.push_back(OperandText(body, operand));
  switch (statement.op) {
    case Op::kCopy: return operands[0];
    case Op::kAdd: return Joined(operands, " + ");
    case Op::kMultiply: return Joined(operands, " * ");
    case Op::kSubtract: return Joined(operands, " - ");
    case Op::kDivide: return Joined(operands, " / ");
    case Op::kMin:
    case Op::kMax: {
      std::string result = operands[0];
      for (std::size_t i = 1; i < operands.size(); ++i) {
        result = Extreme(statement.op, result, operands[i]);
      }
      return result;
    }
    case Op::kLog:
    case Op::kExp:
    case Op::kSqrt:
    case Op::kAbs:
    case Op::kTanh:
    case Op::kErf:
    case Op::kSin:
    case Op::kCos:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kPower: return CallOf(MathFunctionOf(statement.op), operands);
    case Op::kNegate: return fmt::format("-({})", operands[0]);
    case Op::kReciprocal: return fmt::format("1.0f / {}", operands[0]);
    case Op::kGreater: return fmt::format("({} > {}) ? 1.0f : 0.0f", operands[0], operands[1]);
    case Op::kGreaterEqual:
      return fmt::format("({} >= {}) ? 1.0f : 0.0f", operands[0], operands[1]);
    case Op::kEqual: return fmt::format("({} == {}) ? 1.0f : 0.0f", operands[0], operands[1]);
    case Op::kSelect:
      return fmt::format("({} != 0.0f) ? {} : {}", operands[0], operands[1], operands[2]);
    case Op::kSign: return fmt::format("(float)(({0} > 0.0f) - ({0} < 0.0f))", operands[0]);
    case Op::kConstant:
    case Op::kRead:
    case Op::kView:
    case Op::kWrite:
    case Op::kName: break;  // the plan has replaced them by copies
  }
  LF_CHECK(false, "{} reached the C writer", looptree::OpName(statement.op));
  return "";
}

std::string Writer::Element(const Access& access) {
  used_.insert(access.buffer);
  return fmt::format("{}[{}]", buffers_[access.buffer], IndexOf(access));
}

// Groups loops by stride, as those over one dim usually share one: "(m + m_1) * 48 + n".
std::string Writer::IndexOf(const Access& access) {
  std::string text = SumText(access.constant, access.terms);
  for (const AccessQuotient& quotient : access.quotients) {
    text += fmt::format(" + ({}) / {} * {}", SumText(quotient.index.constant, quotient.index.terms),
                        quotient.divisor, quotient.stride);
  }
  return text;
}

std::string Writer::SumText(std::int64_t constant, const std::vector<AccessTerm>& terms) {
  std::map<std::int64_t, std::vector<std::string>, std::greater<>> by_stride;
  for (const AccessTerm& term : terms) {
    by_stride[term.stride].push_back(OffsetOf(term.loop));
  }
  std::string text;
  for (const auto& [stride, offsets] : by_stride) {
    std::string part = Joined(offsets, " + ");
    if (std::abs(stride) != 1) {
      part = fmt::format(fmt::runtime(offsets.size() > 1 ? "({}) * {}" : "{} * {}"), part,
                         std::abs(stride));
    } else if (stride < 0 && offsets.size() > 1) {
      part = "(" + part + ")";
    }
    if (text.empty() && stride < 0) text = std::to_string(constant);
    text += fmt::format("{}{}", text.empty() ? "" : stride < 0 ? " - " : " + ", part);
  }
  const bool constant_said = !by_stride.empty() && by_stride.begin()->first < 0;
  if (by_stride.empty()) return std::to_string(constant);
  if (constant == 0 || constant_said) return text;
  return fmt::format("{} {} {}", text, constant < 0 ? '-' : '+', std::abs(constant));
}

}  // namespace

std::expected<CSource, Failure> CSourceOf(const LoopTree& tree, const CSourceOptions& options) {
  LF_TRY(const KernelPlan plan, PlanKernel(tree, options.limits));
  return Writer(tree, plan, options).Write();
}

}  // namespace loopfleet::worker

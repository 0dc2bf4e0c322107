#include "common/looptree/tree/key.h"

#include <fmt/format.h>

#include <iterator>

#include "common/looptree/program/number_text.h"
#include "common/looptree/program/view_map.h"
#include "common/looptree/tree/annotation_text.h"

namespace loopfleet::looptree {
namespace {

// Numbers dimensions in the order in which operations first use them, so that the form depends on
// neither their names nor their order of declaration.
class DimNumbers {
 public:
  explicit DimNumbers(const Program& program) : numbers_(program.dims.size(), kUnused) {
    for (const Node& node : program.nodes) {
      for (const DimId dim : node.dims) {
        if (numbers_[dim] == kUnused) numbers_[dim] = count_++;
      }
    }
  }
  std::uint32_t operator[](DimId dim) const { return numbers_[dim]; }
  std::uint32_t count() const { return count_; }

 private:
  static constexpr std::uint32_t kUnused = UINT32_MAX;
  std::vector<std::uint32_t> numbers_;
  std::uint32_t count_ = 0;
};

std::string FloatText(double number) {
  return NumberText(static_cast<double>(static_cast<float>(number)));
}

using Out = std::back_insert_iterator<std::string>;

void AppendNode(const Program& program, const Node& node, const DimNumbers& numbers, Out out) {
  fmt::format_to(out, "{}(", OpName(node.op));
  for (const NodeId input : node.inputs) fmt::format_to(out, "%{} ", input);
  fmt::format_to(out, ")[");
  for (const DimId dim : node.dims) {
    fmt::format_to(out, "d{}={} ", numbers[dim], program.dims[dim].size);
  }
  fmt::format_to(out, "]");
  if (node.op == Op::kConstant) fmt::format_to(out, "={}", FloatText(node.constant));
  if (node.op == Op::kView) {
    // In the order of the input's dims and the view's own dims, whatever order the maps are in.
    for (const DimId input_dim : program.nodes[node.inputs[0]].dims) {
      for (const ViewIndex& index : node.view) {
        if (index.input_dim != input_dim) continue;
        fmt::format_to(out, " d{}={}", numbers[input_dim], index.constant);
        for (const DimId dim : node.dims) {
          for (const AffineTerm& term : index.terms) {
            if (term.dim != dim || term.coefficient == 0) continue;
            fmt::format_to(out, "+{}*d{}", term.coefficient, numbers[dim]);
          }
        }
        if (index.guarded && NeedsGuard(program, index)) {
          fmt::format_to(out, "/{}", index.divisor);
        }
      }
    }
    if (NeedsGuard(program, node)) fmt::format_to(out, " outside {}", FloatText(node.outside));
  }
  fmt::format_to(out, "\n");
}

void AppendProgram(const Program& program, const DimNumbers& numbers, Out out) {
  for (const Node& node : program.nodes) AppendNode(program, node, numbers, out);
  fmt::format_to(out, "in");
  for (const NodeId input : program.inputs) fmt::format_to(out, " %{}", input);
  fmt::format_to(out, "\nout");
  for (const NodeId output : program.outputs) fmt::format_to(out, " %{}", output);
  fmt::format_to(out, "\n");
}

}  // namespace

std::string CanonicalForm(const LoopTree& tree) {
  const Program& program = tree.program();
  const DimNumbers numbers(program);
  std::string form = "loopfleet tree 1\n";
  form.reserve(1024);
  Out out = std::back_inserter(form);
  AppendProgram(program, numbers, out);
  for (const TreeNode& node : tree.nodes()) {
    fmt::format_to(out, "{} ", node.depth);
    if (node.kind == TreeNode::Kind::kOperation) {
      fmt::format_to(out, "%{}\n", node.node);
    } else {
      fmt::format_to(out, "for d{} {} {} {}\n", numbers[node.dim], node.size, node.tail,
                     AnnotationText(EffectOf(node.annotation)));
    }
  }
  return form;
}

std::string CanonicalForm(const Program& program) {
  std::string form = "loopfleet program 1\n";
  AppendProgram(program, DimNumbers(program), std::back_inserter(form));
  return form;
}

TreeKey KeyOf(const LoopTree& tree) { return ContentKey::Of(CanonicalForm(tree)); }

ProgramKey ProgramKeyOf(const Program& program) { return ContentKey::Of(CanonicalForm(program)); }

}  // namespace loopfleet::looptree

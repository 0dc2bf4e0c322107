#pragma once
// Text of trees and programs: what people read (loop tree) and what is sent (IR text).

#include <optional>
#include <string>
#include <string_view>

#include "common/looptree/tree/dialect.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

struct TreeTextOptions {
  Dialect dialect = Dialect::kAgent;
  Target target = Target::kCpu;   // simple: "cpu_parallel [thread]" or "[thread]"
  std::optional<TreeRef> cursor;  // agent: marks its line
};

// One line per tree node, indented by one blank per level. No trailing blanks; each line ends in
// '\n'.
std::string TreeText(const LoopTree& tree, const TreeTextOptions& options);

// One operation as in tree text: "%2[m, k, n] <- multiply(%0, %1)". Constants without
// dimensions stand as numbers: "%4[m, n] <- max(%3, 0)".
std::string OperationText(const Program& program, NodeId node);

// Annotations that have no effect: left out of text and refused in it, so that workers meet none;
// or kept, in text of one's own (AnnotationOfWord).
enum class Words : bool { kNone, kKept };

// The IR text of spec B.2: program and schedule together. ParseIr reads it back without loss.
std::string IrTextOf(const LoopTree& tree, Words words = Words::kNone);
Checked<LoopTree> ParseIr(std::string_view text, const Limits& limits = {},
                          Words words = Words::kNone);

}  // namespace loopfleet::looptree

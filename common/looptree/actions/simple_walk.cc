#include "common/base/check.h"
#include "common/base/result.h"
#include "common/looptree/actions/walk.h"

namespace loopfleet::looptree {

SimpleWalk::SimpleWalk(const Benchmark& benchmark)
    : program_(benchmark.start.shared_program()),
      element_count_(program_->dims[0].size),
      loops_(SimpleLoops::Initial(element_count_)) {
  LF_CHECK(benchmark.dialect == Dialect::kSimple, "not a benchmark of dialect simple");
}

Checked<void> SimpleWalk::Apply(const Action& action) {
  constexpr std::size_t kLoops = 3;
  LF_TRY_VOID(CheckDialect(action, Dialect::kSimple));
  if (std::holds_alternative<ToggleMode>(action)) {
    mode_ = mode_ == Mode::kSize ? Mode::kSelect : Mode::kSize;
  } else if (std::holds_alternative<ToggleThread>(action)) {
    loops_.thread[cursor_] = !loops_.thread[cursor_];
  } else if (std::holds_alternative<Up>(action) || std::holds_alternative<Down>(action)) {
    const bool up = std::holds_alternative<Up>(action);
    if (mode_ == Mode::kSelect) {
      cursor_ = (cursor_ + (up ? 1 : kLoops - 1)) % kLoops;
    } else {
      Resize(up ? 1 : -1);
    }
  }
  return {};
}

// Spec A.3. The elements that the parent covers include this loop's tail, as the original's
// doc-comment intends. Nothing overflows: no factor exceeds the 8 388 607 elements of the longest
// vector.
void SimpleWalk::Resize(std::int64_t change) {
  if (cursor_ == 0) return;  // no parent to take from or give to
  Order& parent = loops_.orders[cursor_ - 1];
  Order& own = loops_.orders[cursor_];
  std::int64_t inner = 1;
  for (std::size_t i = loops_.orders.size(); --i > cursor_;) {
    inner = inner * loops_.orders[i].size + loops_.orders[i].tail;
  }
  const std::int64_t elements = parent.size * (own.size * inner + own.tail) + parent.tail;
  const bool drops_tail = change < 0 && own.tail > 0;
  const std::int64_t size = drops_tail ? own.size : own.size + change;
  if (size < 1 || size > element_count_) return;
  const Order resized{elements / (size * inner), elements % (size * inner)};
  if (resized.size < 1 || resized.size > element_count_) return;
  own = {size, 0};
  parent = resized;
}

Checked<LoopTree> SimpleWalk::Tree(const Limits& limits) const {
  return BuildSimpleTree(program_, loops_, limits);
}

std::array<std::int64_t, 3> SimpleWalk::ActionState() const {
  const Order& own = loops_.orders[cursor_];
  return {static_cast<std::int64_t>(cursor_), own.size, own.tail};
}

}  // namespace loopfleet::looptree

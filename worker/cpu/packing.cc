#include "worker/cpu/packing.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "worker/lowering/loop_nest.h"
#include "worker/lowering/scratch_layout.h"

namespace loopfleet::worker {
namespace {

using looptree::DimId;

constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
// Smallest distance between rows that are packed. No prefetcher fetches rows this far apart in
// time, and they fall into few sets of a cache. docs/DECISIONS.md has what it gains.
constexpr std::int64_t kFarApartBytes = 1024;
// Fewest reads of an input that pay for its copy, which reads and writes every element once.
constexpr std::int64_t kLeastUses = 8;

// The layout of a packed input: panels of `width` columns, each with all rows.
struct Panels {
  BufferId source = 0;
  DimId columns = 0;
  DimId rows = 0;
  std::int64_t width = 0;
  std::int64_t pitch = 0;  // elements from one row of the source to the next
};

std::int64_t IterationsOf(const PlanLoop& loop) {
  return (loop.extents.front() + loop.step - 1) / loop.step;
}

class Packer {
 public:
  Packer(KernelPlan& plan, const VectorShape& shape, std::uint64_t footprint_bytes)
      : plan_(plan), shape_(shape), bytes_left_(BytesLeft(plan, footprint_bytes)) {}

  void Run() {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      copies_.clear();
      std::vector<LoopId> around;
      Visit(plan_.steps[i], around);
      plan_.steps.insert(plan_.steps.begin() + static_cast<std::ptrdiff_t>(i), copies_.begin(),
                         copies_.end());
      i += copies_.size();
    }
  }

 private:
  static std::int64_t BytesLeft(const KernelPlan& plan, std::uint64_t footprint_bytes) {
    std::int64_t left =
        static_cast<std::int64_t>(footprint_bytes) - static_cast<std::int64_t>(plan.scratch_bytes);
    for (const PlanBuffer& buffer : plan.buffers) {
      if (buffer.role != BufferSpec::Role::kScratch) left -= buffer.element_count * kFloatBytes;
    }
    return left;
  }

  // `around`: the loops enclosing `step`.
  void Visit(Step& step, std::vector<LoopId>& around) {
    auto* loop = std::get_if<LoopStep>(&step.what);
    if (loop == nullptr) return;
    const std::optional<Nest> nest = NestAt(*loop);
    // A block never extends outside a loop that is split over threads: its nest starts inside.
    const bool splits =
        nest.has_value() && std::ranges::any_of(nest->loops, [&](const LoopStep* step_of) {
          return plan_.loops[step_of->loop].parallel;
        });
    if (nest.has_value() && !splits) {
      const std::optional<std::size_t> level = BlockLoopOf(plan_, *nest, shape_);
      if (level.has_value()) PackIn(*loop, *nest, *level, around);
      return;
    }
    around.push_back(loop->loop);
    for (Step& inside : loop->steps) Visit(inside, around);
    around.pop_back();
  }

  void PackIn(LoopStep& outermost, const Nest& nest, std::size_t level,
              const std::vector<LoopId>& around) {
    const auto block = BlockAt(plan_, nest, level, TileInside(plan_, nest, level), shape_);
    if (!block->columns.has_value()) return;
    std::vector<LoopId> outside = around;
    std::vector<LoopId> inside;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      (i < level ? outside : inside).push_back(nest.loops[i]->loop);
    }
    for (Statement& statement : BodyOf(outermost).statements) {
      for (Operand& operand : statement.operands) {
        auto* access = std::get_if<Access>(&operand);
        if (access == nullptr) continue;
        const auto panels = PanelsOf(*access, nest, block->columns->dim, outside, inside);
        if (panels.has_value()) Pack(*access, *panels, inside);
      }
    }
  }

  static Body& BodyOf(LoopStep& outermost) {
    LoopStep* loop = &outermost;
    while (auto* inner = std::get_if<LoopStep>(&loop->steps.front().what)) loop = inner;
    return std::get<Body>(loop->steps.front().what);
  }

  // nullopt: the operand stays unpacked.
  std::optional<Panels> PanelsOf(const Access& access, const Nest& nest, DimId columns,
                                 const std::vector<LoopId>& outside,
                                 const std::vector<LoopId>& inside) const {
    if (plan_.buffers[access.buffer].role != BufferSpec::Role::kInput || access.constant != 0 ||
        !access.IsAffine()) {
      return std::nullopt;
    }
    Panels panels{.source = access.buffer, .columns = columns};
    std::optional<DimId> rows;
    for (const AccessTerm& term : access.terms) {
      const PlanLoop& loop = plan_.loops[term.loop];
      if (loop.dim == columns) {
        if (term.stride != 1) return std::nullopt;
        if (std::ranges::find(outside, term.loop) == outside.end()) continue;
        if (panels.width == 0 || loop.step < panels.width) panels.width = loop.step;
      } else {
        if (rows.has_value() && (*rows != loop.dim || term.stride != panels.pitch)) {
          return std::nullopt;
        }
        rows = loop.dim;
        panels.pitch = term.stride;
      }
    }
    if (!rows.has_value() || panels.width < 2) return std::nullopt;
    panels.rows = *rows;
    const bool whole_vectors = panels.width % static_cast<std::int64_t>(shape_.lanes) == 0;
    const bool far_apart = panels.pitch * kFloatBytes >= kFarApartBytes;
    // The loop over the rows must be inside the block; otherwise the block reads only one row.
    const bool runs_down = std::ranges::any_of(inside, [&](LoopId loop) {
      return plan_.loops[loop].dim == panels.rows && nest.Reduces(loop);
    });
    const bool cut_evenly = std::ranges::all_of(access.terms, [&](const AccessTerm& term) {
      const PlanLoop& loop = plan_.loops[term.loop];
      return loop.dim != columns || std::ranges::find(outside, term.loop) == outside.end() ||
             loop.step % panels.width == 0;
    });
    if (!whole_vectors || !far_apart || !runs_down || !cut_evenly) return std::nullopt;
    std::int64_t uses = 1;
    for (const LoopId loop : outside) {
      if (StrideOf(access, loop) == 0 && uses < kLeastUses) uses *= IterationsOf(plan_.loops[loop]);
    }
    if (uses < kLeastUses) return std::nullopt;
    return panels;
  }

  void Pack(Access& access, const Panels& panels, const std::vector<LoopId>& inside) {
    const std::int64_t columns = plan_.dim_sizes[panels.columns];
    const std::int64_t rows = plan_.dim_sizes[panels.rows];
    const std::int64_t count = (columns + panels.width - 1) / panels.width;
    const std::int64_t elements = count * rows * panels.width;
    constexpr auto kAlignment = static_cast<std::int64_t>(kScratchAlignment);
    const auto used = static_cast<std::int64_t>(plan_.scratch_bytes);
    const std::int64_t start = (used + kAlignment - 1) / kAlignment * kAlignment;
    const std::int64_t bytes = elements * kFloatBytes + (start - used);
    if (bytes > bytes_left_) return;
    bytes_left_ -= bytes;
    plan_.scratch_bytes += static_cast<std::uint64_t>(bytes);
    const auto buffer = static_cast<BufferId>(plan_.buffers.size());
    plan_.buffers.push_back({.role = BufferSpec::Role::kScratch,
                             .node = plan_.buffers[panels.source].node,
                             .extents = {count, rows, panels.width},
                             .element_count = elements,
                             .scratch_offset = start});
    copies_.push_back(CopyStep(panels, buffer));
    // Column loops outside the block move from panel to panel, those inside it within a panel.
    for (AccessTerm& term : access.terms) {
      const bool in_block = std::ranges::find(inside, term.loop) != inside.end();
      const bool over_columns = plan_.loops[term.loop].dim == panels.columns;
      term.stride = !over_columns ? panels.width : in_block ? 1 : rows;
    }
    access.buffer = buffer;
  }

  // For each row and each panel, copies that row of the panel.
  Step CopyStep(const Panels& panels, BufferId buffer) {
    const std::int64_t columns = plan_.dim_sizes[panels.columns];
    const std::int64_t rows = plan_.dim_sizes[panels.rows];
    std::vector<std::int64_t> widths = {std::min(columns, panels.width)};
    if (columns > panels.width && columns % panels.width != 0) {
      widths.push_back(columns % panels.width);
    }
    const LoopId row = AddLoop(panels.rows, 1, {rows});
    const LoopId panel = AddLoop(panels.columns, panels.width, {columns});
    const LoopId column = AddLoop(panels.columns, 1, std::move(widths));
    plan_.loops[row].parallel = plan_.threads > 1;
    const Access from{.buffer = panels.source,
                      .terms = {{row, panels.pitch}, {panel, 1}, {column, 1}}};
    const Access to{.buffer = buffer, .terms = {{row, panels.width}, {panel, rows}, {column, 1}}};
    Statement copy{.node = plan_.buffers[panels.source].node, .operands = {from}, .target = to};
    Step step{Body{.statements = {std::move(copy)}}};
    for (const LoopId loop : {column, panel, row}) {
      step = Step{LoopStep{.loop = loop, .prepare = {}, .steps = {std::move(step)}}};
    }
    return step;
  }

  LoopId AddLoop(DimId dim, std::int64_t step, std::vector<std::int64_t> extents) {
    plan_.loops.push_back({.dim = dim, .step = step, .extents = std::move(extents)});
    return static_cast<LoopId>(plan_.loops.size() - 1);
  }

  KernelPlan& plan_;
  const VectorShape& shape_;
  std::int64_t bytes_left_;
  std::vector<Step> copies_;  // inserted before the root step being visited
};

}  // namespace

void PackPanels(KernelPlan& plan, const VectorShape& shape, std::uint64_t footprint_bytes) {
  Packer(plan, shape, footprint_bytes).Run();
}

}  // namespace loopfleet::worker

#include "worker/lowering/direct_writes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "worker/lowering/loop_nest.h"

namespace loopfleet::worker {
namespace {

using looptree::DimId;
using looptree::Op;

// All uses of one intermediate in the plan.
struct Uses {
  Statement* reduction = nullptr;
  std::vector<LoopId> around;  // the loops round the reduction
  std::vector<Access*> fills;
  int others = 0;  // reads, and anything else
};

// A copy of a whole intermediate to an output, with the strides of both along each dim.
struct Copy {
  struct Strides {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  std::map<DimId, Strides> strides;
  Access to;  // of its first element: only the terms of loops round the copy
};

class Redirection {
 public:
  explicit Redirection(KernelPlan& plan) : plan_(plan), uses_(plan.buffers.size()) {}

  void Run() {
    Collect(plan_.steps, Part::kStep);
    Visit(plan_.steps);
  }

 private:
  enum class Part { kStep, kFill };

  void Collect(std::vector<Step>& steps, Part part);
  void Visit(std::vector<Step>& steps);
  bool Redirect(const Step& step);
  std::optional<std::pair<BufferId, Copy>> CopyOf(const Step& step) const;
  std::optional<Access> Moved(const Access& access, const Copy& copy) const;

  KernelPlan& plan_;
  std::vector<Uses> uses_;      // by buffer
  std::vector<LoopId> around_;  // the loops round what is collected
};

void Redirection::Collect(std::vector<Step>& steps, Part part) {
  for (Step& step : steps) {
    if (auto* loop = std::get_if<LoopStep>(&step.what)) {
      Collect(loop->prepare, Part::kFill);
      around_.push_back(loop->loop);
      Collect(loop->steps, part);
      around_.pop_back();
      continue;
    }
    for (Statement& statement : std::get<Body>(step.what).statements) {
      for (const Operand& operand : statement.operands) {
        if (const auto* access = std::get_if<Access>(&operand)) ++uses_[access->buffer].others;
      }
      if (!statement.target.has_value()) continue;
      Uses& uses = uses_[statement.target->buffer];
      if (part == Part::kFill) {
        uses.fills.push_back(&*statement.target);
      } else if (!statement.reduced.empty() && uses.reduction == nullptr) {
        uses.reduction = &statement;
        uses.around = around_;
      } else {
        ++uses.others;
      }
    }
  }
}

void Redirection::Visit(std::vector<Step>& steps) {
  for (Step& step : steps) {
    if (auto* loop = std::get_if<LoopStep>(&step.what)) Visit(loop->steps);
  }
  // Backwards, so that erasing a step moves none that is still to be visited. The reduction comes
  // before its copy, so pointers to it stay valid.
  for (std::size_t i = steps.size(); i-- > 1;) {
    if (Redirect(steps[i])) steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::optional<std::pair<BufferId, Copy>> Redirection::CopyOf(const Step& step) const {
  Nest nest;
  if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
    auto found = NestAt(*loop);
    if (!found.has_value()) return std::nullopt;
    nest = *std::move(found);
  } else {
    nest.body = &std::get<Body>(step.what);
  }
  if (nest.body->statements.size() != 1 || !nest.body->once.empty()) return std::nullopt;
  const Statement& statement = nest.body->statements.front();
  if (statement.op != Op::kCopy || !statement.reduced.empty() || !statement.target.has_value()) {
    return std::nullopt;
  }
  const Access* from = std::get_if<Access>(&statement.operands.front());
  if (from == nullptr || !from->IsAffine() || from->constant != 0 ||
      plan_.buffers[from->buffer].role != BufferSpec::Role::kScratch ||
      plan_.buffers[statement.target->buffer].role != BufferSpec::Role::kOutput) {
    return std::nullopt;
  }
  Copy copy{.strides = {}, .to = *statement.target};
  for (const LoopStep* step_of : nest.loops) {
    const PlanLoop& loop = plan_.loops[step_of->loop];
    if (loop.extents.front() == 1) continue;
    const Copy::Strides strides{.from = StrideOf(*from, step_of->loop),
                                .to = StrideOf(*statement.target, step_of->loop)};
    if (strides.from == 0 || strides.to == 0) return std::nullopt;
    const auto [at, is_new] = copy.strides.try_emplace(loop.dim, strides);
    if (at->second.from != strides.from || at->second.to != strides.to) return std::nullopt;
    std::erase_if(copy.to.terms,
                  [&](const AccessTerm& term) { return term.loop == step_of->loop; });
  }
  // The loops round the copy restart the intermediate in each iteration, so it must not move with
  // them.
  const bool moves_outside = std::ranges::any_of(from->terms, [&](const AccessTerm& term) {
    return std::ranges::find(nest.loops, term.loop, &LoopStep::loop) == nest.loops.end();
  });
  if (moves_outside) return std::nullopt;
  return std::pair(from->buffer, std::move(copy));
}

// The element of the output that replaces `access` to the intermediate.
std::optional<Access> Redirection::Moved(const Access& access, const Copy& copy) const {
  if (access.constant != 0) return std::nullopt;
  Access moved = copy.to;
  for (const AccessTerm& term : access.terms) {
    const auto at = copy.strides.find(plan_.loops[term.loop].dim);
    if (at == copy.strides.end()) {
      if (plan_.loops[term.loop].extents.front() == 1) continue;
      return std::nullopt;
    }
    if (at->second.from != term.stride) return std::nullopt;
    moved.terms.push_back({term.loop, at->second.to});
  }
  return moved;
}

bool Redirection::Redirect(const Step& step) {
  const auto copy = CopyOf(step);
  if (!copy.has_value()) return false;
  const Uses& uses = uses_[copy->first];
  if (uses.reduction == nullptr || uses.others != 1) return false;
  // A loop round the copy alone repeats the result in several places of the output.
  const bool repeats = std::ranges::any_of(copy->second.to.terms, [&](const AccessTerm& term) {
    return plan_.loops[term.loop].extents.front() > 1 &&
           std::ranges::find(uses.around, term.loop) == uses.around.end();
  });
  if (repeats) return false;
  const std::optional<Access> target = Moved(*uses.reduction->target, copy->second);
  if (!target.has_value() ||
      target->terms.size() != copy->second.to.terms.size() + uses.reduction->target->terms.size()) {
    return false;
  }
  std::vector<Access> fills;
  for (const Access* fill : uses.fills) {
    std::optional<Access> moved = Moved(*fill, copy->second);
    if (!moved.has_value()) return false;
    fills.push_back(*std::move(moved));
  }
  uses.reduction->target = *target;
  for (std::size_t i = 0; i < fills.size(); ++i) *uses.fills[i] = std::move(fills[i]);
  return true;
}

}  // namespace

void WriteDirectly(KernelPlan& plan) { Redirection(plan).Run(); }

}  // namespace loopfleet::worker

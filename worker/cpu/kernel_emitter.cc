#include "worker/cpu/kernel_emitter.h"

#include <llvm/IR/ConstantFolder.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <functional>

#include "kernel/kernel.h"
#include "worker/cpu/block_emitter.h"
#include "worker/cpu/body_emitter.h"
#include "worker/cpu/loop_state.h"
#include "worker/cpu/parallel_emitter.h"
#include "worker/cpu/probe_emitter.h"
#include "worker/cpu/source_lines.h"
#include "worker/cpu/vector_loop_emitter.h"
#include "worker/lowering/loop_nest.h"

namespace loopfleet::worker {
namespace {

using llvm::Value;
using looptree::Annotation;
using looptree::DimId;
using Values = LoopState::Values;

// Most copies of a register block, one for each combination of extents that tails can leave.
constexpr std::size_t kMaxBlockVariants = 4;

// Over bench/corpus/agent_walks.jsonl limits of 256 and 1,024 make kernels no faster on average
// (within 1 %; at the 99th percentile 14 % faster), and take a fifth longer to compile.
constexpr UnrollLimits kUnrollLimits{.loop = 64, .kernel = 512};

class Emitter {
 public:
  // What a profiled kernel has beside a plain one; null in that.
  struct Watch {
    SourceLines* lines = nullptr;
    ProbeEmitter* probes = nullptr;
    const PlanPlaces* places = nullptr;  // with probes
  };
  // `parallel_for`: null in a kernel for one thread.
  Emitter(llvm::IRBuilderBase& builder, const KernelPlan& plan, const VectorShape& shape,
          const Values& buffers, Value* parallel_for, Unroller& unroller, const Watch& watch)
      : builder_(builder),
        plan_(plan),
        shape_(shape),
        watch_(watch),
        state_(builder, plan, buffers, unroller, watch.lines),
        bodies_(builder, shape, state_),
        blocks_(builder, plan, shape, state_),
        vectors_(builder, plan, shape, state_, effects_.effective),
        parallel_(builder, plan, state_, parallel_for) {}

  void EmitKernel();
  // Without the loops that were unrolled, which the unroller knows.
  const AnnotationEffects& effects() const { return effects_; }
  bool streamed() const { return vectors_.streamed(); }

 private:
  using Tile = std::vector<TileDim>;

  void EmitSteps(const std::vector<Step>& steps);
  void EmitStep(const Step& step);
  // Emits what `emit` does for a loop inside a root, counted if the loop is.
  void Counted(LoopId loop, const std::function<void()>& emit);
  void EmitBody(const Body& body);  // outside any nest
  void EmitLoop(const LoopStep& step);
  void EmitSerialLoop(const LoopStep& step);
  void EmitEachIteration(LoopId loop, const std::function<void()>& emit);
  // Emits the loops of `nest` from `level` inwards. The loop at `block_level`, if given, starts a
  // register block.
  void EmitNest(const Nest& nest, std::size_t level, std::optional<std::size_t> block_level);
  void EmitBlockVariants(const Nest& nest, std::size_t level);
  std::vector<Tile> VariantsOf(const Nest& nest, std::size_t level) const;
  void EmitVariant(const Nest& nest, std::size_t level, const Tile& tile);
  Value* IsVariant(const Tile& tile);

  llvm::IRBuilderBase& builder_;
  const KernelPlan& plan_;
  const VectorShape& shape_;
  const Watch watch_;
  LoopState state_;
  BodyEmitter bodies_;
  AnnotationEffects effects_;
  BlockEmitter blocks_;
  VectorLoopEmitter vectors_;
  ParallelEmitter parallel_;
};

bool HoldsParallelLoop(const KernelPlan& plan, const std::vector<Step>& steps) {
  return plan.threads > 1 && std::ranges::any_of(steps, [&](const Step& step) {
           const auto* loop = std::get_if<LoopStep>(&step.what);
           return loop != nullptr &&
                  (plan.loops[loop->loop].parallel || HoldsParallelLoop(plan, loop->steps));
         });
}

void Emitter::EmitKernel() {
  if (watch_.probes == nullptr) return EmitSteps(plan_.steps);
  watch_.probes->Around(0, [&] {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      watch_.probes->Around(watch_.places->root_sites[i], [&] { EmitStep(plan_.steps[i]); });
    }
  });
}

void Emitter::EmitSteps(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
      Counted(loop->loop, [&] { EmitLoop(*loop); });
    } else {
      EmitStep(step);
    }
  }
}

void Emitter::EmitStep(const Step& step) {
  if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
    EmitLoop(*loop);
  } else {
    EmitBody(std::get<Body>(step.what));
  }
}

void Emitter::Counted(LoopId loop, const std::function<void()>& emit) {
  if (watch_.probes == nullptr) return emit();
  const auto site = watch_.places->loop_sites.find(loop);
  if (site == watch_.places->loop_sites.end()) return emit();
  watch_.probes->Around(site->second, emit);
}

void Emitter::EmitBody(const Body& body) {
  LoadCache cache;
  if (body.once.empty()) {
    bodies_.Emit(body, {}, Lanes{}, cache);
    return;
  }
  Value* first = builder_.getTrue();
  for (LoopId loop : body.once) {
    first =
        builder_.CreateAnd(first, builder_.CreateICmpEQ(state_.offset(loop), state_.Constant(0)));
  }
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  auto* run = llvm::BasicBlock::Create(builder_.getContext(), "once", function);
  auto* skip = llvm::BasicBlock::Create(builder_.getContext(), "skip", function);
  builder_.CreateCondBr(first, run, skip);
  builder_.SetInsertPoint(run);
  bodies_.Emit(body, {}, Lanes{}, cache);
  builder_.CreateBr(skip);
  builder_.SetInsertPoint(skip);
}

void Emitter::EmitEachIteration(LoopId loop, const std::function<void()>& emit) {
  state_.RunWhole(loop, {}, [&](Value*, const Values&) {
    emit();
    return Values{};
  });
}

void Emitter::EmitLoop(const LoopStep& step) {
  const PlanLoop& loop = plan_.loops[step.loop];
  if (!loop.parallel) {
    EmitSerialLoop(step);
    return;
  }
  parallel_.Emit(step, [&](const LoopStep& innermost) { EmitSerialLoop(innermost); });
}

void Emitter::EmitSerialLoop(const LoopStep& step) {
  const std::optional<Nest> nest = NestAt(step);
  // A nest cannot start outside a loop that is split over threads.
  if (nest.has_value() && !HoldsParallelLoop(plan_, step.steps)) {
    EmitNest(*nest, 0, BlockLoopOf(plan_, *nest, shape_));
    return;
  }
  EmitSteps(step.prepare);
  EmitEachIteration(step.loop, [&] { EmitSteps(step.steps); });
}

void Emitter::EmitNest(const Nest& nest, std::size_t level,
                       std::optional<std::size_t> block_level) {
  if (level == block_level) {
    EmitBlockVariants(nest, level);
    return;
  }
  EmitSteps(nest.loops[level]->prepare);
  if (level + 1 == nest.loops.size()) {
    vectors_.Emit(nest);
    return;
  }
  EmitEachIteration(nest.loops[level]->loop, [&] {
    Counted(nest.loops[level + 1]->loop, [&] { EmitNest(nest, level + 1, block_level); });
  });
}

// Every combination of extents that the dims of the block can have here, the full one first.
std::vector<Emitter::Tile> Emitter::VariantsOf(const Nest& nest, std::size_t level) const {
  std::vector<Tile> variants(1);
  for (const TileDim& dim : TileInside(plan_, nest, level)) {
    std::vector<std::int64_t> extents = {state_.ConstantExtent(dim.dim)};
    if (extents[0] == 0) {
      // The extents that the dim's outermost loop in the block can have.
      const auto outermost = std::ranges::find_if(
          nest.loops.begin() + static_cast<std::ptrdiff_t>(level), nest.loops.end(),
          [&](const LoopStep* step) { return plan_.loops[step->loop].dim == dim.dim; });
      extents = plan_.loops[(*outermost)->loop].extents;
    }
    std::vector<Tile> more;
    for (const Tile& variant : variants) {
      for (std::int64_t extent : extents) {
        more.push_back(variant);
        more.back().push_back({dim.dim, dim.loop, extent});
      }
    }
    variants = std::move(more);
  }
  return variants;
}

Value* Emitter::IsVariant(const Tile& tile) {
  Value* all = builder_.getTrue();
  for (const TileDim& dim : tile) {
    Value* extent = state_.extent(dim.dim);
    all = builder_.CreateAnd(all, builder_.CreateICmpEQ(extent, state_.Constant(dim.extent)));
  }
  return all;
}

void Emitter::EmitVariant(const Nest& nest, std::size_t level, const Tile& tile) {
  const std::optional<RegisterBlock> block = BlockAt(plan_, nest, level, tile, shape_);
  const LoopStep& outermost = *nest.loops[level];
  if (block.has_value()) {
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      const LoopId id = nest.loops[i]->loop;
      const PlanLoop& loop = plan_.loops[id];
      if (block->chosen_by_annotation && loop.annotation == Annotation::kVectorize) {
        effects_.effective.insert(*loop.ref);
      }
      if (i > level && loop.annotation == Annotation::kUnroll && !nest.Reduces(id)) {
        effects_.reasons.emplace(*loop.ref,
                                 "a register block unrolls it anyway, as far as registers allow");
      }
    }
    const bool whole = outermost.loop == nest.reduction()->reduced.front();
    blocks_.Emit(nest, *block,
                 whole ? BlockEmitter::Start::kIdentity : BlockEmitter::Start::kMemory);
    return;
  }
  EmitNest(nest, level, std::nullopt);
}

void Emitter::EmitBlockVariants(const Nest& nest, std::size_t level) {
  const std::vector<Tile> variants = VariantsOf(nest, level);
  if (variants.size() == 1) {
    EmitVariant(nest, level, variants[0]);
    return;
  }
  // If there are too many for a block each: a block for the full extents, loops for the rest.
  const bool all = variants.size() <= kMaxBlockVariants;
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = builder_.getContext();
  auto* done = llvm::BasicBlock::Create(context, "joined");
  const std::size_t tested = all ? variants.size() - 1 : 1;
  for (std::size_t i = 0; i < tested; ++i) {
    auto* this_one = llvm::BasicBlock::Create(context, "variant", function);
    auto* others = llvm::BasicBlock::Create(context, "others");
    builder_.CreateCondBr(IsVariant(variants[i]), this_one, others);
    builder_.SetInsertPoint(this_one);
    EmitVariant(nest, level, variants[i]);
    builder_.CreateBr(done);
    others->insertInto(function);
    builder_.SetInsertPoint(others);
  }
  if (all) {
    EmitVariant(nest, level, variants.back());
  } else {
    // An innermost reduced loop needs no known extents: it is a block by itself.
    const std::size_t innermost = nest.loops.size() - 1;
    const bool reduces = innermost > level && nest.Reduces(nest.loops[innermost]->loop);
    EmitNest(nest, level, reduces ? std::optional(innermost) : std::nullopt);
  }
  builder_.CreateBr(done);
  done->insertInto(function);
  builder_.SetInsertPoint(done);
}

void SetAttributes(const VectorShape& shape, llvm::Function& function) {
  function.addFnAttr(llvm::Attribute::NoUnwind);
  // Some CPUs prefer vectors shorter than their widest; LLVM would split ours.
  const std::string bits = std::to_string(shape.lanes * 32);
  function.addFnAttr("min-legal-vector-width", bits);
  function.addFnAttr("prefer-vector-width", bits);
}

// The start address of each plan buffer, from the caller's pointers (kernel/kernel.h).
Values BufferStarts(llvm::IRBuilderBase& builder, const KernelPlan& plan, Value* passed) {
  llvm::Type* pointer = builder.getPtrTy();
  std::uint64_t next = 0;
  const auto take = [&] {
    Value* slot = builder.CreateGEP(pointer, passed, builder.getInt64(next++));
    return builder.CreateLoad(pointer, slot);
  };
  Values starts;
  Value* scratch = nullptr;
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.role != BufferSpec::Role::kScratch) {
      starts.push_back(take());
      continue;
    }
    if (scratch == nullptr) scratch = take();
    starts.push_back(
        builder.CreateGEP(builder.getInt8Ty(), scratch,
                          builder.getInt64(static_cast<std::uint64_t>(buffer.scratch_offset))));
  }
  return starts;
}

// The pointer after the buffers (kernel/kernel.h).
Value* ParallelForOf(llvm::IRBuilderBase& builder, const KernelPlan& plan, Value* passed) {
  llvm::Type* pointer = builder.getPtrTy();
  Value* slot = builder.CreateGEP(pointer, passed, builder.getInt64(BufferSpecsOf(plan).size()));
  return builder.CreateLoad(pointer, slot);
}

// The address of the first cell of an instrumented copy: in scratch, the last buffer.
Value* CellsOf(llvm::IRBuilderBase& builder, const KernelPlan& plan, Value* passed,
               std::uint64_t offset) {
  llvm::Type* pointer = builder.getPtrTy();
  const std::size_t last = BufferSpecsOf(plan).size() - 1;
  Value* scratch =
      builder.CreateLoad(pointer, builder.CreateGEP(pointer, passed, builder.getInt64(last)));
  return builder.CreateGEP(builder.getInt8Ty(), scratch, builder.getInt64(offset));
}

// By site: the whole kernel, its roots and the loops asked for.
std::vector<bool> CountingSites(const EmittedProbes& probes) {
  std::vector<bool> counts;
  for (const ProbeSite& site : probes.places.sites) {
    counts.push_back(counts.empty() || site.is_root ||
                     probes.wanted.loops.contains(site.place.ref));
  }
  return counts;
}

// Emits the kernel once, into an empty module. Returns what became of its annotations, without what
// `unroller` knows.
AnnotationEffects EmitOnce(const KernelPlan& plan, const VectorShape& shape, Unroller& unroller,
                           llvm::Module& module, const EmittedProbes* probes) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<llvm::ConstantFolder, llvm::IRBuilderCallbackInserter> builder(
      context, llvm::ConstantFolder(),
      llvm::IRBuilderCallbackInserter([&](llvm::Instruction*) { unroller.CountInstruction(); }));
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, false);
  auto* function =
      llvm::Function::Create(type, llvm::Function::ExternalLinkage, kKernelSymbol, module);
  SetAttributes(shape, *function);
  const bool notes_lines =
      probes != nullptr && probes->wanted.kind == Instrumentation::Kind::kLines;
  std::optional<SourceLines> lines;
  if (notes_lines) lines.emplace(module, probes->places).AddFunction(*function);
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  const SourceLines::Scope outside(lines ? &*lines : nullptr, builder,
                                   ProfilePlace{.part = ProfilePart::kOutside});
  const Values buffers = BufferStarts(builder, plan, function->getArg(0));
  Value* parallel_for =
      plan.threads > 1 ? ParallelForOf(builder, plan, function->getArg(0)) : nullptr;
  std::optional<ProbeEmitter> clock;
  Emitter::Watch watch{.lines = lines ? &*lines : nullptr};
  if (probes != nullptr && probes->wanted.kind == Instrumentation::Kind::kCounters) {
    // Not counted as the kernel's instructions: the copy is unrolled as far as the kernel.
    llvm::IRBuilder<> uncounted(builder.GetInsertBlock());
    clock.emplace(builder, CellsOf(uncounted, plan, function->getArg(0), probes->cells_offset),
                  CountingSites(*probes));
    watch.probes = &*clock;
    watch.places = &probes->places;
  }
  Emitter emitter(builder, plan, shape, buffers, parallel_for, unroller, watch);
  emitter.EmitKernel();
  // Non-temporal stores are not ordered with other stores.
  if (emitter.streamed()) builder.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
  builder.CreateRetVoid();
  if (lines) lines->Finish();
  return emitter.effects();
}

}  // namespace

AnnotationEffects EmitKernel(const KernelPlan& plan, const VectorShape& shape, llvm::Module& module,
                             const EmittedProbes* probes) {
  Unroller unroller(plan);
  if (unroller.IsNeeded()) {
    llvm::Module measured("measured", module.getContext());
    measured.setDataLayout(module.getDataLayout());
    EmitOnce(plan, shape, unroller, measured, probes);
    unroller.Choose(kUnrollLimits);
  }
  AnnotationEffects effects = EmitOnce(plan, shape, unroller, module, probes);
  for (const PlanLoop& loop : plan.loops) {
    if (loop.parallel && loop.ref.has_value()) effects.effective.insert(*loop.ref);
  }
  AddUnrolling(plan, unroller, effects);
  return effects;
}

}  // namespace loopfleet::worker

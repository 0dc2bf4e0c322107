#include "worker/cpu/cpu_compiler.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "worker/cpu/kernel_emitter.h"
#include "worker/cpu/object_cache.h"
#include "worker/cpu/object_writer.h"
#include "worker/cpu/packing.h"
#include "worker/cpu/plan_places.h"
#include "worker/cpu/source_lines.h"
#include "worker/cpu/strip_mining.h"
#include "worker/cpu/target.h"
#include "worker/lowering/annotation_effects.h"
#include "worker/lowering/direct_writes.h"
#include "worker/lowering/join_splits.h"
#include "worker/lowering/scratch_layout.h"

namespace loopfleet::worker {
namespace {

// Constants and types live as long as their context, so it is replaced regularly.
constexpr int kCompilesPerContext = 256;

// Floats that the instruction computes at once; 0: it computes no vector.
unsigned LanesOf(const llvm::Instruction& instruction) {
  const bool is_comparison = llvm::isa<llvm::FCmpInst>(instruction);
  const bool is_arithmetic =
      is_comparison ||
      llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::SelectInst>(instruction) ||
      (llvm::isa<llvm::IntrinsicInst>(instruction) && !instruction.mayReadOrWriteMemory());
  const llvm::Type* type =
      is_comparison ? instruction.getOperand(0)->getType() : instruction.getType();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const bool counts = is_arithmetic && vector != nullptr && vector->getElementType()->isFloatTy();
  return counts ? vector->getNumElements() : 0;
}

// Kernel::vector_bytes.
std::uint32_t WidestVector(const llvm::Module& module, const VectorShape& shape) {
  unsigned lanes = 0;
  for (const llvm::Function& function : module) {
    for (const llvm::BasicBlock& block : function) {
      for (const llvm::Instruction& instruction : block) {
        lanes = std::max(lanes, LanesOf(instruction));
      }
    }
  }
  // A longer one takes several registers.
  return std::min(lanes, shape.lanes) * static_cast<std::uint32_t>(sizeof(float));
}

}  // namespace

class CpuCompiler::Impl {
 public:
  Impl(std::unique_ptr<llvm::LLVMTargetMachine> machine, const CpuCompilerOptions& options)
      : limits_(options.limits),
        machine_(std::move(machine)),
        shape_(ShapeOf(options.isa)),
        writer_(*machine_),
        objects_(options.object_cache_bytes) {
    shape_.cache_bytes = options.cache_bytes.value_or(shape_.cache_bytes);
  }

  std::expected<Kernel, Failure> Compile(const looptree::LoopTree& tree,
                                         const CompileOptions& options) {
    if (options.instrumentation.kind == Instrumentation::Kind::kCounters &&
        !machine_->getTargetTriple().isX86()) {
      return std::unexpected(Failure{.code = FailureCode::kUnsupported,
                                     .message = "programs cannot read a clock of this processor "
                                                "without the system: profile lines"});
    }
    LF_TRY(Emitted emitted, Emit(tree, options));
    Kernel kernel{.object = ObjectOf(*emitted.module),
                  .buffers = BufferSpecsOf(emitted.plan),
                  .scratch_bytes = emitted.plan.scratch_bytes,
                  .threads = emitted.plan.threads,
                  .vector_bytes = WidestVector(*emitted.module, shape_),
                  .notes = AnnotationNotes(tree, emitted.effects),
                  .profile = std::move(emitted.profile)};
    if (options.instrumentation.kind != Instrumentation::Kind::kLines) return kernel;
    return WithLines(std::move(kernel), tree, options);
  }

  std::expected<std::string, Failure> CompileToIr(const looptree::LoopTree& tree,
                                                  const CompileOptions& options) {
    LF_TRY(const Emitted emitted, Emit(tree, options));
    std::string text;
    llvm::raw_string_ostream stream(text);
    emitted.module->print(stream, nullptr);
    return text;
  }

  std::expected<std::string, Failure> CompileToAssembly(const looptree::LoopTree& tree,
                                                        const CompileOptions& options) {
    LF_TRY(const Emitted emitted, Emit(tree, options));
    return ObjectWriter(*machine_, ObjectWriter::Form::kAssembly).Write(*emitted.module);
  }

 private:
  // The plain kernel, with the spans of the code that `noted` was made with.
  std::expected<Kernel, Failure> WithLines(Kernel noted, const looptree::LoopTree& tree,
                                           const CompileOptions& options) {
    LF_TRY(Kernel plain, Compile(tree, {.threads = options.threads}));
    const auto unreadable = [](Error error) {
      return std::unexpected(
          Failure{.code = FailureCode::kCompileError, .message = std::move(error).message});
    };
    const Result<bool> is_same = HaveSameCode(plain.object, noted.object);
    if (!is_same) return unreadable(is_same.error());
    if (!*is_same) {
      return std::unexpected(Failure{.code = FailureCode::kUnsupported,
                                     .message = "the kernel's lines are not known: noting them "
                                                "changes its code; profile loops or roots"});
    }
    auto spans = SpansOf(noted.object);
    if (!spans) return unreadable(std::move(spans).error());
    plain.profile = std::move(noted.profile);
    plain.profile.spans = *std::move(spans);
    return plain;
  }

  struct Emitted {
    KernelPlan plan;
    std::unique_ptr<llvm::Module> module;
    AnnotationEffects effects;  // on the loops of the tree
    ProfileMap profile = {};
  };

  std::expected<Emitted, Failure> Emit(const looptree::LoopTree& tree,
                                       const CompileOptions& options) {
    const std::optional<JoinedTree> joined = JoinSplits(tree, options.threads);
    LoopOrigins origins{.tree = tree, .of = {}, .outermost = {}};
    origins.of.resize(tree.nodes().size());
    std::iota(origins.of.begin(), origins.of.end(), looptree::TreeRef{0});
    origins.outermost = origins.of;
    if (!joined) return EmitJoined(tree, options, origins);
    origins.of = joined->origins;
    origins.outermost = joined->outermost;
    LF_TRY(Emitted emitted, EmitJoined(joined->tree, options, origins));
    emitted.effects = WithOriginalLoops(emitted.effects, joined->origins);
    ShareEffects(joined->outermost, emitted.effects);
    return emitted;
  }

  std::expected<Emitted, Failure> EmitJoined(const looptree::LoopTree& tree,
                                             const CompileOptions& options,
                                             const LoopOrigins& origins) {
    PlanLimits limits = limits_;
    limits.threads = options.threads;
    LF_TRY(KernelPlan plan, PlanKernel(tree, limits));
    const auto not_parallel = plan.not_parallel;
    if (const std::optional<StripMinedTree> cut = StripMine(tree, plan, shape_)) {
      // Strips can make intermediates larger. Where threads or the limit do not allow that, the
      // tree stays uncut.
      auto cut_plan = PlanKernel(cut->tree, limits);
      if (cut_plan.has_value() && cut_plan->threads == plan.threads) {
        LoopOrigins of_strips{.tree = origins.tree, .of = {}, .outermost = origins.outermost};
        for (const looptree::TreeRef loop : cut->origins) of_strips.of.push_back(origins.of[loop]);
        Emitted emitted = EmitPlan(*std::move(cut_plan), options.instrumentation, of_strips);
        AnnotationEffects effects = WithOriginalLoops(emitted.effects, cut->origins);
        effects.effective.insert(cut->effective.begin(), cut->effective.end());
        effects.reasons.insert(not_parallel.begin(), not_parallel.end());
        emitted.effects = std::move(effects);
        return emitted;
      }
    }
    Emitted emitted = EmitPlan(std::move(plan), options.instrumentation, origins);
    emitted.effects.reasons.insert(not_parallel.begin(), not_parallel.end());
    return emitted;
  }

  std::string ObjectOf(llvm::Module& module) {
    if (!objects_.is_kept()) return writer_.Write(module);
    const llvm::StringRef key = KeyOf(module);
    if (const std::string* object = objects_.Find(key)) return *object;
    std::string object = writer_.Write(module);
    objects_.Add(key.str(), object);
    return object;
  }

  // The module as bitcode, valid until the next call. Omits the symbol table that
  // WriteBitcodeToFile appends: only linkers need it, and it adds no information.
  llvm::StringRef KeyOf(const llvm::Module& module) {
    key_.clear();
    llvm::BitcodeWriter writer(key_);
    writer.writeModule(module);
    writer.writeStrtab();
    return {key_.data(), key_.size()};
  }

  Emitted EmitPlan(KernelPlan plan, const Instrumentation& wanted, const LoopOrigins& origins) {
    if (compiles_++ % kCompilesPerContext == 0) context_ = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("loopfleet", *context_);
    module->setDataLayout(machine_->createDataLayout());
    module->setTargetTriple(machine_->getTargetTriple().str());
    WriteDirectly(plan);
    PackPanels(plan, shape_, limits_.footprint_bytes);
    ProfileMap profile;
    AnnotationEffects effects;
    if (wanted.kind == Instrumentation::Kind::kNone) {
      effects = EmitKernel(plan, shape_, *module);
    } else {
      effects = EmitProfiled(plan, wanted, origins, *module, profile);
    }
#ifndef NDEBUG
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    LF_CHECK(!llvm::verifyModule(*module, &stream), "bad IR: {}", problem);
#endif
    return {std::move(plan), std::move(module), std::move(effects), std::move(profile)};
  }

  AnnotationEffects EmitProfiled(KernelPlan& plan, const Instrumentation& wanted,
                                 const LoopOrigins& origins, llvm::Module& module,
                                 ProfileMap& profile) {
    const PlanPlaces places = PlacesOf(plan, origins, shape_);
    profile.fused = places.fused;
    EmittedProbes probes{.wanted = wanted, .places = places};
    if (wanted.kind == Instrumentation::Kind::kCounters) {
      probes.cells_offset =
          (plan.scratch_bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
      plan.scratch_bytes = probes.cells_offset + places.sites.size() * 2 * sizeof(std::uint64_t);
      profile.probes = {.offset = probes.cells_offset, .sites = places.sites};
    }
    return EmitKernel(plan, shape_, module, &probes);
  }

  const PlanLimits limits_;
  std::unique_ptr<llvm::LLVMTargetMachine> machine_;
  VectorShape shape_;
  ObjectWriter writer_;
  ObjectCache objects_;
  llvm::SmallVector<char, 0> key_;
  std::unique_ptr<llvm::LLVMContext> context_;
  int compiles_ = 0;
};

CpuCompiler::CpuCompiler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CpuCompiler::~CpuCompiler() = default;

Result<std::unique_ptr<CpuCompiler>> CpuCompiler::Create(const CpuCompilerOptions& options) {
  LF_TRY(auto machine, MakeTargetMachine(options.isa));
  auto impl = std::make_unique<Impl>(std::move(machine), options);
  return std::unique_ptr<CpuCompiler>(new CpuCompiler(std::move(impl)));
}

std::expected<Kernel, Failure> CpuCompiler::Compile(const looptree::LoopTree& tree,
                                                    const CompileOptions& options) {
  return impl_->Compile(tree, options);
}

std::expected<std::string, Failure> CpuCompiler::CompileToIr(const looptree::LoopTree& tree,
                                                             const CompileOptions& options) {
  return impl_->CompileToIr(tree, options);
}

std::expected<std::string, Failure> CpuCompiler::CompileToAssembly(const looptree::LoopTree& tree,
                                                                   const CompileOptions& options) {
  return impl_->CompileToAssembly(tree, options);
}

CompilerFacts CpuCompilerFacts() {
  return {.llvm = LLVM_VERSION_STRING, .tier = "general", .revision = kLoweringRevision};
}

}  // namespace loopfleet::worker

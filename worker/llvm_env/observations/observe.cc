#include "worker/llvm_env/observations/observe.h"

#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "common/base/check.h"
#include "worker/llvm_env/observations/autophase.h"
#include "worker/llvm_env/observations/inst_count.h"
#include "worker/llvm_env/observations/module_bitcode.h"
#include "worker/llvm_env/observations/object_text_size.h"
#include "worker/llvm_env/observations/programl.h"

namespace loopfleet::worker {

Result<passes::ObservationValue> Observe(passes::Observation observation,
                                         const llvm::Module& module) {
  using enum passes::Observation;
  switch (observation) {
    case kIr: return IrTextOf(module);
    case kIrSha1: return IrSha1Of(module);
    case kBitcode: return BitcodeOf(module);
    case kModuleHash: return ModuleHashOf(module);
    case kInstCount: return InstCountOf(module);
    case kInstCountNorm: return InstCountNormOf(module);
    case kAutophase: return AutophaseOf(module);
    case kPrograml: {
      LF_TRY(const passes::ProgramlGraph graph, ProgramlOf(module));
      return passes::Encode(graph);
    }
    case kProgramlJson: {
      LF_TRY(const passes::ProgramlGraph graph, ProgramlOf(module));
      return passes::ToNodeLinkJson(graph);
    }
    case kProgramlJsonFullText: {
      std::vector<std::string> full_texts;
      LF_TRY(const passes::ProgramlGraph graph, ProgramlOf(module, &full_texts));
      return passes::ToNodeLinkJson(graph, full_texts);
    }
    case kIrInstructionCount:
    case kIrInstructionCountO0:
    case kIrInstructionCountO3:
    case kIrInstructionCountOz:
    case kIrInstructionCountOzAttr: return static_cast<std::int64_t>(module.getInstructionCount());
    case kObjectTextSizeBytes:
    case kObjectTextSizeO0:
    case kObjectTextSizeO3:
    case kObjectTextSizeOz: return ObjectTextSizeOf(module, CodeLevel::kNone);
    case kObjectTextSizeO2Bytes: return ObjectTextSizeOf(module, CodeLevel::kDefault);
  }
  LF_CHECK(false, "observation {}", static_cast<int>(observation));
}

}  // namespace loopfleet::worker

#include "worker/cpu/object_writer.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "common/base/check.h"

namespace loopfleet::worker {

struct ObjectWriter::Pipeline {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream{bytes};
  llvm::legacy::PassManager passes;
};

ObjectWriter::ObjectWriter(llvm::LLVMTargetMachine& machine)
    : pipeline_(std::make_unique<Pipeline>()) {
  const bool refused = machine.addPassesToEmitFile(pipeline_->passes, pipeline_->stream, nullptr,
                                                   llvm::CodeGenFileType::ObjectFile,
                                                   /*DisableVerify=*/true);
  LF_CHECK(!refused, "the target writes no object files");
}

ObjectWriter::~ObjectWriter() = default;

std::string ObjectWriter::Write(llvm::Module& module) {
  pipeline_->bytes.clear();
  pipeline_->passes.run(module);
  return {pipeline_->bytes.begin(), pipeline_->bytes.end()};
}

}  // namespace loopfleet::worker

#include "worker/llvm_env/observations/object_text_size.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "common/base/check.h"

namespace loopfleet::worker {

Result<std::int64_t> ObjectTextSizeOf(const llvm::Module& module, CodeLevel level) {
  const auto machine = MakeX86TargetMachine(level);
  const auto copy = llvm::CloneModule(module);  // the code generator rewrites what it reads
  copy->setTargetTriple(kX86Triple);
  copy->setDataLayout(machine->createDataLayout());
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  const bool refused =
      machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile);
  LF_CHECK(!refused, "LLVM writes no x86 object files");
  passes.run(*copy);
  auto file = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef({object.data(), object.size()}, "-"));
  if (!file) {
    return Fail(ErrorKind::kInvalid, "no object file: " + llvm::toString(file.takeError()));
  }
  constexpr std::uint64_t kCode = llvm::ELF::SHF_ALLOC | llvm::ELF::SHF_EXECINSTR;
  std::int64_t bytes = 0;
  for (const llvm::object::ELFSectionRef section : (*file)->sections()) {
    if ((section.getFlags() & kCode) == kCode)
      bytes += static_cast<std::int64_t>(section.getSize());
  }
  return bytes;
}

}  // namespace loopfleet::worker

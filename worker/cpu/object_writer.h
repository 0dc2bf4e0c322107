#pragma once
// ObjectWriter: a module of EmitKernel as an object file. It keeps its pipeline of machine passes,
// as making one costs as much as running it.

#include <memory>
#include <string>

namespace llvm {
class LLVMTargetMachine;
class Module;
}  // namespace llvm

namespace loopfleet::worker {

class ObjectWriter {
 public:
  explicit ObjectWriter(llvm::LLVMTargetMachine& machine);  // which has to outlive this
  ~ObjectWriter();

  std::string Write(llvm::Module& module);

 private:
  struct Pipeline;
  std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace loopfleet::worker

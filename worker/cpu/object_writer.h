#pragma once
// ObjectWriter: a module of EmitKernel as an object file, or as assembly for people. It keeps its
// pipeline of machine passes, as making one costs as much as running it.

#include <memory>
#include <string>

namespace llvm {
class LLVMTargetMachine;
class Module;
}  // namespace llvm

namespace loopfleet::worker {

class ObjectWriter {
 public:
  enum class Form { kObject, kAssembly };
  // The machine has to outlive this.
  explicit ObjectWriter(llvm::LLVMTargetMachine& machine, Form form = Form::kObject);
  ~ObjectWriter();

  std::string Write(llvm::Module& module);

 private:
  struct Pipeline;
  std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace loopfleet::worker

#pragma once
// ObjectWriter: compiles a module of EmitKernel to an object file, or to assembly for people. Keeps
// its pipeline of machine passes, because building one costs as much as running it. Used by one
// thread.

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
  // `machine` must outlive this object.
  explicit ObjectWriter(llvm::LLVMTargetMachine& machine, Form form = Form::kObject);
  ~ObjectWriter();

  std::string Write(llvm::Module& module);

 private:
  struct Pipeline;
  std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace loopfleet::worker

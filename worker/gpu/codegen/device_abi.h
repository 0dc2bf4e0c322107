#pragma once
// DeviceAbi: emits what a kernel needs from its machine: the thread's index, shared memory, and
// barriers for the threads of a block. Two machines exist: CUDA, and threads emulated by the host
// (which tests use to run kernels without a GPU). Used by one thread.
//
// Emulated threads use one function for all stages of a kernel, called as
//   loopfleet_kernel(buffers)
// The pointers of the buffers are followed by one to a HostThread, which selects the stage and the
// thread to run. `wait` must return once all threads of the block have called it from the same
// place.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class Function;
class IRBuilderBase;
class LLVMTargetMachine;
class Module;
class Value;
}  // namespace llvm

namespace loopfleet::worker {

struct HostThread {
  std::uint32_t stage = 0;
  std::uint32_t thread = 0;
  std::uint32_t block = 0;
  std::uint32_t place = 0;  // where it waits: a different number for each barrier in the code
  void* shared = nullptr;   // the block's shared memory, kSharedBytes
  void (*wait)(HostThread*) = nullptr;
};

class DeviceAbi {
 public:
  virtual ~DeviceAbi() = default;

  // A function for one stage, with one pointer for each buffer: void(float* x buffers).
  struct StageFunction {
    std::uint32_t stage = 0;
    std::uint32_t buffers = 0;
    std::uint32_t inputs = 0;  // the first of the buffers; never written
    std::uint32_t block_threads = 1;
  };
  virtual llvm::Function* AddStage(llvm::Module& module, const StageFunction& stage) = 0;
  // Called once, after all stages are emitted.
  virtual void Finish(llvm::Module& module, const std::vector<llvm::Function*>& stages,
                      std::uint32_t buffers) = 0;

  // Called within a stage's function. Thread and Block return i32.
  virtual llvm::Value* Thread(llvm::IRBuilderBase& builder) = 0;
  virtual llvm::Value* Block(llvm::IRBuilderBase& builder) = 0;
  virtual void Wait(llvm::IRBuilderBase& builder) = 0;
  // A pointer to that many bytes of the block's shared memory. Called at most once per stage.
  virtual llvm::Value* Shared(llvm::IRBuilderBase& builder, std::int64_t bytes) = 0;
  // A pointer to that many bytes of thread-local memory.
  virtual llvm::Value* Local(llvm::IRBuilderBase& builder, std::int64_t bytes) = 0;
};

std::unique_ptr<DeviceAbi> CudaAbi();
std::unique_ptr<DeviceAbi> HostAbi();

// The symbol of a stage's kernel in the PTX.
std::string StageSymbol(std::uint32_t stage);

}  // namespace loopfleet::worker

#pragma once
// DeviceAbi: what a kernel asks of the machine that it runs on: which thread it is, shared memory,
// waiting for the other threads of its block. Two machines: CUDA's, and threads played by the host
// (tests run kernels that way, where there is no GPU).
//
// Played threads: one function for all stages of a kernel, called as
//   loopfleet_kernel(buffers)
// with one pointer behind those of the buffers: to a HostThread, which says which stage and thread
// to run. `wait` has to return when all threads of the block have called it, from the same place.

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
  std::uint32_t place = 0;  // where it waits: another number for each place in the code
  void* shared = nullptr;   // kSharedBytes of the block's
  void (*wait)(HostThread*) = nullptr;
};

class DeviceAbi {
 public:
  virtual ~DeviceAbi() = default;

  // A function for one stage, with a pointer to each buffer: void(float* x buffers).
  struct StageFunction {
    std::uint32_t stage = 0;
    std::uint32_t buffers = 0;
    std::uint32_t inputs = 0;  // of the buffers, the first: never written
    std::uint32_t block_threads = 1;
  };
  virtual llvm::Function* AddStage(llvm::Module& module, const StageFunction& stage) = 0;
  // When all stages are there.
  virtual void Finish(llvm::Module& module, const std::vector<llvm::Function*>& stages,
                      std::uint32_t buffers) = 0;

  // Within a stage's function. i32:
  virtual llvm::Value* Thread(llvm::IRBuilderBase& builder) = 0;
  virtual llvm::Value* Block(llvm::IRBuilderBase& builder) = 0;
  virtual void Wait(llvm::IRBuilderBase& builder) = 0;
  // A pointer to that many bytes of the block's shared memory; once for each stage.
  virtual llvm::Value* Shared(llvm::IRBuilderBase& builder, std::int64_t bytes) = 0;
  // A pointer to that many bytes of the thread's own.
  virtual llvm::Value* Local(llvm::IRBuilderBase& builder, std::int64_t bytes) = 0;
};

std::unique_ptr<DeviceAbi> CudaAbi();
std::unique_ptr<DeviceAbi> HostAbi();

// What the kernel of a stage is called in the PTX.
std::string StageSymbol(std::uint32_t stage);

}  // namespace loopfleet::worker

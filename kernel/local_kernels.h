#pragma once
// LocalKernels: kernels that this process calls itself. `loopfleet-worker serve` compiles them for
// a place in this process's CodeArea and verifies them in a child before they run here.

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/code_area.h"
#include "kernel/compile_service.h"
#include "kernel/per_process.h"
#include "kernel/thread_pool.h"

namespace loopfleet {

// Threads for the kernels of one process: a ThreadPool that several threads may use in turns. A
// forked process gets threads of its own.
class SharedThreads {
 public:
  explicit SharedThreads(std::uint32_t threads);

  struct Turn {
    std::unique_lock<std::mutex> lock;
    const ParallelFor* parallel_for;  // for as long as the lock is held
  };
  Turn Take();

 private:
  struct Pool {
    std::mutex mutex;
    ThreadPool threads;
  };
  PerProcess<Pool> pool_;
};

// Code in this process. Safe from any thread: calls at the same time have scratch of their own.
class LocalKernel {
 public:
  LocalKernel(Served served, std::unique_ptr<CodeArea::Block> code,
              std::shared_ptr<SharedThreads> threads);

  // Pointers per Program::inputs, at any multiple of 4 bytes, and per Program::outputs, at
  // multiples of 64. The memory of an output may not overlap any other.
  void Run(const float* const* inputs, float* const* outputs);

  std::uint64_t scratch_bytes() const { return scratch_bytes_; }
  const std::string& code_hash() const { return code_hash_; }
  Verified verified() const { return verified_; }
  const std::string& remark() const { return remark_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Scratch;
  std::unique_ptr<Scratch> MakeScratch() const;

  const std::unique_ptr<CodeArea::Block> code_;
  const std::shared_ptr<SharedThreads> threads_;  // null: it has no parallel loop
  std::size_t input_count_ = 0;
  std::size_t output_count_ = 0;
  std::vector<std::uint64_t> scratch_counts_;  // elements of each
  std::uint64_t scratch_bytes_ = 0;
  std::string code_hash_;
  Verified verified_ = Verified::kNo;
  std::string remark_;
  std::vector<std::string> notes_;
  std::atomic_flag in_use_;  // scratch_
  std::unique_ptr<Scratch> scratch_;
};

// One thread at a time.
class LocalKernels {
 public:
  explicit LocalKernels(CompileService::Options options)
      : threads_(options.threads), service_(std::move(options)) {}

  // Failures are those of jobs, WORKER_LOST and UNSUPPORTED if no executable memory is allowed.
  std::expected<std::shared_ptr<LocalKernel>, Failure> Compile(const looptree::LoopTree& tree,
                                                               VerifyWish verify);
  // The system lets this process execute no code that it wrote.
  bool IsForbidden() const { return is_forbidden_; }
  CompileService& service() { return service_; }

 private:
  const std::uint32_t threads_;
  CompileService service_;
  bool is_forbidden_ = false;
  // After a fork, parent and child have its pages in common: neither writes there any more.
  std::shared_ptr<CodeArea> area_;         // null: not yet needed
  std::uint64_t fork_count_ = 0;           // when it was made
  std::shared_ptr<SharedThreads> shared_;  // null: not yet needed
};

}  // namespace loopfleet

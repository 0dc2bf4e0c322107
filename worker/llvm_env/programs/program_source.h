#pragma once
// ProgramSource: makes the bitcode that a program URI names, with Csmith, llvm-stress and clang,
// or finds it in the worker's folder.
// The caller keeps the bitcode by its hash: the tools are slow, and what they make never changes.
// One call at a time on each thread.

#include <expected>
#include <filesystem>
#include <string>

#include "common/job/failure.h"
#include "common/llvm_passes/program_uri.h"
#include "worker/llvm_env/programs/program_folder.h"

namespace loopfleet::worker {

class ProgramSource {
 public:
  struct Options {
    std::filesystem::path programs;  // program_folder.h; empty: this worker has none
  };
  explicit ProgramSource(Options options)
      : has_folder_(!options.programs.empty()), folder_(std::move(options.programs)) {}

  bool has_folder() const { return has_folder_; }

  // INVALID_BENCHMARK: this program cannot be had here; the message says why. DEVICE_FAULT: a tool
  // that makes it is missing on this host, or too slow on it now.
  std::expected<std::string, Failure> BitcodeOf(const passes::ProgramUri& program) const;

 private:
  const bool has_folder_;
  const ProgramFolder folder_;
};

}  // namespace loopfleet::worker

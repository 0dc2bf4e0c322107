#pragma once
// ProgramSource: makes the bitcode that a program URI names, with Csmith, llvm-stress and clang.
// The caller keeps the bitcode by its hash: the tools are slow, and what they make never changes.
// One call at a time on each thread.

#include <expected>
#include <filesystem>
#include <string>

#include "common/job/failure.h"
#include "common/llvm_passes/program_uri.h"

namespace loopfleet::worker {

class ProgramSource {
 public:
  struct Options {
    // Holds <name>.bc for each program of debian-v0, as deploy/llvm/build_debian.py leaves them.
    // Empty: this worker has none.
    std::filesystem::path debian_programs;
  };
  explicit ProgramSource(Options options) : options_(std::move(options)) {}

  // INVALID_BENCHMARK: this program cannot be had here; the message says why. DEVICE_FAULT: a tool
  // that makes it is missing on this host, or too slow on it now. Uploaded programs
  // come with their job, not from here.
  std::expected<std::string, Failure> BitcodeOf(const passes::ProgramUri& program) const;

 private:
  const Options options_;
};

}  // namespace loopfleet::worker

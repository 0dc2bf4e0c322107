#pragma once
// ProgramFolder: the folder of bitcode that an operator gives to a worker (--llvm-programs). It
// holds <name>.bc for programs of debian-v0, as deploy/llvm/build_debian.py leaves them, and
// bitcode/<hash>.bc, as `loopfleet llvm add` does. No file is used whose bytes have another SHA-256
// than its name or the table says. Only hashes bytes: bitcode is hostile until a confined child has
// read it.

#include <filesystem>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/llvm_passes/program_uri.h"

namespace loopfleet::worker {

class ProgramFolder {
 public:
  // Empty: this worker has no folder, and every program is missing.
  explicit ProgramFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // kNotFound: no folder or no file. kInvalid: the file is not the program. Both say what to do.
  Result<std::string> Read(const passes::DebianProgram& program) const;
  Result<std::string> Read(const passes::BitcodeProgram& program) const;

 private:
  // `remedy`: what makes the file.
  Result<std::string> ReadVerified(const std::filesystem::path& name, std::string_view sha256,
                                   std::string_view remedy) const;

  const std::filesystem::path folder_;
};

}  // namespace loopfleet::worker

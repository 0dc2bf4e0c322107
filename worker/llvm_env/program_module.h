#pragma once
// ProgramModule: a program in memory, normalised, so that equal programs have equal hashes however
// they were made: the module's names are "-", debug information and named metadata are gone, no
// function is optnone, and an empty triple is kX86Triple. It is read from the very bytes that are
// hashed: passes also depend on the order of use lists, which these bytes alone determine. Owns its
// LLVMContext. One thread.
//
// Bitcode is hostile input. Reading it may crash the process, so it is read in a confined child
// only.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/llvm_passes/program_uri.h"

namespace llvm {
class Function;
class LLVMContext;
class Module;
}  // namespace llvm

namespace loopfleet::worker {

struct ProgramLimits {
  std::size_t bitcode_bytes = passes::kMostBitcodeBytes;
  std::uint64_t instructions = 2'000'000;
  std::uint64_t functions = 100'000;
};

class ProgramModule {
 public:
  // kInvalid: this is no bitcode, LLVM's verifier rejects it (with its message, at most 4 KiB), or
  // it is beyond a limit.
  static Result<ProgramModule> Read(std::string_view bitcode, const ProgramLimits& limits = {});
  // The same for LLVM's text form, for tests.
  static Result<ProgramModule> Parse(std::string_view text, const ProgramLimits& limits = {});

  ProgramModule(ProgramModule&&) noexcept;
  ProgramModule& operator=(ProgramModule&&) noexcept;
  ~ProgramModule();

  llvm::Module& module() const { return *module_; }
  std::uint64_t InstructionCount() const;
  // SHA-256 of the normalised bitcode, as the program was read: what keys name it by.
  const std::string& hash() const { return hash_; }

 private:
  ProgramModule(std::unique_ptr<llvm::LLVMContext> context, std::unique_ptr<llvm::Module> module);
  static Result<ProgramModule> ReadBytes(std::string_view bitcode);
  static Result<ProgramModule> Normalise(ProgramModule program, const ProgramLimits& limits);

  std::unique_ptr<llvm::LLVMContext> context_;
  std::unique_ptr<llvm::Module> module_;
  std::string hash_;
};

// The verifier's complaint, at most 4 KiB of it; "": the module, or function, is sound.
std::string VerifierMessage(const llvm::Module& module);
std::string VerifierMessage(const llvm::Function& function);

}  // namespace loopfleet::worker

#include "worker/llvm_env/program_module.h"

#include <fmt/format.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include "common/base/sha256.h"
#include "worker/llvm_env/observations/module_bitcode.h"
#include "worker/llvm_env/x86_target.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kLongestMessage = 4096;

llvm::StringRef ToRef(std::string_view text) { return {text.data(), text.size()}; }

std::unexpected<Error> Refuse(std::string message) {
  if (message.size() > kLongestMessage) message.resize(kLongestMessage);
  return Fail(ErrorKind::kInvalid, std::move(message));
}

// `is_broken` writes why.
template <class IsBroken>
std::string MessageOf(IsBroken is_broken) {
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (!is_broken(stream)) return {};
  if (message.size() > kLongestMessage) message.resize(kLongestMessage);
  return message.empty() ? "the module is broken" : message;
}

}  // namespace

ProgramModule::ProgramModule(std::unique_ptr<llvm::LLVMContext> context,
                             std::unique_ptr<llvm::Module> module)
    : context_(std::move(context)), module_(std::move(module)) {}
ProgramModule::ProgramModule(ProgramModule&&) noexcept = default;
ProgramModule::~ProgramModule() = default;

ProgramModule& ProgramModule::operator=(ProgramModule&& other) noexcept {
  module_ = std::move(other.module_);  // before the context that it lives in
  context_ = std::move(other.context_);
  hash_ = std::move(other.hash_);
  return *this;
}

Result<ProgramModule> ProgramModule::ReadBytes(std::string_view bitcode) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(ToRef(bitcode), "-"), *context);
  if (!module) {
    return Refuse("this is no LLVM bitcode: " + llvm::toString(module.takeError()));
  }
  return ProgramModule(std::move(context), std::move(*module));
}

Result<ProgramModule> ProgramModule::Read(std::string_view bitcode, const ProgramLimits& limits) {
  if (bitcode.size() > limits.bitcode_bytes) {
    return Refuse(fmt::format("the bitcode has {} bytes; at most {} are taken", bitcode.size(),
                              limits.bitcode_bytes));
  }
  LF_TRY(ProgramModule program, ReadBytes(bitcode));
  return Normalise(std::move(program), limits);
}

Result<ProgramModule> ProgramModule::Parse(std::string_view text, const ProgramLimits& limits) {
  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic problem;
  const auto buffer = llvm::MemoryBuffer::getMemBufferCopy(ToRef(text), "-");
  auto module = llvm::parseAssembly(buffer->getMemBufferRef(), problem, *context);
  if (!module) return Refuse("this is no LLVM IR: " + problem.getMessage().str());
  return Normalise(ProgramModule(std::move(context), std::move(module)), limits);
}

Result<ProgramModule> ProgramModule::Normalise(ProgramModule program, const ProgramLimits& limits) {
  llvm::Module& module = *program.module_;
  if (const std::uint64_t count = program.InstructionCount(); count > limits.instructions) {
    return Refuse(fmt::format("the program has {} instructions; at most {} are taken", count,
                              limits.instructions));
  }
  if (module.size() > limits.functions) {
    return Refuse(fmt::format("the program has {} functions; at most {} are taken", module.size(),
                              limits.functions));
  }
  if (std::string problem = VerifierMessage(module); !problem.empty()) {
    return Refuse("LLVM's verifier rejects the program: " + problem);
  }
  module.setModuleIdentifier("-");
  module.setSourceFileName("-");
  llvm::StripDebugInfo(module);
  while (!module.named_metadata_empty()) module.eraseNamedMetadata(&*module.named_metadata_begin());
  for (llvm::Function& function : module) function.removeFnAttr(llvm::Attribute::OptimizeNone);
  if (module.getTargetTriple().empty()) module.setTargetTriple(kX86Triple);
  const std::string bitcode = BitcodeOf(module);
  LF_TRY(ProgramModule normalised, ReadBytes(bitcode));
  normalised.hash_ = Sha256Of(bitcode);
  return normalised;
}

std::uint64_t ProgramModule::InstructionCount() const { return module_->getInstructionCount(); }

std::string VerifierMessage(const llvm::Module& module) {
  return MessageOf([&](llvm::raw_ostream& out) { return llvm::verifyModule(module, &out); });
}

std::string VerifierMessage(const llvm::Function& function) {
  return MessageOf([&](llvm::raw_ostream& out) { return llvm::verifyFunction(function, &out); });
}

}  // namespace loopfleet::worker

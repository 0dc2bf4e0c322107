#include "worker/llvm_env/programs/program_source.h"

#include <fmt/format.h>

#include <vector>

#include "common/base/check.h"
#include "common/llvm_passes/clang_flags.h"
#include "worker/llvm_env/programs/small_programs.h"
#include "worker/llvm_env/programs/tool_run.h"

namespace loopfleet::worker {
namespace {

constexpr ToolLimits kGeneratorLimits{.wall_time = std::chrono::seconds(20)};
constexpr ToolLimits kCompilerLimits{.wall_time = std::chrono::seconds(60)};

Result<std::string> CompileC(std::string_view source) {
  std::vector<std::string> command = {"clang-19"};
  command.insert(command.end(), passes::kClangFlags.begin(), passes::kClangFlags.end());
  command.insert(command.end(), {"-I/usr/include/csmith", "-x", "c", "-", "-o", "-"});
  return RunTool(command, source, kCompilerLimits);
}

struct Maker {
  const ProgramFolder& folder;

  Result<std::string> operator()(const passes::CsmithProgram& program) const {
    LF_TRY(const std::string source,
           RunTool({"csmith", "--seed", std::to_string(program.seed)}, "", kGeneratorLimits));
    return CompileC(source);
  }
  Result<std::string> operator()(const passes::StressProgram& program) const {
    LF_TRY(
        const std::string text,
        RunTool({"llvm-stress-19", fmt::format("--seed={}", program.seed)}, "", kGeneratorLimits));
    return RunTool({"llvm-as-19", "-o", "-"}, text, kCompilerLimits);
  }
  Result<std::string> operator()(const passes::SmallProgram& program) const {
    const std::string_view source = SmallProgramSource(program.name);
    LF_CHECK(!source.empty(), "small-v0 has no {}", program.name);
    return CompileC(source);
  }
  Result<std::string> operator()(const passes::DebianProgram& program) const {
    return folder.Read(program);
  }
  Result<std::string> operator()(const passes::BitcodeProgram& program) const {
    return folder.Read(program);
  }
};

}  // namespace

std::expected<std::string, Failure> ProgramSource::BitcodeOf(
    const passes::ProgramUri& program) const {
  Result<std::string> bitcode = std::visit(Maker{folder_}, program);
  if (bitcode) return *std::move(bitcode);
  // Not the program's fault: a tool that is missing or was kept waiting, here.
  const bool is_host = bitcode.error().kind == ErrorKind::kTimeout ||
                       bitcode.error().kind == ErrorKind::kSystem ||
                       bitcode.error().kind == ErrorKind::kNotFound;
  const bool is_tool = std::holds_alternative<passes::CsmithProgram>(program) ||
                       std::holds_alternative<passes::StressProgram>(program) ||
                       std::holds_alternative<passes::SmallProgram>(program);
  return std::unexpected(Failure{
      .code = is_host && is_tool ? FailureCode::kDeviceFault : FailureCode::kInvalidBenchmark,
      .message = fmt::format("{}: {}", passes::ToString(program), bitcode.error().message)});
}

}  // namespace loopfleet::worker

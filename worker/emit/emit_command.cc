#include "worker/emit/emit_command.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <expected>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/suggestion.h"
#include "common/job/job_spec.h"
#include "common/job/loop_schedule.h"
#include "common/job/outcome_json.h"
#include "common/looptree/tree/key.h"
#include "worker/backend/code_hash.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/cpu/wasm_module.h"
#include "worker/emit/code_request.h"
#include "worker/gpu/codegen/gpu_compiler.h"
#include "worker/gpu/codegen/gpu_image.h"
#include "worker/gpu/codegen/ptx_assembler.h"
#include "worker/portable_c/c_source.h"

namespace loopfleet::worker {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

enum class Format { kC, kLlvmIr, kAssembly, kObject, kFacts, kWasm, kPtx, kCubin };

template <class T>
struct Named {
  std::string_view name;
  T value;
};
constexpr std::array kFormats = {Named{"c", Format::kC},          Named{"llvm-ir", Format::kLlvmIr},
                                 Named{"asm", Format::kAssembly}, Named{"object", Format::kObject},
                                 Named{"facts", Format::kFacts},  Named{"wasm", Format::kWasm},
                                 Named{"ptx", Format::kPtx},      Named{"cubin", Format::kCubin}};
std::unexpected<Error> UnknownName(std::string_view flag, const std::string& wanted,
                                   std::span<const std::string_view> known) {
  return Fail(ErrorKind::kInvalid,
              fmt::format("{} {}: must be one of {}{}", flag, wanted, fmt::join(known, ", "),
                          NearestSuffix(wanted, known)));
}

template <class T, std::size_t N>
Result<T> Find(std::string_view flag, const std::array<Named<T>, N>& known,
               const std::string& wanted) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) {
    names[i] = known[i].name;
    if (wanted == names[i]) return known[i].value;
  }
  return UnknownName(flag, wanted, names);
}

std::vector<std::string_view> IsaNames() {
  std::vector<std::string_view> names = {"host"};
  for (const IsaSupport& row : IsaTable()) names.push_back(row.name);
  return names;
}

Result<CpuIsa> FindIsa(const std::string& wanted) {
  if (wanted == "host") return CpuIsa::kHost;
  for (const IsaSupport& row : IsaTable()) {
    if (row.name == wanted) return row.isa;
  }
  return UnknownName("--isa", wanted, IsaNames());
}

struct Flags {
  std::string format;
  std::string isa = "host";
  std::string gpu_arch;  // empty: the code is for a CPU
  std::string benchmark;
  std::string ir_file;
  std::string actions;
  std::uint32_t threads = 1;
  std::string code_hash;  // of a stored row, to compare with; empty: none
};

int PrintError(int code, std::string_view text) {
  fmt::print(stderr, "loopfleet-worker emit: {}\n", text);
  return code;
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--format", flags.format, "What to write")
      ->required()
      ->type_name("c|llvm-ir|asm|object|facts|wasm|ptx|cubin");
  app.add_option("--isa", flags.isa, "Instructions that the code may use; without it the host's")
      ->type_name(fmt::format("{}", fmt::join(IsaNames(), "|")));
  app.add_option(
         "--gpu-arch", flags.gpu_arch,
         "GPU that the code is for, sm_80 or newer ones; with ptx, cubin, llvm-ir and facts")
      ->type_name("sm_NN");
  auto* benchmark = app.add_option("--benchmark", flags.benchmark, "The benchmark's URI");
  app.add_option("--ir", flags.ir_file, "A file with a program as IR text, in place of a benchmark")
      ->excludes(benchmark);
  app.add_option("--actions", flags.actions, "Actions separated by commas");
  app.add_option("--threads", flags.threads, "Threads that parallel loops are split over")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--code-hash", flags.code_hash,
                 "A row's code_hash: say on standard error whether the host makes the same code");
  app.footer(
      "Without --benchmark and --ir, one job line is read from standard input, as `loopfleet\n"
      "submit` takes it; fields that do not change the code are passed over.");
}

Result<JobSpec> SpecFrom(const Flags& flags) {
  if (flags.benchmark.empty() && flags.ir_file.empty()) {
    std::string line;
    if (!std::getline(std::cin, line)) return Fail(ErrorKind::kInvalid, "no job line was given");
    return ParseCodeRequest(line);
  }
  JobSpec spec;
  spec.threads = flags.threads;
  if (!flags.benchmark.empty()) {
    spec.source = looptree::BenchmarkUri{flags.benchmark};
  } else {
    std::ifstream file(flags.ir_file, std::ios::binary);
    if (!file) return Fail(ErrorKind::kNotFound, fmt::format("cannot read {}", flags.ir_file));
    spec.source = looptree::IrText{
        std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>())};
  }
  auto actions = looptree::ParseActionList(flags.actions);
  if (!actions) return Fail(ErrorKind::kInvalid, actions.error().message);
  spec.actions = *std::move(actions);
  return spec;
}

Json CompilerJson(const CompilerFacts& compiler) {
  return {{"llvm", compiler.llvm}, {"tier", compiler.tier}, {"revision", compiler.revision}};
}

// The text of facts, completed by what a Kernel and a GpuKernel have in common.
template <class AnyKernel>
std::string Completed(Json facts, const AnyKernel& kernel) {
  facts["scratch_bytes"] = kernel.scratch_bytes;
  facts["buffers"] = Json::array();
  for (const BufferSpec& buffer : kernel.buffers) {
    facts["buffers"].push_back(
        {{"role", EnumName(buffer.role)}, {"elements", buffer.element_count}});
  }
  AddNotes(kernel.notes, facts);
  return facts.dump() + "\n";
}

std::string FactsText(const looptree::LoopTree& tree, const Kernel& kernel) {
  Json facts;
  facts["tree_key"] = looptree::KeyOf(tree).ToString();
  facts["code_hash"] = CodeHash(kernel.object);
  facts["object_bytes"] = kernel.object.size();
  facts["compiler"] = CompilerJson(CpuCompilerFacts());
  facts["threads"] = kernel.threads;
  facts["flop_count"] = looptree::FlopCount(tree.program());
  return Completed(std::move(facts), kernel);
}

std::expected<std::string, Failure> CodeOf(Format format, const looptree::LoopTree& tree,
                                           const CompileOptions& options, CpuCompiler& compiler) {
  switch (format) {
    case Format::kC: {
      LF_TRY(CSource source, CSourceOf(tree));
      return std::move(source.text);
    }
    case Format::kLlvmIr: return compiler.CompileToIr(tree, options);
    case Format::kAssembly: return compiler.CompileToAssembly(tree, options);
    case Format::kObject:
    case Format::kFacts:
    case Format::kWasm:
    case Format::kPtx:
    case Format::kCubin: break;
  }
  LF_TRY(const Kernel kernel, compiler.Compile(tree, options));
  if (format == Format::kWasm) {
    const auto failed = [](const Error& error) {
      return std::unexpected(Failure{.code = FailureCode::kCompileError, .message = error.message});
    };
    auto module = WasmModuleOf(kernel.object, FactsText(tree, kernel));
    if (!module) return failed(module.error());
    return *std::move(module);
  }
  return format == Format::kFacts ? FactsText(tree, kernel) : kernel.object;
}

// ---- GPUs

bool NeedsGpu(Format format) { return format == Format::kPtx || format == Format::kCubin; }

std::string GpuFactsText(const looptree::LoopTree& tree, const GpuKernel& kernel, GpuArch arch) {
  Json facts;
  facts["tree_key"] = looptree::KeyOf(tree).ToString();
  facts["code_hash"] = CodeHash(GpuObjectOf(kernel));
  facts["gpu_arch"] = arch.Name();
  facts["ptx_arch"] = PtxArchFor(arch).Name();
  facts["ptx_bytes"] = kernel.ptx.size();
  facts["compiler"] = CompilerJson(GpuCompilerFacts());
  facts["launches"] = Json::array();
  for (const GpuLaunch& launch : kernel.launches) {
    facts["launches"].push_back(
        {{"symbol", launch.symbol}, {"blocks", launch.blocks}, {"threads", launch.threads}});
  }
  return Completed(std::move(facts), kernel);
}

std::expected<std::string, Failure> GpuCodeOf(Format format, const looptree::LoopTree& tree,
                                              GpuArch arch, GpuCompiler& compiler) {
  if (format == Format::kLlvmIr) return compiler.CompileToIr(tree);
  LF_TRY(const GpuKernel kernel, compiler.Compile(tree));
  if (format == Format::kFacts) return GpuFactsText(tree, kernel, arch);
  if (format == Format::kPtx) return kernel.ptx;
  const auto failed = [](const Error& error) {
    return std::unexpected(Failure{.code = FailureCode::kCompileError, .message = error.message});
  };
  const auto assembler = OpenNvJitLink();
  if (!assembler) return failed(assembler.error());
  auto cubin = (*assembler)->Assemble(kernel.ptx, arch);
  if (!cubin) return failed(cubin.error());
  return std::move(cubin->bytes);
}

// The requested GPU; nullopt: the code is for a CPU.
Result<std::optional<GpuArch>> RequestedGpu(Format format, const Flags& flags) {
  if (flags.gpu_arch.empty()) {
    if (!NeedsGpu(format)) return std::nullopt;
    return Fail(ErrorKind::kInvalid,
                fmt::format("--format {} needs --gpu-arch, such as sm_90", flags.format));
  }
  const bool makes = NeedsGpu(format) || format == Format::kLlvmIr || format == Format::kFacts;
  if (!makes) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("--gpu-arch {}: only with --format ptx, cubin, llvm-ir or facts",
                            flags.gpu_arch));
  }
  if (!flags.code_hash.empty()) {
    return Fail(ErrorKind::kInvalid, "--code-hash: rows of GPUs cannot be compared here");
  }
  LF_TRY(const GpuArch arch, ParseGpuArch(flags.gpu_arch));
  return arch;
}

// The instruction set to compile for: that of --isa, and WebAssembly's for a module of it.
Result<CpuIsa> RequestedIsa(Format format, const Flags& flags) {
  LF_TRY(CpuIsa isa, FindIsa(flags.isa));
  if (format == Format::kWasm && isa == CpuIsa::kHost) isa = CpuIsa::kWasm32;
  if (format == Format::kWasm && isa != CpuIsa::kWasm32) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("--isa {}: --format wasm is for --isa wasm32", flags.isa));
  }
  if (isa == CpuIsa::kWasm32 && flags.threads > 1) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("--threads {}: WebAssembly kernels run on 1", flags.threads));
  }
  return isa;
}

struct Compilers {
  std::unique_ptr<CpuCompiler> cpu;
  std::unique_ptr<CpuCompiler> host;  // for the comparison with a row; null: no row was given
  std::unique_ptr<GpuCompiler> gpu;   // null: the code is for a CPU
};

Result<Compilers> MakeCompilers(const Flags& flags, CpuIsa isa, std::optional<GpuArch> gpu) {
  Compilers compilers;
  if (gpu) {
    LF_TRY(compilers.gpu, GpuCompiler::Create({.arch = *gpu, .limits = {}}));
    return compilers;
  }
  LF_TRY(compilers.cpu, CpuCompiler::Create({.isa = isa}));
  if (!flags.code_hash.empty()) {
    LF_TRY(compilers.host, CpuCompiler::Create());
  }
  return compilers;
}

// Tells whether this program on this host makes the code that was measured.
void CompareWithRow(const std::string& wanted, const looptree::LoopTree& tree,
                    const CompileOptions& options, CpuCompiler& host) {
  const auto kernel = host.Compile(tree, options);
  if (!kernel) return;
  const std::string made = CodeHash(kernel->object);
  if (made == wanted) {
    fmt::print(stderr, "code_hash {}: this host makes the row's very code\n", made);
    return;
  }
  const CompilerFacts facts = CpuCompilerFacts();
  fmt::print(stderr,
             "code_hash {}: not the row's {}; made here by LLVM {}, tier {}, revision {}, for this"
             " host's processor\n",
             made, wanted, facts.llvm, facts.tier, facts.revision);
}

bool PrintAll(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

}  // namespace

int EmitMain(int argc, const char* const* argv) {
  Flags flags;
  CLI::App app("The code of a job, without running it", "loopfleet-worker emit");
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return PrintError(kExitUsage, error.what());
  }
  const Result<Format> format = Find("--format", kFormats, flags.format);
  if (!format) return PrintError(kExitUsage, format.error().message);
  const auto gpu = RequestedGpu(*format, flags);
  if (!gpu) return PrintError(kExitUsage, gpu.error().message);
  const Result<JobSpec> spec = SpecFrom(flags);
  if (!spec) return PrintError(kExitUsage, spec.error().message);
  const Result<CpuIsa> isa = RequestedIsa(*format, flags);
  if (!isa) return PrintError(kExitUsage, isa.error().message);
  const auto compilers = MakeCompilers(flags, *isa, *gpu);
  if (!compilers) return PrintError(kExitFailed, compilers.error().message);
  const auto failed = [](const Failure& failure) {
    return PrintError(kExitFailed,
                      fmt::format("{}: {}", InfoOf(failure.code).name, failure.message));
  };
  const auto replayed = ReplayJob(*spec);
  if (!replayed) return failed(replayed.error());
  // A job on several threads runs the same tree on one where there are no others.
  const CompileOptions options{.threads = *isa == CpuIsa::kWasm32 ? 1 : spec->threads};
  const auto code = compilers->gpu != nullptr
                        ? GpuCodeOf(*format, replayed->tree, **gpu, *compilers->gpu)
                        : CodeOf(*format, replayed->tree, options, *compilers->cpu);
  if (!code) return failed(code.error());
  if (compilers->host != nullptr) {
    CompareWithRow(flags.code_hash, replayed->tree, options, *compilers->host);
  }
  if (!PrintAll(*code)) {
    return PrintError(kExitFailed, "cannot write to standard output");
  }
  return kExitOk;
}

}  // namespace loopfleet::worker

#include "worker/processes/compiler_child.h"

#include <cstdlib>
#include <new>
#include <utility>

#include "common/looptree/text/text.h"
#include "worker/processes/child_message.h"
#include "worker/sandbox/confinement.h"

namespace loopfleet::worker {
namespace {

CompileReply Compile(const CompileRequest& request, const looptree::LoopTree& tree,
                     const Instrumentation& instrumentation, Compiler& compiler,
                     CodeLinker& linker) {
  LF_TRY(Kernel kernel, compiler.Compile(tree, {.threads = request.threads,
                                                .instrumentation = instrumentation}));
  Result<CodeImage> code =
      linker.LinkAt(kernel.object, {.address = request.code_address,
                                    .max_bytes = request.max_code_bytes,
                                    .outside = request.outside ? &*request.outside : nullptr});
  if (code) return CompiledKernel{.kernel = std::move(kernel), .code = *std::move(code)};
  return std::unexpected(
      Failure{.code = FailureCode::kCompileError, .message = std::move(code).error().message});
}

// The plain kernel, with the place of each of its instructions. Its places are those of a kernel
// that was made with them noted, and that has to be the same code.
CompileReply CompileWithLines(const CompileRequest& request, const looptree::LoopTree& tree,
                              Compiler& compiler, CodeLinker& linker) {
  LF_TRY(CompiledKernel plain, Compile(request, tree, {}, compiler, linker));
  LF_TRY(CompiledKernel noted, Compile(request, tree, request.instrumentation, compiler, linker));
  if (plain.code != noted.code) {
    return std::unexpected(
        Failure{.code = FailureCode::kUnsupported,
                .message = "the kernel's lines are not known: noting them changes its code; "
                           "profile loops or roots"});
  }
  plain.kernel.profile = std::move(noted.kernel.profile);
  for (CodeSpan& span : plain.kernel.profile.spans) {
    span.begin += static_cast<std::int64_t>(plain.code.entry);
  }
  return plain;
}

CompileReply Answer(const CompileRequest& request, const looptree::LoopTree& tree,
                    Compiler& compiler, CodeLinker& linker) {
  if (request.instrumentation.kind == Instrumentation::Kind::kLines) {
    return CompileWithLines(request, tree, compiler, linker);
  }
  return Compile(request, tree, request.instrumentation, compiler, linker);
}

}  // namespace

int RunCompilerChild(Channel& channel, Compiler& compiler, CodeLinker& linker,
                     const CompilerChildOptions& options) {
  std::set_new_handler(ExitOutOfMemory);
  if (!SealProcess(ChildRole::kCompiler, options.isolation, channel.fd())) return kExitNotConfined;
  for (;;) {
    const Result<std::string> bytes = channel.Receive(std::nullopt, kMaxRequestBytes);
    if (!bytes) return kExitOk;
    const std::optional<CompileRequest> request = DecodeCompileRequest(*bytes);
    if (!request) return kExitBadRequest;
    LimitProcessorTime({.wall_seconds = options.time_limit_s});
    const looptree::Checked<looptree::LoopTree> tree = looptree::ParseIr(request->ir);
    if (!tree) return kExitBadRequest;  // the daemon printed it from a valid tree
    const CompileReply reply = Answer(*request, *tree, compiler, linker);
    if (!channel.Send(EncodeCompileReply(reply), std::nullopt)) return kExitOk;
  }
}

}  // namespace loopfleet::worker

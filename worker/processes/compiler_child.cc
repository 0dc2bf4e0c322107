#include "worker/processes/compiler_child.h"

#include <cstdlib>
#include <new>
#include <utility>

#include "common/looptree/text/text.h"
#include "worker/processes/child_message.h"
#include "worker/sandbox/confinement.h"

namespace loopfleet::worker {
namespace {

CompileReply Answer(const CompileRequest& request, const looptree::LoopTree& tree,
                    Compiler& compiler, CodeLinker& linker) {
  LF_TRY(Kernel kernel, compiler.Compile(tree, {.threads = request.threads,
                                                .instrumentation = request.instrumentation}));
  Result<CodeImage> code =
      linker.LinkAt(kernel.object, {.address = request.code_address,
                                    .max_bytes = request.max_code_bytes,
                                    .outside = request.outside ? &*request.outside : nullptr});
  if (!code) {
    return std::unexpected(
        Failure{.code = FailureCode::kCompileError, .message = std::move(code).error().message});
  }
  for (CodeSpan& span : kernel.profile.spans) span.begin += static_cast<std::int64_t>(code->entry);
  return CompiledKernel{.kernel = std::move(kernel), .code = *std::move(code)};
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

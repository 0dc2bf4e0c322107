#include "worker/compiler_child.h"

#include <cstdlib>
#include <new>
#include <utility>

#include "common/looptree/text.h"
#include "worker/child_confinement.h"
#include "worker/child_message.h"

namespace loopfleet::worker {
namespace {

[[noreturn]] void GiveUpForWantOfMemory() { std::_Exit(kExitOutOfMemory); }

}  // namespace

int RunCompilerChild(Channel channel, Compiler& compiler, std::uint64_t time_limit_s) {
  std::set_new_handler(GiveUpForWantOfMemory);
  for (;;) {
    const Result<std::string> text = channel.Receive(std::nullopt, kMaxRequestBytes);
    if (!text) return kExitOk;
    LimitProcessorTime(time_limit_s);
    const looptree::Checked<looptree::LoopTree> tree = looptree::ParseIr(*text);
    if (!tree) return kExitBadRequest;  // it was printed from a tree that was built
    if (!channel.Send(EncodeCompileReply(compiler.Compile(*tree)), std::nullopt)) return kExitOk;
  }
}

}  // namespace loopfleet::worker

#include "worker/cpu/linker.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/Shared/ExecutorAddress.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

namespace orc = llvm::orc;

Error Translate(llvm::Error error) {
  return {ErrorKind::kCorrupt, fmt::format("the kernel's object file cannot be linked: {}",
                                           llvm::toString(std::move(error)))};
}

// All of the outside world that generated code may call.
orc::SymbolMap CLibraryFunctions(orc::ExecutionSession& session) {
  orc::SymbolMap symbols;
  const auto add = [&](const char* name, auto* function) {
    symbols[session.intern(name)] = {
        orc::ExecutorAddr::fromPtr(function),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
  add("expf", static_cast<float (*)(float)>(&::expf));
  add("logf", static_cast<float (*)(float)>(&::logf));
  add("sqrtf", static_cast<float (*)(float)>(&::sqrtf));
  add("memcpy", &std::memcpy);
  add("memset", &std::memset);
  return symbols;
}

}  // namespace

struct Linker::Session {
  explicit Session(std::unique_ptr<orc::SelfExecutorProcessControl> control)
      : session(std::move(control)), layer(session) {}
  ~Session() {
    if (llvm::Error error = session.endSession()) session.reportError(std::move(error));
  }

  orc::ExecutionSession session;
  orc::ObjectLinkingLayer layer;
  orc::JITDylib* c_library = nullptr;
  std::uint64_t linked = 0;
};

struct LinkedKernel::State {
  std::shared_ptr<Linker::Session> session;
  orc::JITDylib* library = nullptr;

  ~State() {
    if (llvm::Error error = session->session.removeJITDylib(*library)) {
      session->session.reportError(std::move(error));
    }
  }
};

LinkedKernel::LinkedKernel(std::unique_ptr<State> state, KernelFunction entry)
    : state_(std::move(state)), function_(entry) {}
LinkedKernel::~LinkedKernel() = default;

Linker::Linker(std::shared_ptr<Session> session) : session_(std::move(session)) {}
Linker::~Linker() = default;

Result<std::unique_ptr<Linker>> Linker::Create() {
  auto control = orc::SelfExecutorProcessControl::Create();
  if (!control) {
    return std::unexpected(
        Error{ErrorKind::kSystem,
              fmt::format("no memory for code: {}", llvm::toString(control.takeError()))});
  }
  auto session = std::make_shared<Session>(std::move(*control));
  // A failed link is an Error of ours; nothing is to be printed beside it.
  session->session.setErrorReporter(
      [](llvm::Error error) { llvm::consumeError(std::move(error)); });
  session->c_library = &session->session.createBareJITDylib("c");
  if (llvm::Error error =
          session->c_library->define(orc::absoluteSymbols(CLibraryFunctions(session->session)))) {
    return std::unexpected(Translate(std::move(error)));
  }
  return std::unique_ptr<Linker>(new Linker(std::move(session)));
}

Result<std::unique_ptr<LinkedKernel>> Linker::Link(std::string_view object) {
  orc::ExecutionSession& session = session_->session;
  auto state = std::make_unique<LinkedKernel::State>();
  state->session = session_;
  state->library = &session.createBareJITDylib(fmt::format("kernel{}", session_->linked++));
  state->library->addToLinkOrder(*session_->c_library);
  auto bytes =
      llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "kernel");
  if (llvm::Error error = session_->layer.add(*state->library, std::move(bytes))) {
    return std::unexpected(Translate(std::move(error)));
  }
  auto symbol = session.lookup({state->library}, kKernelSymbol);
  if (!symbol) return std::unexpected(Translate(symbol.takeError()));
  const auto function = symbol->getAddress().toPtr<KernelFunction>();
  return std::unique_ptr<LinkedKernel>(new LinkedKernel(std::move(state), function));
}

}  // namespace loopfleet::worker

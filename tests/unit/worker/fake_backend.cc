#include "tests/unit/worker/fake_backend.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "common/base/check.h"
#include "worker/child_message.h"

namespace loopfleet::worker {
namespace {

// Of the kernel that this executor child has loaded.
std::int64_t element_count = 0;
int call_count = 0;

void Add(float* const* buffers) {
  for (std::int64_t i = 0; i < element_count; ++i) buffers[2][i] = buffers[0][i] + buffers[1][i];
}
void WrongOutput(float* const* buffers) {
  Add(buffers);
  buffers[2][element_count / 2] += 1;
}
void Crash(float* const*) {
  // Not null: the undefined-behaviour sanitizer would end the child before the processor does.
  *reinterpret_cast<volatile int*>(16) = 1;
}
void Hang(float* const*) {
  const volatile bool forever = true;
  while (forever) {
  }
}
void Exit(float* const*) { ::_exit(0); }
void SendToDaemon(std::string_view bytes) {
  constexpr int kChannelFd = 3;
  const std::uint64_t length = bytes.size();
  LF_CHECK(::send(kChannelFd, &length, sizeof length, 0) == sizeof length, "send");
  LF_CHECK(::send(kChannelFd, bytes.data(), bytes.size(), 0) == std::ssize(bytes), "send");
}
void Junk(float* const*) { SendToDaemon("this is not an answer"); }
void Beside(float* const* buffers) {
  Add(buffers);
  buffers[2][element_count] = 0;
}
void RightOnce(float* const* buffers) {
  if (call_count++ == 0) Add(buffers);
}
void WritesInput(float* const* buffers) {
  Add(buffers);
  buffers[0][0] = 0;
}
void Illegal(float* const*) { __builtin_trap(); }
void Bomb(float* const*) {
  for (;;) {
    auto* const block = new char[1 << 20];
    for (int i = 0; i < 1 << 20; i += 4096) const_cast<volatile char*>(block)[i] = 1;
  }
}
void LastElementLeft(float* const* buffers) {
  for (std::int64_t i = 0; i + 1 < element_count; ++i) {
    buffers[2][i] = buffers[0][i] + buffers[1][i];
  }
}
void Lies(float* const* buffers) {
  Add(buffers);
  if (++call_count == 2) {  // the first call of timing
    SendToDaemon(Encode(ExecutorReply(Samples{.iterations = 1, .ns = {1e12}})));
    ::_exit(0);
  }
}

KernelFunction FunctionOf(std::int64_t elements) {
  switch (static_cast<Fault>(elements)) {
    case Fault::kWrongOutput: return WrongOutput;
    case Fault::kCrash: return Crash;
    case Fault::kHang: return Hang;
    case Fault::kExit: return Exit;
    case Fault::kJunk: return Junk;
    case Fault::kBeside: return Beside;
    case Fault::kRightOnce: return RightOnce;
    case Fault::kWritesInput: return WritesInput;
    case Fault::kIllegal: return Illegal;
    case Fault::kBomb: return Bomb;
    case Fault::kLastElementLeft: return LastElementLeft;
    case Fault::kLies: return Lies;
    default: return Add;
  }
}

class FakeKernel final : public LoadedKernel {
 public:
  KernelFunction function() const override { return FunctionOf(element_count); }
};

class FakeCompiler final : public Compiler {
 public:
  std::expected<Kernel, Failure> Compile(const looptree::LoopTree& tree,
                                         const CompileOptions&) override {
    const looptree::Program& program = tree.program();
    const std::int64_t elements = program.ElementCount(program.outputs.at(0));
    Kernel kernel{.object = std::to_string(elements)};
    for (int i = 0; i < 3; ++i) {
      kernel.buffers.push_back(
          {.role = i < 2 ? BufferSpec::Role::kInput : BufferSpec::Role::kOutput,
           .element_count = static_cast<std::uint64_t>(elements)});
    }
    switch (static_cast<Fault>(elements)) {
      case Fault::kCompilerCrash: Crash(nullptr); break;
      case Fault::kCompilerHang: Hang(nullptr); break;
      case Fault::kCompilerBomb: Bomb(nullptr); break;
      case Fault::kCompilerJunk: kernel.buffers[2].element_count = 1; break;
      case Fault::kRefused:
        return std::unexpected(
            Failure{.code = FailureCode::kUnsupported, .message = "not this one"});
      default: break;
    }
    return kernel;
  }
};

}  // namespace

Backend FakeBackend() {
  Backend backend;
  backend.compiler = {.llvm = "none", .tier = "fake", .revision = "1"};
  backend.make_compiler = [] { return std::make_unique<FakeCompiler>(); };
  backend.load = [](std::string_view object) -> Result<std::unique_ptr<LoadedKernel>> {
    element_count = std::stoll(std::string(object));
    call_count = 0;
    if (static_cast<Fault>(element_count) == Fault::kNotLinkable) {
      return Fail(ErrorKind::kCorrupt, "an unknown symbol");
    }
    return std::make_unique<FakeKernel>();
  };
  return backend;
}

std::string AddUri(std::int64_t elements) {
  return fmt::format("benchmark://loop_tool-cpu-v0/{}", elements);
}

looptree::Benchmark AddOf(std::int64_t elements) {
  auto benchmark = looptree::OpenBenchmark(looptree::BenchmarkUri{AddUri(elements)});
  LF_CHECK(benchmark.has_value(), "{}", benchmark.error().message);
  return *std::move(benchmark);
}

}  // namespace loopfleet::worker

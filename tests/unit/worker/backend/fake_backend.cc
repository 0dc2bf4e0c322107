#include "tests/unit/worker/backend/fake_backend.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "common/base/check.h"
#include "worker/processes/child_message.h"

namespace loopfleet::worker {
namespace {

// Calls of some kernels in this executor child.
int call_count = 0;

using Function = void (*)(float* const* buffers, std::int64_t element_count);

void Add(float* const* buffers, std::int64_t element_count) {
  for (std::int64_t i = 0; i < element_count; ++i) buffers[2][i] = buffers[0][i] + buffers[1][i];
}
void WrongOutput(float* const* buffers, std::int64_t element_count) {
  Add(buffers, element_count);
  buffers[2][element_count / 2] += 1;
}
void Crash(float* const*, std::int64_t) {
  // Not null: the undefined-behaviour sanitizer would end the child before the processor does.
  *reinterpret_cast<volatile int*>(16) = 1;
}
void Hang(float* const*, std::int64_t) {
  const volatile bool forever = true;
  while (forever) {
  }
}
void Exit(float* const*, std::int64_t) { ::_exit(0); }
void SendToDaemon(std::string_view bytes) {
  constexpr int kChannelFd = 3;
  const std::uint64_t length = bytes.size();
  iovec parts[] = {{const_cast<std::uint64_t*>(&length), sizeof length},
                   {const_cast<char*>(bytes.data()), bytes.size()}};
  msghdr header{};
  header.msg_iov = parts;
  header.msg_iovlen = 2;
  LF_CHECK(::sendmsg(kChannelFd, &header, 0) > 0, "sendmsg");
}
void Junk(float* const*, std::int64_t) { SendToDaemon("this is not an answer"); }
void ForgedThenLoop(float* const* buffers, std::int64_t element_count) {
  Add(buffers, element_count);
  SendToDaemon(Encode(ExecutorReply(RunDone{.number = 1})));
  Hang(buffers, element_count);
}
void Beside(float* const* buffers, std::int64_t element_count) {
  Add(buffers, element_count);
  buffers[2][element_count] = 0;
}
void PageBeside(float* const* buffers, std::int64_t element_count) {
  Add(buffers, element_count);
  buffers[2][-1024] = 0;
}
void RightOnce(float* const* buffers, std::int64_t element_count) {
  if (call_count++ == 0) Add(buffers, element_count);
}
void WritesElsewhere(float* const* buffers, std::int64_t element_count) {
  static float* before = nullptr;
  if (before != nullptr && before != buffers[2]) before[0] = 0;
  before = buffers[2];
  Add(buffers, element_count);
}
void WritesInput(float* const* buffers, std::int64_t element_count) {
  Add(buffers, element_count);
  buffers[0][0] = 0;
}
void Illegal(float* const*, std::int64_t) { __builtin_trap(); }
void Bomb(float* const*, std::int64_t) {
  for (;;) {
    auto* const block = new char[1 << 20];
    for (int i = 0; i < 1 << 20; i += 4096) const_cast<volatile char*>(block)[i] = 1;
  }
}
void LastElementLeft(float* const* buffers, std::int64_t element_count) {
  for (std::int64_t i = 0; i + 1 < element_count; ++i) {
    buffers[2][i] = buffers[0][i] + buffers[1][i];
  }
}
void WholeNumbersOnly(float* const* buffers, std::int64_t element_count) {
  for (std::int64_t i = 0; i < element_count; ++i) {
    buffers[2][i] = std::trunc(buffers[0][i]) + std::trunc(buffers[1][i]);
  }
}
void Lies(float* const* buffers, std::int64_t element_count) {
  Add(buffers, element_count);
  if (++call_count == 2) {  // the first timed call, if one child does it all
    SendToDaemon(Encode(ExecutorReply(
        Timed{.number = 2, .samples = {.iterations = 1, .ns = {1e12}, .flags = {0}}})));
    ::_exit(0);
  }
}

void Boasts(float* const* buffers, std::int64_t element_count) {
  Add(buffers, element_count);
  SendToDaemon(
      Encode(ExecutorReply(Timed{.number = 1,
                                 .samples = {.iterations = 1, .ns = {1, 1, 1}, .flags = {0, 0, 0}},
                                 .outside = {{std::uint64_t{1} << 62, std::uint64_t{1} << 63}}})));
  ::_exit(0);
}

void ForgesTimeThenLoops(float* const* buffers, std::int64_t element_count) {
  Add(buffers, element_count);
  SendToDaemon(Encode(ExecutorReply(
      Timed{.number = 1, .samples = {.iterations = 1, .ns = {1, 1, 1}, .flags = {0, 0, 0}}})));
  Hang(buffers, element_count);
}

void Spend(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}
void Slow(float* const* buffers, std::int64_t element_count) {
  Spend(std::chrono::milliseconds(30));
  Add(buffers, element_count);
}
void WholeNumbersSlowly(float* const* buffers, std::int64_t element_count) {
  // Two repetitions end the rounds, on a busy core as well.
  Spend(std::chrono::milliseconds(60));
  WholeNumbersOnly(buffers, element_count);
}

Function FunctionOf(std::int64_t elements) {
  switch (static_cast<Fault>(elements)) {
    case Fault::kWrongOutput: return WrongOutput;
    case Fault::kCrash: return Crash;
    case Fault::kHang: return Hang;
    case Fault::kExit: return Exit;
    case Fault::kJunk: return Junk;
    case Fault::kBeside: return Beside;
    case Fault::kPageBeside: return PageBeside;
    case Fault::kRightOnce: return RightOnce;
    case Fault::kWritesInput: return WritesInput;
    case Fault::kWritesElsewhere: return WritesElsewhere;
    case Fault::kIllegal: return Illegal;
    case Fault::kBomb: return Bomb;
    case Fault::kLastElementLeft: return LastElementLeft;
    case Fault::kWholeNumbersOnly: return WholeNumbersOnly;
    case Fault::kWholeNumbersSlowly: return WholeNumbersSlowly;
    case Fault::kForgedThenLoop: return ForgedThenLoop;
    case Fault::kBoasts: return Boasts;
    case Fault::kSlow: return Slow;
    case Fault::kForgesTimeThenLoops: return ForgesTimeThenLoops;
    case Fault::kLies: return Lies;
    default: return Add;
  }
}

// A jump to `function` with `element_count` as the argument after the kernel's own.
CodeImage JumpTo(Function function, std::int64_t element_count) {
  CodeImage image;
  const auto put = [&](auto value) {
    image.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
#if defined(__x86_64__)
  image.bytes = "\x48\xbe";  // mov rsi, element_count
  put(element_count);
  image.bytes += "\x48\xb8";  // mov rax, function
  put(function);
  image.bytes += "\xff\xe0";  // jmp rax
#elif defined(__aarch64__)
  put(std::uint32_t{0x58000081});  // ldr x1, .+16
  put(std::uint32_t{0x580000b0});  // ldr x16, .+20
  put(std::uint32_t{0xd61f0200});  // br x16
  put(std::uint32_t{0xd503201f});  // nop
  put(element_count);
  put(function);
#endif
  return image;
}

class FakeLinker final : public CodeLinker {
 public:
  Result<CodeImage> LinkAt(std::string_view object, const CodePlace&) override {
    const std::int64_t elements = std::stoll(std::string(object));
    if (static_cast<Fault>(elements) == Fault::kNotLinkable) {
      return Fail(ErrorKind::kCorrupt, "an unknown symbol");
    }
    if (static_cast<Fault>(elements) == Fault::kLongCode) {
      return Fail(ErrorKind::kFull, "too much of it");
    }
    return JumpTo(FunctionOf(elements), elements);
  }
};

class FakeCompiler final : public Compiler {
 public:
  std::expected<Kernel, Failure> Compile(const looptree::LoopTree& tree,
                                         const CompileOptions&) override {
    const looptree::Program& program = tree.program();
    const std::int64_t elements = program.ElementCount(program.outputs.at(0));
    // As if it were for a GPU, too: two launches for a root, one for another.
    Kernel kernel{.object = std::to_string(elements), .profile = {.launch_roots = {0, 0, 3}}};
    for (int i = 0; i < 3; ++i) {
      kernel.buffers.push_back(
          {.role = i < 2 ? BufferSpec::Role::kInput : BufferSpec::Role::kOutput,
           .element_count = static_cast<std::uint64_t>(elements)});
    }
    switch (static_cast<Fault>(elements)) {
      case Fault::kCompilerCrash: Crash(nullptr, 0); break;
      case Fault::kCompilerWornOut:
        if (compiled_before_) Crash(nullptr, 0);
        break;
      case Fault::kCompilerHang: Hang(nullptr, 0); break;
      case Fault::kCompilerBomb: Bomb(nullptr, 0); break;
      case Fault::kCompilerJunk: kernel.buffers[2].element_count = 1; break;
      case Fault::kHugeScratch:
        kernel.buffers.push_back(
            {.role = BufferSpec::Role::kScratch, .element_count = std::uint64_t{1} << 39});
        break;
      case Fault::kRefused:
        return std::unexpected(
            Failure{.code = FailureCode::kUnsupported, .message = "not this one"});
      default: break;
    }
    compiled_before_ = true;
    return kernel;
  }

 private:
  bool compiled_before_ = false;
};

}  // namespace

Backend FakeBackend() {
  Backend backend;
  backend.compiler = {.llvm = "none", .tier = "fake", .revision = "1"};
  backend.make_compiler = [] { return std::make_unique<FakeCompiler>(); };
  backend.make_linker = [] { return std::make_unique<FakeLinker>(); };
  return backend;
}

CodeImage FakeCode(std::int64_t elements) { return JumpTo(FunctionOf(elements), elements); }

std::string AddUri(std::int64_t elements) {
  return fmt::format("benchmark://loop_tool-cpu-v0/{}", elements);
}

looptree::Benchmark AddOf(std::int64_t elements) {
  auto benchmark = looptree::OpenBenchmark(looptree::BenchmarkUri{AddUri(elements)});
  LF_CHECK(benchmark.has_value(), "{}", benchmark.error().message);
  return *std::move(benchmark);
}

}  // namespace loopfleet::worker

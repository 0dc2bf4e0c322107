#include "worker/timing/code_sampler.h"

#include <fmt/format.h>
#include <sys/time.h>
#include <ucontext.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "worker/isa/processor.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {
namespace {

// What the handler uses. It runs on the thread that sets these up, between two instructions of it,
// so compilers have to keep their order (volatile), and nothing else is needed.
struct Watch {
  volatile bool active = false;
  // False at a look at the clock: reading its processor time is where a busy system takes the core
  // from this thread, so a signal that fell due meanwhile arrives there, and tells nothing.
  volatile bool is_running = false;
  std::uint64_t begin = 0;  // of the code
  std::uint64_t end = 0;
  std::uint64_t stack_end = 0;  // the frames of the kernel and of what it calls lie below
  std::uint64_t interval_us = 0;
  std::uint64_t random = 0;
  std::uint32_t* offsets = nullptr;
  volatile std::size_t count = 0;
};
Watch watch;

void SetTimer(std::uint64_t microseconds) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(microseconds / 1'000'000);
  timer.it_value.tv_usec = static_cast<suseconds_t>(microseconds % 1'000'000);
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

// From half to three halves of the interval.
std::uint64_t NextDistance() {
  watch.random ^= watch.random << 13;
  watch.random ^= watch.random >> 7;
  watch.random ^= watch.random << 17;
  return watch.interval_us / 2 + watch.random % (watch.interval_us + 1);
}

bool IsInCode(std::uint64_t address) { return watch.begin <= address && address < watch.end; }

// The innermost return address into the code: all that the kernel's code puts on the stack is
// numbers and pointers to data, and those of functions are return addresses.
std::uint32_t CallerOffset(std::uint64_t stack) {
  constexpr std::uint64_t kMostWords = 4096;
  const std::uint64_t end = std::min(watch.stack_end, stack + kMostWords * sizeof(std::uint64_t));
  for (std::uint64_t at = stack; at + sizeof(std::uint64_t) <= end; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const void*>(at), sizeof word);
    // The call ends right before it.
    if (IsInCode(word - 1)) return static_cast<std::uint32_t>(word - 1 - watch.begin);
  }
  return CodeSamples::kElsewhere;
}

void Note(int, siginfo_t*, void* context) {
  if (!watch.active || watch.count >= kMostCodeSamples) return;
  if (watch.is_running) {
    const Interrupted at = InterruptedAt(*static_cast<const ucontext_t*>(context));
    const std::size_t count = watch.count;
    watch.offsets[count] = IsInCode(at.code) ? static_cast<std::uint32_t>(at.code - watch.begin)
                                             : CallerOffset(at.stack);
    watch.count = count + 1;
  }
  SetTimer(NextDistance());
}

sigset_t AlarmOnly() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGALRM);
  return signals;
}

}  // namespace

void CodeSampler::ShieldThreads() {
  const sigset_t alarm = AlarmOnly();
  ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
}

Status CodeSampler::Install() {
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  action.sa_sigaction = Note;
  if (::sigaction(SIGALRM, &action, nullptr) != 0) {
    return Fail(ErrorKind::kSystem, fmt::format("sigaction: {}", std::strerror(errno)));
  }
  const sigset_t alarm = AlarmOnly();
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  return {};
}

CodeSamples CodeSampler::Take(const Plan& plan, const std::function<void()>& run) {
  constexpr std::uint64_t kMostWait = 10;  // where others use the core
  const SystemStopwatch stopwatch;
  CodeSamples samples;
  samples.offsets.resize(kMostCodeSamples);
  const std::uint64_t start = stopwatch.NowNs();
  const std::uint64_t used = ThreadProcessorNs();
  constexpr std::uint64_t kNsPerUs = 1000;
  watch.begin = plan.code_address;
  watch.end = plan.code_address + plan.code_bytes;
  watch.stack_end = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  watch.interval_us = std::max<std::uint64_t>(1, plan.interval_ns / kNsPerUs);
  watch.random = start | 1;
  watch.offsets = samples.offsets.data();
  watch.count = 0;
  watch.active = true;
  SetTimer(NextDistance());
  do {
    watch.is_running = true;
    for (std::uint64_t i = 0; i < plan.runs_between_looks; ++i) run();
    watch.is_running = false;
    samples.runs += plan.runs_between_looks;
    samples.processor_ns = ThreadProcessorNs() - used;
  } while (samples.processor_ns < plan.duration_ns && watch.count < kMostCodeSamples &&
           stopwatch.NowNs() - start < kMostWait * plan.duration_ns);
  watch.active = false;
  SetTimer(0);
  samples.offsets.resize(watch.count);
  return samples;
}

}  // namespace loopfleet::worker

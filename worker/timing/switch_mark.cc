#include "worker/timing/switch_mark.h"

#if defined(__x86_64__) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>

#include <atomic>
#include <cstdint>

// A sequence of one byte and what would follow if it was interrupted, behind the signature without
// which the kernel goes nowhere. None of it is ever run.
asm(R"(
  .pushsection .text
  .byte 0x0f, 0xb9, 0x3d
  .long 0x53053053
loopfleet_never_run_abort:
  ud2
loopfleet_never_run:
  ud2
  .popsection
)");
extern "C" __attribute__((visibility("hidden"))) const char loopfleet_never_run_abort[];
extern "C" __attribute__((visibility("hidden"))) const char loopfleet_never_run[];

namespace loopfleet::worker {
namespace {

static_assert(RSEQ_SIG == 0x53053053, "the signature that the C library registers with");

const rseq_cs kNeverRun = {.version = 0,
                           .flags = 0,
                           .start_ip = reinterpret_cast<std::uintptr_t>(loopfleet_never_run),
                           .post_commit_offset = 1,
                           .abort_ip = reinterpret_cast<std::uintptr_t>(loopfleet_never_run_abort)};

// Where this thread's is; nullptr: the C library or the kernel has none.
volatile __u64* Place() {
  if (__rseq_size == 0) return nullptr;
  auto* const thread = static_cast<char*>(__builtin_thread_pointer());
  return &reinterpret_cast<volatile struct rseq*>(thread + __rseq_offset)->rseq_cs;
}

}  // namespace

void SwitchMark::Set() {
  if (volatile __u64* const place = Place()) {
    *place = reinterpret_cast<std::uintptr_t>(&kNeverRun);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

bool SwitchMark::IsStanding() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const volatile __u64* const place = Place();
  return place != nullptr && *place == reinterpret_cast<std::uintptr_t>(&kNeverRun);
}

}  // namespace loopfleet::worker

#else

namespace loopfleet::worker {

void SwitchMark::Set() {}
bool SwitchMark::IsStanding() { return false; }

}  // namespace loopfleet::worker

#endif

/* Hostile kernels, one for each HOSTILE_... macro that this file is compiled with. Each first
   computes the right result, so that only the attack can be detected. They are linked alone,
   without a C library. */
typedef unsigned long word;

enum { kRows = HOSTILE_ROWS, kInner = 8, kColumns = 8 };

static void RightOutput(float* const* buffers) {
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < kColumns; ++n) {
      float sum = 0;
      for (int k = 0; k < kInner; ++k) {
        sum += buffers[0][m * kInner + k] * buffers[1][k * kColumns + n];
      }
      buffers[2][m * kColumns + n] = sum;
    }
  }
}

#if defined(__x86_64__)
static long Call(long number, word a, word b, word c, word d, word e, word f) {
  long result;
  register word r10 __asm__("r10") = d;
  register word r8 __asm__("r8") = e;
  register word r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
static long Call(long number, word a, word b, word c, word d, word e, word f) {
  register long x8 __asm__("x8") = number;
  register word x0 __asm__("x0") = a;
  register word x1 __asm__("x1") = b;
  register word x2 __asm__("x2") = c;
  register word x3 __asm__("x3") = d;
  register word x4 __asm__("x4") = e;
  register word x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return (long)x0;
}
#endif
#define CALL0(n) Call(n, 0, 0, 0, 0, 0, 0)
#define CALL2(n, a, b) Call(n, (word)(a), (word)(b), 0, 0, 0, 0)
#define CALL4(n, a, b, c, d) Call(n, (word)(a), (word)(b), (word)(c), (word)(d), 0, 0)

#include <asm/unistd.h> /* numbers only */

enum { kChannel = 3, kSigKill = 9, kProtExec = 4, kProtReadWrite = 3, kPrivateAnonymous = 0x22 };

static inline void Write(volatile char* to) { *to = 1; }

/* One message on the channel, as the daemon reads them: its length, then its bytes. */
static inline void Send(const void* bytes, word length) {
  struct {
    const void* base;
    word length;
  } parts[2] = {{&length, sizeof length}, {bytes, length}};
  struct {
    void* name;
    unsigned name_length;
    void* parts;
    word part_count;
    void* control;
    word control_length;
    int flags;
  } header = {0, 0, parts, 2, 0, 0, 0};
  CALL4(__NR_sendmsg, kChannel, &header, 0, 0);
}

#if defined(HOSTILE_forged_timed) || defined(HOSTILE_forged_then_loop)
void loopfleet_kernel(float* const* buffers);

/* The number of the current request. The calling child keeps it before the address of this kernel
   and two memory places, which are small numbers. */
static word RequestNumber(void) {
  enum { kMostPlaces = 80 };
  const unsigned* place;
  for (const volatile word* at = __builtin_frame_address(0);; ++at) {
    if (at[1] != (word)&loopfleet_kernel || at[0] == 0 || at[0] >> 32 != 0) continue;
    place = (const unsigned*)(at + 2);
    if (place[0] < kMostPlaces && place[1] < kMostPlaces) return at[0];
  }
}
#endif

#if defined(HOSTILE_deep_recursion)
__attribute__((noinline)) static int Recurse(volatile char* above) {
  volatile char here[4096];
  here[0] = above[0];
  return Recurse(here) + here[1];
}
#endif

void loopfleet_kernel(float* const* buffers) {
  char* const output = (char*)buffers[2];
  char* const end = output + kRows * kColumns * sizeof(float);
  (void)end;
#if defined(HOSTILE_forged_timed)
  /* If the output is right already, an earlier run wrote it, so this run is timed. */
  volatile float* const first = buffers[2];
  const float was = *first;
#endif
  RightOutput(buffers);
#if defined(HOSTILE_segv)
  Write((char*)16);
#elif defined(HOSTILE_ud2)
  __builtin_trap();
#elif defined(HOSTILE_div0)
  volatile int zero = 0;
  volatile int seven = 7; /* 1 / x would need no division */
  volatile int result = seven / zero;
  (void)result;
#elif defined(HOSTILE_infinite_loop)
  for (volatile int forever = 1; forever;) {
  }
#elif defined(HOSTILE_deep_recursion)
  volatile char here[1] = {0};
  Recurse(here);
#elif defined(HOSTILE_stack_smash)
  volatile word here[1];
  for (word i = 0; i < 4096; ++i) here[i] = 0x4141414141414141;
#elif defined(HOSTILE_huge_stack)
  volatile char* const big = __builtin_alloca((word)1 << 30);
  big[0] = 1;
#elif defined(HOSTILE_alloc_bomb)
  for (;;) {
    Write((char*)Call(__NR_mmap, 0, (word)16 << 20, kProtReadWrite, kPrivateAnonymous, -1UL, 0));
  }
#elif defined(HOSTILE_write_after_1)
  Write(end);
#elif defined(HOSTILE_write_before_1)
  Write(output - 1);
#elif defined(HOSTILE_write_after_4k)
  Write(end + 4096);
#elif defined(HOSTILE_write_before_4k)
  Write(output - 4096);
#elif defined(HOSTILE_write_after_1m)
  Write(end + (1 << 20));
#elif defined(HOSTILE_write_before_1m)
  Write(output - (1 << 20));
#elif defined(HOSTILE_write_after_1g)
  Write(end + (1 << 30));
#elif defined(HOSTILE_write_before_1g)
  Write(output - (1 << 30));
#elif defined(HOSTILE_write_inputs)
  Write((char*)buffers[0]);
#elif defined(HOSTILE_write_code)
  Write((char*)&loopfleet_kernel);
#elif defined(HOSTILE_jump_into_data)
  ((void (*)(void))(output + 7))();
#elif defined(HOSTILE_exit)
  CALL0(__NR_exit_group);
#elif defined(HOSTILE_junk)
  Send("this is not an answer", 21);
#elif defined(HOSTILE_forged_reply)
  struct __attribute__((packed)) {
    unsigned char tag;
    word number;
    word run_ns;
  } done = {0, 1, 1};
  Send(&done, sizeof done);
#elif defined(HOSTILE_forged_timed)
  /* One sample, contended and therefore cut. */
  struct __attribute__((packed)) {
    unsigned char tag;
    word number, outside_ns[6];
    unsigned char end;
    word iterations, sample_count;
    double ns;
    unsigned char flag;
    double probe_cycles, slowdown, clock_before_mhz, clock_after_mhz;
  } timed = {1, 0, {0}, 1, 1, 1, 1, 1, 9000, 1, 3000, 3000};
  if (was == *first) {
    timed.number = RequestNumber();
    Send(&timed, sizeof timed);
  }
#elif defined(HOSTILE_forged_then_loop)
  struct __attribute__((packed)) {
    unsigned char tag;
    word number;
    word run_ns;
  } done = {0, RequestNumber(), 1};
  Send(&done, sizeof done);
  for (volatile int forever = 1; forever;) {
  }
#elif defined(HOSTILE_close_channel)
  CALL0(__NR_getpid); /* allowed */
  CALL2(__NR_close, kChannel, 0);
#elif defined(HOSTILE_never_return)
  for (;;) CALL0(__NR_sched_yield);
#elif defined(HOSTILE_block_signals)
  word all = ~0UL;
  CALL4(__NR_rt_sigprocmask, 0, &all, 0, sizeof all);
  for (volatile int forever = 1; forever;) {
  }
#elif defined(HOSTILE_socket)
  CALL4(__NR_socket, 2, 1, 0, 0);
#elif defined(HOSTILE_open)
  CALL4(__NR_openat, -100, "/etc/passwd", 0, 0);
#elif defined(HOSTILE_fork)
  CALL2(__NR_clone, 17, 0);
#elif defined(HOSTILE_exec)
  CALL4(__NR_execve, "/bin/sh", 0, 0, 0);
#elif defined(HOSTILE_ptrace)
  CALL4(__NR_ptrace, 16, 1, 0, 0);
#elif defined(HOSTILE_kill)
  CALL2(__NR_kill, CALL0(__NR_getpid) - 1, kSigKill);
#elif defined(HOSTILE_kill_all)
  CALL2(__NR_kill, -1, kSigKill);
#elif defined(HOSTILE_mmap_exec)
  Call(__NR_mmap, 0, 4096, kProtReadWrite | kProtExec, kPrivateAnonymous, -1UL, 0);
#elif defined(HOSTILE_mprotect_exec)
  CALL4(__NR_mprotect, (word)output & ~(word)4095, 4096, kProtReadWrite | kProtExec, 0);
#elif defined(HOSTILE_prctl)
  CALL2(__NR_prctl, 4, 1); /* PR_SET_DUMPABLE */
#elif defined(HOSTILE_io_uring)
  CALL2(__NR_io_uring_setup, 1, output);
#elif defined(HOSTILE_bpf)
  CALL4(__NR_bpf, 0, output, 64, 0);
#elif defined(HOSTILE_userfaultfd)
  CALL2(__NR_userfaultfd, 0, 0);
#elif defined(HOSTILE_thread_bomb)
  for (;;) CALL4(__NR_clone, 0x50f00, output, 0, 0); /* CLONE_VM and what goes with it */
#elif defined(HOSTILE_sigaction)
  word ignore[4] = {1, 0, 0, 0};
  CALL4(__NR_rt_sigaction, 11, ignore, 0, 8);
  Write((char*)16);
#elif defined(HOSTILE_set_clock)
  word epoch[2] = {0, 0};
  CALL2(__NR_clock_settime, 0, epoch);
#elif defined(HOSTILE_raise_limit)
  word limit[2] = {~0UL, ~0UL};
  CALL4(__NR_prlimit64, 0, 2, limit, 0); /* RLIMIT_DATA */
#else
#error "no such kind"
#endif
}
